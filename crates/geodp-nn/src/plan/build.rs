//! Walks a description: names and numbers parameters, lays out slots. What each kind of layer
//! needs stands in `place`.

use super::{Op, Plan, Step, ToInput};
use crate::error::Error;
use crate::layers::cross_entropy::Loss;
use crate::parameter::{Parameter, Start};
use crate::spec::{LayerSpec, NetworkSpec};

/// Values that any one sample may need: beyond it a description is taken for a mistake.
pub(super) const LARGEST: usize = 1 << 28;

pub(super) struct Builder {
    pub(super) plan: Plan,
    /// For each slot: does it depend on parameters, is it read by a residual branch, did an
    /// activation (which needs its output again) write it last.
    pub(super) depends: Vec<bool>,
    pub(super) held: Vec<bool>,
    pub(super) activated: Vec<bool>,
}

/// A slot and the shape of what stands in it.
#[derive(Clone)]
pub(super) struct Value {
    pub(super) slot: usize,
    pub(super) shape: Vec<usize>,
}

pub(super) fn describe(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}

/// Product of a shape, if it is positive and sane.
pub(super) fn size(shape: &[usize]) -> Option<usize> {
    let product = shape.iter().try_fold(1usize, |product, &side| product.checked_mul(side))?;
    (1..=LARGEST).contains(&product).then_some(product)
}

impl Plan {
    pub(crate) fn new(spec: &NetworkSpec) -> Result<Self, Error> {
        let input_len =
            size(&spec.input).filter(|_| matches!(spec.input.len(), 1 | 3)).ok_or_else(|| {
                Error::Network(format!(
                    "the input shape is [{}], but must be [features] or [channels, height, width] \
                     with at least one value",
                    describe(&spec.input)
                ))
            })?;
        let plan = Self {
            input_len,
            loss: spec.loss,
            classes: 0,
            parameters: Vec::new(),
            dim: 0,
            lane_dim: 0,
            slots: Vec::new(),
            logits: 0,
            steps: Vec::new(),
            buffers: Vec::new(),
            buffer_of: Vec::new(),
            scratch: 0,
            multiply_adds: 0,
        };
        let mut builder = Builder { plan, depends: vec![], held: vec![], activated: vec![] };
        let slot = builder.slot(input_len, false);
        let input = Value { slot, shape: spec.input.clone() };
        let output = builder.layers(&spec.layers, "", input)?;
        builder.finish(output)
    }
}

impl Builder {
    fn slot(&mut self, len: usize, depends: bool) -> usize {
        self.plan.slots.push(len);
        self.depends.push(depends);
        self.held.push(false);
        self.activated.push(false);
        self.plan.slots.len() - 1
    }

    pub(super) fn layers(
        &mut self,
        specs: &[LayerSpec],
        prefix: &str,
        mut value: Value,
    ) -> Result<Value, Error> {
        for (place, spec) in specs.iter().enumerate() {
            let name = match spec.name() {
                Some(name) => format!("{prefix}{name}"),
                None => format!("{prefix}{place}"),
            };
            value = self.layer(spec, &name, value)?;
        }
        Ok(value)
    }

    pub(super) fn parameter(
        &mut self,
        layer: &str,
        kind: &str,
        shape: Vec<usize>,
        start: Start,
    ) -> Result<(), Error> {
        let name = format!("{layer}.{kind}");
        if self.plan.parameters.iter().any(|other| other.name == name) {
            return Err(Error::Network(format!("two layers have a parameter {name}: rename one")));
        }
        let parameter = Parameter { name, offset: self.plan.dim, shape, start };
        self.plan.dim += parameter.len();
        self.plan.parameters.push(parameter);
        Ok(())
    }

    /// A step with an output slot of its own.
    pub(super) fn step(
        &mut self,
        op: Op,
        x: &Value,
        shape: Vec<usize>,
        parameters: usize,
        cost: usize,
    ) -> Value {
        let depends = self.depends[x.slot];
        let slot = self.slot(shape.iter().product(), depends || parameters > 0);
        self.push(op, x.slot, slot, parameters);
        // Forward, weight gradient, and the gradient with respect to the input if it is needed.
        self.plan.multiply_adds += cost as u64 * if depends { 3 } else { 2 };
        Value { slot, shape }
    }

    pub(super) fn activation(&mut self, op: Op, x: Value) -> Value {
        // Its input must not be needed again, neither by another branch nor by an activation.
        let needed = self.held[x.slot] || self.activated[x.slot];
        let x = if needed { self.copy(x) } else { x };
        self.push(op, x.slot, x.slot, 0);
        self.activated[x.slot] = true;
        x
    }

    pub(super) fn copy(&mut self, x: Value) -> Value {
        let slot = self.slot(self.plan.slots[x.slot], self.depends[x.slot]);
        self.push(Op::Copy, x.slot, slot, 0);
        Value { slot, shape: x.shape }
    }

    pub(super) fn push(&mut self, op: Op, input: usize, output: usize, parameters: usize) {
        let backward = parameters > 0 || self.depends[input];
        let parameters = self.plan.dim - parameters..self.plan.dim;
        let lanes = self.plan.lane_dim;
        if !matches!(op, Op::Linear(_)) {
            self.plan.lane_dim += parameters.len();
        }
        let to_input = ToInput::Nothing;
        self.plan.steps.push(Step { op, input, output, parameters, lanes, backward, to_input });
    }

    fn finish(mut self, output: Value) -> Result<Plan, Error> {
        let [outputs] = output.shape[..] else {
            return Err(Error::Network(format!(
                "its output is {}, but must be flat: end with a linear layer",
                describe(&output.shape)
            )));
        };
        self.plan.classes = match (self.plan.loss, outputs) {
            (Loss::SigmoidCrossEntropy, 1) => 2,
            (Loss::SigmoidCrossEntropy, _) => {
                return Err(Error::Network(format!(
                    "sigmoid cross-entropy needs one output, but there are {outputs}"
                )));
            }
            (Loss::SoftmaxCrossEntropy, 1) => {
                return Err(Error::Network(
                    "softmax cross-entropy needs at least two outputs; for two classes with one \
                     output use sigmoid cross-entropy"
                        .into(),
                ));
            }
            (Loss::SoftmaxCrossEntropy, outputs) => outputs,
        };
        if self.plan.dim == 0 {
            return Err(Error::Network(
                "it has no parameters, so there is nothing to train".into(),
            ));
        }
        self.plan.logits = output.slot;
        self.plan.assign_buffers(&self.depends);
        Ok(self.plan)
    }
}
