//! The training loop in memory: one private step after another, up to the plan's end.
//!
//! For a run that survives a crash, with its ledger and its folder, see [`crate::run`].

use crate::Error;
use crate::average::WeightAverage;
use crate::engine::{Engine, RowChoice};
use crate::optimizer::{Optimizer, OptimizerScalars};
use crate::plan::{Facts, Plan};
use crate::scores::Scores;
use crate::select::Selection;
use crate::step::{PrivateStep, StepContext};
use crate::watch::Watch;
use geodp_mechanism::perturb::PolarSummary;
use geodp_mechanism::{NoiseSource, PolarState};
use geodp_nn::{BatchOutcome, Evaluation};

/// A training in progress.
pub struct Trainer<'e> {
    plan: Plan,
    engine: &'e dyn Engine,
    noise: NoiseSource,
    private: PrivateStep,
    weights: Vec<f32>,
    average: Option<WeightAverage>,
    optimizer: Optimizer,
    step: u64,
    selection: Selection,
}

/// What a trainer knows besides its tensors; made of releases only.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TrainerState {
    pub(crate) step: u64,
    pub(crate) selection: Selection,
    pub(crate) norm_total: Option<f64>,
    pub(crate) clip_norm: Option<f64>,
    pub(crate) history: PolarState,
    pub(crate) optimizer: OptimizerScalars,
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
        let Facts { records, dim } = engine.facts();
        if plan.facts != engine.facts() || weights.len() != dim {
            return Err(Error::Plan(format!(
                "the plan is for {} records and {} parameters, but the engine has {records} and \
                 {dim}, and there are {} weights",
                plan.facts.records,
                plan.facts.dim,
                weights.len()
            )));
        }
        let optimizer = Optimizer::new(plan.optimizer, plan.learning_rate, dim);
        let average = plan.average.map(|decay| WeightAverage::new(decay, &weights));
        Ok(Self {
            private: PrivateStep::new(&plan, &noise),
            plan,
            engine,
            noise,
            average,
            weights,
            optimizer,
            step: 0,
            selection: Selection::default(),
        })
    }

    /// Makes the next step with `watch` looking at it before its noise ([`Silent`](crate::watch::Silent)
    /// does not), or returns `None` when the plan's steps are done.
    ///
    /// The outcome (losses and norms of the batch) is computed on private data without noise: for
    /// the data's owner.
    ///
    /// # Errors
    /// If the engine fails or training diverges; the trainer is then of no further use. Whatever
    /// `watch` gives.
    pub fn step(&mut self, watch: &mut dyn Watch) -> Result<Option<BatchOutcome>, Error> {
        if self.is_done() {
            return Ok(None);
        }
        let stepped = self.engine.at_step(RowChoice::of(&self.noise, self.step)?);
        let engine = stepped.as_deref().unwrap_or(self.engine);
        let at =
            StepContext { engine, weights: &self.weights, noise: &self.noise, step: self.step };
        let released = self.private.gradient(&self.plan, at, watch)?;
        if !released.gradient.iter().all(|g| g.is_finite()) {
            return Err(Error::Diverged { step: self.step });
        }
        let before = self
            .plan
            .strategies
            .select
            .as_ref()
            .map(|_| (self.weights.clone(), self.optimizer.clone()));
        let factor = self.plan.schedule.factor(self.step, self.plan.steps);
        self.optimizer.set_learning_rate(self.plan.learning_rate * factor);
        self.optimizer.step(&mut self.weights, released.gradient, released.noise_variance);
        let outcome = released.outcome;
        if !self.weights.iter().all(|w| w.is_finite()) {
            return Err(Error::Diverged { step: self.step });
        }
        if let Some((weights, optimizer)) = before {
            self.keep_or_restore(engine, weights, optimizer)?;
        }
        if let Some(average) = &mut self.average {
            average.add(self.step, &self.weights);
        }
        self.step += 1;
        Ok(Some(outcome))
    }

    /// SUR: tests the step just made, and takes it back if it fails.
    fn keep_or_restore(
        &mut self,
        engine: &dyn Engine,
        before: Vec<f32>,
        optimizer: Optimizer,
    ) -> Result<(), Error> {
        let Some(select) = &self.plan.strategies.select else { return Ok(()) };
        let at = StepContext { engine, weights: &before, noise: &self.noise, step: self.step };
        if select.accepts(at, &self.weights)? {
            self.selection.accepted += 1;
        } else {
            self.selection.rejected += 1;
            (self.weights, self.optimizer) = (before, optimizer);
        }
        Ok(())
    }

    /// Whether all steps of the plan are done.
    pub fn is_done(&self) -> bool {
        self.step >= self.plan.steps
    }

    /// Steps done.
    pub fn steps_done(&self) -> u64 {
        self.step
    }

    /// The weights after the steps done, from which the next step starts.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// What is evaluated and released: the average of the weights if the plan keeps one, else the
    /// last weights.
    pub fn released_weights(&self) -> &[f32] {
        self.average.as_ref().map_or(&self.weights, WeightAverage::weights)
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
        self.engine
            .evaluate(self.released_weights())
            .map_err(|source| Error::Engine { step, source })
    }

    /// The same for a curve: perhaps on some of the records.
    pub(crate) fn glance(&self) -> Result<Option<Evaluation>, Error> {
        let step = self.step;
        self.engine.glance(self.released_weights()).map_err(|source| Error::Engine { step, source })
    }

    /// Loss and accuracy on all of them, and how good answers are.
    pub(crate) fn evaluate_and_score(&self) -> Result<(Option<Evaluation>, Option<Scores>), Error> {
        let step = self.step;
        self.engine
            .evaluate_and_score(self.released_weights())
            .map_err(|source| Error::Engine { step, source })
    }

    /// How far off numbers are on held-out records, where numbers are learnt.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn errors(&self) -> Result<Option<crate::scores::Errors>, Error> {
        let step = self.step;
        self.engine.errors(self.released_weights()).map_err(|source| Error::Engine { step, source })
    }

    /// Steps kept and taken back, where SUR selects them.
    pub fn selection(&self) -> Option<Selection> {
        self.plan.strategies.select.as_ref().map(|_| self.selection)
    }

    /// C of the next step; `None` where nothing is clipped.
    pub fn clip_norm(&self) -> Option<f64> {
        self.private.clip_norm.or(self.plan.clip_norm())
    }

    /// Polar, isotropic and directionless steps so far; certified GeoDP only.
    pub fn polar(&self) -> Option<PolarSummary> {
        self.plan.mechanism().is_polar().then(|| self.private.history.summary())
    }

    pub(crate) fn state(&self) -> TrainerState {
        TrainerState {
            step: self.step,
            selection: self.selection,
            norm_total: self.private.norm_total,
            clip_norm: self.private.clip_norm,
            history: self.private.history,
            optimizer: self.optimizer.scalars(),
        }
    }

    /// The optimiser's state, and after it the average of the weights if there is one: what a
    /// checkpoint keeps besides the weights.
    pub(crate) fn optimizer_state(&self) -> Vec<Vec<f32>> {
        let average = self.average.as_ref().map(|average| average.weights().to_vec());
        self.optimizer.state().iter().cloned().chain(average).collect()
    }

    /// Goes to a stored position; `false` if it does not fit the model.
    pub(crate) fn restore(
        &mut self,
        at: TrainerState,
        weights: Vec<f32>,
        mut state: Vec<Vec<f32>>,
    ) -> bool {
        let averaged = match &mut self.average {
            None => true,
            Some(average) => state.pop().is_some_and(|mean| average.restore(mean)),
        };
        let fits = averaged
            && weights.len() == self.weights.len()
            && self.optimizer.restore(state, at.optimizer);
        if fits {
            self.weights = weights;
            self.step = at.step;
            self.selection = at.selection;
            self.private.norm_total = at.norm_total;
            self.private.clip_norm = at.clip_norm;
            self.private.history = at.history;
        }
        fits
    }
}
