//! Passes over a batch: [`block`] for one block of samples, [`read`] for its inputs, [`weigh`] for its norms and weighted sum,
//! [`rows`] for its gradients one by one, [`workspace`] for what it works in, [`batch`] for chunks,
//! stripes and threads. Sums of integers go through [`tally`] and [`exact`] instead of
//! [`weigh`] and stripes; sums over units of several rows through [`units`].

mod awake;
pub(crate) mod batch;
mod block;
pub(crate) mod exact;
mod read;
mod rows;
mod tally;
mod units;
mod weigh;
mod workspace;

use crate::Samples;
use crate::layers::linear_bytes::{self, ByteScaling};
use crate::layout::Layout;
use std::ops::Range;

/// A weight function of a sample's place in the batch and its gradient's norm.
pub(crate) type WeightOf<'a> = &'a (dyn Fn(usize, f64) -> f64 + Sync);

/// What stays the same during one pass over a batch.
pub(crate) struct Pass<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) samples: &'a dyn Samples,
    pub(crate) packed: Vec<f32>,
    pub(crate) packed_of: Vec<Range<usize>>,
    /// In exact sums, where the first layer takes bytes as they are stored.
    pub(crate) bytes: Option<OfBytes>,
}

/// How a first layer takes bytes as they are stored, and its weights for it.
pub(crate) struct OfBytes {
    pub(crate) scaling: ByteScaling,
    pub(crate) weights: Vec<f32>,
}

impl OfBytes {
    /// Where network and inputs are made for it. What is in a batch has no say: it would decide last bits of
    /// others' gradients.
    pub(crate) fn new(layout: &Layout, samples: &dyn Samples, weights: &[f32]) -> Option<Self> {
        let (layer, step) = layout.input_linear()?;
        if !linear_bytes::fits(layer) || !layout.inputs_read_once() {
            return None;
        }
        let scaling = ByteScaling::new(samples.byte_scaling()?)?;
        let weight = &weights[step.parameters.clone()][..layer.inputs * layer.outputs];
        Some(Self { scaling, weights: linear_bytes::pack(layer, weight) })
    }
}

/// What a pass is for.
#[derive(Clone, Copy)]
pub(crate) enum Goal<'a> {
    Gradient,
    Weighted(WeightOf<'a>),
}
