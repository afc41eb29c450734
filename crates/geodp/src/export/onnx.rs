//! ONNX's messages ([onnx.proto3](https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3)); field
//! numbers are those of that file.

use super::graph::{Graph, Type};
use super::protobuf::Message;

/// Version of the file's layout; 7 came with operator set 13.
const LAYOUT: i64 = 7;

/// An attribute of a node.
pub(super) enum Attribute {
    Int(i64),
    Float(f32),
    Ints(Vec<i64>),
    Text(String),
    Texts(Vec<String>),
}

/// A whole file.
pub(super) fn model(
    graph: &Graph,
    about: &[(&str, String)],
    operators: i64,
    ml_operators: i64,
) -> Vec<u8> {
    let entries: Vec<Message> = about
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| Message::default().text(1, &format!("geodp.{key}")).text(2, value))
        .collect();
    let sets = [("", operators), ("ai.onnx.ml", ml_operators)]
        .map(|(domain, version)| Message::default().text(1, domain).int(2, version));
    let body = Message::default()
        .messages(1, &graph.nodes)
        .text(2, "geodp")
        .messages(5, &graph.initializers)
        .messages(11, &graph.inputs)
        .messages(12, &graph.outputs);
    Message::default()
        .int(1, LAYOUT)
        .text(2, "geodp")
        .text(3, env!("CARGO_PKG_VERSION"))
        .message(7, &body)
        .messages(8, &sets)
        .messages(14, &entries)
        .finish()
}

/// A node; operators of machine learning have a domain of their own.
pub(super) fn node(
    operator: &str,
    name: &str,
    inputs: &[&str],
    outputs: &[&str],
    attributes: &[(&str, Attribute)],
) -> Message {
    let all = |message: Message, field, names: &[&str]| {
        names.iter().fold(message, |message, name| message.text(field, name))
    };
    let attributes: Vec<Message> =
        attributes.iter().map(|(name, value)| attribute(name, value)).collect();
    let node = all(all(Message::default(), 1, inputs), 2, outputs);
    let node = node.text(3, name).text(4, operator).messages(5, &attributes);
    if operator == "LabelEncoder" { node.text(7, "ai.onnx.ml") } else { node }
}

fn attribute(name: &str, value: &Attribute) -> Message {
    let named = Message::default().text(1, name);
    match value {
        Attribute::Float(value) => named.float(2, *value).int(20, 1),
        Attribute::Int(value) => named.int(3, *value).int(20, 2),
        Attribute::Text(value) => named.text(4, value).int(20, 3),
        Attribute::Ints(values) => named.ints(8, values.iter().copied()).int(20, 7),
        Attribute::Texts(values) => {
            values.iter().fold(named, |message, value| message.text(9, value)).int(20, 8)
        }
    }
}

/// A constant.
pub(super) fn tensor(name: &str, of: Type, dims: &[usize], little_endian: &[u8]) -> Message {
    Message::default()
        .ints(1, dims.iter().map(|&dim| dim as i64))
        .int(2, of as i64)
        .text(8, name)
        .bytes(9, little_endian)
}

/// An input or output: a batch of any size.
pub(super) fn value(name: &str, of: Type, dims: &[usize]) -> Message {
    let any = Message::default().message(1, &Message::default().text(2, "N"));
    let shape = dims
        .iter()
        .fold(any, |shape, &dim| shape.message(1, &Message::default().int(1, dim as i64)));
    let tensor = Message::default().int(1, of as i64).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}
