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

/// One layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum LayerSpec {
    /// y = W·x + b of a flat input.
    Linear {
        /// Prefix of its parameters' names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Output features.
        outputs: usize,
        /// Whether there is a b.
        #[serde(default = "yes")]
        bias: bool,
    },
    /// Convolution with a square kernel.
    Conv2d {
        /// Prefix of its parameters' names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Output channels.
        outputs: usize,
        /// Side of the kernel.
        kernel: usize,
        /// Step between places of the kernel.
        #[serde(default = "one")]
        stride: usize,
        /// Zeros around the input.
        #[serde(default)]
        padding: usize,
        /// Whether there is a bias for each output channel.
        #[serde(default = "yes")]
        bias: bool,
    },
    /// Maximum of square windows.
    MaxPool {
        /// Side of the window.
        kernel: usize,
        /// Step between windows; the side if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride: Option<usize>,
    },
    /// Mean of square windows.
    AvgPool {
        /// Side of the window.
        kernel: usize,
        /// Step between windows; the side if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride: Option<usize>,
    },
    /// Mean of each channel; the output is flat.
    GlobalAvgPool,
    /// max(0, x).
    Relu,
    /// tanh x.
    Tanh,
    /// Normalises groups of channels within each sample, then scales and shifts each channel.
    GroupNorm {
        /// Prefix of its parameters' names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// How many groups; divides the channels.
        groups: usize,
    },
    /// body(x) + shortcut(x).
    Residual {
        /// Prefix of the names of the layers inside.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The layers that are learnt.
        body: Vec<LayerSpec>,
        /// What x passes through beside them; empty for x itself.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shortcut: Vec<LayerSpec>,
    },
    /// Forgets the shape.
    Flatten,
}

fn yes() -> bool {
    true
}

fn one() -> usize {
    1
}

impl LayerSpec {
    /// `conv2d`, `linear`, … as in the description.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Conv2d { .. } => "conv2d",
            Self::MaxPool { .. } => "max_pool",
            Self::AvgPool { .. } => "avg_pool",
            Self::GlobalAvgPool => "global_avg_pool",
            Self::Relu => "relu",
            Self::Tanh => "tanh",
            Self::GroupNorm { .. } => "group_norm",
            Self::Residual { .. } => "residual",
            Self::Flatten => "flatten",
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Linear { name, .. }
            | Self::Conv2d { name, .. }
            | Self::GroupNorm { name, .. }
            | Self::Residual { name, .. } => name.as_deref(),
            _ => None,
        }
    }
}
