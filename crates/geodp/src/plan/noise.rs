//! The noise of a private plan: what perturbs a step, what the ledger records for it, and of which
//! kind the ε is that it buys. A new mechanism becomes a variant here, and nowhere else in a plan.

use crate::Error;
use crate::sampler::Draw;
use geodp_account::{Arithmetic, Event, Kind};
use geodp_mechanism::clip::Sensitivity;
use geodp_mechanism::{
    CertifiedPolar, ExactGaussian, ExactMean, Gaussian, Geometric, Grid, Mechanism, Perturb,
    PerturbSum, PolarSettings, Spread,
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

/// Noise scaled to a sensitivity and a batch size.
#[derive(Debug)]
pub(crate) enum Scaled {
    /// For integer sums on the grid.
    Exact(Box<dyn PerturbSum>),
    /// For means in floating point.
    Floating(Box<dyn Perturb<f32>>),
}

impl Scaled {
    /// How wide it is on a gradient of `dim` coordinates.
    pub(crate) fn spread(&self, dim: usize) -> Spread {
        match self {
            Self::Exact(noise) => noise.spread(dim),
            Self::Floating(noise) => noise.spread(dim),
        }
    }
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

    /// The same noise with δ₁ settled where σ is given: `gaussian_epsilon` is what as many steps of
    /// plain Gaussian noise with this σ cost, and the share of δ set aside costs little more.
    ///
    /// # Errors
    /// A share out of range.
    pub fn with_miss_beside(
        self,
        delta: f64,
        steps: u64,
        gaussian_epsilon: f64,
    ) -> Result<Self, Error> {
        self.with_miss(delta, steps, 1.01 * gaussian_epsilon + 0.01)
    }

    /// δ₁: the chance for each step that more is released than its Gaussian accounts for. 0 but for
    /// certified GeoDP.
    pub fn miss(&self) -> f64 {
        if let Self::Polar { miss, .. } = *self { miss } else { 0.0 }
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
    pub(crate) fn at(
        &self,
        sensitivity: Sensitivity,
        denominator: u64,
        arithmetic: Arithmetic,
    ) -> Result<Scaled, Error> {
        let grid = Grid::new(geodp_nn::Grid::BITS)?;
        let exact = arithmetic == Arithmetic::Exact;
        let scaled = match *self {
            Self::Gaussian { multiplier } if exact => Scaled::Exact(Box::new(ExactGaussian::new(
                sensitivity,
                multiplier,
                grid,
                denominator,
            )?)),
            Self::Gaussian { multiplier } => {
                Scaled::Floating(Box::new(Gaussian::new(sensitivity, multiplier, denominator)?))
            }
            Self::Geometric { multiplier, beta, .. } => {
                let turned = Geometric::new(sensitivity, multiplier, denominator, beta)?;
                if exact {
                    Scaled::Exact(Box::new(ExactMean::new(turned, sensitivity, grid, denominator)?))
                } else {
                    Scaled::Floating(Box::new(turned))
                }
            }
            Self::Polar { multiplier, settings, miss, dim } => {
                let params = settings.params(miss)?;
                let polar =
                    CertifiedPolar::new(sensitivity, multiplier, grid, denominator, dim, params)?;
                if exact {
                    Scaled::Exact(Box::new(polar))
                } else {
                    Scaled::Floating(Box::new(polar))
                }
            }
        };
        match scaled {
            // A statement would call it exact.
            Scaled::Floating(_) if exact => Err(Error::Plan(format!(
                "{} has no exact noise yet; use arithmetic = \"floating-point\"",
                self.mechanism().title()
            ))),
            scaled => Ok(scaled),
        }
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
