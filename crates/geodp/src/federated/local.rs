//! What a client does: E passes of SGD over its own records, from the weights it was sent.
//!
//! Δ = w_E − w, in batches of b with rate η_l, in an order that 64 bits of the round and the client's
//! number decide. The same bits on every machine, so that a simulation and a deployment can be compared.

use crate::engine::RowChoice;
use geodp_nn::{Network, Samples, permutation};
use serde::{Deserialize, Serialize};

/// How a client trains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Local {
    /// E: passes over its records.
    pub epochs: u64,
    /// b: records of a step.
    pub batch: usize,
    /// η_l.
    pub learning_rate: f64,
}

impl Local {
    /// The weights after the training of `client`, whose records are those `rows` of `samples`.
    ///
    /// # Errors
    /// Weights or rows that do not fit.
    pub fn train(
        &self,
        network: &Network,
        samples: &dyn Samples,
        rows: &[u32],
        (client, choice): (u32, RowChoice),
        weights: &[f32],
    ) -> Result<Vec<f32>, geodp_nn::Error> {
        let mut local = weights.to_vec();
        let mut sum = vec![0.0; weights.len()];
        for epoch in 0..self.epochs {
            let seed = choice.get() ^ (u64::from(client) << 16) ^ epoch;
            let order = permutation(rows.len(), seed).into_iter().map(|at| rows[at]);
            for batch in order.collect::<Vec<u32>>().chunks(self.batch.max(1)) {
                network.gradient_sum(&local, samples, batch, &mut sum)?;
                let rate = (self.learning_rate / batch.len() as f64) as f32;
                local.iter_mut().zip(&sum).for_each(|(w, g)| *w -= rate * g);
            }
        }
        Ok(local)
    }
}

/// Δ: how far a client's training went from the weights it was sent.
pub fn update(mut after: Vec<f32>, sent: &[f32]) -> Vec<f32> {
    after.iter_mut().zip(sent).for_each(|(after, sent)| *after -= sent);
    after
}
