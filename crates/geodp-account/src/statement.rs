//! What may be said about a run's privacy: every ε stands in a type that names its kind.
//!
//! * [`Certified`]: a theorem. Only an accountant makes one, and accountants refuse
//!   GeoDP's event, so GeoDP cannot have one.
//! * [`Conditional`]: a theorem under an assumption that nothing enforces, in words.
//! * [`AsPublished`]: the figure of the paper's own accounting, with its δ′ ≤ 1 − β.
//! * [`Measured`]: what was seen on one data set; for its owner only.

use crate::{Accountant, Adjacency, Bracket, Error, Event, Method};
use serde::Serialize;
use std::fmt;

/// The release is (ε, δ)-differentially private.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Certified {
    epsilon: Bracket,
    delta: f64,
}

impl Certified {
    /// What an accountant certifies at δ.
    pub fn by(accountant: &(impl Accountant + ?Sized), delta: f64) -> Result<Self, Error> {
        Ok(Self { epsilon: accountant.epsilon(delta)?, delta })
    }

    /// ε; its upper end is the claim.
    pub fn epsilon(&self) -> Bracket {
        self.epsilon
    }

    /// δ.
    pub fn delta(&self) -> f64 {
        self.delta
    }
}

/// The release is (ε, δ)-differentially private if the assumption holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conditional {
    /// ε, if the assumption holds.
    pub epsilon: Bracket,
    /// δ.
    pub delta: f64,
    /// What is assumed and not enforced.
    pub assumption: String,
}

/// The paper's own figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AsPublished {
    /// ε with one σ charged for magnitude and direction together.
    pub epsilon: Bracket,
    /// δ.
    pub delta: f64,
    /// 1 − β: the published guarantee is (ε, δ + δ′) with δ′ up to this.
    pub delta_prime_at_most: f64,
}

/// What the records of one data set showed. Depends on the data: not for release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Largest per-record ε.
    pub epsilon_largest: f64,
    /// Median per-record ε.
    pub epsilon_median: f64,
    /// δ of both.
    pub delta: f64,
    /// Share of records that moved no further than assumed.
    pub share_inside: f64,
    /// Smallest β at which every record measured is inside.
    pub beta_safe: f64,
}

/// One statement, of any kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Statement {
    /// A theorem.
    Certified(Certified),
    /// A theorem under an assumption.
    Conditional(Conditional),
    /// The paper's figure.
    AsPublished(AsPublished),
    /// Seen on one data set.
    Measured(Measured),
}

/// What can be said of a GeoDP run before looking at its data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeoDpStatement {
    /// By the paper's accounting.
    pub as_published: AsPublished,
    /// Under the assumption that each record moves magnitude and direction no further than
    /// the noise was scaled for: two Gaussian releases of one σ each, so σ/√2.
    pub conditional: Conditional,
}

impl GeoDpStatement {
    /// The statement of `count` Poisson-sampled releases of GeoDP.
    pub fn new(
        event: &Event,
        count: u64,
        delta: f64,
        adjacency: Adjacency,
        method: Method,
    ) -> Result<Self, Error> {
        event.check()?;
        let Event::Geometric { event: plain, beta, dim } = event else {
            return Err(Error::Unsupported {
                event: "an event that is not GeoDP's".into(),
                adjacency,
                advice: "ask an accountant for its certified ε",
            });
        };
        let epsilon = |event: &Event| {
            let mut accountant = method.accountant(adjacency);
            accountant.compose(event, count)?;
            accountant.epsilon(delta)
        };
        let both = with_noise_divided(plain, std::f64::consts::SQRT_2, adjacency)?;
        Ok(Self {
            as_published: AsPublished {
                epsilon: epsilon(plain)?,
                delta,
                delta_prime_at_most: 1.0 - beta,
            },
            conditional: Conditional {
                epsilon: epsilon(&both)?,
                delta,
                assumption: format!(
                    "every record moves the magnitude of the mean gradient by at most C/B and its {} \
                     angles, in Euclidean norm, by at most √(d+2)·β·π/B with d = {dim}, β = {beta}; \
                     nothing enforces it",
                    dim.saturating_sub(1)
                ),
            },
        })
    }
}

/// The same event with its noise multiplier divided.
fn with_noise_divided(event: &Event, by: f64, adjacency: Adjacency) -> Result<Event, Error> {
    match event {
        Event::Gaussian { noise_multiplier } => Ok(Event::gaussian(noise_multiplier / by)),
        Event::SampledGaussian { sample_rate, noise_multiplier } => {
            Ok(Event::sampled_gaussian(*sample_rate, noise_multiplier / by))
        }
        Event::ShuffledEpoch { noise_multiplier } => {
            Ok(Event::ShuffledEpoch { noise_multiplier: noise_multiplier / by })
        }
        _ => Err(Error::Unsupported {
            event: "GeoDP over a composed event".into(),
            adjacency,
            advice: "wrap each elementary release in its own Event::Geometric",
        }),
    }
}

impl fmt::Display for Certified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "certified: ε in {}, δ = {:e}", self.epsilon, self.delta)
    }
}

impl fmt::Display for Conditional {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "conditional: ε in {}, δ = {:e}, if {}",
            self.epsilon, self.delta, self.assumption
        )
    }
}

impl fmt::Display for AsPublished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (delta, prime) = (self.delta, self.delta_prime_at_most);
        write!(f, "as published: ε in {}, δ + δ′ = {delta:e} + δ′, δ′ ≤ {prime}", self.epsilon)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "measured on this data, for its owner only: per-record ε up to {:.4} (median {:.4}) at δ = {:e}; \
             {:.2} % of records inside the assumed region, all of them at β = {:.4}",
            self.epsilon_largest,
            self.epsilon_median,
            self.delta,
            100.0 * self.share_inside,
            self.beta_safe
        )
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Statement::Certified(claim) => claim.fmt(f),
            Statement::Conditional(claim) => claim.fmt(f),
            Statement::AsPublished(claim) => claim.fmt(f),
            Statement::Measured(claim) => claim.fmt(f),
        }
    }
}

impl fmt::Display for GeoDpStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}", self.as_published, self.conditional)
    }
}
