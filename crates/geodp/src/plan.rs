//! The plan: sampler, clipping, noise and accounting, built together and checked once.
//!
//! [`PlanParams::check`](crate::PlanParams::check) is the only way to a [`Plan`], for TOML, flags and Rust alike. A plan's
//! parts cannot be exchanged afterwards: the noise fits the clipping, the ledger's event fits the
//! sampler, and the denominator is the public batch size B.

mod check;

use crate::Error;
use crate::budget::Guarantee;
use crate::importance::{Importance, Keep};
use crate::optimizer::OptimizerKind;
use crate::params::{ClipKind, MechanismKind};
use crate::sampler::{Sampler, Sampling};
use crate::select::Select;
use geodp_mechanism::clip::Sensitivity;
use geodp_mechanism::{Clip, Gaussian, Geometric};

/// What a plan must know of the model and the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// N: private records.
    pub records: u64,
    /// d: parameters of the model.
    pub dim: usize,
}

/// The perturbation of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mechanism {
    None,
    Dp(Gaussian),
    Geodp(Geometric),
}

impl Mechanism {
    /// Variance of the noise on each coordinate, where all have the same.
    pub(crate) fn coordinate_variance(&self) -> f64 {
        match self {
            Self::Dp(gaussian) => gaussian.coordinate_std().powi(2),
            Self::None | Self::Geodp(_) => 0.0,
        }
    }
}

/// What makes a mechanism, given a sensitivity and a batch size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Noise {
    kind: MechanismKind,
    sigma: f64,
    beta: Option<f64>,
}

impl Noise {
    pub(crate) fn mechanism(
        &self,
        sensitivity: Option<Sensitivity>,
        batch: u64,
    ) -> Result<Mechanism, Error> {
        Ok(match (self.kind, sensitivity) {
            (MechanismKind::Dp, Some(sensitivity)) => {
                Mechanism::Dp(Gaussian::new(sensitivity, self.sigma, batch)?)
            }
            (MechanismKind::Geodp, Some(sensitivity)) => {
                let beta = self.beta.unwrap_or(f64::NAN);
                Mechanism::Geodp(Geometric::new(sensitivity, self.sigma, batch, beta)?)
            }
            _ => Mechanism::None,
        })
    }
}

/// A checked training plan.
#[derive(Debug, Clone)]
pub struct Plan {
    pub(crate) facts: Facts,
    pub(crate) batch: u64,
    pub(crate) steps: u64,
    pub(crate) sampling: Sampling,
    /// `None` only without privacy.
    pub(crate) clip: Option<Clip>,
    pub(crate) clip_kind: ClipKind,
    pub(crate) noise: Noise,
    pub(crate) importance: Option<Importance>,
    pub(crate) select: Option<Select>,
    pub(crate) guarantee: Guarantee,
    pub(crate) learning_rate: f64,
    pub(crate) optimizer: OptimizerKind,
    pub(crate) seed: Option<u64>,
    pub(crate) block: u64,
    pub(crate) warnings: Vec<String>,
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
        match (&self.importance, self.sampling) {
            (Some(importance), _) => Some(importance.candidate_rate),
            (None, Sampling::Poisson) => Some(self.sample_rate()),
            (None, Sampling::Shuffle) => None,
        }
    }

    /// C; `None` where nothing is clipped.
    pub fn clip_norm(&self) -> Option<f64> {
        self.clip.as_ref().map(|clip| clip.sensitivity().get())
    }

    /// β; GeoDP only.
    pub fn beta(&self) -> Option<f64> {
        match &self.guarantee {
            Guarantee::None => None,
            Guarantee::Private(accounting) => accounting.beta,
        }
    }

    /// δ; `None` without privacy.
    pub fn delta(&self) -> Option<f64> {
        match &self.guarantee {
            Guarantee::None => None,
            Guarantee::Private(accounting) => Some(accounting.delta),
        }
    }

    /// σ; `None` without privacy.
    pub fn noise_multiplier(&self) -> Option<f64> {
        self.guarantee.noise_multiplier()
    }

    /// What is bought, and how it is accounted.
    pub fn guarantee(&self) -> &Guarantee {
        &self.guarantee
    }

    /// Things the user should know before starting.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Steps in one pass over the data.
    pub fn steps_per_epoch(&self) -> u64 {
        Sampler::steps_per_epoch(self.sampling, self.facts.records, self.batch)
    }

    /// Names and values for a table: the model's size and how it is trained.
    pub(crate) fn facts_text(&self) -> Vec<(String, String)> {
        let epochs = self.steps as f64 * self.batch as f64 / self.facts.records as f64;
        [
            ("parameters d", self.facts.dim.to_string()),
            ("steps", format!("{} ({epochs:.1} epochs)", self.steps)),
            ("optimiser", format!("{}, learning rate {}", self.optimizer, self.learning_rate)),
            (
                "clipping",
                self.clip.as_ref().map_or("none".to_owned(), |_| self.clip_kind.to_string()),
            ),
        ]
        .into_iter()
        .chain(self.importance.as_ref().map(|importance| {
            let kept = match importance.keep {
                Keep::ByNorm => "kept by their norms",
                Keep::All => "all kept (control)",
            };
            let rate = importance.candidate_rate;
            ("importance sampling", format!("candidates at a rate of at most {rate:.6}, {kept}"))
        }))
        .chain(self.select.as_ref().map(|select| ("selective update", select.to_string())))
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}
