//! Exact sums over units of several rows: Σ_u n_u, n_u on the grid from w(‖ḡ_u‖)·ḡ_u, where ḡ_u is the
//! mean gradient of unit u's rows.
//!
//! A lane is a unit, a round is one row of each: R rounds leave Σ_r g_r in the lanes, of linear layers
//! too, so that a unit's gradient stands there as a whole, its norm is that of what is truncated, and
//! the argument of [`crate::grid`] is the one for parameters in lanes. Memory depends on the network
//! alone. A unit of one row goes the faster way of a record; which way a unit goes depends on the unit
//! alone, so that its integers do.

use super::Pass;
use super::batch::Passes;
use super::block::Leave;
use super::exact::{ExactGoal, Tallies};
use super::tally::Tally;
use super::workspace::Workspace;
use crate::network::BatchOutcome;
use crate::simd::Vector;
use rayon::prelude::*;
use std::cmp::Reverse;

/// A unit of several rows at its place in the batch, and what became of it.
struct Several<'a> {
    place: usize,
    rows: &'a [u32],
    norm: f32,
    mean_loss: f32,
}

impl<V: Vector> Passes<V> {
    /// Adds Σ n_u to the tallies. Norms and mean losses are those of units, hits those of rows.
    pub(crate) fn tally_units(
        &self,
        pass: &Pass<'_>,
        units: &[&[u32]],
        goal: ExactGoal<'_>,
        tallies: &Tallies<'_, V>,
    ) -> BatchOutcome {
        let (mut places, mut single, mut several) = (Vec::new(), Vec::new(), Vec::new());
        for (place, unit) in units.iter().enumerate() {
            match unit {
                [] => {}
                [row] => {
                    places.push(place);
                    single.push(*row);
                }
                rows => several.push(Several { place, rows, norm: 0.0, mean_loss: 0.0 }),
            }
        }
        let weight_of = |at: usize, norm: f64| (goal.weight_of)(places[at], norm);
        let of_single = ExactGoal { weight_of: &weight_of, ..goal };
        let singles = self.tally_records(pass, &single, of_single, tallies);
        // Units of like sizes share a block, and the rows of a round fill its first lanes.
        several.sort_by_key(|unit| Reverse(unit.rows.len()));
        let correct: usize = several
            .par_chunks_mut(V::LANES)
            .map(|units| {
                self.with_workspace(pass, |workspace| {
                    tallies.with(|tally| block_of_units(workspace, tally, pass, goal, units))
                })
            })
            .sum();
        let zeros = vec![0.0; units.len()];
        let correct = singles.correct + correct;
        let mut outcome = BatchOutcome { norms: zeros.clone(), losses: zeros, correct };
        for (at, &place) in places.iter().enumerate() {
            outcome.norms[place] = singles.norms[at];
            outcome.losses[place] = singles.losses[at];
        }
        for unit in &several {
            outcome.norms[unit.place] = unit.norm;
            outcome.losses[unit.place] = unit.mean_loss;
        }
        outcome
    }
}

/// Units in the lanes of one block, the longest first.
fn block_of_units<V: Vector>(
    workspace: &mut Workspace<V>,
    tally: &mut Tally<V>,
    pass: &Pass<'_>,
    goal: ExactGoal<'_>,
    units: &mut [Several<'_>],
) -> usize {
    let mut correct = 0;
    let (mut losses, mut totals) = (vec![0.0f32; units.len()], vec![0.0f64; units.len()]);
    for round in 0..units.first().map_or(0, |unit| unit.rows.len()) {
        let rows: Vec<u32> = units.iter().map_while(|unit| unit.rows.get(round).copied()).collect();
        workspace.forward(pass, &rows);
        correct += workspace.loss(pass, &mut losses[..rows.len()], None);
        workspace.backward(pass, Leave::Lanes { add: round > 0 });
        for (total, loss) in totals.iter_mut().zip(&losses[..rows.len()]) {
            *total += f64::from(*loss);
        }
    }
    let mut norms = vec![0.0; units.len()];
    let sizes: Vec<usize> = units.iter().map(|unit| unit.rows.len()).collect();
    let weight_of = |lane: usize, norm| (goal.weight_of)(units[lane].place, norm);
    tally.add_units(workspace, goal.grid, &sizes, weight_of, &mut norms);
    for (at, unit) in units.iter_mut().enumerate() {
        unit.norm = norms[at];
        unit.mean_loss = (totals[at] / unit.rows.len() as f64) as f32;
    }
    correct
}
