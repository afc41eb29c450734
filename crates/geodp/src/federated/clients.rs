//! Clients that can be called: an engine that asks them for the updates of a cohort.

use super::gather::{Fixed, Gathering, OnGrid, Reply, Total};
use crate::engine::{About, Engine, EngineError, RowChoice, WeightOf};
use crate::plan::Facts;
use geodp_nn::{BatchOutcome, Evaluation, Grid};
use std::sync::{Mutex, PoisonError};

/// A population of clients, each with data of its own.
pub trait Clients: Sync {
    /// N: how many places for clients there are. Public, and the same in every round.
    fn population(&self) -> u64;
    /// d: parameters of the model.
    fn dim(&self) -> usize;
    /// Asks every client of the cohort for its update, and hands over what comes. Who does not reply in
    /// the time that there is, is left out.
    ///
    /// # Errors
    /// Only what stops the whole round, so that it is made again later. Whether one client fails must
    /// not stop it: that would show.
    fn ask(&self, call: &Call<'_>, replies: &Replies<'_>) -> Result<(), EngineError>;
    /// Loss and accuracy on public records, if there are any.
    ///
    /// # Errors
    /// Whatever stops the measurement.
    fn evaluate(&self, _weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        Ok(None)
    }
    /// What a run's folder says.
    fn about(&self) -> About {
        about(self.population(), self.dim())
    }
    /// The weights the first cohort is sent. Public.
    fn initial_weights(&self) -> Vec<f32> {
        vec![0.0; self.dim()]
    }
}

/// What is said of clients where nobody says more.
pub(super) fn about(population: u64, dim: usize) -> About {
    About {
        model: format!("{dim} parameters"),
        data: format!("{population} clients"),
        ..About::default()
    }
}

/// What a cohort is asked.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Call<'a> {
    /// Train from these.
    pub weights: &'a [f32],
    /// Who is asked, in ascending order.
    pub cohort: &'a [u32],
    /// 64 bits of the round, for clients that draw batches of their own.
    pub choice: RowChoice,
}

/// Adds the update at a place.
type Add<'a> = &'a mut (dyn FnMut(usize, &[f32]) -> Reply + Send);

/// Takes the updates of a round, from any thread, in any order.
pub struct Replies<'a> {
    add: Mutex<Add<'a>>,
}

impl Replies<'_> {
    /// Adds the update Δ of the client at `place` of the cohort: clipped here, whatever the client did.
    pub fn add(&self, place: usize, update: &[f32]) -> Reply {
        (*self.add.lock().unwrap_or_else(PoisonError::into_inner))(place, update)
    }
}

/// Clients as an engine: its records are clients, and the gradient of one is −Δ.
#[derive(Debug, Clone, Copy)]
pub struct ClientEngine<C> {
    clients: C,
    choice: RowChoice,
}

impl<C: Clients> ClientEngine<C> {
    /// Asks these.
    pub fn new(clients: C) -> Self {
        Self { clients, choice: RowChoice::default() }
    }

    /// Those it asks.
    pub fn clients(&self) -> &C {
        &self.clients
    }

    /// The updates of a cohort, added to `total`.
    fn gather<T: Total + Send>(
        &self,
        weights: &[f32],
        cohort: &[u32],
        weight_of: WeightOf<'_>,
        total: T,
    ) -> Result<Gathering<T>, EngineError> {
        let mut gathering = Gathering::new(total, cohort.len());
        let mut add = |place, update: &[f32]| {
            gathering.add(place, update, |norm| weight_of.weight(place, norm))
        };
        let replies = Replies { add: Mutex::new(&mut add) };
        self.clients.ask(&Call { weights, cohort, choice: self.choice }, &replies)?;
        Ok(gathering)
    }
}

impl Clients for &(dyn Clients + '_) {
    fn population(&self) -> u64 {
        (*self).population()
    }
    fn dim(&self) -> usize {
        (*self).dim()
    }
    fn ask(&self, call: &Call<'_>, replies: &Replies<'_>) -> Result<(), EngineError> {
        (*self).ask(call, replies)
    }
    fn evaluate(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        (*self).evaluate(weights)
    }
    fn about(&self) -> About {
        (*self).about()
    }
    fn initial_weights(&self) -> Vec<f32> {
        (*self).initial_weights()
    }
}

impl<C: Clients> Engine for ClientEngine<C> {
    fn facts(&self) -> Facts {
        Facts { records: self.clients.population(), dim: self.clients.dim() }
    }

    fn at_step(&self, choice: RowChoice) -> Option<Box<dyn Engine + '_>> {
        Some(Box::new(ClientEngine { clients: &self.clients as &dyn Clients, choice }))
    }

    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        let gathering = self.gather(weights, batch, weight_of, Fixed(vec![0; sum.len()]))?;
        sum.iter_mut().zip(gathering.total.values()).for_each(|(sum, total)| *sum = total);
        Ok(gathering.outcome())
    }

    fn exact_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, EngineError> {
        let total = OnGrid { grid, sum: vec![0; sum.len()] };
        let gathering = self.gather(weights, batch, weight_of, total)?;
        sum.copy_from_slice(&gathering.total.sum);
        Ok(gathering.outcome())
    }

    fn mean_loss(&self, _weights: &[f32], _batch: &[u32]) -> Result<f64, EngineError> {
        Err("clients are asked for updates only, not for losses".into())
    }

    fn evaluate(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        self.clients.evaluate(weights)
    }

    fn about(&self) -> About {
        self.clients.about()
    }

    fn initial_weights(&self) -> Vec<f32> {
        self.clients.initial_weights()
    }

    fn repeats(&self) -> bool {
        false
    }
}
