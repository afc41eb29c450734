//! Sums over units of several rows: Σ_u w(‖ḡ_u‖)·ḡ_u, where ḡ_u is the mean gradient of unit u's rows; in
//! floats, or as integers n_u on the grid.
//!
//! A lane is a unit, a round is one row of each: R rounds leave Σ_r g_r in the lanes, of linear layers
//! too, so that a unit's gradient stands there as a whole, its norm is that of what is truncated, and
//! the argument of [`crate::grid`] is the one for parameters in lanes. Memory depends on the network
//! alone. A unit of one row goes the faster way of a record; which way a unit goes depends on the unit
//! alone, so that its integers do.

use super::batch::{Passes, stripe_len};
use super::block::Leave;
use super::exact::{ExactGoal, Tallies};
use super::tally::Tally;
use super::tally_kernels::Squares;
use super::weigh::blank;
use super::workspace::Workspace;
use super::{Goal, Pass, WeightOf};
use crate::network::BatchOutcome;
use crate::simd::{Kernel, MOST_LANES, Vector};
use rayon::prelude::*;
use std::cmp::Reverse;

/// The units of a batch by the way they go: single rows with their places, and the others.
struct Sorted<'a> {
    places: Vec<usize>,
    single: Vec<u32>,
    several: Vec<Several<'a>>,
}

/// A unit of several rows at its place in the batch, and what became of it.
struct Several<'a> {
    place: usize,
    rows: &'a [u32],
    norm: f32,
    mean_loss: f32,
}

impl<'a> Sorted<'a> {
    fn new(units: &[&'a [u32]]) -> Self {
        let (mut places, mut single, mut several) = (Vec::new(), Vec::new(), Vec::new());
        for (place, &unit) in units.iter().enumerate() {
            match unit {
                [] => {}
                [row] => {
                    places.push(place);
                    single.push(*row);
                }
                rows => several.push(Several { place, rows, norm: 0.0, mean_loss: 0.0 }),
            }
        }
        // Units of like sizes share a block, and the rows of a round fill its first lanes.
        several.sort_by_key(|unit| Reverse(unit.rows.len()));
        Self { places, single, several }
    }

    /// The whole batch's outcome from that of the single rows and the hits of the others.
    fn outcome(&self, units: &[&[u32]], singles: &BatchOutcome, correct: usize) -> BatchOutcome {
        let zeros = vec![0.0; units.len()];
        let mut outcome = BatchOutcome {
            norms: zeros.clone(),
            losses: zeros,
            correct: singles.correct + correct,
            rows: units.iter().map(|unit| unit.len()).sum(),
        };
        for (at, &place) in self.places.iter().enumerate() {
            outcome.norms[place] = singles.norms[at];
            outcome.losses[place] = singles.losses[at];
        }
        for unit in &self.several {
            outcome.norms[unit.place] = unit.norm;
            outcome.losses[unit.place] = unit.mean_loss;
        }
        outcome
    }
}

impl<V: Vector> Passes<V> {
    /// `sum = Σ w·ḡ_u`. Norms and mean losses are those of units, hits those of rows.
    pub(super) fn sum_units(
        &self,
        pass: &Pass<'_>,
        units: &[&[u32]],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> BatchOutcome {
        let mut sorted = Sorted::new(units);
        let places = &sorted.places;
        let of_single = |at: usize, norm: f64| weight_of(places[at], norm);
        let singles = self.sum_records(pass, &sorted.single, Goal::Weighted(&of_single), sum);
        let several = &mut sorted.several;
        let dim = pass.layout.dim;
        let len = stripe_len(several.len(), V::LANES);
        let mut rest = vec![0.0; dim];
        let correct = self.with_stripes(several.len().div_ceil(len), dim, &mut rest, |sums| {
            several
                .par_chunks_mut(len)
                .zip(sums.par_chunks_mut(dim))
                .map(|(units, sum)| {
                    self.with_workspace(pass, |workspace| {
                        let blocks = units.chunks_mut(V::LANES);
                        let add = |units| add_block(workspace, pass, weight_of, units, sum);
                        blocks.map(add).sum::<usize>()
                    })
                })
                .sum::<usize>()
        });
        sum.iter_mut().zip(&rest).for_each(|(sum, rest)| *sum += rest);
        sorted.outcome(units, &singles, correct)
    }

    /// Adds Σ n_u to the tallies. Norms and mean losses are those of units, hits those of rows.
    pub(crate) fn tally_units(
        &self,
        pass: &Pass<'_>,
        units: &[&[u32]],
        goal: ExactGoal<'_>,
        tallies: &Tallies<'_, V>,
    ) -> BatchOutcome {
        let mut sorted = Sorted::new(units);
        let places = &sorted.places;
        let weight_of = |at: usize, norm: f64| (goal.weight_of)(places[at], norm);
        let of_single = ExactGoal { weight_of: &weight_of, ..goal };
        let singles = self.tally_records(pass, &sorted.single, of_single, tallies);
        let correct: usize = sorted
            .several
            .par_chunks_mut(V::LANES)
            .map(|units| {
                self.with_workspace(pass, |workspace| {
                    tallies.with(|tally| tally_block(workspace, tally, pass, goal, units))
                })
            })
            .sum();
        sorted.outcome(units, &singles, correct)
    }
}

/// Leaves Σ_r g_r of each unit in the lanes of `unit_gradient`, and says how many rows were hit. The
/// longest unit comes first.
fn gather_rows<V: Vector>(
    workspace: &mut Workspace<V>,
    pass: &Pass<'_>,
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
    for (unit, total) in units.iter_mut().zip(totals) {
        unit.mean_loss = (total / unit.rows.len() as f64) as f32;
    }
    correct
}

/// Units in the lanes of one block, added as integers.
fn tally_block<V: Vector>(
    workspace: &mut Workspace<V>,
    tally: &mut Tally<V>,
    pass: &Pass<'_>,
    goal: ExactGoal<'_>,
    units: &mut [Several<'_>],
) -> usize {
    let correct = gather_rows(workspace, pass, units);
    let mut norms = vec![0.0; units.len()];
    let sizes: Vec<usize> = units.iter().map(|unit| unit.rows.len()).collect();
    let weight_of = |lane: usize, norm| (goal.weight_of)(units[lane].place, norm);
    tally.add_units(workspace, goal.grid, &sizes, weight_of, &mut norms);
    units.iter_mut().zip(norms).for_each(|(unit, norm)| unit.norm = norm);
    correct
}

/// Units in the lanes of one block, added as floats.
///
/// # Guarantee
/// What is measured and weighed is the mean over a unit's own rows; squares are summed in double
/// precision. A unit whose norm or weight is not finite adds exactly 0.
fn add_block<V: Vector>(
    workspace: &mut Workspace<V>,
    pass: &Pass<'_>,
    weight_of: WeightOf<'_>,
    units: &mut [Several<'_>],
    sum: &mut [f32],
) -> usize {
    let correct = gather_rows(workspace, pass, units);
    let gradient = &mut workspace.unit_gradient;
    let mut squares = [0.0; MOST_LANES];
    V::run(Squares { values: gradient, squares: &mut squares });
    let mut weights = [0.0f32; MOST_LANES];
    let mut broken = [false; MOST_LANES];
    for (lane, unit) in units.iter_mut().enumerate() {
        let rows = unit.rows.len() as f64;
        let norm = squares[lane].sqrt() / rows;
        unit.norm = norm as f32;
        broken[lane] = !unit.norm.is_finite();
        if !broken[lane] {
            let weight = (weight_of(unit.place, norm) / rows) as f32;
            weights[lane] = if weight.is_finite() { weight } else { 0.0 };
        }
    }
    if broken.contains(&true) {
        blank(gradient.iter_mut(), &broken);
    }
    V::run(AddWeighted { gradient, weights: V::load(&weights), sum });
    correct
}

/// `sum += Σ_lanes weight·gradient`.
struct AddWeighted<'a, V> {
    gradient: &'a [V],
    weights: V,
    sum: &'a mut [f32],
}

impl<V: Vector> Kernel for AddWeighted<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (sum, gradient) in self.sum.iter_mut().zip(self.gradient) {
            *sum += gradient.mul(self.weights).sum();
        }
    }
}
