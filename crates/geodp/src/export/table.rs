//! The schema inside the graph: columns in, the model's inputs out, with the readers' own formulas.
//!
//! A number is clamped to its range and scaled in double precision, then rounded once to f32: the same
//! bits as a table that is read. A text is looked up among the declared values; what is none of them is
//! "other".

use super::graph::{Graph, Type};
use super::onnx::Attribute;
use geodp_data::table::{Feature, FeatureKind, Missing, NumericScale, Schema};

/// Adds an input for each column; gives the name of all their values side by side.
pub(super) fn inputs(graph: &mut Graph, schema: &Schema) -> String {
    let columns: Vec<String> = schema
        .features()
        .iter()
        .map(|feature| match &feature.kind {
            FeatureKind::Categorical { values } => texts(graph, feature, values.list()),
            _ => numbers(graph, feature, schema.scale()),
        })
        .collect();
    graph.concat(&columns)
}

fn numbers(graph: &mut Graph, feature: &Feature, scale: NumericScale) -> String {
    let [low, high] = feature.kind.range().unwrap_or([0.0, 1.0]);
    let cell = graph.input(&feature.column, Type::Double, &[1]);
    let Missing::Value(value) = feature.missing else {
        return scaled(graph, &cell, [low, high], scale);
    };
    let absent = graph.node("IsNaN", &[&cell], &[]);
    let value = graph.double(value);
    let present = graph.node("Where", &[&absent, &value, &cell], &[]);
    let number = scaled(graph, &present, [low, high], scale);
    let flag = graph.cast(&absent, Type::Float);
    graph.concat(&[number, flag])
}

fn scaled(graph: &mut Graph, cell: &str, [low, high]: [f64; 2], scale: NumericScale) -> String {
    let (least, most, width) = (graph.double(low), graph.double(high), graph.double(high - low));
    let clamped = graph.node("Clip", &[cell, &least, &most], &[]);
    let above = graph.node("Sub", &[&clamped, &least], &[]);
    let mut unit = graph.node("Div", &[&above, &width], &[]);
    if scale == NumericScale::Symmetric {
        let (two, one) = (graph.double(2.0), graph.double(1.0));
        unit = graph.node("Mul", &[&unit, &two], &[]);
        unit = graph.node("Sub", &[&unit, &one], &[]);
    }
    graph.cast(&unit, Type::Float)
}

fn texts(graph: &mut Graph, feature: &Feature, values: &[String]) -> String {
    let cell = graph.input(&feature.column, Type::Text, &[1]);
    let mut keys = values.to_vec();
    let mut places: Vec<i64> = (0..values.len() as i64).collect();
    if feature.missing == Missing::Category {
        keys.push(String::new());
        places.push(values.len() as i64 + 1);
    }
    let place = graph.node(
        "LabelEncoder",
        &[&cell],
        &[
            ("keys_strings", Attribute::Texts(keys)),
            ("values_int64s", Attribute::Ints(places)),
            ("default_int64", Attribute::Int(values.len() as i64)),
        ],
    );
    // N × 1 against 1 × width: a one where they meet.
    let all: Vec<i64> = (0..feature.width() as i64).collect();
    let all = graph.integers(&[1, feature.width()], &all);
    let hot = graph.node("Equal", &[&place, &all], &[]);
    graph.cast(&hot, Type::Float)
}
