//! DP: N(0, (C·σ/B)²) on every coordinate of the mean gradient.

use super::{PARALLEL_FROM, Perturb, Spread, check_batch, check_noise_multiplier};
use crate::Error;
use crate::clip::Sensitivity;
use crate::kernels::rotate::CHUNK;
use crate::kernels::{Level, normal};
use crate::noise::{NoiseSource, Purpose};
use crate::real::{Real, check_gradient};
use rayon::prelude::*;

/// The Gaussian mechanism of DP-SGD.
///
/// # Guarantee
/// With inputs whose records each contribute at most C/B in norm, one release is the Gaussian
/// mechanism with noise multiplier σ under add/remove of a record; over Poisson-sampled records,
/// the sampled Gaussian mechanism. σ = 0 adds nothing and guarantees nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gaussian {
    coordinate_std: f64,
}

impl Gaussian {
    /// Noise multiplier σ ≥ 0 on the mean over the public batch size B.
    ///
    /// # Errors
    /// σ negative or not finite; B = 0.
    pub fn new(sensitivity: Sensitivity, noise_multiplier: f64, batch: u64) -> Result<Self, Error> {
        let noise_multiplier = check_noise_multiplier(noise_multiplier)?;
        let coordinate_std = sensitivity.get() * noise_multiplier / check_batch(batch)?;
        Ok(Self { coordinate_std })
    }

    /// C·σ/B: the standard deviation of the noise on each coordinate.
    pub fn coordinate_std(&self) -> f64 {
        self.coordinate_std
    }
}

impl<R: Real> Perturb<R> for Gaussian {
    fn spread(&self, _dim: usize) -> Spread {
        Spread::Coordinates { std: self.coordinate_std }
    }

    fn perturb_in_place(
        &self,
        mean_gradient: &mut [R],
        noise: &NoiseSource,
        step: u64,
    ) -> Result<(), Error> {
        check_gradient(mean_gradient, 1)?;
        let level = Level::best();
        let add_noise = |normals: &mut Box<[f64; CHUNK]>, (index, chunk): (usize, &mut [R])| {
            let normals = &mut normals[..chunk.len()];
            noise.stream(Purpose::Coordinates, step, index as u64)?.fill_normals(normals);
            normal::add_to(level, chunk, normals, self.coordinate_std);
            Ok(())
        };
        // An address out of range must not leave half a release behind.
        noise.stream(
            Purpose::Coordinates,
            step,
            (mean_gradient.len().div_ceil(CHUNK) - 1) as u64,
        )?;
        let new_buffer = || Box::new([0.0; CHUNK]);
        if mean_gradient.len() < PARALLEL_FROM {
            let mut buffer = new_buffer();
            mean_gradient.chunks_mut(CHUNK).enumerate().try_for_each(|c| add_noise(&mut buffer, c))
        } else {
            mean_gradient.par_chunks_mut(CHUNK).enumerate().try_for_each_init(new_buffer, add_noise)
        }
    }
}
