//! A graph under construction: nodes in order, constants, inputs and outputs; names of values between
//! nodes are made here.

use super::onnx::{self, Attribute};
use super::protobuf::Message;

/// Types of values, by ONNX's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Float = 1,
    Byte = 2,
    Integer = 7,
    Text = 8,
    Half = 10,
    Double = 11,
}

/// See the module.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Message>,
    pub(super) initializers: Vec<Message>,
    pub(super) inputs: Vec<Message>,
    pub(super) outputs: Vec<Message>,
    values: usize,
}

impl Graph {
    fn fresh(&mut self) -> String {
        self.values += 1;
        format!("v{}", self.values)
    }

    /// An input of a batch.
    pub(super) fn input(&mut self, name: &str, of: Type, dims: &[usize]) -> String {
        self.inputs.push(onnx::value(name, of, dims));
        name.to_owned()
    }

    /// A node with one output; gives that output's name.
    pub(super) fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
    ) -> String {
        let output = self.fresh();
        let name = format!("{operator}_{}", self.nodes.len());
        self.nodes.push(onnx::node(operator, &name, inputs, &[&output], attributes));
        output
    }

    /// A node whose output is one of the graph's.
    pub(super) fn output(
        &mut self,
        name: &str,
        (of, dims): (Type, &[usize]),
        (operator, inputs): (&str, &[&str]),
        attributes: &[(&str, Attribute)],
    ) {
        self.nodes.push(onnx::node(
            operator,
            &format!("output_{name}"),
            inputs,
            &[name],
            attributes,
        ));
        self.outputs.push(onnx::value(name, of, dims));
    }

    /// A constant tensor of floats.
    pub(super) fn floats(&mut self, name: &str, dims: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.initializers.push(onnx::tensor(name, Type::Float, dims, &bytes));
        name.to_owned()
    }

    /// A constant double.
    pub(super) fn double(&mut self, value: f64) -> String {
        let name = format!("c{}", self.initializers.len());
        self.initializers.push(onnx::tensor(&name, Type::Double, &[], &value.to_le_bytes()));
        name
    }

    /// A constant list of integers; a single one without brackets has no dimensions.
    pub(super) fn integers(&mut self, dims: &[usize], values: &[i64]) -> String {
        let name = format!("c{}", self.initializers.len());
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.initializers.push(onnx::tensor(&name, Type::Integer, dims, &bytes));
        name
    }

    /// The same values in another shape for each record.
    pub(super) fn reshape(&mut self, value: &str, shape: &[usize]) -> String {
        let dims: Vec<i64> = [0].into_iter().chain(shape.iter().map(|&side| side as i64)).collect();
        let dims = self.integers(&[dims.len()], &dims);
        self.node("Reshape", &[value, &dims], &[])
    }

    pub(super) fn cast(&mut self, value: &str, to: Type) -> String {
        self.node("Cast", &[value], &[("to", Attribute::Int(to as i64))])
    }

    /// Values of a record side by side.
    pub(super) fn concat(&mut self, values: &[String]) -> String {
        self.concat_on(values, 1)
    }

    pub(super) fn concat_on(&mut self, values: &[String], axis: i64) -> String {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        self.node("Concat", &values, &[("axis", Attribute::Int(axis))])
    }
}
