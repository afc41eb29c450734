//! The training loop in memory: one private step after another, up to the plan's end.
//!
//! For a run that survives a crash, with its ledger and its folder, see [`crate::run`].

use crate::Error;
use crate::engine::Engine;
use crate::optimizer::Optimizer;
use crate::plan::Plan;
use crate::step::PrivateStep;
use crate::watch::Watch;
use geodp_mechanism::NoiseSource;
use geodp_nn::{BatchOutcome, Evaluation};

/// A training in progress.
pub struct Trainer<'e> {
    plan: Plan,
    engine: &'e dyn Engine,
    noise: NoiseSource,
    private: PrivateStep,
    weights: Vec<f32>,
    optimizer: Optimizer,
    step: u64,
}

impl<'e> Trainer<'e> {
    /// Starts at `weights`, with randomness from `noise`.
    ///
    /// # Errors
    /// If plan, engine and weights are not for the same model and data.
    pub fn new(
        plan: Plan,
        engine: &'e dyn Engine,
        weights: Vec<f32>,
        noise: NoiseSource,
    ) -> Result<Self, Error> {
        let (records, dim) = (engine.records() as u64, engine.dim());
        if (records, dim) != (plan.facts.records, plan.facts.dim) || weights.len() != dim {
            return Err(Error::Plan(format!(
                "the plan is for {} records and {} parameters, but the engine has {records} and \
                 {dim}, and there are {} weights",
                plan.facts.records,
                plan.facts.dim,
                weights.len()
            )));
        }
        let optimizer = Optimizer::new(plan.optimizer, plan.learning_rate, dim);
        Ok(Self {
            private: PrivateStep::new(&plan),
            plan,
            engine,
            noise,
            weights,
            optimizer,
            step: 0,
        })
    }

    /// Makes the next step, or returns `None` when the plan's steps are done.
    ///
    /// The outcome (losses and norms of the batch) is computed on private data without noise: for
    /// the data's owner.
    ///
    /// # Errors
    /// If the engine fails or training diverges; the trainer is then of no further use.
    pub fn step(&mut self) -> Result<Option<BatchOutcome>, Error> {
        self.advance(None)
    }

    /// The same, with `watch` looking at the step before its noise.
    ///
    /// # Errors
    /// As [`Trainer::step`], and whatever `watch` gives.
    pub fn step_watched(&mut self, watch: &mut dyn Watch) -> Result<Option<BatchOutcome>, Error> {
        self.advance(Some(watch))
    }

    fn advance(&mut self, watch: Option<&mut dyn Watch>) -> Result<Option<BatchOutcome>, Error> {
        if self.is_done() {
            return Ok(None);
        }
        let (gradient, outcome) = self.private.gradient(
            &self.plan,
            self.engine,
            &self.weights,
            &self.noise,
            self.step,
            watch,
        )?;
        if !gradient.iter().all(|g| g.is_finite()) {
            return Err(Error::Diverged { step: self.step });
        }
        self.optimizer.step(&mut self.weights, gradient);
        if !self.weights.iter().all(|w| w.is_finite()) {
            return Err(Error::Diverged { step: self.step });
        }
        self.step += 1;
        Ok(Some(outcome))
    }

    /// Whether all steps of the plan are done.
    pub fn is_done(&self) -> bool {
        self.step >= self.plan.steps
    }

    /// Steps done.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// The weights after the steps done.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Loss and accuracy on held-out records.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn evaluate(&self) -> Result<Option<Evaluation>, Error> {
        let step = self.step;
        self.engine.evaluate(&self.weights).map_err(|source| Error::Engine { step, source })
    }

    /// The optimiser's state, for a checkpoint.
    pub(crate) fn optimizer_state(&self) -> &[Vec<f32>] {
        self.optimizer.state()
    }

    /// Goes to a stored position; `false` if it does not fit the model.
    pub(crate) fn restore(&mut self, step: u64, weights: Vec<f32>, state: Vec<Vec<f32>>) -> bool {
        let fits = weights.len() == self.weights.len() && self.optimizer.restore(state);
        if fits {
            self.weights = weights;
            self.step = step;
        }
        fits
    }
}
