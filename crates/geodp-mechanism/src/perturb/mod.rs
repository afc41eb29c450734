//! Perturbation of a clipped mean gradient: Gaussian (DP) and geometric (GeoDP).
//!
//! | mechanism | output |
//! |---|---|
//! | [`Gaussian`] | g̃ + (C·σ/B)·N(0, I) |
//! | [`Geometric`] | (‖g̃‖ + (C/B)·σ·N(0, 1), θ + (√(d+2)·β·π/B)·σ·N(0, I)), back in rectangular form |
//! | [`CertifiedPolar`] | magnitude and direction on integers, or as [`Gaussian`] |
//!
//! They take the sum of clipped per-sample gradients divided by the public batch size B, and the
//! [`Sensitivity`](crate::clip::Sensitivity) of that clipping. Noise is addressed by step and
//! chunk: for one source and step the output is the same for any number of threads. A step of a
//! source is one release: perturbing two gradients with the same (source, step) would reuse noise.

mod exact;
mod gaussian;
pub(crate) mod geometric;
mod polar;
pub mod reference;

pub use exact::{ExactGaussian, ExactMean, PerturbSum, mean_into, release_scalar};
pub use gaussian::Gaussian;
pub use geometric::{Geometric, assumed_turn};
pub use polar::{
    CertifiedPolar, PolarCounts, PolarParams, PolarRelease, PolarSettings, PolarState,
    PolarSummary, StepKind,
};

use crate::Error;
use crate::noise::NoiseSource;
use crate::real::Real;

/// A mechanism that releases a noisy version of a clipped mean gradient.
pub trait Perturb<R: Real>: std::fmt::Debug + Send + Sync {
    /// Replaces the clipped mean gradient by its noisy release, with the noise of `step`.
    ///
    /// # Errors
    /// A gradient that is too short or not finite. Then the gradient is left as it was.
    fn perturb_in_place(
        &self,
        mean_gradient: &mut [R],
        noise: &NoiseSource,
        step: u64,
    ) -> Result<(), Error>;

    /// The same within a training: `history` says what earlier steps released, and learns of this
    /// one. Most mechanisms do not look at it.
    ///
    /// # Errors
    /// As [`perturb_in_place`](Self::perturb_in_place).
    fn perturb_step(
        &self,
        mean_gradient: &mut [R],
        noise: &NoiseSource,
        step: u64,
        _history: &mut PolarState,
    ) -> Result<(), Error> {
        self.perturb_in_place(mean_gradient, noise, step)
    }

    /// How wide its noise is on a gradient of `dim` coordinates.
    fn spread(&self, dim: usize) -> Spread;

    /// The noisy release as a new vector.
    ///
    /// # Errors
    /// As [`perturb_in_place`](Self::perturb_in_place).
    fn perturb(
        &self,
        mean_gradient: &[R],
        noise: &NoiseSource,
        step: u64,
    ) -> Result<Vec<R>, Error> {
        let mut release = mean_gradient.to_vec();
        self.perturb_in_place(&mut release, noise, step)?;
        Ok(release)
    }
}

/// Standard deviations of a mechanism's noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spread {
    /// The same on every coordinate.
    Coordinates {
        /// C·σ/B.
        std: f64,
    },
    /// The same on every coordinate in some steps, on magnitude and direction in others. A record moves
    /// either no further, in standard deviations, than it moves the first.
    Mixed {
        /// C·σ/B.
        std: f64,
    },
    /// On the magnitude, and the same on every angle.
    Polar {
        /// C·σ/B.
        magnitude_std: f64,
        /// √(d+2)·β·π·σ/B, in radians.
        angle_std: f64,
        /// √(d+2)·β·π/B: how far one record is assumed to turn the mean, in radians.
        assumed_turn: f64,
    },
}

/// Below this many coordinates, handing chunks to other threads costs more than it saves.
const PARALLEL_FROM: usize = 2 * crate::kernels::rotate::CHUNK;

pub(crate) fn check_noise_multiplier(noise_multiplier: f64) -> Result<f64, Error> {
    if noise_multiplier.is_finite() && noise_multiplier >= 0.0 {
        Ok(noise_multiplier)
    } else {
        Err(Error::NoiseMultiplier(noise_multiplier))
    }
}

fn check_batch(batch: u64) -> Result<f64, Error> {
    if batch == 0 { Err(Error::Batch) } else { Ok(batch as f64) }
}
