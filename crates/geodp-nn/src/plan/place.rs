//! What each kind of layer asks of its input, which parameters it has, and what it gives.

use super::Op;
use super::build::{Builder, LARGEST, Value, describe, size};
use crate::error::Error;
use crate::layers::avg_pool::AvgPool;
use crate::layers::conv2d::{Conv2d, ConvShape};
use crate::layers::group_norm::GroupNorm;
use crate::layers::linear::Linear;
use crate::layers::max_pool::MaxPool;
use crate::parameter::Start;
use crate::spec::LayerSpec;

/// A layer at its place, for messages about it.
struct Place<'a> {
    name: &'a str,
    kind: &'static str,
    input: &'a [usize],
}

impl Place<'_> {
    fn wrong(&self, problem: impl Into<String>) -> Error {
        let Self { name, kind, input } = self;
        Error::Layer {
            layer: format!("{name} ({kind})"),
            input: describe(input),
            problem: problem.into(),
        }
    }

    fn planes(&self) -> Result<[usize; 3], Error> {
        let needed = "it needs an input of channels × height × width";
        self.input.try_into().map_err(|_| self.wrong(needed))
    }

    fn positive(&self, what: &str, value: usize) -> Result<(), Error> {
        match value {
            0 => Err(self.wrong(format!("its {what} must be at least 1"))),
            _ => Ok(()),
        }
    }

    /// Channels, height and width of the input, and the shape of its square windows.
    fn windows(&self, kernel: usize, stride: usize) -> Result<([usize; 3], Vec<usize>), Error> {
        let [channels, height, width] = self.planes()?;
        self.positive("kernel", kernel)?;
        self.positive("stride", stride)?;
        if kernel > height.min(width) {
            return Err(self.wrong(format!("its window of side {kernel} is larger than that")));
        }
        let out = vec![channels, (height - kernel) / stride + 1, (width - kernel) / stride + 1];
        Ok(([channels, height, width], out))
    }

    fn sane(&self, shape: &[usize], problem: &str) -> Result<(), Error> {
        size(shape).map(|_| ()).ok_or_else(|| self.wrong(problem))
    }
}

impl Builder {
    pub(super) fn layer(&mut self, spec: &LayerSpec, name: &str, x: Value) -> Result<Value, Error> {
        let input = x.shape.clone();
        let place = Place { name, kind: spec.kind(), input: &input };
        match spec {
            LayerSpec::Linear { outputs, bias, .. } => self.linear(&place, &x, *outputs, *bias),
            &LayerSpec::Conv2d { outputs, kernel, stride, padding, bias, .. } => {
                let [channels, height, width] = place.planes()?;
                let shape =
                    ConvShape { channels, height, width, outputs, kernel, stride, padding, bias };
                self.conv2d(&place, &x, shape)
            }
            &LayerSpec::MaxPool { kernel, stride } => {
                let stride = stride.unwrap_or(kernel);
                let ([channels, height, width], out) = place.windows(kernel, stride)?;
                let layer = MaxPool { channels, height, width, kernel, stride };
                Ok(self.step(Op::MaxPool(layer), &x, out, 0, 0))
            }
            &LayerSpec::AvgPool { kernel, stride } => {
                let stride = stride.unwrap_or(kernel);
                let ([channels, height, width], out) = place.windows(kernel, stride)?;
                let (kernel_height, kernel_width) = (kernel, kernel);
                let layer =
                    AvgPool { channels, height, width, kernel_height, kernel_width, stride };
                Ok(self.step(Op::AvgPool(layer), &x, out, 0, 0))
            }
            LayerSpec::GlobalAvgPool => {
                let [channels, height, width] = place.planes()?;
                let (kernel_height, kernel_width, stride) = (height, width, 1);
                let layer =
                    AvgPool { channels, height, width, kernel_height, kernel_width, stride };
                Ok(self.step(Op::AvgPool(layer), &x, vec![channels], 0, 0))
            }
            LayerSpec::GroupNorm { groups, .. } => self.group_norm(&place, &x, *groups),
            LayerSpec::Relu => Ok(self.activation(Op::Relu, x)),
            LayerSpec::Tanh => Ok(self.activation(Op::Tanh, x)),
            LayerSpec::Flatten => Ok(Value { shape: vec![x.shape.iter().product()], ..x }),
            LayerSpec::Residual { body, shortcut, .. } => self.residual(&place, x, body, shortcut),
        }
    }

    fn linear(
        &mut self,
        place: &Place<'_>,
        x: &Value,
        outputs: usize,
        bias: bool,
    ) -> Result<Value, Error> {
        let [inputs] = *place.input else {
            return Err(place.wrong("it needs a flat input: put a flatten layer before it"));
        };
        place.positive("outputs", outputs)?;
        place.sane(&[inputs, outputs], "it is too large")?;
        let layer = Linear { inputs, outputs, bias };
        let start = Start::Uniform { fan_in: inputs };
        self.parameter(place.name, "weight", vec![outputs, inputs], start)?;
        if bias {
            self.parameter(place.name, "bias", vec![outputs], start)?;
        }
        let count = layer.parameters();
        Ok(self.step(Op::Linear(layer), x, vec![outputs], count, inputs * outputs))
    }

    fn conv2d(&mut self, place: &Place<'_>, x: &Value, shape: ConvShape) -> Result<Value, Error> {
        let ConvShape { channels, height, width, outputs, kernel, padding, .. } = shape;
        place.positive("outputs", outputs)?;
        place.positive("kernel", kernel)?;
        place.positive("stride", shape.stride)?;
        if padding > LARGEST || kernel.saturating_sub(2 * padding) > height.min(width) {
            return Err(place.wrong(format!(
                "its kernel of side {kernel} with padding {padding} is larger than that"
            )));
        }
        let weight = vec![outputs, channels, kernel, kernel];
        place.sane(&weight, "it is too large")?;
        let out = vec![outputs, shape.out_height(), shape.out_width()];
        let padded = [channels.max(outputs), height + 2 * padding, width + 2 * padding];
        place.sane(&out, "its output is too large")?;
        place.sane(&padded, "its output is too large")?;
        let start = Start::Uniform { fan_in: channels * kernel * kernel };
        self.parameter(place.name, "weight", weight, start)?;
        if shape.bias {
            self.parameter(place.name, "bias", vec![outputs], start)?;
        }
        let (layer, count) = (Box::new(Conv2d::new(shape)), shape.parameters());
        self.plan.scratch = self.plan.scratch.max(layer.scratch());
        let cost = shape.weights() * out[1] * out[2];
        Ok(self.step(Op::Conv2d(layer), x, out, count, cost))
    }

    fn group_norm(&mut self, place: &Place<'_>, x: &Value, groups: usize) -> Result<Value, Error> {
        let [channels, height, width] = place.planes()?;
        if groups == 0 || channels % groups != 0 {
            return Err(place.wrong(format!("{groups} groups do not divide {channels} channels")));
        }
        self.parameter(place.name, "weight", vec![channels], Start::Constant(1))?;
        self.parameter(place.name, "bias", vec![channels], Start::Constant(0))?;
        let layer = GroupNorm { channels, groups, plane: height * width };
        let count = layer.parameters();
        Ok(self.step(Op::GroupNorm(layer), x, x.shape.clone(), count, 0))
    }

    fn residual(
        &mut self,
        place: &Place<'_>,
        x: Value,
        body: &[LayerSpec],
        shortcut: &[LayerSpec],
    ) -> Result<Value, Error> {
        let was_held = std::mem::replace(&mut self.held[x.slot], true);
        let prefix = format!("{}.", place.name);
        let mut of_body = self.layers(body, &prefix, x.clone())?;
        let of_shortcut = self.layers(shortcut, &prefix, x.clone())?;
        self.held[x.slot] = was_held;
        if of_body.shape != of_shortcut.shape {
            let (body, shortcut) = (describe(&of_body.shape), describe(&of_shortcut.shape));
            return Err(
                place.wrong(format!("its body gives {body} but its shortcut gives {shortcut}"))
            );
        }
        // The sum may take the body's place, unless someone needs what stands there.
        if of_body.slot == x.slot || self.activated[of_body.slot] || self.held[of_body.slot] {
            of_body = self.copy(of_body);
        }
        let other = of_shortcut.slot;
        self.depends[of_body.slot] |= self.depends[other];
        self.push(Op::AddSlot { other }, of_body.slot, of_body.slot, 0);
        Ok(of_body)
    }
}
