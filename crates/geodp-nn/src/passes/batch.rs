//! A batch over threads: stripes of the batch, each in chunks, each in blocks.
//!
//! How a batch is cut depends on its length and the network alone, and stripes are added in order,
//! so the result is the same bits for any number of threads. Memory: at most [`STRIPES`] sums and
//! one workspace for each thread, whatever the length of the batch.

use super::awake::Awake;
use super::block::Leave;
use super::bytes::OfBytes;
use super::exact::{ExactBatch, ExactGoal, Tallies};
use super::tally::Tally;
use super::workspace::Workspace;
use super::{Goal, Pass, WeightOf};
use crate::layers::linear::OuterProducts;
use crate::network::BatchOutcome;
use crate::simd::{Kernel, Vector};
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Stripes of a long batch: enough for many cores, few enough that their sums stay small.
const STRIPES: usize = 24;
/// Samples that a stripe should have at least: few, so that small batches of odd lengths share out
/// evenly over threads; each stripe costs one fold of its lanes.
const STRIPE_SAMPLES: usize = 32;
/// Samples of a chunk; the longer, the less the sums over lanes cost, and the more must be kept.
const CHUNK_SAMPLES: usize = 128;

/// Makes passes on one kind of vector, and keeps what they worked in for the next.
pub(crate) struct Passes<V: Vector> {
    /// Boxed, because they are handed to and fro for every piece.
    workspaces: Mutex<Vec<Box<Workspace<V>>>>,
    sums: Mutex<Vec<f32>>,
    pub(crate) tallies: Mutex<Vec<Tally<V>>>,
    awake: Awake,
}

/// [`Passes`] without its vector.
pub(crate) trait Execute: Send + Sync {
    fn gradient(
        &self,
        pass: Pass<'_>,
        weights: &[f32],
        batch: &[u32],
        goal: Goal<'_>,
        sum: &mut [f32],
    ) -> BatchOutcome;

    /// `sum = Σ w·ḡ_u` over the units of a batch.
    fn unit_gradient(
        &self,
        pass: Pass<'_>,
        weights: &[f32],
        units: &[&[u32]],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> BatchOutcome;

    /// `sum = Σ n_i` over the records, or Σ n_u over the units, of a batch.
    fn exact(
        &self,
        pass: Pass<'_>,
        weights: &[f32],
        batch: ExactBatch<'_>,
        goal: ExactGoal<'_>,
        sum: &mut [i64],
    ) -> BatchOutcome;

    /// The loss of each sample, and how many labels were the most probable class.
    fn losses(
        &self,
        pass: Pass<'_>,
        weights: &[f32],
        batch: &[u32],
        probabilities: Option<&mut [f32]>,
    ) -> (Vec<f32>, usize);

    /// `gradients[sample of the batch][parameter]`.
    fn sample_gradients(
        &self,
        pass: Pass<'_>,
        weights: &[f32],
        batch: &[u32],
        gradients: &mut [f32],
    );
}

/// Samples of each stripe but the last.
pub(super) fn stripe_len(batch: usize, lanes: usize) -> usize {
    let stripes = batch.div_ceil(STRIPE_SAMPLES.max(lanes)).clamp(1, STRIPES);
    batch.div_ceil(lanes).div_ceil(stripes).max(1) * lanes
}

impl<V: Vector> Passes<V> {
    const CHUNK_BLOCKS: usize = CHUNK_SAMPLES / V::LANES;

    pub(crate) fn new() -> Self {
        Self {
            workspaces: Mutex::new(Vec::new()),
            sums: Mutex::new(Vec::new()),
            tallies: Mutex::new(Vec::new()),
            awake: Awake::default(),
        }
    }

    /// Lends a workspace to `work`.
    pub(crate) fn with_workspace<R>(
        &self,
        pass: &Pass<'_>,
        work: impl FnOnce(&mut Workspace<V>) -> R,
    ) -> R {
        let lock = || self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = lock().pop();
        let new = || Box::new(Workspace::new(pass.layout, Self::CHUNK_BLOCKS));
        let mut workspace = kept.unwrap_or_else(new);
        let result = work(&mut workspace);
        lock().push(workspace);
        result
    }

    fn stripe(
        workspace: &mut Workspace<V>,
        pass: &Pass<'_>,
        (first, batch): (usize, &[u32]),
        goal: Goal<'_>,
        sum: &mut [f32],
        outcome: (&mut [f32], &mut [f32]),
    ) -> usize {
        let (norms, losses) = outcome;
        let room = Self::CHUNK_BLOCKS;
        let mut correct = 0;
        workspace.lane_sum.fill(V::zero());
        let mut done = 0;
        for chunk in batch.chunks(room * V::LANES) {
            for (block, batch) in chunk.chunks(V::LANES).enumerate() {
                let place = done..done + batch.len();
                done += batch.len();
                workspace.forward(pass, batch);
                correct += workspace.loss(pass, &mut losses[place.clone()], None);
                match goal {
                    Goal::Gradient => workspace.backward(pass, Leave::Sum { block, room }),
                    Goal::Weighted(weight_of) => {
                        workspace.backward(pass, Leave::Chunk { block, room });
                        let weight_of = |lane, norm| weight_of(first + place.start + lane, norm);
                        workspace.weigh(block, room, weight_of, &mut norms[place.clone()]);
                    }
                }
            }
            let blocks = chunk.len().div_ceil(V::LANES);
            for ((layer, step), (x, dy)) in pass.layout.linear_steps().zip(&workspace.linear) {
                let sum = &mut sum[step.parameters.clone()];
                V::run(OuterProducts { layer, x, dy, room, blocks, sum });
            }
        }
        for step in pass.layout.lane_steps() {
            let lanes = &workspace.lane_sum[step.lanes..];
            V::run(FoldLanes { lanes, sum: &mut sum[step.parameters.clone()] });
        }
        correct
    }
}

impl<V: Vector> Passes<V> {
    /// Lends `work` a sum of zeros for each stripe, and adds them up, stripe by stripe, into `sum`.
    pub(super) fn with_stripes<R>(
        &self,
        stripes: usize,
        dim: usize,
        sum: &mut [f32],
        work: impl FnOnce(&mut [f32]) -> R,
    ) -> R {
        let lock = || self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums = std::mem::take(&mut *lock());
        sums.clear();
        sums.resize(stripes * dim, 0.0);
        let result = work(&mut sums);
        // Few columns at a time, so that the totals stay in the cache while the stripes pass.
        const COLUMNS: usize = 1024;
        sum.par_chunks_mut(COLUMNS).enumerate().for_each(|(at, sum)| {
            let mut totals = [0.0f64; COLUMNS];
            for stripe in sums.chunks_exact(dim) {
                let stripe = &stripe[at * COLUMNS..][..sum.len()];
                for (total, value) in totals.iter_mut().zip(stripe) {
                    *total += f64::from(*value);
                }
            }
            for (sum, total) in sum.iter_mut().zip(&totals) {
                *sum = *total as f32;
            }
        });
        *lock() = sums;
        result
    }

    /// `sum = Σ` over the samples of a batch, with the weights packed in `pass`.
    pub(super) fn sum_records(
        &self,
        pass: &Pass<'_>,
        batch: &[u32],
        goal: Goal<'_>,
        sum: &mut [f32],
    ) -> BatchOutcome {
        let len = stripe_len(batch.len(), V::LANES);
        let stripes = batch.len().div_ceil(len);
        let dim = pass.layout.dim;
        let weighted = matches!(goal, Goal::Weighted(_));
        let mut norms = vec![0.0; if weighted { batch.len() } else { 0 }];
        let mut losses = vec![0.0; batch.len()];
        let norms_of_stripes: Vec<&mut [f32]> = if weighted {
            norms.chunks_mut(len).collect()
        } else {
            (0..stripes).map(|_| &mut [][..]).collect()
        };
        let correct = self.with_stripes(stripes, dim, sum, |sums| {
            batch
                .par_chunks(len)
                .enumerate()
                .zip(sums.par_chunks_mut(dim))
                .zip(norms_of_stripes.into_par_iter().zip(losses.par_chunks_mut(len)))
                .map(|(((at, batch), sum), outcome)| {
                    self.with_workspace(pass, |workspace| {
                        Self::stripe(workspace, pass, (at * len, batch), goal, sum, outcome)
                    })
                })
                .sum()
        });
        BatchOutcome { norms, losses, correct, rows: batch.len() }
    }
}

impl<V: Vector> Execute for Passes<V> {
    fn gradient(
        &self,
        mut pass: Pass<'_>,
        weights: &[f32],
        batch: &[u32],
        goal: Goal<'_>,
        sum: &mut [f32],
    ) -> BatchOutcome {
        (pass.packed, pass.packed_of) = pass.layout.pack::<V>(weights);
        let outcome = self.sum_records(&pass, batch, goal, sum);
        self.awake.keep();
        outcome
    }

    fn unit_gradient(
        &self,
        mut pass: Pass<'_>,
        weights: &[f32],
        units: &[&[u32]],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> BatchOutcome {
        (pass.packed, pass.packed_of) = pass.layout.pack::<V>(weights);
        self.sum_units(&pass, units, weight_of, sum)
    }

    fn exact(
        &self,
        mut pass: Pass<'_>,
        weights: &[f32],
        batch: ExactBatch<'_>,
        goal: ExactGoal<'_>,
        sum: &mut [i64],
    ) -> BatchOutcome {
        (pass.packed, pass.packed_of) = pass.layout.pack::<V>(weights);
        pass.bytes = OfBytes::new::<V>(pass.layout, pass.samples, weights);
        let tallies = Tallies::new(self, pass.layout);
        let outcome = match batch {
            ExactBatch::Records(batch) => self.tally_records(&pass, batch, goal, &tallies),
            ExactBatch::Units(units) => self.tally_units(&pass, units, goal, &tallies),
        };
        self.awake.keep();
        sum.fill(0);
        tallies.finish(sum);
        outcome
    }

    fn losses(
        &self,
        mut pass: Pass<'_>,
        weights: &[f32],
        batch: &[u32],
        probabilities: Option<&mut [f32]>,
    ) -> (Vec<f32>, usize) {
        (pass.packed, pass.packed_of) = pass.layout.pack::<V>(weights);
        let len = stripe_len(batch.len(), V::LANES);
        let classes = pass.layout.classes;
        let stripes = batch.len().div_ceil(len);
        let mut losses = vec![0.0; batch.len()];
        let probabilities: Vec<Option<&mut [f32]>> = match probabilities {
            Some(values) => values.chunks_mut(len * classes).map(Some).collect(),
            None => (0..stripes).map(|_| None).collect(),
        };
        let correct = batch
            .par_chunks(len)
            .zip(losses.par_chunks_mut(len))
            .zip(probabilities.into_par_iter())
            .map(|((batch, losses), mut probabilities)| {
                self.with_workspace(&pass, |workspace| {
                    let blocks = batch.chunks(V::LANES).zip(losses.chunks_mut(V::LANES));
                    let mut correct = 0;
                    for (at, (batch, losses)) in blocks.enumerate() {
                        let probabilities = probabilities
                            .as_deref_mut()
                            .map(|values| &mut values[at * V::LANES * classes..]);
                        workspace.forward(&pass, batch);
                        correct += workspace.loss(&pass, losses, probabilities);
                    }
                    correct
                })
            })
            .sum();
        (losses, correct)
    }

    fn sample_gradients(
        &self,
        mut pass: Pass<'_>,
        weights: &[f32],
        batch: &[u32],
        gradients: &mut [f32],
    ) {
        (pass.packed, pass.packed_of) = pass.layout.pack::<V>(weights);
        let blocks = batch.par_chunks(V::LANES);
        blocks.zip(gradients.par_chunks_mut(V::LANES * pass.layout.dim)).for_each(
            |(batch, rows)| {
                self.with_workspace(&pass, |workspace| {
                    let mut losses = vec![0.0; batch.len()];
                    workspace.forward(&pass, batch);
                    workspace.loss(&pass, &mut losses, None);
                    let room = Self::CHUNK_BLOCKS;
                    workspace.backward(&pass, Leave::Chunk { block: 0, room });
                    workspace.write_gradients(&pass, Self::CHUNK_BLOCKS, rows);
                });
            },
        );
    }
}

/// `sum += Σ_lanes`.
struct FoldLanes<'a, V> {
    lanes: &'a [V],
    sum: &'a mut [f32],
}

impl<V: Vector> Kernel for FoldLanes<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (sum, lanes) in self.sum.iter_mut().zip(self.lanes) {
            *sum += lanes.sum();
        }
    }
}
