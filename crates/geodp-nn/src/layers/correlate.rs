//! The convolution kernel: on a grid of target places (v, u),
//! `target[o][v][u] = start[o] + Σ_{c,j,i} W[o][c][j][i] · source[c][v·s + j + y₀][u·s + i + x₀]`,
//! with source = 0 outside. Forward, it is the layer; backward to the input, it is the same with
//! W turned round, once for each phase of the stride.
//!
//! A register tile is O target channels × P places, O·P ≤ 12 accumulators of 16 registers and ≤ 24 of
//! 32: each step loads P source vectors and broadcasts O weights for O·P multiply-adds. Four places are
//! always two pairs that see the same taps, so that where there are more registers no place gets other
//! additions, or in another order. Rows outside the source are skipped, and
//! so are columns where the whole tile is outside, so padding costs next to nothing. Source channels
//! pass in groups that stay in the L1 cache while all target channels are computed; between groups
//! sums wait in the target, so that the order of additions is that of one group.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::parts::{even_parts, parts_of};
use crate::simd::{Kernel, Vector};
use std::ops::Range;

/// Shapes of one correlation. Source rows must hold every column that is touched.
#[derive(Clone, Debug)]
pub(crate) struct Correlation {
    pub(crate) channels: usize,
    pub(crate) source_rows: usize,
    /// Length of a stored source row, and where in it the columns that are not padding lie.
    pub(crate) source_stride: usize,
    pub(crate) source_left: usize,
    pub(crate) source_columns: usize,
    pub(crate) taps_y: usize,
    pub(crate) taps_x: usize,
    pub(crate) stride: usize,
    /// Source row of grid row 0 and tap 0; negative if that is padding.
    pub(crate) first_row: isize,
    /// Stored source column of grid column 0 and tap 0.
    pub(crate) first_column: usize,
    pub(crate) outputs: usize,
    pub(crate) grid_rows: usize,
    pub(crate) grid_columns: usize,
    /// Target: length of a plane, place of grid (0, 0) in it, steps of one grid row and column.
    pub(crate) target_plane: usize,
    pub(crate) target_first: usize,
    pub(crate) target_row_step: usize,
    pub(crate) target_column_step: usize,
}

/// Bytes of source that one run over all target channels should touch: half of a 32 KiB L1 cache.
const SOURCE_BYTES: usize = 16 << 10;
/// Source channels of a group at least: what waiting in the target costs is lost beside them.
const FEWEST_CHANNELS: usize = 12;
/// Taps of a row that are added without a loop.
const LONGEST_ROW: usize = 5;
/// Bytes of one source value as it is counted: not the vector's own, because where tiles begin decides
/// the order of some additions, and that must be the same on every instruction set.
const VECTOR_BYTES: usize = 32;

/// Target channels of each register tile.
pub(crate) fn channel_tiles(outputs: usize) -> impl Iterator<Item = usize> {
    even_parts(outputs, 6)
}

/// Places of a register tile of so many channels with 16 registers: at most twelve accumulators, and
/// registers left for the sources and one weight.
const fn places(channels: usize) -> &'static [usize] {
    if channels < 3 { &[4, 2, 1] } else { &[2, 1] }
}

/// Registers from which on two pairs of places become one tile.
const REGISTERS_FOR_TWO_PAIRS: usize = 32;

/// One tile of channels along a run of one grid row.
struct Run<'a, V, const O: usize> {
    shape: &'a Correlation,
    source: &'a [V],
    weights: &'a [f32],
    start: &'a [f32],
    target: &'a mut [V],
    row: usize,
    columns: Range<usize>,
    /// Whether nothing has been added to the target yet.
    first: bool,
}

impl Correlation {
    /// Weights it reads.
    pub(crate) fn weights(&self) -> usize {
        self.outputs * self.channels * self.taps_y * self.taps_x
    }

    /// Arranges the weights as `[tile][channel][tap y][tap x][channel of the tile]`.
    pub(crate) fn pack(
        &self,
        weight: impl Fn(usize, usize, usize, usize) -> f32,
        packed: &mut Vec<f32>,
    ) {
        let mut first = 0;
        for tile in channel_tiles(self.outputs) {
            for c in 0..self.channels {
                for (j, i) in (0..self.taps_y).flat_map(|j| (0..self.taps_x).map(move |i| (j, i))) {
                    packed.extend((first..first + tile).map(|o| weight(o, c, j, i)));
                }
            }
            first += tile;
        }
    }

    /// Sizes of the groups in which source channels pass. Where taps of a row are added one by one,
    /// all channels are one group, because groups would change the order of additions.
    pub(crate) fn channel_groups(&self) -> impl Iterator<Item = usize> + use<> {
        let largest = if self.stride == 1 && self.taps_x <= LONGEST_ROW {
            let channel_bytes = self.taps_y.max(1) * self.source_stride * VECTOR_BYTES;
            (SOURCE_BYTES / channel_bytes).max(FEWEST_CHANNELS)
        } else {
            self.channels
        };
        even_parts(self.channels, largest)
    }

    /// The same for some rows of the grid, on the source rows that they see, which are the second; at
    /// least one.
    pub(crate) fn of_rows(&self, rows: &Range<usize>) -> (Self, Range<usize>) {
        let first = self.first_row + (rows.start * self.stride) as isize;
        let last = self.first_row + ((rows.end - 1) * self.stride + self.taps_y) as isize;
        let start = first.clamp(0, self.source_rows as isize - 1);
        let end = last.clamp(start + 1, self.source_rows as isize);
        let part = Self {
            source_rows: (end - start) as usize,
            first_row: first - start,
            grid_rows: rows.len(),
            target_first: self.target_first + rows.start * self.target_row_step,
            ..self.clone()
        };
        (part, start as usize..end as usize)
    }

    /// Adds the channels `group`, of which `source` has the planes, to what the groups before have
    /// left in `target`; the first starts from `start`, or from 0 if that is empty.
    pub(crate) fn run<V: Vector>(
        &self,
        group: Range<usize>,
        source: &[V],
        weights: &[f32],
        start: &[f32],
        target: &mut [V],
    ) {
        let of_channel = self.taps_y * self.taps_x;
        let row_bytes = self.channels * self.taps_y * VECTOR_BYTES;
        let strip = (SOURCE_BYTES / row_bytes).saturating_sub(self.taps_x) / self.stride;
        for row in 0..self.grid_rows {
            let mut column = 0;
            for strip in even_parts(self.grid_columns, strip.max(12)) {
                let columns = column..column + strip;
                column += strip;
                let mut first = 0;
                let mut weights_left = weights;
                for tile in channel_tiles(self.outputs) {
                    let (weights, rest) = weights_left.split_at(tile * self.channels * of_channel);
                    weights_left = rest;
                    let weights = &weights[tile * group.start * of_channel..]
                        [..tile * group.len() * of_channel];
                    let start = if start.is_empty() { start } else { &start[first..first + tile] };
                    let target = &mut target[first * self.target_plane..];
                    first += tile;
                    macro_rules! run_of {
                        ($($o:literal)*) => {
                            match tile {
                                $($o => V::run(Run::<V, $o> {
                                    shape: self, source, weights, start, target, row,
                                    columns: columns.clone(), first: group.start == 0,
                                }),)*
                                _ => unreachable!("channel_tiles has no other"),
                            }
                        };
                    }
                    run_of!(1 2 3 4 5 6);
                }
            }
        }
    }
}

impl<V: Vector, const O: usize> Kernel for Run<'_, V, O> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let mut u = self.columns.start;
        let mut parts = parts_of(self.columns.len(), places(O)).peekable();
        while let Some(places) = parts.next() {
            let two_pairs = V::REGISTERS >= REGISTERS_FOR_TWO_PAIRS && places == 2;
            let two_pairs = two_pairs && parts.peek() == Some(&2);
            if two_pairs && self.is_whole(u) && self.is_whole(u + 2) {
                parts.next();
                self.tile::<4>(u);
                u += 4;
                continue;
            }
            match places {
                4 if O < 3 => self.tile::<4>(u),
                2 => self.tile::<2>(u),
                _ => self.tile::<1>(u),
            }
            u += places;
        }
    }
}

impl<V: Vector, const O: usize> Run<'_, V, O> {
    /// Whether each tap of a row sees the source from at least one of the two places at `u`.
    #[inline(always)]
    fn is_whole(&self, u: usize) -> bool {
        self.taps_x::<2>(u) == (0..self.shape.taps_x)
    }

    /// Taps of a row that see the source from at least one of the `P` places at `u`.
    #[inline(always)]
    fn taps_x<const P: usize>(&self, u: usize) -> Range<usize> {
        let shape = self.shape;
        let column = shape.first_column + u * shape.stride;
        shape.source_left.saturating_sub(column + (P - 1) * shape.stride)
            ..(shape.source_left + shape.source_columns).saturating_sub(column).min(shape.taps_x)
    }

    #[inline(always)]
    fn tile<const P: usize>(&mut self, u: usize) {
        let shape = self.shape;
        let first =
            shape.target_first + self.row * shape.target_row_step + u * shape.target_column_step;
        let mut sums = [[V::zero(); P]; O];
        if !self.first {
            for o in 0..O {
                for p in 0..P {
                    let at = o * shape.target_plane + first + p * shape.target_column_step;
                    sums[o][p] = self.target[at];
                }
            }
        } else if let Some(start) = self.start.first_chunk::<O>() {
            for o in 0..O {
                sums[o] = [V::splat(start[o]); P];
            }
        }
        // Taps with at least one place of the tile inside the source.
        let row = shape.first_row + (self.row * shape.stride) as isize;
        let taps_y = (-row).max(0) as usize
            ..(shape.source_rows as isize - row).clamp(0, shape.taps_y as isize) as usize;
        let column = shape.first_column + u * shape.stride;
        let taps_x = self.taps_x::<P>(u);
        let rows = Rows {
            source: (row + taps_y.start as isize).max(0) as usize * shape.source_stride + column,
            weights: taps_y.start * shape.taps_x * O,
            count: taps_y.len(),
            taps_x,
        };
        match (shape.stride, rows.taps_x.len()) {
            (_, 0) => {}
            // Whole rows of common kernels, and what padding and strides leave of them.
            (1, 1) => self.add::<P, 1>(rows, 1, &mut sums),
            (1, 2) => self.add::<P, 2>(rows, 1, &mut sums),
            (1, 3) => self.add::<P, 3>(rows, 1, &mut sums),
            (1, 4) => self.add::<P, 4>(rows, 1, &mut sums),
            (1, 5) => self.add::<P, 5>(rows, 1, &mut sums),
            (2, 3) => self.add::<P, 3>(rows, 2, &mut sums),
            (stride, _) => {
                for tap in rows.taps_x.clone() {
                    let one = Rows { taps_x: tap..tap + 1, ..rows.clone() };
                    self.add::<P, 1>(one, stride, &mut sums);
                }
            }
        }
        for o in 0..O {
            for p in 0..P {
                let at = o * shape.target_plane + first + p * shape.target_column_step;
                self.target[at] = sums[o][p];
            }
        }
    }

    /// Adds `K` taps of each row of each channel; `K` is known when compiling, so that the loop over
    /// taps disappears.
    #[inline(always)]
    fn add<const P: usize, const K: usize>(
        &self,
        rows: Rows,
        stride: usize,
        sums: &mut [[V; P]; O],
    ) {
        let shape = self.shape;
        let planes = self.source.chunks_exact(shape.source_rows * shape.source_stride);
        let weights = self.weights.chunks_exact(shape.taps_y * shape.taps_x * O);
        for (plane, weights) in planes.zip(weights) {
            let mut from = rows.source + rows.taps_x.start;
            let mut at = rows.weights + rows.taps_x.start * O;
            for _ in 0..rows.count {
                let source = &plane[from..from + K + (P - 1) * stride];
                let weights = &weights[at..at + K * O];
                from += shape.source_stride;
                at += shape.taps_x * O;
                for k in 0..K {
                    let mut places = [V::zero(); P];
                    for p in 0..P {
                        places[p] = source[k + p * stride];
                    }
                    for o in 0..O {
                        let weight = V::splat(weights[k * O + o]);
                        for p in 0..P {
                            sums[o][p] = weight.fma(places[p], sums[o][p]);
                        }
                    }
                }
            }
        }
    }
}

/// Rows of taps that a tile needs of every channel: where the first stands in a plane of the source
/// and among the channel's weights, how many, and which taps of each.
#[derive(Clone)]
struct Rows {
    source: usize,
    weights: usize,
    count: usize,
    taps_x: Range<usize>,
}
