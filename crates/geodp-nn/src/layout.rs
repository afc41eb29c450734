//! From a description to a checked, flat list of steps over numbered slots of values.
//!
//! Residual branches become steps that read an older slot, so that running a network is one loop
//! and no recursion. Decisions: activations work in place (their derivative is known from the
//! output, and no layer here needs its own output again); gradients of slots share buffers as soon
//! as one is used up, because what fits the L2 cache decides the speed.

mod buffers;
mod build;
mod place;

pub(crate) use build::{Builder, LARGEST, Value, describe};
pub(crate) use place::Place;

use crate::layers::cross_entropy::Loss;
use crate::layers::linear::Linear;
use crate::layers::{AnyActivation, AnyLayer, Layer, with_layer};
use crate::parameter::Parameter;
use crate::simd::Vector;
use std::ops::Range;

/// A network ready to run.
pub(crate) struct Layout {
    pub(crate) input_len: usize,
    pub(crate) loss: Loss,
    pub(crate) classes: usize,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) dim: usize,
    /// Parameters whose per-sample gradients stand in the lanes.
    pub(crate) lane_dim: usize,
    /// Features of each slot; slot 0 is the input.
    pub(crate) slots: Vec<usize>,
    pub(crate) logits: usize,
    pub(crate) steps: Vec<Step>,
    /// Features of each buffer for gradients, and the buffer of each slot that has one.
    pub(crate) buffers: Vec<usize>,
    pub(crate) buffer_of: Vec<Option<usize>>,
    pub(crate) scratch: usize,
    /// Multiply-adds of one sample, forward and backward.
    pub(crate) multiply_adds: u64,
}

/// One layer at its place.
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) input: usize,
    pub(crate) output: usize,
    /// Its part of the flat parameters.
    pub(crate) parameters: Range<usize>,
    /// Where its part of the lane gradients starts.
    pub(crate) lanes: usize,
    /// Whether it or anything before it has parameters.
    pub(crate) backward: bool,
    pub(crate) to_input: ToInput,
}

/// What becomes of the gradient with respect to a step's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToInput {
    /// Nobody needs it.
    Nothing,
    Write,
    /// Another branch wrote there already: compute it in the buffer `spare`, then add.
    Add {
        spare: usize,
    },
}

/// The kinds of steps.
pub(crate) enum Op {
    Layer(AnyLayer),
    /// In place.
    Activation(AnyActivation),
    Copy,
    /// Adds slot `other` to the output.
    AddSlot {
        other: usize,
    },
}

impl Step {
    /// The linear layer it runs, if it does: such a layer hands out (x, dy) instead of gradients.
    pub(crate) fn linear(&self) -> Option<&Linear> {
        match &self.op {
            Op::Layer(AnyLayer::Linear(layer)) => Some(layer),
            _ => None,
        }
    }
}

impl Layout {
    /// Parameters as the kernels want them, and the part of each step.
    pub(crate) fn pack<V: Vector>(&self, weights: &[f32]) -> (Vec<f32>, Vec<Range<usize>>) {
        let mut packed = Vec::with_capacity(3 * self.dim);
        let mut ranges = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let start = packed.len();
            let parameters = &weights[step.parameters.clone()];
            if let Op::Layer(layer) = &step.op {
                with_layer!(layer, layer => layer.pack::<V>(parameters, &mut packed));
            }
            ranges.push(start..packed.len());
        }
        (packed, ranges)
    }

    /// The first step's layer, if it is linear.
    pub(crate) fn input_linear(&self) -> Option<(&Linear, &Step)> {
        let step = self.steps.first().filter(|step| step.input == 0)?;
        Some((step.linear()?, step))
    }

    /// Whether the first step alone reads the inputs.
    pub(crate) fn inputs_read_once(&self) -> bool {
        self.steps
            .iter()
            .skip(1)
            .all(|step| step.input != 0 && !matches!(step.op, Op::AddSlot { other: 0 }))
    }

    /// The linear layers in order, each with its step.
    pub(crate) fn linear_steps(&self) -> impl Iterator<Item = (&Linear, &Step)> {
        self.steps.iter().filter_map(|step| Some((step.linear()?, step)))
    }

    /// The steps whose per-sample parameter gradients stand in the lanes.
    pub(crate) fn lane_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| !step.parameters.is_empty() && step.linear().is_none())
    }

    /// Whether all layers run on vectors of several registers, where each weight once loaded serves
    /// more samples.
    pub(crate) fn runs_wide(&self) -> bool {
        fn is_wide<T: Layer>(_: &T) -> bool {
            T::RUNS_WIDE
        }
        self.steps.iter().all(|step| match &step.op {
            Op::Layer(layer) => with_layer!(layer, layer => is_wide(layer)),
            _ => true,
        })
    }
}
