//! Walks a description: names and numbers parameters, lays out slots. What a kind of layer needs
//! stands in its own file and comes here through [`Builder::step`] and its like.

use super::{Layout, Op, Place, Step, ToInput};
use crate::error::Error;
use crate::layers::cross_entropy::Loss;
use crate::layers::{AnyActivation, AnyLayer, Layer, LayerSpec, with_layer};
use crate::parameter::{Parameter, Start};
use crate::spec::NetworkSpec;

/// Values that any one sample may need: beyond it a description is taken for a mistake.
pub(crate) const LARGEST: usize = 1 << 28;

pub(crate) struct Builder {
    layout: Layout,
    /// For each slot: does it depend on parameters, is it read by a residual branch, did an
    /// activation (which needs its output again) write it last.
    depends: Vec<bool>,
    held: Vec<bool>,
    activated: Vec<bool>,
}

/// A slot and the shape of what stands in it.
#[derive(Clone)]
pub(crate) struct Value {
    pub(crate) slot: usize,
    pub(crate) shape: Vec<usize>,
}

pub(crate) fn describe(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}

/// Product of a shape, if it is positive and sane.
pub(super) fn size(shape: &[usize]) -> Option<usize> {
    let product = shape.iter().try_fold(1usize, |product, &side| product.checked_mul(side))?;
    (1..=LARGEST).contains(&product).then_some(product)
}

impl Layout {
    pub(crate) fn new(spec: &NetworkSpec) -> Result<Self, Error> {
        let input_len =
            size(&spec.input).filter(|_| matches!(spec.input.len(), 1 | 3)).ok_or_else(|| {
                Error::Network(format!(
                    "the input shape is [{}], but must be [features] or [channels, height, width] \
                     with at least one value",
                    describe(&spec.input)
                ))
            })?;
        let layout = Self {
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
        let mut builder = Builder { layout, depends: vec![], held: vec![], activated: vec![] };
        let slot = builder.slot(input_len, false);
        let input = Value { slot, shape: spec.input.clone() };
        let output = builder.layers(&spec.layers, "", input)?;
        builder.finish(output)
    }
}

impl Builder {
    fn slot(&mut self, len: usize, depends: bool) -> usize {
        self.layout.slots.push(len);
        self.depends.push(depends);
        self.held.push(false);
        self.activated.push(false);
        self.layout.slots.len() - 1
    }

    pub(crate) fn layers(
        &mut self,
        specs: &[LayerSpec],
        prefix: &str,
        mut value: Value,
    ) -> Result<Value, Error> {
        for (place, spec) in specs.iter().enumerate() {
            let spec = spec.describe();
            let name = match spec.name() {
                Some(name) => format!("{prefix}{name}"),
                None => format!("{prefix}{place}"),
            };
            let input = value.shape.clone();
            let place = Place { name: &name, kind: spec.kind(), input: &input };
            value = spec.lay_out(&place, value, self)?;
        }
        Ok(value)
    }

    fn parameter(
        &mut self,
        layer: &str,
        kind: &str,
        shape: Vec<usize>,
        start: Start,
    ) -> Result<(), Error> {
        let name = format!("{layer}.{kind}");
        if self.layout.parameters.iter().any(|other| other.name == name) {
            return Err(Error::Network(format!("two layers have a parameter {name}: rename one")));
        }
        let parameter = Parameter { name, offset: self.layout.dim, shape, start };
        self.layout.dim += parameter.len();
        self.layout.parameters.push(parameter);
        Ok(())
    }

    /// A layer with an output slot of its own, of this `shape`; its parameters as (kind, shape,
    /// start), and the multiply-adds of its forward pass.
    pub(crate) fn step(
        &mut self,
        place: &Place<'_>,
        layer: AnyLayer,
        x: &Value,
        shape: Vec<usize>,
        parameters: Vec<(&str, Vec<usize>, Start)>,
        cost: usize,
    ) -> Result<Value, Error> {
        let before = self.layout.dim;
        for (kind, shape, start) in parameters {
            self.parameter(place.name, kind, shape, start)?;
        }
        let parameters = self.layout.dim - before;
        let scratch = with_layer!(&layer, layer => layer.scratch());
        self.layout.scratch = self.layout.scratch.max(scratch);
        let depends = self.depends[x.slot];
        let slot = self.slot(shape.iter().product(), depends || parameters > 0);
        self.push(Op::Layer(layer), x.slot, slot, parameters);
        // Forward, weight gradient, and the gradient with respect to the input if it is needed.
        self.layout.multiply_adds += cost as u64 * if depends { 3 } else { 2 };
        Ok(Value { slot, shape })
    }

    /// An activation in place.
    pub(crate) fn activation(&mut self, activation: AnyActivation, x: Value) -> Value {
        // Its input must not be needed again, neither by another branch nor by an activation.
        let needed = self.held[x.slot] || self.activated[x.slot];
        let x = if needed { self.copy(x) } else { x };
        self.push(Op::Activation(activation), x.slot, x.slot, 0);
        self.activated[x.slot] = true;
        x
    }

    /// Says whether a branch still reads `x`, so that nothing may overwrite it; gives what was said
    /// before.
    pub(crate) fn hold(&mut self, x: &Value, held: bool) -> bool {
        std::mem::replace(&mut self.held[x.slot], held)
    }

    /// `body + shortcut`, two branches of `x`. The sum takes the body's place, unless someone needs
    /// what stands there.
    pub(crate) fn sum(&mut self, mut body: Value, shortcut: &Value, x: &Value) -> Value {
        if body.slot == x.slot || self.activated[body.slot] || self.held[body.slot] {
            body = self.copy(body);
        }
        let other = shortcut.slot;
        self.depends[body.slot] |= self.depends[other];
        self.push(Op::AddSlot { other }, body.slot, body.slot, 0);
        body
    }

    fn copy(&mut self, x: Value) -> Value {
        let slot = self.slot(self.layout.slots[x.slot], self.depends[x.slot]);
        self.push(Op::Copy, x.slot, slot, 0);
        Value { slot, shape: x.shape }
    }

    fn push(&mut self, op: Op, input: usize, output: usize, parameters: usize) {
        let backward = parameters > 0 || self.depends[input];
        let parameters = self.layout.dim - parameters..self.layout.dim;
        let lanes = self.layout.lane_dim;
        let to_input = ToInput::Nothing;
        let step = Step { op, input, output, parameters, lanes, backward, to_input };
        if step.linear().is_none() {
            self.layout.lane_dim += step.parameters.len();
        }
        self.layout.steps.push(step);
    }

    fn finish(mut self, output: Value) -> Result<Layout, Error> {
        let [outputs] = output.shape[..] else {
            return Err(Error::Network(format!(
                "its output is {}, but must be flat: end with a linear layer",
                describe(&output.shape)
            )));
        };
        self.layout.classes = match (self.layout.loss, outputs) {
            (Loss::SigmoidCrossEntropy, 1) => 2,
            (Loss::Squared | Loss::Huber, 1) => 1,
            (Loss::Squared | Loss::Huber, _) => {
                return Err(Error::Network(format!(
                    "learning a number needs one output, but there are {outputs}"
                )));
            }
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
        if self.layout.dim == 0 {
            return Err(Error::Network(
                "it has no parameters, so there is nothing to train".into(),
            ));
        }
        self.layout.logits = output.slot;
        self.layout.assign_buffers(&self.depends);
        Ok(self.layout)
    }
}
