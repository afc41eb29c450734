//! The layers, one file each: its fields in a description, what it asks of its input, its first
//! values, its packing, forward and backward. This file lists them; a new layer is a file of its own
//! and its lines here (the fields of its description are exported in `lib.rs`).
//!
//! A layer sees one block of samples at a time, values as `[feature][lane]`, lane = sample, and
//! never mixes lanes: a network that mixes samples (batch normalisation, for one) cannot be
//! expressed. Shapes: x, dx `[input features]`, y, dy `[output features]`, dx = ∂loss/∂x for each
//! lane alone. Layers leave their per-sample parameter gradients in the lanes; linear layers hand
//! out (x, dy) instead, see [`linear`].

pub(crate) mod avg_pool;
mod contract;
pub(crate) mod conv2d;
mod conv2d_gradient;
mod conv_shape;
mod correlate;
pub(crate) mod cross_entropy;
mod flatten;
pub(crate) mod group_norm;
pub(crate) mod linear;
pub(crate) mod linear_bytes;
pub(crate) mod linear_bytes_gradient;
pub(crate) mod linear_exact;
pub(crate) mod linear_read;
pub(crate) mod linear_rows;
pub(crate) mod max_pool;
mod parts;
mod relu;
pub(crate) mod residual;
pub(crate) mod squared_error;
mod tanh;
mod winograd;
mod winograd_gradient;

pub(crate) use contract::{
    Activation, Backward, Describe, Forward, Layer, RunApply, RunBackward, RunForward, RunPullBack,
};

use avg_pool::{AvgPool, AvgPoolSpec, GlobalAvgPool};
use conv2d::{Conv2d, Conv2dSpec};
use flatten::Flatten;
use group_norm::{GroupNorm, GroupNormSpec};
use linear::{Linear, LinearSpec};
use max_pool::{MaxPool, MaxPoolSpec};
use relu::Relu;
use residual::ResidualSpec;
use serde::{Deserialize, Serialize};
use tanh::Tanh;

/// One layer of a description.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum LayerSpec {
    /// y = W·x + b of a flat input.
    Linear(LinearSpec),
    /// Convolution with a square kernel.
    Conv2d(Conv2dSpec),
    /// Maximum of square windows.
    MaxPool(MaxPoolSpec),
    /// Mean of square windows.
    AvgPool(AvgPoolSpec),
    /// Mean of each channel; the output is flat.
    GlobalAvgPool,
    /// max(0, x).
    Relu,
    /// tanh x.
    Tanh,
    /// Normalises groups of channels within each sample, then scales and shifts each channel.
    GroupNorm(GroupNormSpec),
    /// body(x) + shortcut(x).
    Residual(ResidualSpec),
    /// Forgets the shape.
    Flatten,
}

impl LayerSpec {
    /// What the description says of itself, whatever its kind.
    pub(crate) fn describe(&self) -> &dyn Describe {
        match self {
            Self::Linear(spec) => spec,
            Self::Conv2d(spec) => spec,
            Self::MaxPool(spec) => spec,
            Self::AvgPool(spec) => spec,
            Self::GlobalAvgPool => &GlobalAvgPool,
            Self::Relu => &Relu,
            Self::Tanh => &Tanh,
            Self::GroupNorm(spec) => spec,
            Self::Residual(spec) => spec,
            Self::Flatten => &Flatten,
        }
    }
}

/// A layer at work that has an output of its own.
pub(crate) enum AnyLayer {
    Linear(Linear),
    Conv2d(Box<Conv2d>),
    MaxPool(MaxPool),
    AvgPool(AvgPool),
    GroupNorm(GroupNorm),
}

/// Evaluates `$body` with `$layer` bound to the [`Layer`] inside: its methods are generic over
/// vectors, so a trait object cannot have them.
macro_rules! with_layer {
    ($any:expr, $layer:ident => $body:expr) => {
        match $any {
            $crate::layers::AnyLayer::Linear($layer) => $body,
            $crate::layers::AnyLayer::Conv2d($layer) => {
                let $layer = &**$layer;
                $body
            }
            $crate::layers::AnyLayer::MaxPool($layer) => $body,
            $crate::layers::AnyLayer::AvgPool($layer) => $body,
            $crate::layers::AnyLayer::GroupNorm($layer) => $body,
        }
    };
}

/// A layer at work that replaces its input.
pub(crate) enum AnyActivation {
    Relu(Relu),
    Tanh(Tanh),
}

/// [`with_layer`] for an [`Activation`].
macro_rules! with_activation {
    ($any:expr, $activation:ident => $body:expr) => {
        match $any {
            $crate::layers::AnyActivation::Relu($activation) => $body,
            $crate::layers::AnyActivation::Tanh($activation) => $body,
        }
    };
}

pub(crate) use {with_activation, with_layer};
