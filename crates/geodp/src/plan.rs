//! The plan: sampler, clipping, noise and accounting, built together and checked once.
//!
//! [`PlanParams::check`](crate::PlanParams::check) is the only way to a [`Plan`], for TOML, flags and Rust alike. A plan's
//! parts cannot be exchanged afterwards: the noise fits the clipping, the ledger's event fits the
//! sampler, and the denominator is the public batch size B.

mod check;
mod noise;
mod protection;

pub use noise::Noise;
pub(crate) use noise::Scaled;
pub use protection::Protection;

use crate::Error;
use crate::config::LedgerConfig;
use crate::importance::{Importance, Keep};
use crate::optimizer::OptimizerKind;
use crate::params::PlanParams;
use crate::quantile::{Quantile, QuantileParams};
use crate::sampler::{Sampler, Sampling};
use crate::schedule::{Decay, Schedule};
use crate::select::Select;
use geodp_account::Arithmetic;
use geodp_mechanism::{Clip, Mechanism};

/// What a plan must know of the model and the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// N: private records, or units where several rows are one person's.
    pub records: u64,
    /// d: parameters of the model.
    pub dim: usize,
}

/// What changes which records a step uses, and which steps are kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Strategies {
    /// IS.
    pub(crate) importance: Option<Importance>,
    /// SUR.
    pub(crate) select: Option<Select>,
    /// How C moves.
    pub(crate) quantile: Option<Quantile>,
}

/// A checked training plan.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What was checked.
    pub(crate) params: PlanParams,
    pub(crate) facts: Facts,
    pub(crate) batch: u64,
    pub(crate) steps: u64,
    pub(crate) sampling: Sampling,
    pub(crate) protection: Protection,
    pub(crate) arithmetic: Arithmetic,
    /// The clipping rule's name.
    pub(crate) clip_name: String,
    pub(crate) strategies: Strategies,
    pub(crate) learning_rate: f64,
    pub(crate) schedule: Schedule,
    /// Decay of the average of the weights that is released, if one is.
    pub(crate) average: Option<f64>,
    pub(crate) optimizer: OptimizerKind,
    pub(crate) seed: Option<u64>,
    pub(crate) block: u64,
    pub(crate) warnings: Vec<String>,
    /// The ledger of the data set.
    pub(crate) ledger: LedgerConfig,
    /// What is protected.
    pub(crate) unit: String,
}

/// The paper's clipping threshold.
pub const DEFAULT_CLIP_NORM: f64 = 0.1;
/// The usual δ for data of the size of MNIST.
pub const DEFAULT_DELTA: f64 = 1e-5;
/// The target ε when neither ε nor σ is given.
pub const DEFAULT_EPSILON: f64 = 3.0;

/// A plan that cannot be, with the reason.
pub(crate) fn refuse<T>(reason: impl Into<String>) -> Result<T, Error> {
    Err(Error::Plan(reason.into()))
}

impl Plan {
    /// The same with σ as it was settled when the run began.
    pub(crate) fn settled_as(self, noise_multiplier: Option<f64>) -> Self {
        Self { protection: self.protection.with_noise_multiplier(noise_multiplier), ..self }
    }

    /// The same, charged also in the ledger of the data set, as every run on it should be.
    #[must_use]
    pub fn with_data_ledger(self, ledger: LedgerConfig) -> Self {
        Self { ledger, ..self }
    }

    /// The same for units of several rows of this name, "patient" say: N counts them, and what is
    /// protected is one of them with all rows. The engine must draw and clip them as one.
    #[must_use]
    pub fn with_unit(self, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), ..self }
    }

    /// The same with a C that follows a quantile of the norms. The engine must give the norm of every
    /// contribution to the sum.
    ///
    /// # Errors
    /// A plan without privacy, or with a clipping rule of its own; parameters out of range.
    pub(crate) fn with_quantile(mut self, params: QuantileParams) -> Result<Self, Error> {
        let (Protection::Private { clip, noise, .. }, true) = (&self.protection, self.has_kind())
        else {
            return refuse("quantile wants noise, and a clipping rule that is one of ours");
        };
        let sensitivity = clip.sensitivity();
        let quantile = params.check(noise.multiplier(), self.batch, sensitivity.get())?;
        // What a step will build must be possible.
        let sum = noise.with_multiplier(quantile.sum_multiplier(noise.multiplier()));
        sum.at(sensitivity, self.batch, self.arithmetic)?;
        self.strategies.quantile = Some(quantile);
        self.params.privacy.quantile = Some(params);
        Ok(self)
    }

    /// Whether the clipping rule is the one that the parameters name.
    fn has_kind(&self) -> bool {
        self.clip_name == self.params.privacy.clip.to_string()
    }

    /// Whether C follows a quantile.
    pub fn is_adaptive(&self) -> bool {
        self.strategies.quantile.is_some()
    }

    /// How a step is clipped whose C has moved to `moved`.
    pub(crate) fn clip_at(&self, moved: Option<f64>) -> Result<Option<Clip>, Error> {
        match moved {
            None => Ok(self.protection.clip().cloned()),
            Some(clip_norm) => Ok(Some(self.params.privacy.clip.at(clip_norm)?)),
        }
    }

    /// The noise of a step's sum; `None` without privacy. Where C is adaptive, votes take their share.
    pub(crate) fn sum_noise(&self) -> Option<Noise> {
        let noise = *self.protection.noise()?;
        Some(match &self.strategies.quantile {
            Some(quantile) => noise.with_multiplier(quantile.sum_multiplier(noise.multiplier())),
            None => noise,
        })
    }

    /// What is protected: "record", or the name of a unit of several rows.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// T: steps that will happen.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// B.
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// What the plan knows of the model and the data.
    pub fn facts(&self) -> Facts {
        self.facts
    }

    /// Expected share of the records in a batch, B/N.
    pub fn sample_rate(&self) -> f64 {
        self.batch as f64 / self.facts.records as f64
    }

    /// The chance at which Poisson sampling draws a record into a step (with importance sampling, into
    /// its candidates); `None` where batches are shuffled and nothing is amplified.
    pub fn poisson_rate(&self) -> Option<f64> {
        match (&self.strategies.importance, self.sampling) {
            (Some(importance), _) => Some(importance.candidate_rate),
            (None, Sampling::Poisson) => Some(self.sample_rate()),
            (None, Sampling::Shuffle) => None,
        }
    }

    /// C, the first where it is adaptive; `None` where nothing is clipped.
    pub fn clip_norm(&self) -> Option<f64> {
        self.protection.clip().map(|clip| clip.sensitivity().get())
    }

    /// In which arithmetic private steps are computed.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// The mechanism, with its β.
    pub fn mechanism(&self) -> Mechanism {
        self.protection.mechanism()
    }

    /// δ; `None` without privacy.
    pub fn delta(&self) -> Option<f64> {
        self.protection.accounting().map(|accounting| accounting.delta)
    }

    /// σ; `None` without privacy.
    pub fn noise_multiplier(&self) -> Option<f64> {
        self.protection.noise().map(Noise::multiplier)
    }

    /// What protects the records, and how it is accounted.
    pub fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Things the user should know before starting.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Steps in one pass over the data.
    pub fn steps_per_epoch(&self) -> u64 {
        Sampler::steps_per_epoch(self.sampling, self.facts.records, self.batch)
    }

    /// The learning rate, with its schedule and what is averaged.
    fn rate_text(&self) -> String {
        let mut text = self.learning_rate.to_string();
        if self.schedule.decay != Decay::Constant || self.schedule.warmup > 0.0 {
            text += &format!(" ({})", self.schedule);
        }
        if let Some(decay) = self.average {
            text += &format!(", weights averaged with decay {decay}");
        }
        text
    }

    /// Names and values for a table: the model's size and how it is trained.
    pub(crate) fn facts_text(&self) -> Vec<(String, String)> {
        let epochs = self.steps as f64 * self.batch as f64 / self.facts.records as f64;
        [
            ("parameters d", self.facts.dim.to_string()),
            ("steps", format!("{} ({epochs:.1} epochs)", self.steps)),
            ("optimiser", format!("{}, learning rate {}", self.optimizer, self.rate_text())),
            (
                "clipping",
                self.protection.clip().map_or("none".to_owned(), |_| self.clip_name.clone()),
            ),
        ]
        .into_iter()
        .chain(self.strategies.importance.as_ref().map(|importance| {
            let kept = match importance.keep {
                Keep::ByNorm => "kept by their norms",
                Keep::All => "all kept (control)",
            };
            let rate = importance.candidate_rate;
            ("importance sampling", format!("candidates at a rate of at most {rate:.6}, {kept}"))
        }))
        .chain(
            self.strategies.select.as_ref().map(|select| ("selective update", select.to_string())),
        )
        .chain(
            self.strategies
                .quantile
                .as_ref()
                .zip(self.noise_multiplier())
                .map(|(quantile, sigma)| ("adaptive clipping", quantile.text(sigma))),
        )
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}
