//! Models that leave: a trained model as an ONNX file, from raw inputs to named classes.
//!
//! | data | inputs of the graph |
//! |---|---|
//! | table | one of N × 1 for each column: doubles (dates as days since 1970-01-01, booleans as 0 and 1, missing as NaN), texts for declared values (missing as "") |
//! | bytes | `input`: N × channels × height × width bytes, scaled inside |
//! | floats | `input`: N × the record's shape |
//!
//! Outputs: `class`, the name, and `probabilities`, N × classes; or `predicted_` and the label's name. Texts must be written as the schema
//! writes them: that `1.0` is `1` is known to the readers of tables only.

mod graph;
mod layers;
mod onnx;
mod protobuf;
mod table;

use crate::Error;
use crate::model_file::ModelFile;
use geodp_data::table::{Label, Schema};
use geodp_nn::Loss;
use graph::{Graph, Type};

/// Oldest operator sets that have everything used here.
const OPERATORS: i64 = 13;
const ML_OPERATORS: i64 = 2;

impl ModelFile {
    /// The bytes of an ONNX file.
    ///
    /// # Errors
    /// What ONNX cannot express: scattering features, unless `after_features` says that the graph's
    /// input shall be the features; a model file of an older version.
    pub fn to_onnx(&self, after_features: bool) -> Result<Vec<u8>, Error> {
        let refuse = |reason: &str| Error::Export(reason.to_owned());
        let network = self.spec.build()?;
        let mut graph = Graph::default();
        let shape: Vec<usize> = match (self.shape, self.features.is_some() && after_features) {
            (Some(shape), false) if shape.height * shape.width > 1 => {
                vec![shape.channels, shape.height, shape.width]
            }
            _ => vec![network.input_len()],
        };
        let mut value = match (&self.features, &self.schema, &self.byte_scaling) {
            (Some(_), _, _) if !after_features => {
                return Err(refuse(
                    "the model stands on scattering features, whose Fourier transforms ONNX has no \
                     operators for; with --after-features the graph takes the features as its input",
                ));
            }
            (None, Some(text), _) => {
                table::inputs(&mut graph, &Schema::parse(crate::config::SCHEMA_FILE, text)?)
            }
            (None, None, Some(affine)) => layers::bytes(&mut graph, &shape, affine),
            _ => graph.input("input", Type::Float, &shape),
        };
        if shape.len() != self.spec.input.len() {
            value = match self.spec.input.len() {
                1 => graph.node("Flatten", &[&value], &[]),
                _ => graph.reshape(&value, &self.spec.input),
            };
        }
        let logits = layers::network(&mut graph, &self.spec, &network, &self.weights, value)?;
        if self.spec.loss.is_regression() {
            let schema = self.schema.as_deref().ok_or_else(|| {
                refuse("the model learns a number, but its file holds no schema with the range")
            })?;
            let schema = Schema::parse(crate::config::SCHEMA_FILE, schema)?;
            let Label::Range { range, .. } = schema.label_kind() else {
                return Err(refuse("the model learns a number, but its schema declares classes"));
            };
            layers::number(&mut graph, &logits, *range, schema.label());
            return Ok(self.onnx_file(&graph));
        }
        let probabilities = match self.spec.loss {
            Loss::SigmoidCrossEntropy => layers::two_probabilities(&mut graph, &logits),
            _ => graph.node("Softmax", &[&logits], &[("axis", onnx::Attribute::Int(1))]),
        };
        layers::outputs(&mut graph, &probabilities, &self.class_names);
        Ok(self.onnx_file(&graph))
    }

    fn onnx_file(&self, graph: &Graph) -> Vec<u8> {
        let about = [
            ("classes", serde_json::to_string(&self.class_names).unwrap_or_default()),
            ("privacy", self.statement.clone()),
            ("schema", self.schema.clone().unwrap_or_default()),
        ];
        onnx::model(graph, &about, OPERATORS, ML_OPERATORS)
    }
}
