//! y = mean of each k×k window, stride s, no padding; the global average is the window that is the
//! whole plane. Backward, every place of a window receives dy / window size.

use super::{AnyLayer, Backward, Describe, Forward, Layer};
use crate::error::Error;
use crate::layout::{Builder, Place, Value};
use crate::simd::Vector;
use serde::{Deserialize, Serialize};

/// Mean of square windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AvgPoolSpec {
    /// Side of the window.
    pub kernel: usize,
    /// Step between windows; the side if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<usize>,
}

impl Describe for AvgPoolSpec {
    fn kind(&self) -> &'static str {
        "avg_pool"
    }

    fn lay_out(&self, place: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        let stride = self.stride.unwrap_or(self.kernel);
        let ([channels, height, width], out) = place.windows(self.kernel, stride)?;
        let (kernel_height, kernel_width) = (self.kernel, self.kernel);
        let layer = AvgPool { channels, height, width, kernel_height, kernel_width, stride };
        to.step(place, AnyLayer::AvgPool(layer), &x, out, Vec::new(), 0)
    }
}

/// The description of the window that is the whole plane.
pub(crate) struct GlobalAvgPool;

impl Describe for GlobalAvgPool {
    fn kind(&self) -> &'static str {
        "global_avg_pool"
    }

    fn lay_out(&self, place: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        let [channels, height, width] = place.planes()?;
        let (kernel_height, kernel_width) = (height, width);
        let layer = AvgPool { channels, height, width, kernel_height, kernel_width, stride: 1 };
        to.step(place, AnyLayer::AvgPool(layer), &x, vec![channels], Vec::new(), 0)
    }
}

pub(crate) struct AvgPool {
    pub(crate) channels: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) kernel_height: usize,
    pub(crate) kernel_width: usize,
    pub(crate) stride: usize,
}

impl AvgPool {
    pub(crate) fn out_height(&self) -> usize {
        (self.height - self.kernel_height) / self.stride + 1
    }

    pub(crate) fn out_width(&self) -> usize {
        (self.width - self.kernel_width) / self.stride + 1
    }

    fn scale<V: Vector>(&self) -> V {
        V::splat(1.0 / (self.kernel_height * self.kernel_width) as f32)
    }

    /// Index in x of the first value of the window of each output, in order of y.
    #[inline(always)]
    fn windows(&self) -> impl Iterator<Item = usize> + '_ {
        let (rows, columns) = (self.out_height(), self.out_width());
        (0..self.channels).flat_map(move |channel| {
            (0..rows).flat_map(move |row| {
                let start = (channel * self.height + row * self.stride) * self.width;
                (0..columns).map(move |column| start + column * self.stride)
            })
        })
    }
}

impl Layer for AvgPool {
    #[inline(always)]
    fn forward<V: Vector>(&self, io: Forward<'_, V>) {
        for (y, start) in io.y.iter_mut().zip(self.windows()) {
            // One chain for each row, so that a large window neither waits nor loses digits.
            let mut total = V::zero();
            for ky in 0..self.kernel_height {
                let mut row = V::zero();
                for value in &io.x[start + ky * self.width..][..self.kernel_width] {
                    row = row.add(*value);
                }
                total = total.add(row);
            }
            *y = total.mul(self.scale());
        }
    }

    #[inline(always)]
    fn backward<V: Vector>(&self, io: Backward<'_, V>) {
        let Some(dx) = io.dx else { return };
        dx.fill(V::zero());
        for (&dy, start) in io.dy.iter().zip(self.windows()) {
            let share = dy.mul(self.scale());
            for ky in 0..self.kernel_height {
                for dx in &mut dx[start + ky * self.width..][..self.kernel_width] {
                    *dx = dx.add(share);
                }
            }
        }
    }
}
