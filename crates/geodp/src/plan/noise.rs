//! The noise of a private plan: what perturbs a step, what the ledger records for it, and of which
//! kind the ε is that it buys. A new mechanism becomes a variant here, and nowhere else in a plan.

use crate::Error;
use crate::sampler::Draw;
use geodp_account::{Event, Kind};
use geodp_mechanism::clip::Sensitivity;
use geodp_mechanism::{
    CertifiedPolar, Gaussian, Geometric, Grid, Mechanism, Perturb, PolarSettings,
};

/// Noise that is not yet scaled to a sensitivity and a batch size.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Noise {
    /// DP: on every coordinate.
    Gaussian {
        /// σ.
        multiplier: f64,
    },
    /// GeoDP: on magnitude and angles.
    Geometric {
        /// σ of both.
        multiplier: f64,
        /// β.
        beta: f64,
        /// d.
        dim: usize,
    },
    /// Certified GeoDP: on magnitude and direction, the direction's sensitivity enforced.
    Polar {
        /// σ of both together.
        multiplier: f64,
        /// What the config says.
        settings: PolarSettings,
        /// δ₁: the chance for each step that the public radius is not below the private one.
        miss: f64,
        /// d.
        dim: usize,
    },
}

impl Noise {
    /// The noise of a mechanism on gradients of `dim` coordinates; `None` for the mechanism without.
    pub fn of(mechanism: Mechanism, multiplier: f64, dim: usize) -> Option<Self> {
        match mechanism {
            Mechanism::None => None,
            Mechanism::Dp => Some(Self::Gaussian { multiplier }),
            Mechanism::Geodp { beta } => Some(Self::Geometric { multiplier, beta, dim }),
            // Nothing may miss until the budget says how much.
            Mechanism::GeodpCertified(settings) => {
                Some(Self::Polar { multiplier, settings, miss: 0.0, dim })
            }
        }
    }

    /// The mechanism it is the noise of.
    pub fn mechanism(&self) -> Mechanism {
        match *self {
            Self::Gaussian { .. } => Mechanism::Dp,
            Self::Geometric { beta, .. } => Mechanism::Geodp { beta },
            Self::Polar { settings, .. } => Mechanism::GeodpCertified(settings),
        }
    }

    /// σ.
    pub fn multiplier(&self) -> f64 {
        match *self {
            Self::Gaussian { multiplier }
            | Self::Geometric { multiplier, .. }
            | Self::Polar { multiplier, .. } => multiplier,
        }
    }

    /// The same noise with another σ.
    pub(crate) fn with_multiplier(self, multiplier: f64) -> Self {
        match self {
            Self::Gaussian { .. } => Self::Gaussian { multiplier },
            Self::Geometric { beta, dim, .. } => Self::Geometric { multiplier, beta, dim },
            Self::Polar { settings, miss, dim, .. } => {
                Self::Polar { multiplier, settings, miss, dim }
            }
        }
    }

    /// The same noise with δ₁ settled, so that `steps` steps keep to their share of δ at an ε of at
    /// most `epsilon`. Only certified GeoDP has one.
    ///
    /// # Errors
    /// A share out of range.
    pub(crate) fn with_miss(self, delta: f64, steps: u64, epsilon: f64) -> Result<Self, Error> {
        Ok(match self {
            Self::Polar { multiplier, settings, dim, .. } => {
                let miss = settings.miss(delta, steps, epsilon)?;
                Self::Polar { multiplier, settings, miss, dim }
            }
            other => other,
        })
    }

    /// Which kind of ε it buys.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Gaussian { .. } | Self::Polar { .. } => Kind::Certified,
            Self::Geometric { .. } => Kind::Conditional,
        }
    }

    /// Scaled for sums of clipped gradients, one of which contributes at most `sensitivity`, over
    /// `denominator`.
    ///
    /// # Errors
    /// σ, β or the denominator out of range.
    pub fn at(
        &self,
        sensitivity: Sensitivity,
        denominator: u64,
    ) -> Result<Box<dyn Perturb<f32>>, Error> {
        Ok(match *self {
            Self::Gaussian { multiplier } => {
                Box::new(Gaussian::new(sensitivity, multiplier, denominator)?)
            }
            Self::Geometric { multiplier, beta, .. } => {
                Box::new(Geometric::new(sensitivity, multiplier, denominator, beta)?)
            }
            Self::Polar { multiplier, settings, miss, dim } => {
                let (grid, params) = (Grid::default(), settings.params(miss)?);
                let polar =
                    CertifiedPolar::new(sensitivity, multiplier, grid, denominator, dim, params)?;
                Box::new(polar)
            }
        })
    }

    /// What the ledger records for one release from records drawn so.
    pub fn event(&self, draw: Draw) -> Event {
        let plain = draw.gaussian(self.multiplier());
        match *self {
            Self::Gaussian { .. } => plain,
            Self::Geometric { beta, dim, .. } => Event::geometric(plain, beta, dim as u64),
            Self::Polar { miss, .. } => Event::polar(plain, miss),
        }
    }
}
