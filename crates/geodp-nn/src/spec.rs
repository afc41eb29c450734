//! The description of a network: plain data, for TOML (or any other serde format) and for code.
//!
//! ```toml
//! input = [1, 28, 28]
//! loss = "softmax_cross_entropy"
//!
//! [[layers]]
//! type = "conv2d"
//! name = "conv1"      # parameters are then conv1.weight and conv1.bias
//! outputs = 10
//! kernel = 5
//! ```
//! A layer without a name is named by its place, as in PyTorch's `Sequential`. What mixes samples
//! (batch normalisation) has no description here and so cannot be trained privately by mistake.

use crate::layers::LayerSpec;
use crate::layers::cross_entropy::Loss;
use serde::{Deserialize, Serialize};

/// A network: shape of an input, layers in order, loss. [`NetworkSpec::build`] checks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkSpec {
    /// `[features]`, or `[channels, height, width]`.
    pub input: Vec<usize>,
    /// What the outputs of the last layer are held against.
    pub loss: Loss,
    /// First to last.
    pub layers: Vec<LayerSpec>,
}

/// A default for serde.
pub(crate) fn yes() -> bool {
    true
}

/// A default for serde.
pub(crate) fn one() -> usize {
    1
}
