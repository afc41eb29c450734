//! What protects the records of a plan: nothing, or clipping, noise and an account of it together.
//!
//! The three cannot be taken apart: where there is noise there is a clipping that scales it and an
//! account that pays for it. Only [`Protection::None`] goes without.

use super::Noise;
use crate::Error;
use crate::budget::Accounting;
use crate::plan::DEFAULT_DELTA;
use geodp_account::{Adjacency, Arithmetic, Claim, Denominator, Event, Kind, Terms};
use geodp_mechanism::{Clip, Mechanism};

/// What protects the records of a plan.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "a plan holds one, and is never moved in a loop")]
pub enum Protection {
    /// No noise, no privacy.
    None {
        /// Gradients may be clipped all the same, for comparison.
        clip: Option<Clip>,
    },
    /// Clipping, noise scaled by it, and an account of both.
    Private {
        /// Bounds what a record contributes.
        clip: Clip,
        /// Perturbs every step.
        noise: Noise,
        /// What the steps cost.
        accounting: Accounting,
    },
}

impl Protection {
    /// How gradients are clipped; `None` only without privacy.
    pub fn clip(&self) -> Option<&Clip> {
        match self {
            Self::None { clip } => clip.as_ref(),
            Self::Private { clip, .. } => Some(clip),
        }
    }

    /// The noise; `None` without privacy.
    pub fn noise(&self) -> Option<&Noise> {
        match self {
            Self::None { .. } => None,
            Self::Private { noise, .. } => Some(noise),
        }
    }

    /// How steps are accounted; `None` without privacy.
    pub fn accounting(&self) -> Option<&Accounting> {
        match self {
            Self::None { .. } => None,
            Self::Private { accounting, .. } => Some(accounting),
        }
    }

    /// The mechanism, with its β.
    pub fn mechanism(&self) -> Mechanism {
        self.noise().map_or(Mechanism::None, Noise::mechanism)
    }

    /// Which kind its ε is of; `None` without privacy.
    pub fn kind(&self) -> Option<Kind> {
        self.noise().map(Noise::kind)
    }

    /// The target or limit that was given.
    pub fn budget(&self) -> Option<f64> {
        self.accounting().and_then(|accounting| accounting.budget)
    }

    /// The claim after `steps` steps; `None` without privacy.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn claim_after(&self, steps: u64) -> Result<Option<Claim>, Error> {
        let Self::Private { noise, accounting, .. } = self else { return Ok(None) };
        Ok(Some(accounting.claim_of(noise, accounting.units(steps))?))
    }

    /// What its claims share; without privacy they say nothing.
    pub(crate) fn terms(&self) -> Terms {
        match self {
            Self::None { .. } => Terms {
                adjacency: Adjacency::ZeroOut,
                delta: DEFAULT_DELTA,
                arithmetic: Arithmetic::FloatingPoint,
                denominator: Denominator::ExpectedBatch,
                noise_draws: 0,
            },
            Self::Private { accounting, .. } => accounting.terms(),
        }
    }

    /// The event (and its count) that pays for the steps from `from` to `to`, which are whole units.
    pub(crate) fn charge(&self, from: u64, to: u64) -> (Event, u64) {
        match self {
            Self::None { .. } => (Event::NoPrivacy, to - from),
            Self::Private { noise, accounting: a, .. } => a.cost(noise.event(a.draw), from, to),
        }
    }

    /// What is released at the end: a noisy accuracy.
    pub(crate) fn accuracy(&self) -> Option<&Event> {
        self.accounting().and_then(|accounting| accounting.accuracy.as_ref())
    }

    /// Everything that `steps` steps and the end will cost.
    pub(crate) fn whole_cost(&self, steps: u64) -> Event {
        let (event, count) = self.charge(0, steps);
        let steps = event.repeated(count);
        match self.accuracy() {
            None => steps,
            Some(accuracy) => Event::composed(vec![steps, accuracy.clone()]),
        }
    }

    /// The first step of the unit that `step` lies in.
    pub(crate) fn unit_start(&self, step: u64) -> u64 {
        let unit = self.accounting().map_or(1, |accounting| accounting.unit_steps);
        step / unit * unit
    }

    /// The same with σ as it was settled before, whatever calibration would say today.
    pub(crate) fn with_noise_multiplier(self, settled: Option<f64>) -> Self {
        match (self, settled) {
            (Self::Private { clip, noise, accounting }, Some(sigma)) => {
                Self::Private { clip, noise: noise.with_multiplier(sigma), accounting }
            }
            (protection, _) => protection,
        }
    }

    /// How many of `steps` steps the limit allows.
    pub(crate) fn steps_within_limit(&self, steps: u64) -> u64 {
        match self {
            Self::None { .. } => steps,
            Self::Private { accounting: a, .. } => {
                steps.min(a.most_units.saturating_mul(a.unit_steps))
            }
        }
    }
}
