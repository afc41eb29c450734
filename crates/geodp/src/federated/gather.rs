//! The sum of a round: one update after another is clipped, added and forgotten.
//!
//! Private rounds add n = −trunc(Δ·w(‖Δ‖)·(2³⁰/C)·(1 − 2⁻²¹)), whole numbers with ‖n‖ ≤ 2³⁰ whatever a
//! client sends. They add up to the same sum in any order of arrival, and at most 2³² clients of 2³⁰ each
//! fit 63 bits.

use geodp_nn::{BatchOutcome, Grid};

/// What became of a client's reply. For the server's owner: it tells who took part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Clipped and added.
    Added,
    /// The client is not in the cohort of this round, and adds nothing.
    NotInCohort,
    /// It replied before, and adds nothing more.
    Twice,
    /// An update of another length than the model's, or with a value that is not finite: it adds nothing.
    Unusable,
}

/// Something that updates are added to, turned round and weighed by their norm.
pub(super) trait Total {
    fn dim(&self) -> usize;
    /// Adds −w(‖Δ‖)·Δ and returns ‖Δ‖.
    fn add(&mut self, update: &[f32], weight_of: impl FnOnce(f64) -> f64) -> f64;
}

/// Whole numbers on a grid: for private rounds.
#[derive(Debug)]
pub(super) struct OnGrid {
    pub(super) grid: Grid,
    pub(super) sum: Vec<i64>,
}

impl Total for OnGrid {
    fn dim(&self) -> usize {
        self.sum.len()
    }

    fn add(&mut self, update: &[f32], weight_of: impl FnOnce(f64) -> f64) -> f64 {
        self.grid.add_gradient(update, |norm| -weight_of(norm), &mut self.sum)
    }
}

/// Multiples of 2⁻⁶⁰: for rounds without privacy, so that their bits do not depend on who replied first
/// either. What is larger than 2⁶⁷ stays there.
#[derive(Debug)]
pub(super) struct Fixed(pub(super) Vec<i128>);

impl Fixed {
    const ONE: f64 = (1_u64 << 60) as f64;

    /// The sum in floating point.
    pub(super) fn values(&self) -> impl Iterator<Item = f32> {
        self.0.iter().map(|n| (*n as f64 / Self::ONE) as f32)
    }
}

impl Total for Fixed {
    fn dim(&self) -> usize {
        self.0.len()
    }

    fn add(&mut self, update: &[f32], weight_of: impl FnOnce(f64) -> f64) -> f64 {
        let norm = update.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let weight = weight_of(norm) * Self::ONE;
        for (sum, x) in self.0.iter_mut().zip(update) {
            *sum = sum.saturating_sub((weight * f64::from(*x)) as i128);
        }
        norm
    }
}

/// The total so far, and who is in it.
#[derive(Debug)]
pub(super) struct Gathering<T> {
    pub(super) total: T,
    /// The norm of each place's update; `None` where nothing usable came.
    norms: Vec<Option<f32>>,
}

impl<T: Total> Gathering<T> {
    pub(super) fn new(total: T, cohort: usize) -> Self {
        Self { total, norms: vec![None; cohort] }
    }

    /// Adds the update of the client at `place` of the cohort, weighed by `weight_of` its norm.
    pub(super) fn add(
        &mut self,
        place: usize,
        update: &[f32],
        weight_of: impl FnOnce(f64) -> f64,
    ) -> Reply {
        match self.norms.get(place) {
            None => return Reply::NotInCohort,
            Some(Some(_)) => return Reply::Twice,
            Some(None) => {}
        }
        if update.len() != self.total.dim() || !update.iter().all(|x| x.is_finite()) {
            return Reply::Unusable;
        }
        self.norms[place] = Some(self.total.add(update, weight_of) as f32);
        Reply::Added
    }

    /// How many are in it.
    pub(super) fn replies(&self) -> usize {
        self.norms.iter().flatten().count()
    }

    /// Norms of those that are in it, in the order of the cohort.
    pub(super) fn outcome(&self) -> BatchOutcome {
        let mut outcome = BatchOutcome::default();
        outcome.norms = self.norms.iter().copied().flatten().collect();
        outcome
    }
}
