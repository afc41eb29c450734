//! y = W·x + b, W `[outputs][inputs]`.
//!
//! The per-sample gradient of W is the outer product dy·xᵀ, so its norm is ‖dy‖·‖x‖ and it is never
//! formed. The weighted sum over samples, Σ w_i·dy_i·x_iᵀ, is one product over a chunk of blocks
//! whose dy have been scaled ([book-keeping, Bu et al. 2023](https://arxiv.org/abs/2210.00038)):
//! [`OuterProducts`]. Forward and dx are the same kernel, the second with W transposed.
//! Packed: for each tile of rows `[inputs][rows]`, forward; b; the same of Wᵀ; W as it stands, if it is wide.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::linear_read;
use super::parts::parts_of;
use super::{AnyLayer, Backward, Describe, Forward, Layer};
use crate::error::Error;
use crate::layout::{Builder, Place, Value};
use crate::parameter::Start;
use crate::simd::{Kernel, Vector};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// y = W·x + b of a flat input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearSpec {
    /// Prefix of its parameters' names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Output features.
    pub outputs: usize,
    /// Whether there is a b.
    #[serde(default = "crate::spec::yes")]
    pub bias: bool,
}

impl Describe for LinearSpec {
    fn kind(&self) -> &'static str {
        "linear"
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn lay_out(&self, place: &Place<'_>, x: Value, to: &mut Builder) -> Result<Value, Error> {
        let [inputs] = *place.input else {
            return Err(place.wrong("it needs a flat input: put a flatten layer before it"));
        };
        let outputs = self.outputs;
        place.positive("outputs", outputs)?;
        place.sane(&[inputs, outputs], "it is too large")?;
        let start = Start::Uniform { fan_in: inputs };
        let mut parameters = vec![("weight", vec![outputs, inputs], start)];
        if self.bias {
            parameters.push(("bias", vec![outputs], start));
        }
        let layer = Linear { inputs, outputs, bias: self.bias };
        to.step(place, AnyLayer::Linear(layer), &x, vec![outputs], parameters, inputs * outputs)
    }
}

pub(crate) struct Linear {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) bias: bool,
}

/// Rows of register tiles: at most twelve accumulators, or 24 where there are registers for them.
const fn tile_rows<V: Vector>() -> &'static [usize] {
    match (V::PARTS, V::REGISTERS > 16) {
        (1, false) => &[12, 8, 4, 2, 1],
        (1, true) => &[24, 12, 8, 4, 2, 1],
        (_, false) => &[3, 2, 1],
        (_, true) => &[6, 4, 3, 2, 1],
    }
}

fn pack_tiles<V: Vector>(
    rows: usize,
    columns: usize,
    entry: impl Fn(usize, usize) -> f32,
    packed: &mut Vec<f32>,
) {
    let mut first = 0;
    for tile in parts_of(rows, tile_rows::<V>()) {
        for column in 0..columns {
            packed.extend((first..first + tile).map(|row| entry(row, column)));
        }
        first += tile;
    }
}

impl Linear {
    /// Forward of some of the inputs, of which `x` has the values; the first must come first, and what
    /// waits in `y` is gone on with, so that the order of additions is that of all at once.
    #[inline(always)]
    pub(crate) fn forward_part<V: Vector>(
        &self,
        inputs: Range<usize>,
        packed: &[f32],
        x: &[V],
        y: &mut [V],
    ) {
        let (tiles, rest) = packed.split_at(self.inputs * self.outputs);
        product(tiles, inputs, self.inputs, &rest[..self.outputs], x, y);
    }

    /// How many biases: outputs or none.
    pub(crate) fn biases(&self) -> usize {
        if self.bias { self.outputs } else { 0 }
    }
}

impl Layer for Linear {
    fn pack<V: Vector>(&self, parameters: &[f32], packed: &mut Vec<f32>) {
        let (inputs, outputs) = (self.inputs, self.outputs);
        let (weight, bias) = parameters.split_at(inputs * outputs);
        pack_tiles::<V>(outputs, inputs, |row, column| weight[row * inputs + column], packed);
        packed.extend_from_slice(bias);
        packed.resize(packed.len() + if self.bias { 0 } else { outputs }, 0.0);
        pack_tiles::<V>(inputs, outputs, |row, column| weight[column * inputs + row], packed);
        if linear_read::pays(self) {
            linear_read::pack(self, weight, packed);
        }
    }

    #[inline(always)]
    fn forward<V: Vector>(&self, io: Forward<'_, V>) {
        self.forward_part(0..self.inputs, io.packed, io.x, io.y);
    }

    /// dx; and the gradients of W and b only where they are wanted in the lanes, which is for units of
    /// several rows: see the head of the file.
    #[inline(always)]
    fn backward<V: Vector>(&self, io: Backward<'_, V>) {
        if !io.gradient.is_empty() {
            let (weight, bias) = io.gradient.split_at_mut(self.inputs * self.outputs);
            for (row, &dy) in weight.chunks_exact_mut(self.inputs).zip(io.dy) {
                for (to, x) in row.iter_mut().zip(io.x) {
                    *to = if io.accumulate { x.fma(dy, *to) } else { x.mul(dy) };
                }
            }
            for (to, &dy) in bias.iter_mut().zip(io.dy) {
                *to = if io.accumulate { to.add(dy) } else { dy };
            }
        }
        if let Some(dx) = io.dx {
            let transposed = &io.packed[self.inputs * self.outputs + self.outputs..];
            product(transposed, 0..self.outputs, self.outputs, &[], io.dy, dx);
        }
    }
}

/// `y = M·x + start`, M in packed tiles of `all` columns; `start` empty for none. Of the columns `part`,
/// unless they are the first, it is `y += M·x`.
#[inline(always)]
fn product<V: Vector>(
    tiles: &[f32],
    part: Range<usize>,
    all: usize,
    start: &[f32],
    x: &[V],
    y: &mut [V],
) {
    let (mut tiles, mut start, mut y) = (tiles, start, y);
    let first = part.start == 0;
    for rows in parts_of(y.len(), tile_rows::<V>()) {
        let (tile, tiles_left) = tiles.split_at(rows * all);
        let tile = &tile[rows * part.start..rows * part.end];
        let (to, y_left) = y.split_at_mut(rows);
        let from = if start.is_empty() { start } else { start.split_off(..rows).unwrap_or(&[]) };
        macro_rules! rows_of {
            ($($rows:literal)*) => {
                match rows {
                    $($rows => product_tile::<V, $rows>(tile, first, from, x, to),)*
                    _ => unreachable!("tile_rows has no other"),
                }
            };
        }
        match const { (V::PARTS, V::REGISTERS > 16) } {
            (1, false) => rows_of!(1 2 4 8 12),
            (1, true) => rows_of!(1 2 4 8 12 24),
            (_, false) => rows_of!(1 2 3),
            (_, true) => rows_of!(1 2 3 4 6),
        }
        (tiles, y) = (tiles_left, y_left);
    }
}

#[inline(always)]
fn product_tile<V: Vector, const ROWS: usize>(
    tile: &[f32],
    first: bool,
    start: &[f32],
    x: &[V],
    y: &mut [V],
) {
    let mut sums = [V::zero(); ROWS];
    if !first {
        sums.copy_from_slice(&y[..ROWS]);
    } else if let Some(start) = start.first_chunk::<ROWS>() {
        for row in 0..ROWS {
            sums[row] = V::splat(start[row]);
        }
    }
    for (weights, x) in tile.as_chunks::<ROWS>().0.iter().zip(x) {
        for row in 0..ROWS {
            sums[row] = V::splat(weights[row]).fma(*x, sums[row]);
        }
    }
    y[..ROWS].copy_from_slice(&sums);
}

/// Outputs whose dy over a chunk of 128 samples fill a good third of a 32 KiB L1 cache.
const PANEL: usize = 24;

/// `weight_sum += Σ_blocks Σ_lanes dy·xᵀ` and `bias_sum += ΣΣ dy`, x and dy as `[feature][block]`.
pub(crate) struct OuterProducts<'a, V> {
    pub(crate) layer: &'a Linear,
    pub(crate) x: &'a [V],
    pub(crate) dy: &'a [V],
    /// Blocks there is room for, and blocks in use.
    pub(crate) room: usize,
    pub(crate) blocks: usize,
    /// Weight, then bias, as in PyTorch.
    pub(crate) sum: &'a mut [f32],
}

impl<V: Vector> Kernel for OuterProducts<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (x, dy) = (V::parts(self.x), V::parts(self.dy));
        let (room, used) = (self.room * V::PARTS, self.blocks * V::PARTS);
        let (inputs, outputs) = (self.layer.inputs, self.layer.outputs);
        // The dy of a panel stay in the L1 cache while all x pass.
        for panel in (0..outputs).step_by(PANEL) {
            let mut column = 0;
            for columns in parts_of(inputs, &[4, 1]) {
                let mut row = panel;
                for rows in parts_of(PANEL.min(outputs - panel), &[3, 1]) {
                    let (dy, x) = (&dy[row * room..], &x[column * room..]);
                    let tile = match (rows, columns) {
                        (3, 4) => outer_tile::<V::Part, 3, 4>(dy, x, room, used),
                        (3, _) => outer_tile::<V::Part, 3, 1>(dy, x, room, used),
                        (_, 4) => outer_tile::<V::Part, 1, 4>(dy, x, room, used),
                        _ => outer_tile::<V::Part, 1, 1>(dy, x, room, used),
                    };
                    for (r, tile) in tile.chunks_exact(4).take(rows).enumerate() {
                        let at = (row + r) * inputs + column;
                        for (sum, value) in self.sum[at..at + columns].iter_mut().zip(tile) {
                            *sum += value;
                        }
                    }
                    row += rows;
                }
                column += columns;
            }
        }
        if self.layer.bias {
            let bias = &mut self.sum[self.layer.inputs * self.layer.outputs..];
            for (sum, dy) in bias.iter_mut().zip(dy.chunks_exact(room)) {
                let mut total = V::Part::zero();
                for dy in &dy[..used] {
                    total = total.add(*dy);
                }
                *sum += total.sum();
            }
        }
    }
}

/// Products of `ROWS` rows of dy with `COLUMNS` rows of x, four to a row of the result.
#[inline(always)]
fn outer_tile<V: Vector, const ROWS: usize, const COLUMNS: usize>(
    dy: &[V],
    x: &[V],
    room: usize,
    used: usize,
) -> [f32; 12] {
    let (mut dys, mut xs) = ([&dy[..0]; ROWS], [&x[..0]; COLUMNS]);
    for r in 0..ROWS {
        dys[r] = &dy[r * room..][..used];
    }
    for c in 0..COLUMNS {
        xs[c] = &x[c * room..][..used];
    }
    let mut sums = [[V::zero(); COLUMNS]; ROWS];
    for at in 0..used {
        for r in 0..ROWS {
            for c in 0..COLUMNS {
                sums[r][c] = dys[r][at].fma(xs[c][at], sums[r][c]);
            }
        }
    }
    let mut out = [0.0; 12];
    for r in 0..ROWS {
        for c in 0..COLUMNS {
            out[r * 4 + c] = sums[r][c].sum();
        }
    }
    out
}
