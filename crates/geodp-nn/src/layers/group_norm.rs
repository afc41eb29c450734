//! Group normalisation ([Wu & He 2018](https://arxiv.org/abs/1803.08494)): within each sample and
//! each group of channels, x̂ = (x − mean)/√(variance + ε), y = γ_c·x̂ + β_c.
//!
//! Per-sample gradients: dγ_c = Σ dy·x̂, dβ_c = Σ dy over the plane, and with h = γ·dy,
//! dx = (h − mean h − x̂·mean(h·x̂))/√(variance + ε). The statistics are found again in the backward
//! pass: two sums over a group cost less than to keep them for every block. Forward, (x − mean)·f and
//! not x·f − mean·f: a value that equals its mean gives exactly β, whatever the rounding of f.
//! Packed: γ, then β.

use super::{AnyLayer, Backward, Describe, Forward, Layer};
use crate::error::Error;
use crate::layout::{Builder, Place, Value};
use crate::parameter::Start;
use crate::simd::Vector;
use serde::{Deserialize, Serialize};

/// Normalises groups of channels within each sample, then scales and shifts each channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupNormSpec {
    /// Prefix of its parameters' names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How many groups; divides the channels.
    pub groups: usize,
}

impl Describe for GroupNormSpec {
    fn kind(&self) -> &'static str {
        "group_norm"
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn lay_out(&self, place: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        let [channels, height, width] = place.planes()?;
        let groups = self.groups;
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(place.wrong(format!("{groups} groups do not divide {channels} channels")));
        }
        let parameters = vec![
            ("weight", vec![channels], Start::Constant(1)),
            ("bias", vec![channels], Start::Constant(0)),
        ];
        let layer = GroupNorm { channels, groups, plane: height * width };
        let shape = x.shape.clone();
        to.step(place, AnyLayer::GroupNorm(layer), &x, shape, parameters, 0)
    }
}

/// As PyTorch's default.
const EPSILON: f32 = 1e-5;

pub(crate) struct GroupNorm {
    pub(crate) channels: usize,
    pub(crate) groups: usize,
    /// Places in the plane of one channel.
    pub(crate) plane: usize,
}

/// Σ of a term over values, in two levels, chains of 64, so that large groups lose few digits. Not a
/// function of a closure, which would be compiled without the features of the instruction set.
macro_rules! total {
    ($values:expr, $value:pat => $term:expr) => {{
        let (mut all, mut part, mut count) = (V::zero(), V::zero(), 0);
        for $value in $values {
            part = part.add($term);
            count += 1;
            if count == 64 {
                all = all.add(part);
                (part, count) = (V::zero(), 0);
            }
        }
        all.add(part)
    }};
}

impl GroupNorm {
    #[inline(always)]
    fn statistics<V: Vector>(&self, group: &[V]) -> (V, V) {
        let share = V::splat(1.0 / group.len() as f32);
        let mean = total!(group, x => *x).mul(share);
        let variance = total!(group, x => x.sub(mean).mul(x.sub(mean))).mul(share);
        (mean, V::splat(1.0).div(variance.add(V::splat(EPSILON)).sqrt()))
    }
}

impl Layer for GroupNorm {
    #[inline(always)]
    fn forward<V: Vector>(&self, io: Forward<'_, V>) {
        let group_len = self.channels / self.groups * self.plane;
        let (scales, shifts) = io.packed.split_at(self.channels);
        let mut parameters = scales.iter().zip(shifts);
        for (x, y) in io.x.chunks_exact(group_len).zip(io.y.chunks_exact_mut(group_len)) {
            let (mean, inverse) = self.statistics(x);
            let planes = x.chunks_exact(self.plane).zip(y.chunks_exact_mut(self.plane));
            for ((x, y), (&scale, &shift)) in planes.zip(&mut parameters) {
                let factor = inverse.mul(V::splat(scale));
                let shift = V::splat(shift);
                for (y, x) in y.iter_mut().zip(x) {
                    *y = x.sub(mean).fma(factor, shift);
                }
            }
        }
    }

    #[inline(always)]
    fn backward<V: Vector>(&self, io: Backward<'_, V>) {
        let in_group = self.channels / self.groups;
        let group_len = in_group * self.plane;
        let scales = &io.packed[..self.channels];
        let (to_scales, to_shifts) = io.gradient.split_at_mut(self.channels);
        let mut dx = io.dx;
        for group in 0..self.groups {
            let range = group * group_len..(group + 1) * group_len;
            let (x, dy) = (&io.x[range.clone()], &io.dy[range.clone()]);
            let (mean, inverse) = self.statistics(x);
            let (mut mean_h, mut mean_hx) = (V::zero(), V::zero());
            for c in 0..in_group {
                let plane = c * self.plane..(c + 1) * self.plane;
                let (x, dy) = (&x[plane.clone()], &dy[plane]);
                let shift = total!(dy, dy => *dy);
                let scale = total!(x.iter().zip(dy), (x, dy) => dy.mul(x.sub(mean))).mul(inverse);
                let channel = group * in_group + c;
                let weight = V::splat(scales[channel]);
                mean_h = shift.fma(weight, mean_h);
                mean_hx = scale.fma(weight, mean_hx);
                for (to, value) in
                    [(&mut to_scales[channel], scale), (&mut to_shifts[channel], shift)]
                {
                    *to = if io.accumulate { to.add(value) } else { value };
                }
            }
            let Some(dx) = dx.as_deref_mut() else { continue };
            let share = V::splat(1.0 / group_len as f32);
            let (mean_h, mean_hx) = (mean_h.mul(share), mean_hx.mul(share));
            for ((at, dx), (x, dy)) in dx[range].iter_mut().enumerate().zip(x.iter().zip(dy)) {
                let weight = V::splat(scales[group * in_group + at / self.plane]);
                let normal = x.sub(mean).mul(inverse);
                *dx = dy.mul(weight).sub(mean_h).sub(normal.mul(mean_hx)).mul(inverse);
            }
        }
    }
}
