//! Models that leave: a trained model as an ONNX file, from raw inputs to named classes.
//!
//! | data | inputs of the graph |
//! |---|---|
//! | table | one of N × 1 for each column: doubles (dates as days since 1970-01-01, booleans as 0 and 1, missing as NaN), texts for declared values (missing as "") |
//! | bytes | `input`: N × channels × height × width bytes, scaled inside |
//! | floats | `input`: N × the record's shape |
//!
//! Views and scattering features are computed inside; probabilities are the mean over views, as in
//! predictions. A model on features can also take these as its input: N × their number of floats. Features that
//! are kept as binary16 are rounded to it in the graph, computed or given.
//!
//! Outputs: `class`, the name, and `probabilities`, N × classes; or `predicted_` and the label's name. Texts must be written as the schema
//! writes them: that `1.0` is `1` is known to the readers of tables only.

mod graph;
mod layers;
mod onnx;
mod protobuf;
mod scattering;
mod table;

use crate::Error;
use crate::model_file::ModelFile;
use geodp_data::Shape;
use geodp_data::table::{Label, Schema};
use geodp_nn::{Loss, Network};
use graph::{Graph, Type};

/// Oldest operator sets that have everything used here.
const OPERATORS: i64 = 13;
const ML_OPERATORS: i64 = 2;

/// Why a model on features of an older version is refused.
const OLDER: &str = "the model file does not say what the images were before views and features: it was \
                     written by an older version; train again, or take the features as the graph's input \
                     with --after-features";

impl ModelFile {
    /// The bytes of an ONNX file. With `after_features`, its input are the features of a model that
    /// stands on some.
    ///
    /// # Errors
    /// A model file of an older version, which does not say enough.
    pub fn to_onnx(&self, after_features: bool) -> Result<Vec<u8>, Error> {
        let refuse = |reason: &str| Error::Export(reason.to_owned());
        let network = self.spec.build()?;
        let mut graph = Graph::default();
        let made = !after_features && (self.features.is_some() || self.views.is_some());
        let (mut value, mut dims) = match (made, &self.features) {
            (false, Some(features)) => {
                let dims = vec![network.input_len()];
                let input = graph.input("input", Type::Float, &dims);
                (scattering::kept(&mut graph, features, input), dims)
            }
            _ => self.records(&mut graph, &network)?,
        };
        let views = match (&self.views, made) {
            (Some(spec), true) => spec.views(self.stored()?)?,
            _ => Vec::new(),
        };
        if made {
            let stored = self.stored()?;
            if !views.is_empty() {
                value = scattering::views(&mut graph, &value, &views, stored);
            }
            if let Some(features) = &self.features {
                let out = features.shape(stored)?;
                if out.channels * out.height * out.width != network.input_len() {
                    return Err(refuse(OLDER));
                }
                value = scattering::features(&mut graph, features, &value, stored)?;
                dims = vec![out.channels, out.height, out.width];
            }
        }
        if dims.len() != self.spec.input.len() {
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
        let probabilities = match views.len() {
            0 => probabilities,
            count => {
                let classes = self.class_names.len();
                scattering::mean_over_views(&mut graph, &probabilities, count, classes)
            }
        };
        layers::outputs(&mut graph, &probabilities, &self.class_names);
        Ok(self.onnx_file(&graph))
    }

    /// Records as they are stored: the input and its dimensions without the batch's.
    fn records(&self, graph: &mut Graph, network: &Network) -> Result<(String, Vec<usize>), Error> {
        let dims = match self.shape {
            Some(shape) if shape.height * shape.width > 1 => {
                vec![shape.channels, shape.height, shape.width]
            }
            _ => vec![network.input_len()],
        };
        let value = match (&self.schema, &self.byte_scaling) {
            (Some(text), _) => {
                table::inputs(graph, &Schema::parse(crate::config::SCHEMA_FILE, text)?)
            }
            (None, Some(affine)) => layers::bytes(graph, &dims, affine),
            _ => graph.input("input", Type::Float, &dims),
        };
        Ok((value, dims))
    }

    /// Shape of a record before views and features.
    fn stored(&self) -> Result<Shape, Error> {
        self.shape.ok_or_else(|| Error::Export(OLDER.to_owned()))
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
