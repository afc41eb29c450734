//! GeoDP with a theorem: magnitude and direction perturbed separately, at the ε of DP-SGD.
//!
//! For neighbouring sums s = a·u and s′ = b·v, ‖s − s′‖ ≤ C, the law of cosines says
//! (a − b)² + a·b·‖u − v‖² = ‖s − s′‖² ≤ C²: magnitude and direction share one budget. One step:
//! 1. m̃ = a + Cσz₀;
//! 2. L = m̃ − C(tσ + 1), at most √(ab) unless z₀ > t;
//! 3. if L ≥ κC: w = L·u + Cσz, released as m̃·w/(B·L) or m̃·w/(B·‖w‖); else nothing but m̃.
//!
//! Given m̃, w moves by L·‖u − v‖ ≤ √(ab)·‖u − v‖, so both together are a post-processing of one
//! Gaussian with multiplier σ, except with probability Φ(−t). `docs/geodp.md` has the proof.
//!
//! # On integers
//! Everything is in units of γ = C·2⁻ᴷ; M = 2ᴷ. The magnitude is rounded to an integer, and so is
//! each coordinate of L·u: w costs what the noise of [`ExactGaussian`] costs. Roundings move the two
//! neighbours apart by at most e_a and e_u; by the triangle inequality the pair
//! (magnitude, L·direction) moves by at most M + √(e_a² + e_u²), and that, not M, scales the noise:
//! - Σs² has a relative error below 2⁻⁴⁵ (chains of 128, compensated between chunks), ‖s‖ half of
//!   it; magnitudes are held to 2⁵⁰. So ‖s‖ is right to 33 with its rounding, and e_a ≤ 66.
//! - L·u is right to 33 but for rounding, which is at most √d/2: e_u ≤ √d + 66.
//!
//! Together less than √d + 133, [`slack`]. L is smaller by 34 for the same reason.

use super::exact::with_rounded_noise;
use super::{
    ExactGaussian, PARALLEL_FROM, Perturb, PerturbSum, Spread, check_batch, release_scalar,
};
use crate::Error;
use crate::clip::Sensitivity;
use crate::exact::{Grid, RoundedNormal};
use crate::kernels::rotate::CHUNK;
use crate::kernels::{Level, rounded};
use crate::noise::{NoiseSource, Purpose};
use crate::real::{Real, check_gradient};
use rayon::prelude::*;

mod estimate;
mod settings;
#[cfg(test)]
mod tests;
pub use estimate::{PolarCounts, PolarState, PolarSummary};
pub use settings::{PolarParams, PolarSettings};

/// Largest magnitude and coordinate: a larger one is held there.
const MOST: i64 = 1 << 50;
/// How far a computed ‖s‖ may be from the true one, in units.
const NORM_ERROR: i64 = 33;

/// What a step released. Public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// A magnitude and a direction.
    Polar,
    /// The sum with isotropic noise, as in DP-SGD.
    Isotropic,
    /// A magnitude too small for a direction: the gradient released is zero.
    Directionless,
}

/// What a step released besides the gradient. Public.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolarRelease {
    /// Which kind of step it was.
    pub kind: StepKind,
    /// m̃/C, where a magnitude was released.
    pub magnitude: Option<f64>,
    /// L/C, where a direction was released.
    pub radius: Option<f64>,
}

/// The certified polar mechanism.
///
/// # Guarantee
/// With sums in which every record's integer vector has norm at most 2ᴷ, every step (of any kind) is
/// a post-processing of the Gaussian mechanism with noise multiplier σ under add/remove of a record,
/// except with probability Φ(−t) under either neighbour. T steps over Poisson samples are T sampled
/// Gaussians, and (1 + e^ε)·T·Φ(−t) joins δ. Which kind a step is of depends on earlier releases
/// only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CertifiedPolar {
    isotropic: ExactGaussian,
    /// Noise of magnitude and direction: σ·(2ᴷ + slack).
    law: RoundedNormal,
    params: PolarParams,
    grid: Grid,
    dim: usize,
    noise_multiplier: f64,
}

impl CertifiedPolar {
    /// Noise multiplier σ > 0 on sums of `dim` coordinates in units of `grid`, divided by the public
    /// batch size B.
    ///
    /// # Errors
    /// σ not positive or out of the grid's range; B = 0; no coordinates; parameters out of range.
    pub fn new(
        sensitivity: Sensitivity,
        noise_multiplier: f64,
        grid: Grid,
        batch: u64,
        dim: usize,
        params: PolarParams,
    ) -> Result<Self, Error> {
        check_batch(batch)?;
        if dim == 0 {
            return Err(Error::Empty);
        }
        if noise_multiplier <= 0.0 {
            return Err(Error::NoiseMultiplier(noise_multiplier));
        }
        let longer = 1.0 + slack(dim) / grid.most() as f64;
        Ok(Self {
            isotropic: ExactGaussian::new(sensitivity, noise_multiplier, grid, batch)?,
            law: RoundedNormal::new(noise_multiplier * longer, grid)?,
            params: params.check()?,
            grid,
            dim,
            noise_multiplier,
        })
    }

    /// Writes the noisy mean of `sums` to `out`, with the noise of `step`, and brings the public
    /// `state` up to date.
    ///
    /// # Errors
    /// Lengths that do not fit; an address of noise out of range. Then nothing has changed.
    pub fn perturb_sums(
        &self,
        sums: &[i64],
        noise: &NoiseSource,
        step: u64,
        state: &mut PolarState,
        out: &mut [f32],
    ) -> Result<PolarRelease, Error> {
        for (what, actual) in [("the sum", sums.len()), ("the release", out.len())] {
            if actual != self.dim {
                return Err(Error::LengthMismatch { what, expected: self.dim, actual });
            }
        }
        let polar = state.expects_ratio_below(self.params.most_ratio, self.radius_loss());
        let release = if polar {
            let (magnitude, radius) = self.release_polar(sums, noise, step, out)?;
            let in_units_of_c = |units: i64| units as f64 / self.grid.most() as f64;
            state.saw_magnitude(in_units_of_c(magnitude), self.noise_multiplier);
            let kind = if radius.is_some() { StepKind::Polar } else { StepKind::Directionless };
            let (magnitude, radius) = (Some(in_units_of_c(magnitude)), radius.map(in_units_of_c));
            PolarRelease { kind, magnitude, radius }
        } else {
            self.isotropic.release_into(sums, noise, step, out)?;
            let unit = self.isotropic.unit() * self.grid.most() as f64;
            state.saw_vector(squares(out) / (unit * unit), self.dim, self.noise_multiplier);
            PolarRelease { kind: StepKind::Isotropic, magnitude: None, radius: None }
        };
        state.count(&release);
        Ok(release)
    }

    /// tσ + 1: what lies between the magnitude and the radius, in units of C, but for rounding.
    pub fn radius_loss(&self) -> f64 {
        self.params.margin * self.noise_multiplier + 1.0
    }

    /// C·σ/B: the standard deviation of isotropic noise on each coordinate.
    pub fn coordinate_std(&self) -> f64 {
        self.isotropic.coordinate_std()
    }

    /// A polar step: m̃, and L where it allows a direction, in units.
    fn release_polar(
        &self,
        sums: &[i64],
        noise: &NoiseSource,
        step: u64,
        out: &mut [f32],
    ) -> Result<(i64, Option<i64>), Error> {
        // An address out of range must not leave half a release behind.
        noise.stream(Purpose::Coordinates, step, (sums.len().div_ceil(CHUNK) - 1) as u64)?;
        let norm = norm(sums);
        let magnitude =
            release_scalar(rounded_norm(norm), self.law, noise, Purpose::Magnitude, step, 0)?;
        let radius = self.radius(magnitude);
        if !self.has_direction(radius) {
            out.fill(0.0);
            return Ok((magnitude, None));
        }
        let shrink = if norm > 0.0 { radius as f64 / norm } else { 0.0 };
        let unit = self.isotropic.unit();
        let per_radius = magnitude as f64 / radius as f64;
        let first_unit = if self.params.normalised { unit } else { unit * per_radius };
        self.release_direction(sums, shrink, first_unit, noise, step, out)?;
        if self.params.normalised {
            let length = magnitude as f64 * unit / squares(out).sqrt();
            out.iter_mut().for_each(|x| *x = (f64::from(*x) * length) as f32);
        }
        Ok((magnitude, Some(radius)))
    }

    /// L: a bound on √(ab) from below, made of m̃ alone.
    fn radius(&self, magnitude: i64) -> i64 {
        let spread = (self.law.scale() * self.params.margin).ceil() as i64;
        magnitude - spread - self.grid.most() - (NORM_ERROR + 1)
    }

    /// Whether the public radius allows a direction.
    fn has_direction(&self, radius: i64) -> bool {
        radius as f64 >= self.params.least_radius * self.grid.most() as f64
    }

    /// (round(s·`shrink`) + noise)·`unit`.
    fn release_direction(
        &self,
        sums: &[i64],
        shrink: f64,
        unit: f64,
        noise: &NoiseSource,
        step: u64,
        out: &mut [f32],
    ) -> Result<(), Error> {
        let level = Level::best();
        with_rounded_noise(self.law, sums, noise, step, out, |sums, draws, out| {
            rounded::release_shrunk(level, sums, shrink, draws, unit, out);
        })
    }
}

impl PerturbSum for CertifiedPolar {
    fn spread(&self, dim: usize) -> Spread {
        Perturb::<f32>::spread(self, dim)
    }

    fn release_into(
        &self,
        sums: &[i64],
        noise: &NoiseSource,
        step: u64,
        out: &mut [f32],
    ) -> Result<(), Error> {
        self.release_step(sums, noise, step, &mut PolarState::default(), out)
    }

    fn release_step(
        &self,
        sums: &[i64],
        noise: &NoiseSource,
        step: u64,
        history: &mut PolarState,
        out: &mut [f32],
    ) -> Result<(), Error> {
        self.perturb_sums(sums, noise, step, history, out).map(drop)
    }
}

/// On a mean that was summed in floating point: placed on the grid, then as for exact sums. The sum's
/// own rounding is not covered.
impl<R: Real> Perturb<R> for CertifiedPolar {
    fn perturb_in_place(
        &self,
        mean_gradient: &mut [R],
        noise: &NoiseSource,
        step: u64,
    ) -> Result<(), Error> {
        self.perturb_step(mean_gradient, noise, step, &mut PolarState::default())
    }

    fn perturb_step(
        &self,
        mean_gradient: &mut [R],
        noise: &NoiseSource,
        step: u64,
        history: &mut PolarState,
    ) -> Result<(), Error> {
        check_gradient(mean_gradient, 1)?;
        let place = |g: &R| (g.to_f64() / self.isotropic.unit()).round() as i64;
        let sums: Vec<i64> = mean_gradient.iter().map(place).collect();
        let mut out = vec![0.0; sums.len()];
        self.perturb_sums(&sums, noise, step, history, &mut out)?;
        for (g, released) in mean_gradient.iter_mut().zip(out) {
            *g = R::from_f64(f64::from(released));
        }
        Ok(())
    }

    /// By the law of cosines a record's μ₁² + μ₂² in a polar step is at most its μ² in an isotropic
    /// one.
    fn spread(&self, _dim: usize) -> Spread {
        Spread::Mixed { std: self.isotropic.coordinate_std() }
    }
}

/// √d + 133: how much further apart roundings can bring two neighbours, in units of the grid.
fn slack(dim: usize) -> f64 {
    (dim as f64).sqrt().ceil() + 133.0
}

/// ‖s‖ in units, coordinates held to ±2⁵⁰.
fn norm(sums: &[i64]) -> f64 {
    let level = Level::best();
    total(sums, |chunk| rounded::sum_of_squares(level, chunk)).sqrt()
}

/// The magnitude as an integer, held to 2⁵⁰.
fn rounded_norm(norm: f64) -> i64 {
    norm.round().min(MOST as f64) as i64
}

/// Σ x² of a release.
fn squares(release: &[f32]) -> f64 {
    let level = Level::best();
    total(release, |chunk| rounded::squares_of_release(level, chunk))
}

/// The sum over chunks, in their order: the same bits for any number of threads.
fn total<T: Sync>(values: &[T], of_chunk: impl Fn(&[T]) -> f64 + Send + Sync) -> f64 {
    if values.len() < PARALLEL_FROM {
        compensated(values.chunks(CHUNK).map(of_chunk))
    } else {
        let totals: Vec<f64> = values.par_chunks(CHUNK).map(of_chunk).collect();
        compensated(totals.into_iter())
    }
}

/// Neumaier's sum of numbers ≥ 0, whose error does not grow with their count.
fn compensated(parts: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for part in parts {
        let next = sum + part;
        // The larger one decides what the addition lost.
        lost += if sum >= part { (sum - next) + part } else { (part - next) + sum };
        sum = next;
    }
    sum + lost
}
