//! What a step needs of a model and its data: Σ w_i(‖g_i‖)·g_i and the norms. Nothing of privacy.
//!
//! [`NetworkEngine`] is the engine of this project: a geodp-nn network over a geodp-nn sample
//! source. Any other (a GPU framework, a remote client) implements the same small trait: `facts`,
//! `weighted_sum` and `mean_loss` are enough for a [`Trainer`](crate::trainer::Trainer); a
//! [`Run`](crate::run::Run) asks also who the engine is and where it starts, and has an answer of its
//! own where the engine gives none. `examples/own_engine.rs` is a whole one in a file.
//!
//! A record here is a privacy unit: whatever one index of a batch stands for is weighed as one, by
//! the norm of its one gradient. Where units have several rows, that is the mean over the rows, and an
//! engine that uses only some of them in a step says which by [`Engine::at_step`].

use crate::config::{Imported, TestIs};
use crate::model_file::ModelNote;
use crate::plan::Facts;
use crate::scores::{Errors, Scores};
use geodp_mechanism::{NoiseSource, Purpose};
use geodp_nn::{BatchOutcome, Evaluation, Grid};

pub use network::NetworkEngine;
pub use weigh::{Constant, Weigh, WeightRule};

mod network;
mod weigh;

/// Any error an engine may give.
pub type EngineError = Box<dyn std::error::Error + Send + Sync>;

/// A record's weight, by its place in the batch and its gradient's norm.
pub type WeightOf<'a> = &'a dyn Weigh;

/// Decides which rows of a unit a step uses, where it does not use all: the same whenever the step is
/// made, and independent of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RowChoice(u64);

impl RowChoice {
    /// The choice of `step`, from its own addressed stream.
    ///
    /// # Errors
    /// A step beyond the largest address.
    pub fn of(noise: &NoiseSource, step: u64) -> Result<Self, geodp_mechanism::Error> {
        Ok(Self(noise.stream(Purpose::Rows, step, 0)?.word()))
    }

    /// The choice with these bits, as another process or a server made it.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// 64 bits to choose by, together with the unit's number.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// A model over private records.
pub trait Engine: Sync {
    /// How many private records (units) there are, and how many parameters.
    fn facts(&self) -> Facts;
    /// The engine as one step sees it, where it differs from step to step: with the rows that `choice`
    /// chooses. `None` where all steps see the same.
    fn at_step(&self, _choice: RowChoice) -> Option<Box<dyn Engine + '_>> {
        None
    }
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
    /// Overwrites `sum` by Σ n_i over the records in `batch`, where n_i are integers on `grid`: w_i·g_i
    /// truncated so that ‖n_i‖ ≤ 2^[`Grid::BITS`], and a function of the weights, the record and w_i
    /// alone. Integers add up to the same sum in any order, so a batch may be split over threads,
    /// processes and machines. This is what a private step releases with noise.
    ///
    /// The default makes one gradient after another; an engine that can do it faster should.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn exact_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, EngineError> {
        let mut gradient = vec![0.0; self.facts().dim];
        let mut outcome = BatchOutcome::default();
        sum.fill(0);
        for (place, index) in batch.iter().enumerate() {
            let of_record = self.gradient_sum(weights, &[*index], &mut gradient)?;
            let norm = grid.add_gradient(&gradient, |norm| weight_of.weight(place, norm), sum);
            outcome.norms.push(norm as f32);
            outcome.losses.extend(of_record.losses);
            outcome.correct += of_record.correct;
            outcome.rows += of_record.rows;
        }
        Ok(outcome)
    }
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
        self.weighted_sum(weights, batch, &Constant(1.0), sum)
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
        for (index, gradient) in batch.iter().zip(gradients.chunks_mut(self.facts().dim.max(1))) {
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
    /// [`evaluate`](Self::evaluate) in the midst of a training, for its curve: an engine may answer for some of the
    /// held-out records where all of them take long beside an epoch, always for the same. All, unless it says otherwise.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn glance(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        self.evaluate(weights)
    }
    /// How far off numbers are on held-out records, where numbers are learnt.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn errors(&self, _weights: &[f32]) -> Result<Option<Errors>, EngineError> {
        Ok(None)
    }
    /// How good answers are on held-out records, where classes are learnt.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn scores(&self, _weights: &[f32]) -> Result<Option<Scores>, EngineError> {
        Ok(None)
    }
    /// [`evaluate`](Self::evaluate) and [`scores`](Self::scores) of the same weights. An engine that can say both
    /// after one pass over the records should.
    ///
    /// # Errors
    /// Whatever stops the engine from computing.
    fn evaluate_and_score(
        &self,
        weights: &[f32],
    ) -> Result<(Option<Evaluation>, Option<Scores>), EngineError> {
        Ok((self.evaluate(weights)?, self.scores(weights)?))
    }
    /// What a run's folder says about the engine.
    fn about(&self) -> About {
        let Facts { records, dim } = self.facts();
        About {
            model: format!("{dim} parameters"),
            data: format!("{records} records"),
            ..About::default()
        }
    }
    /// Differs when records or model differ: a run is resumed only where it is the same. The default
    /// knows the sizes only; a hash of the records is better.
    fn fingerprint(&self) -> String {
        let Facts { records, dim } = self.facts();
        format!("{records} records, {dim} parameters")
    }
    /// The weights a run starts from: public, and the same whenever it is asked. Zeros unless the
    /// engine says otherwise.
    fn initial_weights(&self) -> Vec<f32> {
        vec![0.0; self.facts().dim]
    }
    /// Whether the same step, asked for again, gives the same bits. Where it does not (clients that may
    /// drop out), a run must have a checkpoint after every step: it repeats what comes after one with the
    /// same noise, and two sums under one noise would show their difference.
    fn repeats(&self) -> bool {
        true
    }
    /// The bytes of a run's `model.safetensors`, with what the run notes beside the weights. One flat
    /// tensor unless the engine says otherwise.
    ///
    /// # Errors
    /// Weights that do not fit the model.
    fn model_file(&self, weights: &[f32], note: &ModelNote) -> Result<Vec<u8>, EngineError> {
        Ok(crate::model_file::flat(weights, note)?)
    }
}

/// What knowing the shares of the classes, and nothing else, is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Baseline {
    /// Share of the commonest class: the accuracy of always answering it.
    pub accuracy: f64,
    /// Entropy of the classes: the loss of always answering with their shares.
    pub loss: f64,
}

impl Baseline {
    /// Of records with these labels; `None` of no records, or where no class is learnt.
    pub fn of(labels: &[u32], classes: usize) -> Option<Self> {
        if labels.is_empty() || classes == 0 {
            return None;
        }
        let mut counts = vec![0_usize; classes];
        labels.iter().for_each(|label| counts[*label as usize] += 1);
        let shares = counts.iter().map(|count| *count as f64 / labels.len() as f64);
        let loss =
            shares.clone().filter(|share| *share > 0.0).map(|share| -share * share.ln()).sum();
        Some(Self { accuracy: shares.fold(0.0, f64::max), loss })
    }
}

/// What a run's folder says about its engine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    /// What is trained, as a page's title says it.
    pub model: String,
    /// What it is trained on.
    pub data: String,
    /// How well one does on the held-out records without looking at them, where that is known.
    pub baseline: Option<Baseline>,
    /// Whose the held-out records are.
    pub test_is: TestIs,
    /// The classes' names.
    pub classes: Vec<String>,
    /// What reading did to the run's tables. Private.
    pub imported: Vec<Imported>,
    /// Whether ranges or values of the schema were read from the records: no ε covers that.
    pub looked: bool,
}
