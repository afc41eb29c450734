//! Two-dimensional convolution, W `[outputs][channels][k][k]`, stride s, zero padding p.
//!
//! Forward: one [`Correlation`]. dx: the places of x with (y + p) mod s = φ, (x + p) mod s = ψ form
//! a grid whose taps are k = φ + s·j; each of the s² phases is one [`Correlation`] over dy with
//! stride 1, so no multiplication with an inserted zero is done. Per-sample dW: `conv2d_gradient`.
//! Padding is a copy of the source with zero columns beside it, of x a band of rows at a time so that it
//! stays in the cache; rows need none, and the gradient of the weights needs no padding at all.
//! Wide layers of kernels 3×3 and stride 1 go by tiles instead ([`super::winograd`]), which skips most multiplications.
//! Packed: forward weights, bias (zeros without), the weights of each phase; those of tiles in the same order.

use super::conv_shape::{ConvShape, Tiles};
use super::conv2d_gradient::{bias_gradient, weight_gradient};
use super::correlate::Correlation;
use super::parts::even_parts;
use super::winograd_gradient;
use super::{AnyLayer, Backward, Describe, Forward, Layer};
use crate::error::Error;
use crate::layout::{Builder, LARGEST, Place, Value};
use crate::parameter::Start;
use crate::simd::Vector;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Convolution with a square kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv2dSpec {
    /// Prefix of its parameters' names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Output channels.
    pub outputs: usize,
    /// Side of the kernel.
    pub kernel: usize,
    /// Step between places of the kernel.
    #[serde(default = "crate::spec::one")]
    pub stride: usize,
    /// Zeros around the input.
    #[serde(default)]
    pub padding: usize,
    /// Whether there is a bias for each output channel.
    #[serde(default = "crate::spec::yes")]
    pub bias: bool,
}

impl Describe for Conv2dSpec {
    fn kind(&self) -> &'static str {
        "conv2d"
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn lay_out(&self, place: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        let [channels, height, width] = place.planes()?;
        let &Self { outputs, kernel, stride, padding, bias, .. } = self;
        place.positive("outputs", outputs)?;
        place.positive("kernel", kernel)?;
        place.positive("stride", stride)?;
        if padding > LARGEST || kernel.saturating_sub(2 * padding) > height.min(width) {
            return Err(place.wrong(format!(
                "its kernel of side {kernel} with padding {padding} is larger than that"
            )));
        }
        let weight = vec![outputs, channels, kernel, kernel];
        place.sane(&weight, "it is too large")?;
        let shape = ConvShape { channels, height, width, outputs, kernel, stride, padding, bias };
        let out = vec![outputs, shape.out_height(), shape.out_width()];
        let padded = [channels.max(outputs), height + 2 * padding, width + 2 * padding];
        place.sane(&out, "its output is too large")?;
        place.sane(&padded, "its output is too large")?;
        let start = Start::Uniform { fan_in: channels * kernel * kernel };
        let mut parameters = vec![("weight", weight, start)];
        if bias {
            parameters.push(("bias", vec![outputs], start));
        }
        let cost = shape.weights() * out[1] * out[2];
        let layer = AnyLayer::Conv2d(Box::new(Conv2d::new(shape)));
        to.step(place, layer, &x, out, parameters, cost)
    }
}

/// Values of x that are padded at a time, so that the copy stays in the L2 cache beside x and y.
const PADDED_VALUES: usize = 2048;

#[derive(Debug)]
pub(crate) struct Conv2d {
    pub(crate) shape: ConvShape,
    forward: Correlation,
    /// Pixels added left and right of x, and of dy.
    x_padding: (usize, usize),
    dy_padding: (usize, usize),
    phases: Vec<(Correlation, [usize; 2])>,
    /// In place of the above, where that is quicker.
    tiles: Option<Tiles>,
}

/// Places of one phase of the stride along one axis: the first, how many, and how the taps lie.
struct Phase {
    first: usize,
    count: usize,
    taps: usize,
    /// Place in dy of grid place 0 and the last tap, which comes first.
    origin: isize,
}

fn phase(shape: &ConvShape, phase: usize, length: usize) -> Phase {
    let (s, p) = (shape.stride, shape.padding);
    let first = (phase + s - p % s) % s;
    let count = length.saturating_sub(first).div_ceil(s);
    let taps = shape.kernel.saturating_sub(phase).div_ceil(s);
    let origin = ((first + p) / s) as isize - taps as isize + 1;
    Phase { first, count, taps, origin }
}

impl Conv2d {
    pub(crate) fn new(shape: ConvShape) -> Self {
        let (rows, columns) = (shape.out_height(), shape.out_width());
        let last = (columns - 1) * shape.stride + shape.kernel;
        let x_padding = (shape.padding, last.saturating_sub(shape.padding + shape.width));
        let forward = Correlation {
            channels: shape.channels,
            source_rows: shape.height,
            source_stride: shape.width + x_padding.0 + x_padding.1,
            source_left: x_padding.0,
            source_columns: shape.width,
            taps_y: shape.kernel,
            taps_x: shape.kernel,
            stride: shape.stride,
            first_row: -(shape.padding as isize),
            first_column: 0,
            outputs: shape.outputs,
            grid_rows: rows,
            grid_columns: columns,
            target_plane: rows * columns,
            target_first: 0,
            target_row_step: columns,
            target_column_step: 1,
        };
        let across: Vec<Phase> =
            (0..shape.stride).map(|at| phase(&shape, at, shape.width)).collect();
        let used = || across.iter().filter(|phase| phase.count > 0 && phase.taps > 0);
        let left = used().map(|phase| -phase.origin).max().unwrap_or(0).max(0) as usize;
        let ends = used().map(|phase| phase.origin + (phase.count + phase.taps) as isize - 1);
        let right = (ends.max().unwrap_or(0) - columns as isize).max(0) as usize;
        let mut phases = Vec::new();
        for phase_y in 0..shape.stride {
            let down = phase(&shape, phase_y, shape.height);
            for (phase_x, across) in across.iter().enumerate() {
                let correlation = Correlation {
                    channels: shape.outputs,
                    source_rows: rows,
                    source_stride: columns + left + right,
                    source_left: left,
                    source_columns: columns,
                    taps_y: down.taps,
                    taps_x: across.taps,
                    stride: 1,
                    first_row: down.origin,
                    first_column: (across.origin + left as isize).max(0) as usize,
                    outputs: shape.channels,
                    grid_rows: down.count,
                    grid_columns: across.count,
                    target_plane: shape.height * shape.width,
                    target_first: down.first * shape.width + across.first,
                    target_row_step: shape.stride * shape.width,
                    target_column_step: shape.stride,
                };
                phases.push((correlation, [phase_y, phase_x]));
            }
        }
        let tiles = shape.tiles();
        Self { shape, forward, x_padding, dy_padding: (left, right), phases, tiles }
    }

    /// Sizes of the groups in which channels of x pass.
    fn x_groups(&self) -> impl Iterator<Item = usize> + use<> {
        self.forward.channel_groups()
    }

    /// Sizes of the groups in which channels of dy pass: those of the phase with most taps.
    fn dy_groups(&self) -> impl Iterator<Item = usize> + use<> {
        self.phases[0].0.channel_groups()
    }

    /// Rows of y in the bands in which x is padded, so many channels of it.
    fn y_bands(&self, channels: usize) -> impl Iterator<Item = usize> + use<> {
        let ConvShape { kernel, stride, .. } = self.shape;
        let rows = PADDED_VALUES / (channels * self.forward.source_stride);
        even_parts(self.forward.grid_rows, rows.saturating_sub(kernel) / stride + 1)
    }
}

/// Some rows of each plane, in `scratch` with zeros left and right if there are any to add.
#[inline(always)]
fn padded<'a, V: Vector>(
    source: &'a [V],
    plane: usize,
    columns: usize,
    rows: &Range<usize>,
    (left, right): (usize, usize),
    scratch: &'a mut [V],
) -> &'a [V] {
    if (left, right) == (0, 0) {
        return source;
    }
    let stride = left + columns + right;
    let scratch = &mut scratch[..source.len() / plane * rows.len() * stride];
    let places = rows.start * columns..rows.end * columns;
    let targets = scratch.chunks_exact_mut(rows.len() * stride);
    for (plane, to) in source.chunks_exact(plane).zip(targets) {
        let rows = plane[places.clone()].chunks_exact(columns);
        for (row, to) in rows.zip(to.chunks_exact_mut(stride)) {
            to[..left].fill(V::zero());
            to[left..left + columns].copy_from_slice(row);
            to[left + columns..].fill(V::zero());
        }
    }
    scratch
}

impl Layer for Conv2d {
    /// Its sums fill the registers of one vector; wider ones pay for linear layers alone.
    const RUNS_WIDE: bool = false;

    fn scratch(&self) -> usize {
        let shape = &self.shape;
        if let Some(tiles) = &self.tiles {
            let sums = tiles.forward.scratch().max(tiles.to_input.scratch());
            return sums.max(winograd_gradient::scratch(shape));
        }
        let of_group = |channels| {
            let band = self.y_bands(channels).max().unwrap_or(1);
            let rows = ((band - 1) * shape.stride + shape.kernel).min(shape.height);
            channels * rows * self.forward.source_stride
        };
        let x = self.x_groups().map(of_group).max().unwrap_or(0);
        let dy_stride = shape.out_width() + self.dy_padding.0 + self.dy_padding.1;
        x.max(self.dy_groups().max().unwrap_or(0) * shape.out_height() * dy_stride)
    }

    fn pack<V: Vector>(&self, parameters: &[f32], packed: &mut Vec<f32>) {
        let ConvShape { channels, kernel, stride, outputs, .. } = self.shape;
        let (weight, bias) = parameters.split_at(self.shape.weights());
        let at = |o, c, j, i| weight[((o * channels + c) * kernel + j) * kernel + i];
        match &self.tiles {
            Some(tiles) => tiles.forward.pack(at, packed),
            None => self.forward.pack(at, packed),
        }
        packed.extend_from_slice(bias);
        packed.resize(packed.len() + if self.shape.bias { 0 } else { outputs }, 0.0);
        if let Some(tiles) = &self.tiles {
            tiles.to_input.pack(|c, o, j, i| at(o, c, 2 - j, 2 - i), packed);
            return;
        }
        for (phase, [phase_y, phase_x]) in &self.phases {
            let turned = |c, o, j, i| {
                let j = phase_y + stride * (phase.taps_y - 1 - j);
                let i = phase_x + stride * (phase.taps_x - 1 - i);
                at(o, c, j, i)
            };
            phase.pack(turned, packed);
        }
    }

    #[inline(always)]
    fn forward<V: Vector>(&self, io: Forward<'_, V>) {
        let ConvShape { height, width, outputs, .. } = self.shape;
        if let Some(tiles) = &self.tiles {
            let (weights, rest) = io.packed.split_at(tiles.forward.packed());
            tiles.forward.run(io.x, weights, &rest[..outputs], io.y, io.scratch);
            return;
        }
        let (weights, rest) = io.packed.split_at(self.shape.weights());
        let start = &rest[..outputs];
        for group in ranges(self.x_groups()) {
            let x = planes(io.x, &group, height * width);
            if self.x_padding == (0, 0) {
                self.forward.run(group, x, weights, start, io.y);
                continue;
            }
            for band in ranges(self.y_bands(group.len())) {
                let (forward, rows) = self.forward.of_rows(&band);
                let x = padded(x, height * width, width, &rows, self.x_padding, io.scratch);
                forward.run(group.clone(), x, weights, start, io.y);
            }
        }
    }

    #[inline(always)]
    fn backward<V: Vector>(&self, io: Backward<'_, V>) {
        let shape = &self.shape;
        let (weights, biases) = io.gradient.split_at_mut(shape.weights());
        if self.tiles.is_some() && winograd_gradient::pays(shape.target()) {
            let scratch = &mut *io.scratch;
            winograd_gradient::weight_gradient(shape, io.x, io.dy, weights, io.accumulate, scratch);
        } else {
            for group in ranges(self.x_groups()) {
                let x = planes(io.x, &group, shape.height * shape.width);
                weight_gradient(shape, group, x, io.dy, weights, io.accumulate);
            }
        }
        bias_gradient(shape, io.dy, biases, io.accumulate);
        let Some(dx) = io.dx else { return };
        if let Some(tiles) = &self.tiles {
            let weights = &io.packed[tiles.forward.packed() + shape.outputs..];
            tiles.to_input.run(io.dy, weights, &[], dx, io.scratch);
            return;
        }
        let covered = |(phase, _): &(Correlation, _)| phase.taps_x > 0 && phase.taps_y > 0;
        if !self.phases.iter().all(covered) {
            dx.fill(V::zero());
        }
        for group in ranges(self.dy_groups()) {
            let (rows, columns) = (shape.out_height(), shape.out_width());
            let dy = planes(io.dy, &group, rows * columns);
            let dy = padded(dy, rows * columns, columns, &(0..rows), self.dy_padding, io.scratch);
            let mut weights = &io.packed[shape.weights() + shape.outputs..];
            for (phase, _) in &self.phases {
                let (of_phase, rest) = weights.split_at(phase.weights());
                weights = rest;
                if phase.weights() > 0 {
                    phase.run(group.clone(), dy, of_phase, &[], dx);
                }
            }
        }
    }
}

/// The planes of some channels.
#[inline(always)]
fn planes<'a, V>(of: &'a [V], channels: &Range<usize>, plane: usize) -> &'a [V] {
    &of[channels.start * plane..channels.end * plane]
}

/// Where groups of these sizes begin and end.
fn ranges(sizes: impl Iterator<Item = usize>) -> impl Iterator<Item = Range<usize>> {
    sizes.scan(0, |end, size| {
        let first = *end;
        *end += size;
        Some(first..*end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::portable::Portable;

    /// Values of one lane, as good as random.
    fn values(len: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        (0..len)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / 8_388_608.0 - 1.0
            })
            .collect()
    }

    fn lanes(values: &[f32]) -> Vec<Portable> {
        values.iter().map(|&value| Portable::splat(value)).collect()
    }

    fn first_lane(values: &[Portable]) -> Vec<f32> {
        let mut lanes = [0.0; 8];
        let store = |value: &Portable| {
            value.store(&mut lanes);
            lanes[0]
        };
        values.iter().map(store).collect()
    }

    /// However channels are grouped and rows padded, every sum is one chain of multiply-adds over channels, then taps
    /// (y, dx) or places (dW): what the bits of released weights rest on.
    #[test]
    fn groups_and_bands_leave_the_order_of_additions() {
        check_order(45, 29, 6, 1);
        check_order(40, 13, 24, 5);
    }

    fn check_order(channels: usize, outputs: usize, side: usize, bands: usize) {
        let shape = ConvShape {
            channels,
            height: side,
            width: side,
            outputs,
            kernel: 3,
            stride: 1,
            padding: 1,
            bias: true,
        };
        let conv = Conv2d::new(shape);
        assert!(conv.x_groups().count() > 2 && conv.dy_groups().count() > 1);
        let of_group = conv.x_groups().map(|group| conv.y_bands(group).count());
        assert_eq!(of_group.max(), Some(bands));
        let (plane, weights) = (side * side, shape.weights());
        let parameters = values(weights + outputs, 1);
        let (x, dy) = (values(channels * plane, 2), values(outputs * plane, 3));
        let mut packed = Vec::new();
        conv.pack::<Portable>(&parameters, &mut packed);
        let mut scratch = vec![Portable::zero(); conv.scratch()];
        let zeros = |len| vec![Portable::zero(); len];
        let (mut y, mut dx) = (zeros(outputs * plane), zeros(channels * plane));
        let mut gradient = zeros(weights + outputs);
        let (x_lanes, dy_lanes) = (lanes(&x), lanes(&dy));
        conv.forward(Forward { x: &x_lanes, y: &mut y, packed: &packed, scratch: &mut scratch });
        conv.backward(Backward {
            x: &x_lanes,
            dy: &dy_lanes,
            dx: Some(&mut dx),
            packed: &packed,
            scratch: &mut scratch,
            gradient: &mut gradient,
            accumulate: false,
        });

        let weight = |o: usize, c: usize, j: usize, i: usize| {
            parameters[((o * channels + c) * 3 + j) * 3 + i]
        };
        // The place that a tap sees, if it is one.
        let seen = |at: usize, tap: usize| (at + tap).checked_sub(1).filter(|&at| at < side);
        let at = |plane_of: usize, v: usize, u: usize| (plane_of * side + v) * side + u;
        let taps = || (0..3).flat_map(|j| (0..3).map(move |i| (j, i)));
        let places = || (0..side).flat_map(|v| (0..side).map(move |u| (v, u)));
        let (mut of_y, mut of_dx, mut of_weights) = (Vec::new(), Vec::new(), Vec::new());
        for (o, (v, u)) in (0..outputs).flat_map(|o| places().map(move |place| (o, place))) {
            let mut sum = parameters[weights + o];
            for (c, (j, i)) in (0..channels).flat_map(|c| taps().map(move |tap| (c, tap))) {
                if let (Some(v), Some(u)) = (seen(v, j), seen(u, i)) {
                    sum = weight(o, c, j, i).mul_add(x[at(c, v, u)], sum);
                }
            }
            of_y.push(sum);
        }
        for (c, (v, u)) in (0..channels).flat_map(|c| places().map(move |place| (c, place))) {
            let mut sum = 0.0;
            for (o, (j, i)) in (0..outputs).flat_map(|o| taps().map(move |tap| (o, tap))) {
                if let (Some(v), Some(u)) = (seen(v, j), seen(u, i)) {
                    sum = weight(o, c, 2 - j, 2 - i).mul_add(dy[at(o, v, u)], sum);
                }
            }
            of_dx.push(sum);
        }
        for (o, c) in (0..outputs).flat_map(|o| (0..channels).map(move |c| (o, c))) {
            for (j, i) in taps() {
                let mut sum = 0.0;
                for (v, u) in places() {
                    if let (Some(row), Some(column)) = (seen(v, j), seen(u, i)) {
                        sum = dy[at(o, v, u)].mul_add(x[at(c, row, column)], sum);
                    }
                }
                of_weights.push(sum);
            }
        }
        assert_eq!(first_lane(&y), of_y);
        assert_eq!(first_lane(&dx), of_dx);
        assert_eq!(first_lane(&gradient[..weights]), of_weights);
    }
}
