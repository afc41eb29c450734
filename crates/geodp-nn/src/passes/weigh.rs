//! Norms of one block's per-sample gradients, and their weighted sum.

use super::workspace::Workspace;
use crate::simd::{Kernel, MOST_LANES, Vector, sum_of_squares};

impl<V: Vector> Workspace<V> {
    /// Norms of the block's per-sample gradients, and the weighted gradients added to `lane_sum`
    /// (linear layers: dy scaled where it is kept).
    ///
    /// # Guarantee
    /// Squares are summed in double precision. A gradient whose norm is not finite adds exactly 0,
    /// and so does one whose weight is not finite.
    pub(crate) fn weigh(
        &mut self,
        block: usize,
        room: usize,
        weight_of: impl Fn(usize, f64) -> f64,
        norms: &mut [f32],
    ) {
        let mut squares = [0.0f64; MOST_LANES];
        V::run(LaneSquares { workspace: self, block, room, squares: &mut squares });
        let mut weights = [0.0f32; MOST_LANES];
        let broken = squares.map(|square| !(square.sqrt() as f32).is_finite());
        for (lane, norm) in norms.iter_mut().enumerate() {
            let exact = squares[lane].sqrt();
            *norm = exact as f32;
            if !broken[lane] {
                let weight = weight_of(lane, exact) as f32;
                weights[lane] = if weight.is_finite() { weight } else { 0.0 };
            }
        }
        if broken[..V::LANES].contains(&true) {
            self.blank(block, room, &broken);
        }
        V::run(AddWeighted { workspace: self, block, room, weights: V::load(&weights) });
    }

    /// Puts 0 into the lanes of broken gradients: 0·NaN would not be 0.
    fn blank(&mut self, block: usize, room: usize, broken: &[bool]) {
        blank(&mut self.lane_gradient, broken);
        for (x, dy) in &mut self.linear {
            blank(x.iter_mut().skip(block).step_by(room), broken);
            blank(dy.iter_mut().skip(block).step_by(room), broken);
        }
    }
}

/// Puts 0 into the broken lanes of `values`.
pub(crate) fn blank<'a, V: Vector>(values: impl IntoIterator<Item = &'a mut V>, broken: &[bool]) {
    let mut lanes = [0.0f32; MOST_LANES];
    for value in values {
        value.store(&mut lanes);
        for (lane, broken) in lanes[..V::LANES].iter_mut().zip(broken) {
            *lane = if *broken { 0.0 } else { *lane };
        }
        *value = V::load(&lanes);
    }
}

/// Σ squares of each lane's gradient: in the lanes, and ‖dy‖²·(‖x‖² + 1 for the bias) of linear layers.
struct LaneSquares<'a, V: Vector> {
    workspace: &'a Workspace<V>,
    block: usize,
    room: usize,
    squares: &'a mut [f64],
}

impl<V: Vector> Kernel for LaneSquares<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        V::sums_store(sum_of_squares(&self.workspace.lane_gradient), self.squares);
        let (mut of_x, mut of_dy) = ([0.0f64; MOST_LANES], [0.0f64; MOST_LANES]);
        for ((x, dy), bias) in self.workspace.linear.iter().zip(&self.workspace.linear_bias) {
            V::sums_store(block_squares(x, self.block, self.room), &mut of_x);
            V::sums_store(block_squares(dy, self.block, self.room), &mut of_dy);
            let with_bias = f64::from(*bias);
            for (square, (of_x, of_dy)) in self.squares.iter_mut().zip(of_x.iter().zip(&of_dy)) {
                *square += of_dy * (of_x + with_bias);
            }
        }
    }
}

/// [`sum_of_squares`] of one block's values among those of a chunk.
#[inline(always)]
fn block_squares<V: Vector>(values: &[V], block: usize, room: usize) -> V::Sums {
    let (mut even, mut odd) = (V::sums_zero(), V::sums_zero());
    let mut pairs = values.chunks_exact(2 * room);
    for pair in &mut pairs {
        even = pair[block].add_square(even);
        odd = pair[room + block].add_square(odd);
    }
    for last in pairs.remainder().chunks_exact(room) {
        even = last[block].add_square(even);
    }
    V::sums_add(even, odd)
}

/// Adds weight · gradient of one block.
struct AddWeighted<'a, V: Vector> {
    workspace: &'a mut Workspace<V>,
    block: usize,
    room: usize,
    weights: V,
}

impl<V: Vector> Kernel for AddWeighted<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Workspace { lane_gradient, lane_sum, linear, .. } = self.workspace;
        for (sum, gradient) in lane_sum.iter_mut().zip(lane_gradient) {
            *sum = gradient.fma(self.weights, *sum);
        }
        for (_, dy) in linear {
            for dy in dy.iter_mut().skip(self.block).step_by(self.room) {
                *dy = dy.mul(self.weights);
            }
        }
    }
}
