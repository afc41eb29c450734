//! `model.safetensors`: weights with PyTorch's names and layout, and what they are.
//!
//! `model.load_state_dict(safetensors.torch.load_file("model.safetensors"))` takes it: names,
//! shapes and order of values are those of the PyTorch layers. The file's metadata holds the
//! network's description, the class names, the schema (ranges, values and their order), views and features,
//! the keyed hash of the data and the privacy statement in one line, so that the file can be used alone.

use crate::Error;
use geodp_data::{FeatureSpec, Shape, ViewSpec};
use geodp_nn::{Network, NetworkSpec};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// The one key of the file's metadata. One, because the order of several is not defined, and equal
/// models shall be equal files.
const METADATA_KEY: &str = "geodp";

/// What the metadata says, as JSON.
#[derive(Serialize, Deserialize)]
struct About {
    network: NetworkSpec,
    classes: Vec<String>,
    privacy: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    features: Option<FeatureSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    views: Option<ViewSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shape: Option<Shape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    byte_scaling: Option<Vec<[f32; 2]>>,
}

/// A trained model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The network's description.
    pub spec: NetworkSpec,
    /// Name of each class.
    pub class_names: Vec<String>,
    /// The privacy statement in one line, with the kind of every ε.
    pub statement: String,
    /// The text of the table's schema: columns, ranges, values in their order, classes.
    pub schema: Option<String>,
    /// What stands between the records and the network.
    pub features: Option<FeatureSpec>,
    /// Views of a record over which probabilities are averaged.
    pub views: Option<ViewSpec>,
    /// The keyed hash of the records it was trained on, as the run's ledger has it; only the owner's
    /// `data.key` makes it of records.
    pub data: Option<String>,
    /// Shape of a record as it is stored: before views and features.
    pub shape: Option<Shape>,
    /// a and b of p·a + b for each channel, where records are bytes.
    pub byte_scaling: Option<Vec<[f32; 2]>>,
    /// All parameters, flat.
    pub weights: Vec<f32>,
}

/// What a run says of a model beside its weights.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelNote {
    /// The privacy statement in one line.
    pub statement: String,
    /// The keyed hash of the data.
    pub data: String,
}

/// The file of a model that this crate knows nothing of but its weights: one flat tensor.
pub(crate) fn flat(weights: &[f32], note: &ModelNote) -> Result<Vec<u8>, Error> {
    let refuse = |reason: String| Error::Damaged { path: "model.safetensors".into(), reason };
    let bytes: Vec<u8> = weights.iter().flat_map(|w| w.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![weights.len()], &bytes)
        .map_err(|e| refuse(e.to_string()))?;
    let about = serde_json::json!({ "privacy": note.statement, "data": note.data }).to_string();
    let about = HashMap::from([(METADATA_KEY.to_owned(), about)]);
    serialize([("weights", view)], Some(about)).map_err(|e| refuse(e.to_string()))
}

impl ModelFile {
    /// The file's bytes.
    ///
    /// # Errors
    /// [`Error::Network`] or [`Error::Damaged`] if the weights do not fit the network.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let refuse = |reason: String| Error::Damaged { path: "model.safetensors".into(), reason };
        let network = self.spec.build()?;
        if self.weights.len() != network.dim() {
            let (found, places) = (self.weights.len(), network.dim());
            return Err(refuse(format!("{found} weights for {places} places")));
        }
        let bytes: Vec<Vec<u8>> = network
            .parameters()
            .iter()
            .map(|p| self.weights[p.range()].iter().flat_map(|w| w.to_le_bytes()).collect())
            .collect();
        let mut tensors = Vec::new();
        for (parameter, bytes) in network.parameters().iter().zip(&bytes) {
            let view = TensorView::new(Dtype::F32, parameter.shape.clone(), bytes)
                .map_err(|e| refuse(e.to_string()))?;
            tensors.push((parameter.name.clone(), view));
        }
        let about = About {
            network: self.spec.clone(),
            classes: self.class_names.clone(),
            privacy: self.statement.clone(),
            schema: self.schema.clone(),
            features: self.features.clone(),
            views: self.views.clone(),
            data: self.data.clone(),
            shape: self.shape,
            byte_scaling: self.byte_scaling.clone(),
        };
        let about = serde_json::to_string(&about).map_err(|e| refuse(e.to_string()))?;
        let about = HashMap::from([(METADATA_KEY.to_owned(), about)]);
        serialize(tensors, Some(about)).map_err(|e| refuse(e.to_string()))
    }

    /// Reads a model back, checking every name and shape.
    ///
    /// # Errors
    /// [`Error::Read`], or [`Error::Damaged`] with what is missing or misshapen.
    pub fn read(path: &Path) -> Result<(Self, Network), Error> {
        let bytes = crate::run::files::read(path)?;
        Self::from_bytes(&bytes).map_err(|reason| Error::Damaged { path: path.to_owned(), reason })
    }

    fn from_bytes(bytes: &[u8]) -> Result<(Self, Network), String> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| e.to_string())?;
        let about = header.metadata().as_ref().and_then(|about| about.get(METADATA_KEY));
        let about = about.ok_or("its metadata has no “geodp”: it was not written by geodp")?;
        let about: About = serde_json::from_str(about).map_err(|e| e.to_string())?;
        let network = about.network.build().map_err(|e| e.to_string())?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
        let weights = read_weights(&network, &file)?;
        let model = Self {
            spec: about.network,
            class_names: about.classes,
            statement: about.privacy,
            schema: about.schema,
            features: about.features,
            views: about.views,
            data: about.data,
            shape: about.shape,
            byte_scaling: about.byte_scaling,
            weights,
        };
        Ok((model, network))
    }
}

fn read_weights(network: &Network, file: &SafeTensors<'_>) -> Result<Vec<f32>, String> {
    let mut weights = vec![0.0; network.dim()];
    for parameter in network.parameters() {
        let tensor = file
            .tensor(&parameter.name)
            .map_err(|_| format!("the tensor {} is missing", parameter.name))?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != parameter.shape {
            return Err(format!(
                "the tensor {} is {:?} {:?}, but the network needs F32 {:?}",
                parameter.name,
                tensor.dtype(),
                tensor.shape(),
                parameter.shape
            ));
        }
        let (values, _) = tensor.data().as_chunks::<4>();
        for (weight, bytes) in weights[parameter.range()].iter_mut().zip(values) {
            *weight = f32::from_le_bytes(*bytes);
        }
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> ModelFile {
        let spec = NetworkSpec::mlp(3, &[4], 2);
        let weights = spec.build().unwrap().init(3);
        let class_names = vec!["no, never".to_owned(), "yes".to_owned()];
        ModelFile {
            spec,
            class_names,
            statement: "certified ε = 1".to_owned(),
            schema: Some("[label]".to_owned()),
            features: None,
            views: Some(ViewSpec { flip: true, ..ViewSpec::default() }),
            data: Some("00ff".to_owned()),
            shape: Some(Shape::features(3)),
            byte_scaling: None,
            weights,
        }
    }

    #[test]
    fn comes_back_whole() {
        let bytes = example().to_bytes().unwrap();
        assert_eq!(ModelFile::from_bytes(&bytes).unwrap().0, example());
    }

    #[test]
    fn misfits_are_named() {
        let short = ModelFile { weights: vec![0.0; 3], ..example() };
        assert!(short.to_bytes().is_err());
        assert!(ModelFile::from_bytes(b"junk").is_err());
        let bytes = example().to_bytes().unwrap();
        for cut in [0, 7, 9, bytes.len() / 2, bytes.len() - 1] {
            assert!(ModelFile::from_bytes(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        let text = String::from_utf8_lossy(&bytes).replace("fc2.weight", "fc9.weight");
        assert!(ModelFile::from_bytes(text.as_bytes()).is_err());
    }
}
