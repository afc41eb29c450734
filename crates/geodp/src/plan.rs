//! The plan: sampler, clipping, noise and accounting, built together and checked once.
//!
//! [`PlanParams::check`] is the only way to a [`Plan`], for TOML, flags and Rust alike. A plan's
//! parts cannot be exchanged afterwards: the noise fits the clipping, the ledger's event fits the
//! sampler, and the denominator is the public batch size B.

use crate::Error;
use crate::budget::{self, Guarantee};
use crate::importance::{Importance, Keep};
use crate::optimizer::OptimizerKind;
use crate::params::{ClipKind, MechanismKind, PlanParams};
use crate::sampler::{Sampler, Sampling};
use crate::select::Select;
use geodp_mechanism::clip::{AutoS, Psac, Sensitivity};
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

impl PlanParams {
    /// Checks everything, calibrates σ if a target ε is given, and builds the plan.
    ///
    /// # Errors
    /// [`Error::Plan`] with what is wrong and what to do.
    pub fn check(&self, facts: Facts) -> Result<Plan, Error> {
        let (batch, steps) = self.check_length(facts)?;
        match (self.train.measure, self.privacy.mechanism) {
            (Some(0), _) => {
                return refuse("measure is 0; follow at least 1 record, or leave it out");
            }
            (Some(_), MechanismKind::None) => {
                return refuse("measure holds records against the noise, but there is none");
            }
            _ => {}
        }
        let clip = self.check_clip()?;
        let sampling = self.privacy.sampling;
        let delta = self.privacy.delta.unwrap_or(DEFAULT_DELTA);
        let per_epoch = Sampler::steps_per_epoch(sampling, facts.records, batch);
        let (importance, select) = self.check_strategies(facts, batch, per_epoch)?;
        let strategies = (importance.as_ref(), select.as_ref());
        let guarantee = budget::settle(&self.privacy, facts, batch, steps, strategies)?;
        let sigma = guarantee.noise_multiplier().unwrap_or(0.0);
        let noise = Noise { kind: self.privacy.mechanism, sigma, beta: self.privacy.beta };
        // What a step will build must be possible.
        noise.mechanism(clip.as_ref().map(Clip::sensitivity), batch)?;
        let mut warnings = Vec::new();
        if self.privacy.mechanism != MechanismKind::None && delta >= 1.0 / facts.records as f64 {
            warnings.push(format!(
                "δ = {delta:e} is not below 1/N = {:.1e}: with this δ, publishing a few records \
                 outright would count as private. Use a smaller δ",
                1.0 / facts.records as f64
            ));
        }
        if let Some(seed) = self.train.seed {
            warnings.push(format!(
                "seed = {seed}: the noise is repeatable, so nothing here is private against \
                 someone who knows the seed"
            ));
        }
        let block = match sampling {
            Sampling::Poisson => match self.train.checkpoint_every {
                Some(0) => return refuse("checkpoint_every is 0; it must be at least 1"),
                Some(every) => every,
                None => per_epoch.div_ceil(6),
            },
            // An epoch of shuffled batches is charged as one event, so it is one block.
            Sampling::Shuffle => per_epoch,
        };
        Ok(Plan {
            facts,
            batch,
            steps: guarantee.steps_within_limit(steps),
            sampling,
            clip,
            clip_kind: self.privacy.clip,
            noise,
            importance,
            select,
            guarantee,
            learning_rate: self.check_learning_rate()?,
            optimizer: self.check_optimizer()?,
            seed: self.train.seed,
            block,
            warnings,
        })
    }

    fn check_length(&self, facts: Facts) -> Result<(u64, u64), Error> {
        let train = &self.train;
        if facts.records == 0 {
            return refuse("the training set is empty");
        }
        if facts.records > u64::from(u32::MAX) {
            return refuse(format!("{} records are more than 2³² − 1", facts.records));
        }
        let Some(batch) = train.batch else {
            return refuse("batch is missing: give the expected batch size B");
        };
        if batch == 0 {
            return refuse("batch is 0; it must be at least 1");
        }
        if batch > facts.records {
            return refuse(format!(
                "batch {batch} exceeds the {} records of the training set; use at most that",
                facts.records
            ));
        }
        let per_epoch = Sampler::steps_per_epoch(self.privacy.sampling, facts.records, batch);
        let steps = match (train.epochs, train.steps) {
            (Some(_), Some(_)) => return refuse("epochs and steps are both given; give one"),
            (None, None) => return refuse("neither epochs nor steps is given; give one"),
            (Some(epochs), None) => match self.privacy.sampling {
                // q·T = epochs as nearly as whole steps allow.
                Sampling::Poisson => epochs.saturating_mul(facts.records).div_ceil(batch),
                Sampling::Shuffle => epochs.saturating_mul(per_epoch),
            },
            (None, Some(steps)) => steps,
        };
        if steps == 0 || steps > geodp_mechanism::noise::MAX_STEP {
            return refuse(format!("{steps} steps: there must be 1 to 2³² − 1"));
        }
        Ok((batch, steps))
    }

    fn check_clip(&self) -> Result<Option<Clip>, Error> {
        let privacy = &self.privacy;
        if privacy.mechanism == MechanismKind::None
            && privacy.clip_norm.is_none()
            && privacy.clip == ClipKind::Flat
        {
            return Ok(None);
        }
        let clip_norm = privacy.clip_norm.unwrap_or(DEFAULT_CLIP_NORM);
        Ok(Some(match privacy.clip {
            ClipKind::Flat => Clip::flat(clip_norm)?,
            ClipKind::AutoS => Clip::auto_s(clip_norm, AutoS::GAMMA)?,
            ClipKind::Psac => Clip::psac(clip_norm, Psac::R)?,
        }))
    }

    fn check_learning_rate(&self) -> Result<f64, Error> {
        match self.train.learning_rate {
            Some(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
            Some(rate) => refuse(format!("learning_rate is {rate}; it must be finite and > 0")),
            None => refuse("learning_rate is missing"),
        }
    }

    fn check_optimizer(&self) -> Result<OptimizerKind, Error> {
        let kind = self.train.optimizer.unwrap_or(OptimizerKind::Sgd);
        match (kind, self.privacy.mechanism) {
            (OptimizerKind::AdamBc(_), MechanismKind::Geodp) => refuse(
                "optimizer \"adam-bc\" subtracts the noise's variance from the second moment, which \
                 must be known and the same for all coordinates; GeoDP's depends on the gradient \
                 itself. Use \"adam\" with GeoDP, or mechanism = \"dp\"",
            ),
            (OptimizerKind::AdamBc(_), MechanismKind::None) => refuse(
                "optimizer \"adam-bc\" corrects for noise, and mechanism = \"none\" adds none; use \
                 \"adam\"",
            ),
            _ => kind.fault().map_or(Ok(kind), refuse),
        }
    }

    /// IS and SUR are accounted as Poisson-sampled releases beside a private gradient.
    fn check_strategies(
        &self,
        facts: Facts,
        batch: u64,
        per_epoch: u64,
    ) -> Result<(Option<Importance>, Option<Select>), Error> {
        let privacy = &self.privacy;
        let names =
            [("importance", privacy.importance.is_some()), ("select", privacy.select.is_some())];
        if let Some((name, _)) = names.into_iter().find(|(_, given)| *given) {
            if privacy.mechanism == MechanismKind::None {
                return refuse(format!(
                    "{name} is given, but mechanism = \"none\" is not private, and {name} would add \
                     noisy releases to it. Use \"dp\" or \"geodp\", or leave {name} out"
                ));
            }
            if privacy.sampling == Sampling::Shuffle {
                return refuse(format!(
                    "{name} draws records by independent coins, and is accounted so, under add/remove; \
                     shuffled batches are accounted under replace-one, and the two do not compose. \
                     Use sampling = \"poisson\""
                ));
            }
        }
        let importance = privacy.importance.as_ref();
        let select = privacy.select.as_ref();
        Ok((
            importance.map(|p| p.check(facts.records, batch, per_epoch)).transpose()?,
            select.map(|p| p.check(facts.records)).transpose()?,
        ))
    }
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
