//! Checks shapes, names and numbers parameters, lays out slots and buffers.

use super::{Op, Plan, Step, ToInput};
use crate::error::Error;
use crate::layers::avg_pool::AvgPool;
use crate::layers::conv2d::{Conv2d, ConvShape};
use crate::layers::cross_entropy::Loss;
use crate::layers::group_norm::GroupNorm;
use crate::layers::linear::Linear;
use crate::layers::max_pool::MaxPool;
use crate::parameter::{Parameter, Start};
use crate::spec::{LayerSpec, NetworkSpec};

/// Values that any one sample may need: beyond it a description is taken for a mistake.
const LARGEST: usize = 1 << 28;

struct Builder {
    plan: Plan,
    /// For each slot: does it depend on parameters, is it read by a residual branch, did an
    /// activation (which needs its output again) write it last.
    depends: Vec<bool>,
    held: Vec<bool>,
    activated: Vec<bool>,
}

/// A slot and the shape of what stands in it.
#[derive(Clone)]
struct Value {
    slot: usize,
    shape: Vec<usize>,
}

fn describe(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("×")
}

/// Product of a shape, if it is positive and sane.
fn size(shape: &[usize]) -> Option<usize> {
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

    fn layers(
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

    fn layer(&mut self, spec: &LayerSpec, name: &str, x: Value) -> Result<Value, Error> {
        let wrong = |problem: String| Error::Layer {
            layer: format!("{name} ({})", spec.kind()),
            input: describe(&x.shape),
            problem,
        };
        let planes = |x: &Value| match x.shape[..] {
            [channels, height, width] => Ok((channels, height, width)),
            _ => Err(wrong("it needs an input of channels × height × width".into())),
        };
        let positive = |what: &str, value: usize| {
            if value > 0 { Ok(()) } else { Err(wrong(format!("its {what} must be at least 1"))) }
        };
        match spec {
            LayerSpec::Linear { outputs, bias, .. } => {
                let [inputs] = x.shape[..] else {
                    return Err(wrong(
                        "it needs a flat input: put a flatten layer before it".into(),
                    ));
                };
                positive("outputs", *outputs)?;
                let layer = Linear { inputs, outputs: *outputs, bias: *bias };
                size(&[inputs, *outputs]).ok_or_else(|| wrong("it is too large".into()))?;
                self.parameter(
                    name,
                    "weight",
                    vec![*outputs, inputs],
                    Start::Uniform { fan_in: inputs },
                )?;
                if *bias {
                    self.parameter(
                        name,
                        "bias",
                        vec![*outputs],
                        Start::Uniform { fan_in: inputs },
                    )?;
                }
                let (count, cost) = (layer.parameters(), inputs * outputs);
                Ok(self.step(Op::Linear(layer), &x, vec![*outputs], count, cost))
            }
            LayerSpec::Conv2d { outputs, kernel, stride, padding, bias, .. } => {
                let (channels, height, width) = planes(&x)?;
                positive("outputs", *outputs)?;
                positive("kernel", *kernel)?;
                positive("stride", *stride)?;
                if *padding > LARGEST || kernel.saturating_sub(2 * padding) > height.min(width) {
                    return Err(wrong(format!(
                        "its kernel of side {kernel} with padding {padding} is larger than that"
                    )));
                }
                let (outputs, kernel, stride) = (*outputs, *kernel, *stride);
                let shape = ConvShape {
                    channels,
                    height,
                    width,
                    outputs,
                    kernel,
                    stride,
                    padding: *padding,
                    bias: *bias,
                };
                let weight = vec![outputs, channels, kernel, kernel];
                size(&weight).ok_or_else(|| wrong("it is too large".into()))?;
                let out = vec![outputs, shape.out_height(), shape.out_width()];
                let padded = [channels.max(outputs), height + 2 * padding, width + 2 * padding];
                if size(&out).is_none() || size(&padded).is_none() {
                    return Err(wrong("its output is too large".into()));
                }
                let fan_in = channels * kernel * kernel;
                self.parameter(name, "weight", weight, Start::Uniform { fan_in })?;
                if *bias {
                    self.parameter(name, "bias", vec![outputs], Start::Uniform { fan_in })?;
                }
                let (layer, count) = (Box::new(Conv2d::new(shape)), shape.parameters());
                self.plan.scratch = self.plan.scratch.max(layer.scratch());
                let cost = shape.weights() * out[1] * out[2];
                Ok(self.step(Op::Conv2d(layer), &x, out, count, cost))
            }
            LayerSpec::MaxPool { kernel, stride } | LayerSpec::AvgPool { kernel, stride } => {
                let (channels, height, width) = planes(&x)?;
                let (kernel, stride) = (*kernel, stride.unwrap_or(*kernel));
                positive("kernel", kernel)?;
                positive("stride", stride)?;
                if kernel > height.min(width) {
                    return Err(wrong(format!("its window of side {kernel} is larger than that")));
                }
                let out =
                    vec![channels, (height - kernel) / stride + 1, (width - kernel) / stride + 1];
                let op = if matches!(spec, LayerSpec::MaxPool { .. }) {
                    Op::MaxPool(MaxPool { channels, height, width, kernel, stride })
                } else {
                    let (kernel_height, kernel_width) = (kernel, kernel);
                    Op::AvgPool(AvgPool {
                        channels,
                        height,
                        width,
                        kernel_height,
                        kernel_width,
                        stride,
                    })
                };
                Ok(self.step(op, &x, out, 0, 0))
            }
            LayerSpec::GlobalAvgPool => {
                let (channels, height, width) = planes(&x)?;
                let (kernel_height, kernel_width, stride) = (height, width, 1);
                let op = Op::AvgPool(AvgPool {
                    channels,
                    height,
                    width,
                    kernel_height,
                    kernel_width,
                    stride,
                });
                Ok(self.step(op, &x, vec![channels], 0, 0))
            }
            LayerSpec::GroupNorm { groups, .. } => {
                let (channels, height, width) = planes(&x)?;
                if *groups == 0 || channels % groups != 0 {
                    return Err(wrong(format!(
                        "{groups} groups do not divide {channels} channels"
                    )));
                }
                self.parameter(name, "weight", vec![channels], Start::Constant(1))?;
                self.parameter(name, "bias", vec![channels], Start::Constant(0))?;
                let layer = GroupNorm { channels, groups: *groups, plane: height * width };
                let count = layer.parameters();
                let shape = x.shape.clone();
                Ok(self.step(Op::GroupNorm(layer), &x, shape, count, 0))
            }
            LayerSpec::Relu => Ok(self.activation(Op::Relu, x)),
            LayerSpec::Tanh => Ok(self.activation(Op::Tanh, x)),
            LayerSpec::Flatten => Ok(Value { shape: vec![x.shape.iter().product()], ..x }),
            LayerSpec::Residual { body, shortcut, .. } => {
                let was_held = std::mem::replace(&mut self.held[x.slot], true);
                let prefix = format!("{name}.");
                let mut of_body = self.layers(body, &prefix, x.clone())?;
                let of_shortcut = self.layers(shortcut, &prefix, x.clone())?;
                self.held[x.slot] = was_held;
                if of_body.shape != of_shortcut.shape {
                    return Err(wrong(format!(
                        "its body gives {} but its shortcut gives {}",
                        describe(&of_body.shape),
                        describe(&of_shortcut.shape)
                    )));
                }
                // The sum may take the body's place, unless someone needs what stands there.
                if of_body.slot == x.slot || self.activated[of_body.slot] || self.held[of_body.slot]
                {
                    of_body = self.copy(of_body);
                }
                let other = of_shortcut.slot;
                self.depends[of_body.slot] |= self.depends[other];
                self.push(Op::AddSlot { other }, of_body.slot, of_body.slot, 0);
                Ok(of_body)
            }
        }
    }

    fn parameter(
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
    fn step(
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

    fn activation(&mut self, op: Op, x: Value) -> Value {
        // Its input must not be needed again, neither by another branch nor by an activation.
        let needed = self.held[x.slot] || self.activated[x.slot];
        let x = if needed { self.copy(x) } else { x };
        self.push(op, x.slot, x.slot, 0);
        self.activated[x.slot] = true;
        x
    }

    fn copy(&mut self, x: Value) -> Value {
        let slot = self.slot(self.plan.slots[x.slot], self.depends[x.slot]);
        self.push(Op::Copy, x.slot, slot, 0);
        Value { slot, shape: x.shape }
    }

    fn push(&mut self, op: Op, input: usize, output: usize, parameters: usize) {
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
        self.assign_buffers();
        Ok(self.plan)
    }

    /// Walks the steps backward as training will, and gives each slot's gradient a buffer from when
    /// it is first written until the step that made the slot has used it.
    fn assign_buffers(&mut self) {
        let plan = &mut self.plan;
        plan.buffer_of = vec![None; plan.slots.len()];
        let mut free: Vec<usize> = Vec::new();
        let take = |len: usize, buffers: &mut Vec<usize>, free: &mut Vec<usize>| {
            let fits = |&&at: &&usize| buffers[at] >= len;
            let best = free.iter().filter(fits).min_by_key(|&&at| buffers[at]);
            let best = best.or(free.iter().max_by_key(|&&at| buffers[at])).copied();
            let at = best.unwrap_or_else(|| {
                buffers.push(0);
                buffers.len() - 1
            });
            buffers[at] = buffers[at].max(len);
            free.retain(|&other| other != at);
            at
        };
        plan.buffer_of[plan.logits] =
            Some(take(plan.slots[plan.logits], &mut plan.buffers, &mut free));
        for step in plan.steps.iter_mut().rev().filter(|step| step.backward) {
            let target = match step.op {
                Op::AddSlot { other } => other,
                Op::Relu | Op::Tanh => continue,
                _ => step.input,
            };
            if self.depends[target] {
                if plan.buffer_of[target].is_none() {
                    let at = take(plan.slots[target], &mut plan.buffers, &mut free);
                    plan.buffer_of[target] = Some(at);
                    step.to_input = ToInput::Write;
                } else {
                    let spare = take(plan.slots[target], &mut plan.buffers, &mut free);
                    free.push(spare);
                    step.to_input = ToInput::Add { spare };
                }
            }
            if step.input != step.output {
                free.extend(plan.buffer_of[step.output]);
            }
        }
    }
}
