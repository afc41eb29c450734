//! Passes over a batch: [`block`] for one block of samples, [`read`] for its inputs, [`weigh`] for its norms and weighted sum,
//! [`rows`] for its gradients one by one, [`workspace`] for what it works in, [`batch`] for chunks,
//! stripes and threads, [`awake`] for the time between passes. Sums of integers go through [`tally`] and [`exact`]
//! instead of [`weigh`] and stripes, and may take bytes as they are stored ([`bytes`]); sums over units of several
//! rows go through [`units`].

mod awake;
pub(crate) mod batch;
mod block;
mod bytes;
pub(crate) mod exact;
mod read;
mod rows;
mod tally;
mod tally_kernels;
mod units;
mod weigh;
mod workspace;

use crate::Samples;
use crate::layout::Layout;
use bytes::OfBytes;
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

/// What a pass is for.
#[derive(Clone, Copy)]
pub(crate) enum Goal<'a> {
    Gradient,
    Weighted(WeightOf<'a>),
}
