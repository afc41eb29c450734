//! What a plan buys: σ settled, the ledger's event, ε so far, and where a limit stops.
//!
//! | mechanism, sampling | one unit | its cost | kind |
//! |---|---|---|---|
//! | DP, Poisson | a step | sampled Gaussian(q, σ), add/remove | certified |
//! | DP, shuffle | an epoch | Gaussian(σ), replace-one (sensitivity 2C) | certified |
//! | GeoDP | the same | the same with σ/√2, if the assumption holds | conditional |
//! | with IS | a step, and a release of K | at the candidate rate; its own sampled Gaussian | |
//! | with SUR | a step with its test | both, whether the step is kept or not | |
//! | none | | none: ε = ∞ | |
//!
//! GeoDP's σ/√2: magnitude and direction are two Gaussian releases of the same records.

mod accounting;
mod settle;

pub use accounting::Accounting;
pub(crate) use settle::settle;

use crate::Error;
use crate::plan::DEFAULT_DELTA;
use geodp_account::{Adjacency, Event};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which kind an ε is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A theorem without assumptions about the data.
    Certified,
    /// A theorem under an assumption that nothing enforces.
    Conditional,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certified => "certified",
            Self::Conditional => "conditional",
        })
    }
}

/// An ε that says which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpsilonSoFar {
    /// Its kind.
    pub kind: Kind,
    /// The upper end of its bracket; `None` if nothing certifies a finite number.
    pub epsilon: Option<f64>,
    /// The δ it goes with.
    pub delta: f64,
}

impl fmt::Display for EpsilonSoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epsilon {
            Some(epsilon) => write!(f, "{} ε {epsilon:.3}", self.kind),
            None => write!(f, "{} ε ∞", self.kind),
        }
    }
}

/// What is bought, and how it is accounted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Guarantee {
    /// No noise, no privacy.
    None,
    /// Noise, with an account of it.
    Private(Accounting),
}

impl Guarantee {
    /// σ; `None` without privacy.
    pub fn noise_multiplier(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Private(accounting) => Some(accounting.noise_multiplier),
        }
    }

    /// Which kind its ε is of; `None` without privacy.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::None => None,
            Self::Private(accounting) => Some(accounting.kind),
        }
    }

    /// The target or limit that was given.
    pub fn budget(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Private(accounting) => accounting.budget,
        }
    }

    /// Adjacency and δ for the ledger's header; without privacy they say nothing.
    pub(crate) fn terms(&self) -> (Adjacency, f64) {
        match self {
            Self::None => (Adjacency::AddRemove, DEFAULT_DELTA),
            Self::Private(a) => (a.adjacency(), a.delta),
        }
    }

    /// ε after `steps` steps, with its kind; `None` without privacy.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn epsilon_so_far(&self, steps: u64) -> Result<Option<EpsilonSoFar>, Error> {
        let Self::Private(accounting) = self else { return Ok(None) };
        let epsilon = accounting.epsilon_of(accounting.units(steps))?.upper;
        Ok(Some(EpsilonSoFar {
            kind: accounting.kind,
            epsilon: epsilon.is_finite().then_some(epsilon),
            delta: accounting.delta,
        }))
    }

    /// The event (and its count) that pays for the steps from `from` to `to`, which are whole units.
    pub(crate) fn charge(&self, from: u64, to: u64) -> (Event, u64) {
        match self {
            Self::None => (Event::NoPrivacy, to - from),
            Self::Private(a) => a.cost(a.event(), from, to),
        }
    }

    /// How many of `steps` steps the limit allows.
    pub(crate) fn steps_within_limit(&self, steps: u64) -> u64 {
        match self {
            Self::None => steps,
            Self::Private(a) => steps.min(a.most_units.saturating_mul(a.unit_steps)),
        }
    }
}
