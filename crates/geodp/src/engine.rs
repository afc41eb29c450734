//! What a step needs of a model and its data: Σ w_i(‖g_i‖)·g_i and the norms. Nothing of privacy.
//!
//! [`NetworkEngine`] is the engine of this project: a geodp-nn network over a geodp-nn sample
//! source. Any other (a GPU framework, a remote client) implements the same small trait.

use geodp_nn::{BatchOutcome, Evaluation, Network, Samples};

/// Any error an engine may give.
pub type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// A record's weight, by its place in the batch and its gradient's norm.
pub type WeightOf<'a> = &'a (dyn Fn(usize, f64) -> f64 + Sync);

/// A model over private records.
pub trait Engine: Sync {
    /// d: number of parameters.
    fn dim(&self) -> usize;
    /// N: number of private records.
    fn records(&self) -> usize;
    /// Overwrites `sum` by Σ w_i(‖g_i‖)·g_i over the records in `batch`.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError>;
    /// Overwrites `sum` by Σ g_i, without weights: for training without privacy.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn gradient_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        self.weighted_sum(weights, batch, &|_, _| 1.0, sum)
    }
    /// Overwrites `gradients` (a row of d values for each record of `batch`) by the gradients g_i as
    /// they are: for looking at single records.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn sample_gradients(
        &self,
        weights: &[f32],
        batch: &[u32],
        gradients: &mut [f32],
    ) -> Result<(), EngineError> {
        for (index, gradient) in batch.iter().zip(gradients.chunks_mut(self.dim().max(1))) {
            self.gradient_sum(weights, &[*index], gradient)?;
        }
        Ok(())
    }
    /// Mean loss of the training records in `batch`; 0 if it is empty.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError>;
    /// Loss and accuracy on held-out records, if there are any.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn evaluate(&self, _weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        Ok(None)
    }
}

/// A network, its private training records, and held-out ones.
pub struct NetworkEngine<'a> {
    network: &'a Network,
    train: &'a dyn Samples,
    test: Option<&'a dyn Samples>,
    test_indices: Vec<u32>,
}

impl<'a> NetworkEngine<'a> {
    /// Trains `network` on `train`, measures it on `test`.
    pub fn new(
        network: &'a Network,
        train: &'a dyn Samples,
        test: Option<&'a dyn Samples>,
    ) -> Self {
        let held_out = test.map_or(0, Samples::len);
        Self { network, train, test, test_indices: (0..held_out as u32).collect() }
    }
}

impl Engine for NetworkEngine<'_> {
    fn dim(&self) -> usize {
        self.network.dim()
    }

    fn records(&self) -> usize {
        self.train.len()
    }

    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        Ok(self.network.weighted_sum(weights, self.train, batch, weight_of, sum)?)
    }

    fn gradient_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        Ok(self.network.gradient_sum(weights, self.train, batch, sum)?)
    }

    fn sample_gradients(
        &self,
        weights: &[f32],
        batch: &[u32],
        gradients: &mut [f32],
    ) -> Result<(), EngineError> {
        Ok(self.network.sample_gradients(weights, self.train, batch, gradients)?)
    }

    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        Ok(self.network.evaluate(weights, self.train, batch)?.mean_loss)
    }

    fn evaluate(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        match self.test {
            Some(test) if !self.test_indices.is_empty() => {
                Ok(Some(self.network.evaluate(weights, test, &self.test_indices)?))
            }
            _ => Ok(None),
        }
    }
}
