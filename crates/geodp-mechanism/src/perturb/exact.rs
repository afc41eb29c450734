//! Perturbation of exact sums: integers in, a noisy mean out.
//!
//! | mechanism | output |
//! |---|---|
//! | [`ExactGaussian`] | (n + round(σ·2ᴷ·Z))·γ/B |
//! | [`ExactMean`] | GeoDP's perturbation of n·γ/B, in f64 |
//!
//! Multiplying by γ/B in f64 and rounding to f32 once is post-processing of the integers.

use super::{Geometric, PARALLEL_FROM, Perturb, PolarState, Spread, check_batch};
use crate::Error;
use crate::clip::Sensitivity;
use crate::exact::{Grid, RoundedNormal};
use crate::kernels::rotate::CHUNK;
use crate::kernels::{Level, rounded};
use crate::noise::{NoiseSource, Purpose};
use rayon::prelude::*;

/// A mechanism that releases a noisy mean of exact sums.
pub trait PerturbSum: std::fmt::Debug + Send + Sync {
    /// Writes the noisy mean of `sums` (in units of the grid) to `out`, with the noise of `step`.
    ///
    /// # Errors
    /// Lengths that differ; no coordinate; an address of noise that is out of range. Then `out`
    /// shows nothing of the sums: it is left as it was, or is 0.
    fn release_into(
        &self,
        sums: &[i64],
        noise: &NoiseSource,
        step: u64,
        out: &mut [f32],
    ) -> Result<(), Error>;

    /// The same within a training: `history` says what earlier steps released, and learns of this
    /// one. Most mechanisms do not look at it.
    ///
    /// # Errors
    /// As [`release_into`](Self::release_into).
    fn release_step(
        &self,
        sums: &[i64],
        noise: &NoiseSource,
        step: u64,
        _history: &mut PolarState,
        out: &mut [f32],
    ) -> Result<(), Error> {
        self.release_into(sums, noise, step, out)
    }

    /// How wide its noise is on a mean of `dim` coordinates.
    fn spread(&self, dim: usize) -> Spread;

    /// The noisy mean as a new vector.
    ///
    /// # Errors
    /// As [`release_into`](Self::release_into).
    fn release(&self, sums: &[i64], noise: &NoiseSource, step: u64) -> Result<Vec<f32>, Error> {
        let mut out = vec![0.0; sums.len()];
        self.release_into(sums, noise, step, &mut out)?;
        Ok(out)
    }
}

/// The Gaussian mechanism of DP-SGD on integers.
///
/// # Guarantee
/// With sums in which every record's integer vector has norm at most 2ᴷ, one release is a
/// post-processing of the Gaussian mechanism with noise multiplier σ, for the bits released, up to
/// [`LEFT_OVER_PER_DRAW`](crate::exact::LEFT_OVER_PER_DRAW) per coordinate. σ = 0 adds nothing and
/// guarantees nothing. A coordinate beyond ±2⁵⁰ is held there: a projection, so two neighbouring
/// sums come no further apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactGaussian {
    law: RoundedNormal,
    /// γ/B.
    unit: f64,
    coordinate_std: f64,
}

impl ExactGaussian {
    /// Noise multiplier σ ≥ 0 on sums in units of `grid`, divided by the public batch size B.
    ///
    /// # Errors
    /// σ negative, not finite, or out of the grid's range; B = 0.
    pub fn new(
        sensitivity: Sensitivity,
        noise_multiplier: f64,
        grid: Grid,
        batch: u64,
    ) -> Result<Self, Error> {
        let batch = check_batch(batch)?;
        Ok(Self {
            law: RoundedNormal::new(noise_multiplier, grid)?,
            unit: grid.unit(sensitivity) / batch,
            coordinate_std: sensitivity.get() * noise_multiplier / batch,
        })
    }

    /// C·σ/B: the standard deviation of the noise on each coordinate, but for the rounding.
    pub fn coordinate_std(&self) -> f64 {
        self.coordinate_std
    }

    /// γ/B: what one unit of the sum is worth in the mean.
    pub fn unit(&self) -> f64 {
        self.unit
    }
}

impl PerturbSum for ExactGaussian {
    fn spread(&self, _dim: usize) -> Spread {
        Spread::Coordinates { std: self.coordinate_std }
    }

    fn release_into(
        &self,
        sums: &[i64],
        noise: &NoiseSource,
        step: u64,
        out: &mut [f32],
    ) -> Result<(), Error> {
        check_lengths(sums, out)?;
        let level = Level::best();
        with_rounded_noise(self.law, sums, noise, step, out, |sums, draws, out| {
            rounded::release(level, sums, draws, self.unit, out);
        })
    }
}

/// Calls `release` with every chunk of the sums, its rounded noise of `step`, and its place in `out`.
///
/// # Errors
/// An address of noise out of range; then `out` is left as it was.
pub(super) fn with_rounded_noise(
    law: RoundedNormal,
    sums: &[i64],
    noise: &NoiseSource,
    step: u64,
    out: &mut [f32],
    release: impl Fn(&[i64], &[i64], &mut [f32]) + Sync,
) -> Result<(), Error> {
    // The last address first: one out of range must not leave half a release behind.
    let last = sums.len().div_ceil(CHUNK).saturating_sub(1);
    noise.stream(Purpose::Coordinates, step, last as u64)?;
    let of_chunk = |draws: &mut Box<[i64; CHUNK]>,
                    (index, (sums, out)): (usize, (&[i64], &mut [f32]))| {
        let draws = &mut draws[..sums.len()];
        noise.stream(Purpose::Coordinates, step, index as u64)?.fill_rounded(law, draws);
        release(sums, draws, out);
        Ok(())
    };
    let new_buffer = || Box::new([0; CHUNK]);
    if sums.len() < PARALLEL_FROM {
        let mut buffer = new_buffer();
        let mut chunks = sums.chunks(CHUNK).zip(out.chunks_mut(CHUNK)).enumerate();
        chunks.try_for_each(|chunk| of_chunk(&mut buffer, chunk))
    } else {
        let chunks = sums.par_chunks(CHUNK).zip(out.par_chunks_mut(CHUNK)).enumerate();
        chunks.try_for_each_init(new_buffer, of_chunk)
    }
}

/// GeoDP on the mean of exact sums. The mean does not depend on the order of records; the
/// perturbation is [`Geometric`]'s in f64, and what it guarantees stays conditional.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactMean {
    mechanism: Geometric,
    unit: f64,
}

impl ExactMean {
    /// `mechanism` on sums in units of `grid`, divided by the public batch size B.
    ///
    /// # Errors
    /// B = 0.
    pub fn new(
        mechanism: Geometric,
        sensitivity: Sensitivity,
        grid: Grid,
        batch: u64,
    ) -> Result<Self, Error> {
        Ok(Self { mechanism, unit: grid.unit(sensitivity) / check_batch(batch)? })
    }
}

impl PerturbSum for ExactMean {
    fn spread(&self, dim: usize) -> Spread {
        Perturb::<f32>::spread(&self.mechanism, dim)
    }

    fn release_into(
        &self,
        sums: &[i64],
        noise: &NoiseSource,
        step: u64,
        out: &mut [f32],
    ) -> Result<(), Error> {
        check_lengths(sums, out)?;
        // In place: a second vector of a large model costs as much as a tenth of the noise.
        let level = Level::best();
        let mean = |index: usize, out: &mut [f32]| {
            rounded::mean(level, &sums[index * CHUNK..][..out.len()], self.unit, out);
        };
        // Squares of f32 are safe in f64 without a scale.
        let perturbed = self.mechanism.perturb_made(out, Some(1.0), mean, noise, step);
        if perturbed.is_err() {
            // The mean itself must not be left behind.
            out.fill(0.0);
        }
        perturbed
    }
}

/// Sums times what one unit is worth in the mean (γ/B): no noise is added.
pub fn mean_into(sums: &[i64], unit: f64, mean: &mut [f32]) {
    let level = Level::best();
    let of_chunk = |(mean, sums): (&mut [f32], &[i64])| rounded::mean(level, sums, unit, mean);
    if sums.len() < PARALLEL_FROM {
        of_chunk((mean, sums));
    } else {
        mean.par_chunks_mut(CHUNK).zip(sums.par_chunks(CHUNK)).for_each(of_chunk);
    }
}

/// A sum of one coordinate with its noise, in units of the grid: for released totals, tests of
/// selective updates and accuracies. The noise is the first of the stream at this address.
///
/// # Errors
/// An address out of range.
pub fn release_scalar(
    sum: i64,
    law: RoundedNormal,
    noise: &NoiseSource,
    purpose: Purpose,
    step: u64,
    chunk: u64,
) -> Result<i64, Error> {
    let draw = noise.stream(purpose, step, chunk)?.first_rounded(law);
    Ok(sum.saturating_add(draw))
}

fn check_lengths(sums: &[i64], out: &[f32]) -> Result<(), Error> {
    if sums.is_empty() {
        return Err(Error::Empty);
    }
    if out.len() != sums.len() {
        let (expected, actual) = (sums.len(), out.len());
        return Err(Error::LengthMismatch { what: "the release", expected, actual });
    }
    Ok(())
}
