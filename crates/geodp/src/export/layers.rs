//! The network's layers as ONNX operators; each has one, but for group normalisation.

use super::graph::{Graph, Type};
use super::onnx::Attribute;
use crate::Error;
use geodp_nn::{LayerSpec, Network, NetworkSpec};

/// What group normalisation adds to a variance, here and in PyTorch.
const EPSILON: f32 = 1e-5;

/// Images as bytes, scaled by p·a + b of each channel.
pub(super) fn bytes(graph: &mut Graph, shape: &[usize], affine: &[[f32; 2]]) -> String {
    let input = graph.input("input", Type::Byte, shape);
    let pixels = graph.cast(&input, Type::Float);
    let dims = if shape.len() == 3 { vec![affine.len(), 1, 1] } else { vec![1] };
    let column = |at: usize| affine.iter().map(|pair| pair[at]).collect::<Vec<f32>>();
    let (factor, shift) = (column(0), column(1));
    let factor = graph.floats("input_factor", &dims, &factor);
    let shift = graph.floats("input_shift", &dims, &shift);
    let product = graph.node("Mul", &[&pixels, &factor], &[]);
    graph.node("Add", &[&product, &shift], &[])
}

/// P(first), P(second) of one logit.
pub(super) fn two_probabilities(graph: &mut Graph, logit: &str) -> String {
    let second = graph.node("Sigmoid", &[logit], &[]);
    let against = graph.node("Neg", &[logit], &[]);
    let first = graph.node("Sigmoid", &[&against], &[]);
    graph.concat(&[first, second])
}

/// The graph's outputs: probabilities, and the name of the most probable class.
pub(super) fn outputs(graph: &mut Graph, probabilities: &str, classes: &[String]) {
    let count = [classes.len()];
    graph.output("probabilities", (Type::Float, &count), ("Identity", &[probabilities]), &[]);
    let flags = [
        ("axis", Attribute::Int(1)),
        ("keepdims", Attribute::Int(0)),
        // Of equal ones the last, as predictions of geodp have it.
        ("select_last_index", Attribute::Int(1)),
    ];
    let best = graph.node("ArgMax", &[probabilities], &flags);
    let names = [
        ("keys_int64s", Attribute::Ints((0..classes.len() as i64).collect())),
        ("values_strings", Attribute::Texts(classes.to_vec())),
        ("default_string", Attribute::Text(String::new())),
    ];
    graph.output("class", (Type::Text, &[]), ("LabelEncoder", &[&best]), &names);
}

/// The graph's output where a number is learnt: a place in its range, as the number itself.
pub(super) fn number(graph: &mut Graph, place: &str, [low, high]: [f64; 2], label: &str) {
    let place = graph.cast(place, Type::Double);
    let (zero, one) = (graph.double(0.0), graph.double(1.0));
    let (low, width) = (graph.double(low), graph.double(high - low));
    let place = graph.node("Clip", &[&place, &zero, &one], &[]);
    let above = graph.node("Mul", &[&place, &width], &[]);
    let name = format!("predicted_{label}");
    graph.output(&name, (Type::Double, &[1]), ("Add", &[&above, &low]), &[]);
}

/// Everything from the network's input to its last layer's outputs.
pub(super) fn network(
    graph: &mut Graph,
    spec: &NetworkSpec,
    network: &Network,
    weights: &[f32],
    input: String,
) -> Result<String, Error> {
    for parameter in network.parameters() {
        graph.floats(&parameter.name, &parameter.shape, &weights[parameter.range()]);
    }
    let mut walk = Walk { graph, network };
    let (value, _) = walk.layers(&spec.layers, "", input, spec.input.clone())?;
    Ok(value)
}

/// (v − mean)/√(variance + ε) over each group of channels, as one channel of an instance normalisation.
pub(super) fn normalised_groups(
    graph: &mut Graph,
    value: &str,
    name: &str,
    shape: &[usize],
    groups: usize,
) -> String {
    let size = shape.iter().product::<usize>() / groups;
    let split = graph.reshape(value, &[groups, size]);
    let ones = graph.floats(&format!("{name}.ones"), &[groups], &vec![1.0; groups]);
    let zeros = graph.floats(&format!("{name}.zeros"), &[groups], &vec![0.0; groups]);
    let flags = [("epsilon", Attribute::Float(EPSILON))];
    let normed = graph.node("InstanceNormalization", &[&split, &ones, &zeros], &flags);
    graph.reshape(&normed, shape)
}

struct Walk<'a> {
    graph: &'a mut Graph,
    network: &'a Network,
}

impl Walk<'_> {
    /// Layers in order; parameters are named as the network names them.
    fn layers(
        &mut self,
        specs: &[LayerSpec],
        prefix: &str,
        mut value: String,
        mut shape: Vec<usize>,
    ) -> Result<(String, Vec<usize>), Error> {
        for (place, spec) in specs.iter().enumerate() {
            let name = |given: &Option<String>| match given {
                Some(name) => format!("{prefix}{name}"),
                None => format!("{prefix}{place}"),
            };
            (value, shape) = match spec {
                LayerSpec::Linear(linear) => {
                    let inputs = self.parameters(&value, &name(&linear.name), linear.bias);
                    let flags = [("transB", Attribute::Int(1))];
                    (self.with(&inputs, "Gemm", &flags), vec![linear.outputs])
                }
                LayerSpec::Conv2d(conv) => {
                    let inputs = self.parameters(&value, &name(&conv.name), conv.bias);
                    let [_, height, width] = planes(&shape)?;
                    let side =
                        |side: usize| (side + 2 * conv.padding - conv.kernel) / conv.stride + 1;
                    let pads = vec![conv.padding as i64; 4];
                    let flags = window(conv.kernel, conv.stride, Some(pads));
                    let shape = vec![conv.outputs, side(height), side(width)];
                    (self.with(&inputs, "Conv", &flags), shape)
                }
                LayerSpec::MaxPool(pool) => {
                    self.pool("MaxPool", &value, &shape, pool.kernel, pool.stride)?
                }
                LayerSpec::AvgPool(pool) => {
                    self.pool("AveragePool", &value, &shape, pool.kernel, pool.stride)?
                }
                LayerSpec::GlobalAvgPool => {
                    let mean = self.graph.node("GlobalAveragePool", &[&value], &[]);
                    (self.graph.node("Flatten", &[&mean], &[]), vec![shape[0]])
                }
                LayerSpec::Relu => (self.graph.node("Relu", &[&value], &[]), shape),
                LayerSpec::Tanh => (self.graph.node("Tanh", &[&value], &[]), shape),
                LayerSpec::GroupNorm(norm) => {
                    let name = name(&norm.name);
                    (self.group_norm(&value, &name, &shape, norm.groups), shape)
                }
                LayerSpec::Residual(residual) => {
                    let inside = format!("{}.", name(&residual.name));
                    let (body, out) =
                        self.layers(&residual.body, &inside, value.clone(), shape.clone())?;
                    let (beside, _) = self.layers(&residual.shortcut, &inside, value, shape)?;
                    (self.graph.node("Add", &[&body, &beside], &[]), out)
                }
                LayerSpec::Flatten => {
                    (self.graph.node("Flatten", &[&value], &[]), vec![shape.iter().product()])
                }
            };
        }
        Ok((value, shape))
    }

    fn parameters(&self, value: &str, name: &str, bias: bool) -> Vec<String> {
        let names = [Some("weight"), bias.then_some("bias")].into_iter().flatten();
        let parameters = names.map(|kind| format!("{name}.{kind}"));
        debug_assert!(self.network.parameters().iter().any(|p| p.name == format!("{name}.weight")));
        [value.to_owned()].into_iter().chain(parameters).collect()
    }

    fn with(&mut self, inputs: &[String], operator: &str, flags: &[(&str, Attribute)]) -> String {
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        self.graph.node(operator, &inputs, flags)
    }

    fn pool(
        &mut self,
        operator: &str,
        value: &str,
        shape: &[usize],
        kernel: usize,
        stride: Option<usize>,
    ) -> Result<(String, Vec<usize>), Error> {
        let [channels, height, width] = planes(shape)?;
        let stride = stride.unwrap_or(kernel);
        let side = |side: usize| (side - kernel) / stride + 1;
        let pooled = self.graph.node(operator, &[value], &window(kernel, stride, None));
        Ok((pooled, vec![channels, side(height), side(width)]))
    }

    /// Normalised groups, then every channel's own map.
    fn group_norm(&mut self, value: &str, name: &str, shape: &[usize], groups: usize) -> String {
        let graph = &mut *self.graph;
        let channels = shape[0];
        let whole = normalised_groups(graph, value, name, shape, groups);
        let dims = graph.integers(&[3], &[channels as i64, 1, 1]);
        let factor = graph.node("Reshape", &[&format!("{name}.weight"), &dims], &[]);
        let shift = graph.node("Reshape", &[&format!("{name}.bias"), &dims], &[]);
        let product = graph.node("Mul", &[&whole, &factor], &[]);
        graph.node("Add", &[&product, &shift], &[])
    }
}

fn planes(shape: &[usize]) -> Result<[usize; 3], Error> {
    shape
        .try_into()
        .map_err(|_| Error::Export(format!("a layer of images stands on the flat shape {shape:?}")))
}

fn window(kernel: usize, stride: usize, pads: Option<Vec<i64>>) -> Vec<(&'static str, Attribute)> {
    let both = |side: usize| Attribute::Ints(vec![side as i64; 2]);
    let mut flags = vec![("kernel_shape", both(kernel)), ("strides", both(stride))];
    flags.extend(pads.map(|pads| ("pads", Attribute::Ints(pads))));
    flags
}
