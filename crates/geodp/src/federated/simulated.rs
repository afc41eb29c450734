//! Simulated clients: each trains the network on its own records by SGD, and replies with Δ.
//!
//! Clients are trained on all cores, and each update is added and forgotten as it comes: memory grows with
//! neither the cohort nor the population, and sums do not depend on the order.

use super::{Call, Clients, Local, Replies, Shards, update};
use crate::engine::{About, EngineError, RowChoice};
use geodp_nn::{Evaluation, Network, Samples};
use rayon::prelude::*;

/// A population over the records of one data set.
#[derive(Clone, Copy)]
pub struct Simulated<'a> {
    /// The model.
    pub network: &'a Network,
    /// All clients' records.
    pub train: &'a dyn Samples,
    /// Public records, to measure on.
    pub test: Option<&'a dyn Samples>,
    /// Which records are whose.
    pub shards: &'a Shards,
    /// How they train.
    pub local: Local,
    /// What the records are, as a page says it.
    pub name: &'a str,
}

impl Simulated<'_> {
    /// Δ of a client in the round of these bits.
    ///
    /// # Errors
    /// Weights that do not fit the network.
    pub fn update(
        &self,
        client: u32,
        weights: &[f32],
        choice: RowChoice,
    ) -> Result<Vec<f32>, EngineError> {
        let rows = self.shards.rows(client);
        let who = (client, choice);
        Ok(update(self.local.train(self.network, self.train, &rows, who, weights)?, weights))
    }
}

impl Clients for Simulated<'_> {
    fn population(&self) -> u64 {
        self.shards.clients()
    }

    fn dim(&self) -> usize {
        self.network.dim()
    }

    fn ask(&self, call: &Call<'_>, replies: &Replies<'_>) -> Result<(), EngineError> {
        call.cohort.par_iter().enumerate().try_for_each(|(place, client)| {
            replies.add(place, &self.update(*client, call.weights, call.choice)?);
            Ok(())
        })
    }

    fn evaluate(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        let Some(test) = self.test else { return Ok(None) };
        let all: Vec<u32> = (0..test.len() as u32).collect();
        Ok(Some(self.network.evaluate(weights, test, &all)?))
    }

    fn about(&self) -> About {
        let data = format!("{} clients of {}", self.population(), self.name);
        About { model: format!("{} parameters", self.dim()), data, ..About::default() }
    }
}
