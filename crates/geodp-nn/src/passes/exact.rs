//! An exact sum over threads. Integers add up to the same in any order, so the batch is cut as the
//! threads like it, each thread keeps one [`Tally`], and whoever is free takes the next piece.

use super::batch::Passes;
use super::block::Leave;
use super::tally::Tally;
use super::workspace::Workspace;
use super::{Pass, WeightOf};
use crate::grid::Grid;
use crate::layout::Layout;
use crate::network::BatchOutcome;
use crate::simd::Vector;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// What is summed: on which grid, weighed by what.
#[derive(Clone, Copy)]
pub(crate) struct ExactGoal<'a> {
    pub(crate) grid: &'a Grid,
    pub(crate) weight_of: WeightOf<'a>,
}

/// Whose contributions are bounded.
#[derive(Clone, Copy)]
pub(crate) enum ExactBatch<'a> {
    Records(&'a [u32]),
    Units(&'a [&'a [u32]]),
}

/// The tallies of one call, which no other call sees: one for each thread that works on it.
pub(crate) struct Tallies<'a, V: Vector> {
    layout: &'a Layout,
    /// Where tallies come from and go to.
    spare: &'a Mutex<Vec<Tally<V>>>,
    idle: Mutex<Vec<Tally<V>>>,
}

impl<'a, V: Vector> Tallies<'a, V> {
    pub(crate) fn new(passes: &'a Passes<V>, layout: &'a Layout) -> Self {
        Self { layout, spare: &passes.tallies, idle: Mutex::new(Vec::new()) }
    }

    /// Lends a tally to `work`.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut Tally<V>) -> R) -> R {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut tally = kept.unwrap_or_else(|| {
            let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut tally = spare.unwrap_or_else(|| Tally::new(self.layout));
            tally.clear();
            tally
        });
        let result = work(&mut tally);
        idle().push(tally);
        result
    }

    /// Adds all of them to `sum`.
    pub(crate) fn finish(self, sum: &mut [i64]) {
        let mut idle = self.idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        idle.par_iter_mut().with_max_len(1).for_each(|tally| tally.finish(self.layout));
        for tally in &idle {
            tally.add_to(sum);
        }
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).append(&mut idle);
    }
}

/// Pieces for each thread of a short batch.
const PIECES: usize = 4;
/// Blocks of a piece at most: few, so that neither a batch of an odd length nor a thread that was held up makes
/// the others wait.
const PIECE_BLOCKS: usize = 2;

/// Records of each piece but the last: whole blocks.
fn piece_len(batch: usize, lanes: usize) -> usize {
    let pieces = PIECES * rayon::current_num_threads();
    batch.div_ceil(pieces * lanes).clamp(1, PIECE_BLOCKS) * lanes
}

impl<V: Vector> Passes<V> {
    /// Adds Σ n_i to the tallies, see [`Tally::add`].
    pub(crate) fn tally_records(
        &self,
        pass: &Pass<'_>,
        batch: &[u32],
        goal: ExactGoal<'_>,
        tallies: &Tallies<'_, V>,
    ) -> BatchOutcome {
        let len = piece_len(batch.len(), V::LANES);
        let (mut norms, mut losses) = (vec![0.0; batch.len()], vec![0.0; batch.len()]);
        let correct = batch
            .par_chunks(len)
            .enumerate()
            .zip(norms.par_chunks_mut(len).zip(losses.par_chunks_mut(len)))
            .with_max_len(1)
            .map(|((at, batch), outcome)| {
                self.with_workspace(pass, |workspace| {
                    tallies.with(|tally| {
                        piece(workspace, tally, pass, goal, (at * len, batch), outcome)
                    })
                })
            })
            .sum();
        BatchOutcome { norms, losses, correct, rows: batch.len() }
    }
}

fn piece<V: Vector>(
    workspace: &mut Workspace<V>,
    tally: &mut Tally<V>,
    pass: &Pass<'_>,
    goal: ExactGoal<'_>,
    (first, batch): (usize, &[u32]),
    (norms, losses): (&mut [f32], &mut [f32]),
) -> usize {
    let mut correct = 0;
    for (block, batch) in batch.chunks(V::LANES).enumerate() {
        let place = block * V::LANES..block * V::LANES + batch.len();
        let inputs = workspace.forward_measured(pass, batch);
        correct += workspace.loss(pass, &mut losses[place.clone()], None);
        workspace.backward(pass, Leave::Block);
        let weight_of = |lane, norm| (goal.weight_of)(first + place.start + lane, norm);
        tally.add(workspace, &inputs, pass, goal.grid, weight_of, &mut norms[place.clone()]);
    }
    correct
}
