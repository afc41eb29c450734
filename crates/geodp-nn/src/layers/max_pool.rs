//! y = maximum of each k×k window, stride s, no padding. Backward, the whole of dy goes to the first
//! place (row by row, as in PyTorch) that holds the maximum, which is found again from x: cheaper
//! than to keep an index for every lane.

use super::{AnyLayer, Backward, Describe, Forward, Layer};
use crate::error::Error;
use crate::layout::{Builder, Place, Value};
use crate::simd::Vector;
use serde::{Deserialize, Serialize};

/// Maximum of square windows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaxPoolSpec {
    /// Side of the window.
    pub kernel: usize,
    /// Step between windows; the side if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<usize>,
}

impl Describe for MaxPoolSpec {
    fn kind(&self) -> &'static str {
        "max_pool"
    }

    fn lay_out(&self, place: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        let kernel = self.kernel;
        let stride = self.stride.unwrap_or(kernel);
        let ([channels, height, width], out) = place.windows(kernel, stride)?;
        let layer = MaxPool { channels, height, width, kernel, stride };
        to.step(place, AnyLayer::MaxPool(layer), &x, out, Vec::new(), 0)
    }
}

pub(crate) struct MaxPool {
    pub(crate) channels: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
}

impl MaxPool {
    pub(crate) fn out_height(&self) -> usize {
        (self.height - self.kernel) / self.stride + 1
    }

    pub(crate) fn out_width(&self) -> usize {
        (self.width - self.kernel) / self.stride + 1
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

    #[inline(always)]
    fn maximum<V: Vector>(&self, x: &[V], start: usize) -> V {
        let mut best = x[start];
        for ky in 0..self.kernel {
            for value in &x[start + ky * self.width..][..self.kernel] {
                best = best.max(*value);
            }
        }
        best
    }

    #[inline(always)]
    fn is_plain_two(&self) -> bool {
        self.kernel == 2 && self.stride == 2 && self.width.is_multiple_of(2)
    }
}

impl Layer for MaxPool {
    #[inline(always)]
    fn forward<V: Vector>(&self, io: Forward<'_, V>) {
        if self.is_plain_two() {
            let rows = io.y.chunks_exact_mut(self.out_width());
            let pairs = (0..self.channels).flat_map(|channel| {
                let plane = &io.x[channel * self.height * self.width..];
                plane[..self.out_height() * 2 * self.width].chunks_exact(2 * self.width)
            });
            for (y, pair) in rows.zip(pairs) {
                let (upper, lower) = pair.split_at(self.width);
                let (upper, lower) = (upper.as_chunks::<2>().0, lower.as_chunks::<2>().0);
                for ((y, a), b) in y.iter_mut().zip(upper).zip(lower) {
                    *y = a[0].max(a[1]).max(b[0].max(b[1]));
                }
            }
            return;
        }
        for (y, start) in io.y.iter_mut().zip(self.windows()) {
            *y = self.maximum(io.x, start);
        }
    }

    #[inline(always)]
    fn backward<V: Vector>(&self, io: Backward<'_, V>) {
        let Some(dx) = io.dx else { return };
        if self.is_plain_two() && self.height.is_multiple_of(2) {
            let pairs = io.x.chunks_exact(2 * self.width);
            let targets = dx.chunks_exact_mut(2 * self.width);
            for ((dy, pair), target) in io.dy.chunks_exact(self.out_width()).zip(pairs).zip(targets)
            {
                let (upper, lower) = pair.split_at(self.width);
                let (to_upper, to_lower) = target.split_at_mut(self.width);
                let sources = upper.as_chunks::<2>().0.iter().zip(lower.as_chunks::<2>().0);
                let targets =
                    to_upper.as_chunks_mut::<2>().0.iter_mut().zip(to_lower.as_chunks_mut::<2>().0);
                for ((&dy, (a, b)), (to_a, to_b)) in dy.iter().zip(sources).zip(targets) {
                    let best = a[0].max(a[1]).max(b[0].max(b[1]));
                    let rest;
                    (to_a[0], rest) = dy.split_where_equal(a[0], best);
                    let rest2;
                    (to_a[1], rest2) = rest.split_where_equal(a[1], best);
                    let rest3;
                    (to_b[0], rest3) = rest2.split_where_equal(b[0], best);
                    (to_b[1], _) = rest3.split_where_equal(b[1], best);
                }
            }
            return;
        }
        dx.fill(V::zero());
        for (&dy, start) in io.dy.iter().zip(self.windows()) {
            let best = self.maximum(io.x, start);
            let mut rest = dy;
            for ky in 0..self.kernel {
                let row = start + ky * self.width..start + ky * self.width + self.kernel;
                for (x, dx) in io.x[row.clone()].iter().zip(&mut dx[row]) {
                    let hit;
                    (hit, rest) = rest.split_where_equal(*x, best);
                    *dx = dx.add(hit);
                }
            }
        }
    }
}
