//! One block of samples: forward, loss, backward, norms, and the weighted sum of its gradients.

use super::Pass;
use super::workspace::Workspace;
use crate::layers::cross_entropy::CrossEntropy;
use crate::layers::relu::Relu;
use crate::layers::residual::AddInto;
use crate::layers::tanh::Tanh;
use crate::layers::{Backward, Forward, Layer, RunApply, RunBackward, RunForward, RunPullBack};
use crate::plan::{Op, Step, ToInput};
use crate::simd::{Kernel, Vector, sum_of_squares};
use std::mem::take;

/// The most lanes any vector has.
const MOST_LANES: usize = 64;

impl<V: Vector> Workspace<V> {
    /// Reads the samples of `batch`, at most one for each lane, and computes the logits.
    pub(crate) fn forward(&mut self, pass: &Pass<'_>, batch: &[u32]) {
        let len = pass.plan.input_len;
        self.labels.clear();
        for (row, &index) in self.rows.chunks_exact_mut(len).zip(batch) {
            pass.samples.read_input(index as usize, row);
            self.labels.push(pass.samples.label(index as usize));
        }
        self.rows[batch.len() * len..].fill(0.0);
        V::run(Transpose { rows: &self.rows, len, out: &mut self.values[0] });
        for (step, packed) in pass.plan.steps.iter().zip(&pass.packed_of) {
            let mut y = take(&mut self.values[step.output]);
            let x: &[V] = &self.values[step.input];
            let packed = &pass.packed[packed.clone()];
            let scratch = &mut self.scratch[..];
            match &step.op {
                Op::Linear(layer) => run_forward(layer, x, &mut y, packed, scratch),
                Op::Conv2d(layer) if V::CONVOLVES => {
                    run_forward(&**layer, x, &mut y, packed, scratch);
                }
                Op::Conv2d(_) => unreachable!("`engine` gives convolutions one that convolves"),
                Op::MaxPool(layer) => run_forward(layer, x, &mut y, packed, scratch),
                Op::AvgPool(layer) => run_forward(layer, x, &mut y, packed, scratch),
                Op::GroupNorm(layer) => run_forward(layer, x, &mut y, packed, scratch),
                Op::Relu => V::run(RunApply(&Relu, &mut y)),
                Op::Tanh => V::run(RunApply(&Tanh, &mut y)),
                Op::Copy => y.copy_from_slice(x),
                Op::AddSlot { other } => V::run(AddInto { from: &self.values[*other], to: &mut y }),
            }
            self.values[step.output] = y;
        }
    }

    /// Losses of the block just run forward, and how many labels were hit. Leaves ∂loss/∂logits.
    pub(crate) fn loss(
        &mut self,
        pass: &Pass<'_>,
        losses: &mut [f32],
        probabilities: Option<&mut [f32]>,
    ) -> usize {
        let slot = pass.plan.logits;
        let buffer = pass.plan.buffer_of[slot].expect("the logits always have a gradient buffer");
        let outputs = pass.plan.slots[slot];
        V::run(CrossEntropy {
            loss: pass.plan.loss,
            logits: &self.values[slot],
            labels: &self.labels,
            losses,
            dz: &mut self.buffers[buffer][..outputs],
            probabilities,
        })
    }

    /// Per-sample gradients: those of linear layers as (x, dy) at place `block` of `room`, the rest
    /// in `lane_gradient`, or added to `lane_sum` if `accumulate`.
    pub(crate) fn backward(
        &mut self,
        pass: &Pass<'_>,
        block: usize,
        room: usize,
        accumulate: bool,
    ) {
        let plan = pass.plan;
        let mut gradients =
            take(if accumulate { &mut self.lane_sum } else { &mut self.lane_gradient });
        let mut linear = self.linear.len();
        for (step, packed) in plan.steps.iter().zip(&pass.packed_of).rev() {
            if !step.backward {
                continue;
            }
            let packed = &pass.packed[packed.clone()];
            let gradient = &mut gradients[step.lanes..];
            match &step.op {
                Op::Linear(layer) => {
                    linear -= 1;
                    let (xs, dys) = &mut self.linear[linear];
                    let x = &self.values[step.input];
                    let dy = plan.buffer_of[step.output].map_or(&[][..], |at| &self.buffers[at]);
                    V::run(Keep { from: x, to: xs, block, room });
                    V::run(Keep { from: &dy[..layer.outputs], to: dys, block, room });
                    self.run_backward(pass, step, layer, packed, gradient, accumulate);
                }
                Op::Conv2d(layer) if V::CONVOLVES => {
                    let gradient = &mut gradient[..step.parameters.len()];
                    self.run_backward(pass, step, &**layer, packed, gradient, accumulate);
                }
                Op::Conv2d(_) => unreachable!("`engine` gives convolutions one that convolves"),
                Op::GroupNorm(layer) => {
                    let gradient = &mut gradient[..step.parameters.len()];
                    self.run_backward(pass, step, layer, packed, gradient, accumulate);
                }
                Op::MaxPool(layer) => {
                    self.run_backward(pass, step, layer, packed, gradient, accumulate);
                }
                Op::AvgPool(layer) => {
                    self.run_backward(pass, step, layer, packed, gradient, accumulate);
                }
                Op::Relu => self.pull_back(pass, step, &Relu),
                Op::Tanh => self.pull_back(pass, step, &Tanh),
                Op::Copy => self.send(pass, step.output, step.input, step.to_input),
                Op::AddSlot { other } => self.send(pass, step.output, *other, step.to_input),
            }
        }
        *(if accumulate { &mut self.lane_sum } else { &mut self.lane_gradient }) = gradients;
    }

    fn run_backward<T: Layer>(
        &mut self,
        pass: &Pass<'_>,
        step: &Step,
        layer: &T,
        packed: &[f32],
        gradient: &mut [V],
        accumulate: bool,
    ) {
        let plan = pass.plan;
        let (Some(from), to) = (plan.buffer_of[step.output], plan.buffer_of[step.input]) else {
            return;
        };
        let target = match step.to_input {
            ToInput::Nothing => None,
            ToInput::Write => to,
            ToInput::Add { spare } => Some(spare),
        };
        let mut dx = target.map(|at| take(&mut self.buffers[at]));
        let io = Backward {
            x: &self.values[step.input],
            dy: &self.buffers[from][..plan.slots[step.output]],
            dx: dx.as_mut().map(|dx| &mut dx[..plan.slots[step.input]]),
            packed,
            scratch: &mut self.scratch,
            gradient,
            accumulate,
        };
        V::run(RunBackward(layer, io));
        if let (Some(dx), Some(at)) = (dx, target) {
            self.buffers[at] = dx;
        }
        if let (ToInput::Add { spare }, Some(to)) = (step.to_input, to) {
            self.add_buffer(spare, to, plan.slots[step.input]);
        }
    }

    fn pull_back<T: crate::layers::Activation>(&mut self, pass: &Pass<'_>, step: &Step, layer: &T) {
        if let Some(at) = pass.plan.buffer_of[step.output] {
            let outputs = &self.values[step.output];
            V::run(RunPullBack(layer, outputs, &mut self.buffers[at][..outputs.len()]));
        }
    }

    /// Copies or adds the gradient of one slot to that of another.
    fn send(&mut self, pass: &Pass<'_>, from: usize, to: usize, how: ToInput) {
        let plan = pass.plan;
        let len = plan.slots[to];
        if let (Some(from), Some(to)) = (plan.buffer_of[from], plan.buffer_of[to]) {
            match how {
                ToInput::Nothing => {}
                ToInput::Write => {
                    let source = take(&mut self.buffers[from]);
                    self.buffers[to][..len].copy_from_slice(&source[..len]);
                    self.buffers[from] = source;
                }
                ToInput::Add { .. } => self.add_buffer(from, to, len),
            }
        }
    }

    fn add_buffer(&mut self, from: usize, to: usize, len: usize) {
        let source = take(&mut self.buffers[from]);
        V::run(AddInto { from: &source[..len], to: &mut self.buffers[to][..len] });
        self.buffers[from] = source;
    }

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
        let mut lanes = [0.0f32; MOST_LANES];
        let mut blank_one = |value: &mut V| {
            value.store(&mut lanes);
            for (lane, broken) in lanes[..V::LANES].iter_mut().zip(broken) {
                *lane = if *broken { 0.0 } else { *lane };
            }
            *value = V::load(&lanes);
        };
        self.lane_gradient.iter_mut().for_each(&mut blank_one);
        for (x, dy) in &mut self.linear {
            x.iter_mut().skip(block).step_by(room).for_each(&mut blank_one);
            dy.iter_mut().skip(block).step_by(room).for_each(&mut blank_one);
        }
    }
}

fn run_forward<T: Layer, V: Vector>(
    layer: &T,
    x: &[V],
    y: &mut [V],
    packed: &[f32],
    scratch: &mut [V],
) {
    V::run(RunForward(layer, Forward { x, y, packed, scratch }));
}

/// `out[feature]` from `rows[lane][feature]`.
struct Transpose<'a, V> {
    rows: &'a [f32],
    len: usize,
    out: &'a mut [V],
}

impl<V: Vector> Kernel for Transpose<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        V::transpose(self.rows, self.len, self.out);
    }
}

/// Stores a block's values at its place among the blocks of a chunk.
struct Keep<'a, V> {
    from: &'a [V],
    to: &'a mut [V],
    block: usize,
    room: usize,
}

impl<V: Vector> Kernel for Keep<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (to, from) in self.to.chunks_exact_mut(self.room).zip(self.from) {
            to[self.block] = *from;
        }
    }
}

/// Σ squares of each lane's gradient: in the lanes, and ‖dy‖²·(‖x‖² + 1 for the bias) of linear layers.
struct LaneSquares<'a, V> {
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
struct AddWeighted<'a, V> {
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
