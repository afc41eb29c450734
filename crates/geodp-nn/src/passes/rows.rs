//! The gradients of a block's samples one by one, as rows: for measuring single records.
//!
//! What stands in the lanes is transposed; of a linear layer the outer product dy·xᵀ is formed, which
//! training never does.

use super::Pass;
use super::workspace::Workspace;
use crate::simd::{Kernel, MOST_LANES, Vector};

/// Parameters transposed together: one cache line of each row.
const COLUMNS: usize = 16;

impl<V: Vector> Workspace<V> {
    /// Writes the per-sample gradients that `backward` left for block 0 of `room` blocks; `rows` has
    /// a row of all parameters for each sample of the block.
    pub(crate) fn write_gradients(&mut self, pass: &Pass<'_>, room: usize, rows: &mut [f32]) {
        let dim = pass.layout.dim;
        for step in pass.layout.lane_steps() {
            let lanes = &self.lane_gradient[step.lanes..][..step.parameters.len()];
            V::run(WriteLanes { lanes, rows, dim, start: step.parameters.start });
        }
        for ((_, step), (x, dy)) in pass.layout.linear_steps().zip(&self.linear) {
            let start = step.parameters.start;
            V::run(WriteProducts { x, dy, room, rows, dim, start, end: step.parameters.end });
        }
    }
}

/// `rows[lane][start + i] = lanes[i][lane]`.
struct WriteLanes<'a, V> {
    lanes: &'a [V],
    rows: &'a mut [f32],
    dim: usize,
    start: usize,
}

impl<V: Vector> Kernel for WriteLanes<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut tile = [[0.0f32; MOST_LANES]; COLUMNS];
        for (at, values) in self.lanes.chunks(COLUMNS).enumerate() {
            for (tile, value) in tile.iter_mut().zip(values) {
                value.store(tile);
            }
            for (lane, row) in self.rows.chunks_exact_mut(self.dim).enumerate() {
                let row = &mut row[self.start + at * COLUMNS..][..values.len()];
                for (out, tile) in row.iter_mut().zip(&tile) {
                    *out = tile[lane];
                }
            }
        }
    }
}

/// dy·xᵀ, then dy where there is a bias, for every lane.
struct WriteProducts<'a, V> {
    x: &'a [V],
    dy: &'a [V],
    room: usize,
    rows: &'a mut [f32],
    dim: usize,
    start: usize,
    end: usize,
}

impl<V: Vector> Kernel for WriteProducts<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let samples = self.rows.len() / self.dim;
        let (x, dy) = (lanes_apart(self.x, self.room), lanes_apart(self.dy, self.room));
        let (inputs, outputs) = (self.x.len() / self.room, self.dy.len() / self.room);
        for lane in 0..samples {
            let row = &mut self.rows[lane * self.dim..][self.start..self.end];
            let (x, dy) = (&x[lane * inputs..][..inputs], &dy[lane * outputs..][..outputs]);
            let (weight, bias) = row.split_at_mut(inputs * outputs);
            for (row, dy) in weight.chunks_exact_mut(inputs).zip(dy) {
                for (out, x) in row.iter_mut().zip(x) {
                    *out = dy * x;
                }
            }
            // A layer without a bias has no room for it here.
            bias.copy_from_slice(&dy[..bias.len()]);
        }
    }
}

/// Block 0 of `[feature][block]` as `[lane][feature]`.
#[inline(always)]
fn lanes_apart<V: Vector>(values: &[V], room: usize) -> Vec<f32> {
    let features = values.len() / room;
    let mut apart = vec![0.0; features * V::LANES];
    let mut lanes = [0.0f32; MOST_LANES];
    for (feature, value) in values.iter().step_by(room).enumerate() {
        value.store(&mut lanes);
        for (lane, value) in lanes[..V::LANES].iter().enumerate() {
            apart[lane * features + feature] = *value;
        }
    }
    apart
}
