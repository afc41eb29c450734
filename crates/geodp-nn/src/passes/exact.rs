//! An exact sum over threads. Integers add up to the same in any order, so the batch is cut as the
//! threads like it, each thread keeps one [`Tally`], and whoever is free takes the next piece.

use super::batch::Passes;
use super::block::Leave;
use super::tally::{CHUNK_RECORDS, Tally};
use super::workspace::Workspace;
use super::{Pass, WeightOf};
use crate::grid::Grid;
use crate::network::BatchOutcome;
use crate::simd::Vector;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Pieces for each thread, so that one that was held up does not hold up the batch.
const PIECES: usize = 4;

/// Records of each piece but the last: whole blocks, at most a chunk.
fn piece_len(batch: usize, lanes: usize) -> usize {
    let pieces = PIECES * rayon::current_num_threads();
    batch.div_ceil(pieces).next_multiple_of(lanes).clamp(lanes, CHUNK_RECORDS)
}

impl<V: Vector> Passes<V> {
    /// `sum = Σ n_i`, see [`Tally::add`].
    pub(crate) fn exact_sum(
        &self,
        pass: &Pass<'_>,
        batch: &[u32],
        grid: &Grid,
        weight_of: WeightOf<'_>,
        sum: &mut [i64],
    ) -> BatchOutcome {
        let len = piece_len(batch.len(), V::LANES);
        let (mut norms, mut losses) = (vec![0.0; batch.len()], vec![0.0; batch.len()]);
        // Tallies belong to this call alone: another on the same network has its own.
        let tallies = Mutex::new(Vec::new());
        let lock = || tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let correct = batch
            .par_chunks(len)
            .enumerate()
            .zip(norms.par_chunks_mut(len).zip(losses.par_chunks_mut(len)))
            .map(|((at, batch), outcome)| {
                self.with_workspace(pass, |workspace| {
                    let kept = lock().pop();
                    let mut tally = kept.unwrap_or_else(|| self.tally(pass));
                    let piece = (at * len, batch);
                    let correct =
                        Self::piece(workspace, &mut tally, pass, grid, piece, weight_of, outcome);
                    lock().push(tally);
                    correct
                })
            })
            .sum();
        sum.fill(0);
        let mut tallies = tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
        for tally in &mut tallies {
            tally.finish(pass.layout, sum);
        }
        self.spare().append(&mut tallies);
        BatchOutcome { norms, losses, correct }
    }

    fn tally(&self, pass: &Pass<'_>) -> Tally<V> {
        let spare = self.spare().pop();
        let mut tally = spare.unwrap_or_else(|| Tally::new(pass.layout));
        tally.clear();
        tally
    }

    fn piece(
        workspace: &mut Workspace<V>,
        tally: &mut Tally<V>,
        pass: &Pass<'_>,
        grid: &Grid,
        (first, batch): (usize, &[u32]),
        weight_of: WeightOf<'_>,
        (norms, losses): (&mut [f32], &mut [f32]),
    ) -> usize {
        let mut correct = 0;
        for (block, batch) in batch.chunks(V::LANES).enumerate() {
            let place = block * V::LANES..block * V::LANES + batch.len();
            workspace.forward(pass, batch);
            correct += workspace.loss(pass, &mut losses[place.clone()], None);
            workspace.backward(pass, Leave::Block);
            let weight_of = |lane, norm| weight_of(first + place.start + lane, norm);
            tally.add(workspace, pass, grid, weight_of, &mut norms[place.clone()]);
        }
        correct
    }
}
