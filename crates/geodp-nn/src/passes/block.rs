//! One block of samples: forward, loss, backward. Its inputs: `read`; norms and weighted sums: `weigh`.

use super::Pass;
use super::read::Inputs;
use super::workspace::Workspace;
use crate::layers::cross_entropy::CrossEntropy;
use crate::layers::residual::AddInto;
use crate::layers::squared_error::SquaredError;
use crate::layers::{
    Activation, AnyLayer, Backward, Forward, Layer, RunApply, RunBackward, RunForward, RunPullBack,
    with_activation, with_layer,
};
use crate::layout::{Op, Step, ToInput};
use crate::simd::{Kernel, Vector};
use std::mem::take;

/// What a backward pass leaves of each linear layer and of the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leave {
    /// (x, dy) at place `block` of `room`; the rest in `lane_gradient`.
    Chunk { block: usize, room: usize },
    /// (x, dy) at place `block` of `room`; the rest is added to `lane_sum`.
    Sum { block: usize, room: usize },
    /// dy at the front, x where it stands; the rest in `lane_gradient`.
    Block,
    /// Gradients of all layers in `unit_gradient`, replaced or added to.
    Lanes { add: bool },
}

impl<V: Vector> Workspace<V> {
    /// Reads the samples of `batch`, at most one for each lane, and computes the logits.
    pub(crate) fn forward(&mut self, pass: &Pass<'_>, batch: &[u32]) {
        self.of_input = None;
        let (_, done) = self.read(pass, batch, false);
        self.run_steps(pass, done);
    }

    /// [`Workspace::forward`] for [`super::tally::Tally::add`], which wants the inputs measured: cheap while
    /// they are at hand; and where they stand.
    pub(crate) fn forward_measured<'a>(&mut self, pass: &Pass<'a>, batch: &[u32]) -> Inputs<'a> {
        let (inputs, done) = self.read(pass, batch, true);
        self.run_steps(pass, done);
        inputs
    }

    /// All steps but the first `done`.
    fn run_steps(&mut self, pass: &Pass<'_>, done: usize) {
        for (step, packed) in pass.layout.steps.iter().zip(&pass.packed_of).skip(done) {
            let mut y = take(&mut self.values[step.output]);
            let x: &[V] = &self.values[step.input];
            let packed = &pass.packed[packed.clone()];
            let scratch = &mut self.scratch[..];
            match &step.op {
                Op::Layer(layer) => with_layer!(layer, layer => {
                    V::run(RunForward(layer, Forward { x, y: &mut y, packed, scratch }));
                }),
                Op::Activation(activation) => with_activation!(activation, activation => {
                    V::run(RunApply(activation, &mut y));
                }),
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
        let slot = pass.layout.logits;
        let buffer = pass.layout.buffer_of[slot].expect("the logits always have a gradient buffer");
        let outputs = pass.layout.slots[slot];
        let (loss, outputs) = (pass.layout.loss, &mut self.buffers[buffer][..outputs]);
        if loss.is_regression() {
            return V::run(SquaredError {
                loss,
                outputs: &self.values[slot],
                targets: &self.targets,
                losses,
                dz: outputs,
                predictions: probabilities,
            });
        }
        V::run(CrossEntropy {
            loss,
            logits: &self.values[slot],
            labels: &self.labels,
            losses,
            dz: outputs,
            probabilities,
        })
    }

    /// Per-sample gradients of the block just run forward.
    pub(crate) fn backward(&mut self, pass: &Pass<'_>, leave: Leave) {
        let layout = pass.layout;
        let accumulate = matches!(leave, Leave::Sum { .. } | Leave::Lanes { add: true });
        let mut gradients = take(self.gradients(leave, layout.dim));
        let mut linear = self.linear.len();
        for (step, packed) in layout.steps.iter().zip(&pass.packed_of).rev() {
            if !step.backward {
                continue;
            }
            let packed = &pass.packed[packed.clone()];
            match &step.op {
                Op::Layer(layer) => {
                    let gradient = match (leave, layer) {
                        (Leave::Lanes { .. }, _) => &mut gradients[step.parameters.clone()],
                        (_, AnyLayer::Linear(_)) => {
                            linear -= 1;
                            self.keep(pass, step, linear, leave);
                            &mut []
                        }
                        _ => &mut gradients[step.lanes..][..step.parameters.len()],
                    };
                    with_layer!(layer, layer => {
                        self.run_backward(pass, step, layer, packed, gradient, accumulate);
                    });
                }
                Op::Activation(activation) => with_activation!(activation, activation => {
                    self.pull_back(pass, step, activation);
                }),
                Op::Copy => self.send(pass, step.output, step.input, step.to_input),
                Op::AddSlot { other } => self.send(pass, step.output, *other, step.to_input),
            }
        }
        *self.gradients(leave, layout.dim) = gradients;
    }

    /// Where gradients in lanes go.
    fn gradients(&mut self, leave: Leave, dim: usize) -> &mut Vec<V> {
        match leave {
            Leave::Chunk { .. } | Leave::Block => &mut self.lane_gradient,
            Leave::Sum { .. } => &mut self.lane_sum,
            Leave::Lanes { .. } => {
                // Only networks that see units of several rows have it.
                self.unit_gradient.resize(dim, V::zero());
                &mut self.unit_gradient
            }
        }
    }

    /// Keeps x and dy of the linear layer of `step`, the `at`-th.
    fn keep(&mut self, pass: &Pass<'_>, step: &Step, at: usize, leave: Leave) {
        let (xs, dys) = &mut self.linear[at];
        let dy = pass.layout.buffer_of[step.output].map_or(&[][..], |at| &self.buffers[at]);
        let dy = &dy[..pass.layout.slots[step.output]];
        match leave {
            Leave::Chunk { block, room } | Leave::Sum { block, room } => {
                V::run(Keep { from: &self.values[step.input], to: xs, block, room });
                V::run(Keep { from: dy, to: dys, block, room });
            }
            Leave::Block => dys[..dy.len()].copy_from_slice(dy),
            Leave::Lanes { .. } => {}
        }
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
        let layout = pass.layout;
        let (Some(from), to) = (layout.buffer_of[step.output], layout.buffer_of[step.input]) else {
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
            dy: &self.buffers[from][..layout.slots[step.output]],
            dx: dx.as_mut().map(|dx| &mut dx[..layout.slots[step.input]]),
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
            self.add_buffer(spare, to, layout.slots[step.input]);
        }
    }

    fn pull_back<T: Activation>(&mut self, pass: &Pass<'_>, step: &Step, layer: &T) {
        if let Some(at) = pass.layout.buffer_of[step.output] {
            let outputs = &self.values[step.output];
            V::run(RunPullBack(layer, outputs, &mut self.buffers[at][..outputs.len()]));
        }
    }

    /// Copies or adds the gradient of one slot to that of another.
    fn send(&mut self, pass: &Pass<'_>, from: usize, to: usize, how: ToInput) {
        let layout = pass.layout;
        let len = layout.slots[to];
        if let (Some(from), Some(to)) = (layout.buffer_of[from], layout.buffer_of[to]) {
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
