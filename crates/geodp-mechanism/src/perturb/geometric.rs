//! GeoDP (Algorithm 1 of the paper): noise on the magnitude and on every angle, by the fast route.
//!
//! Two passes over chunks of 1,024 coordinates: making them and their sums of squares; then turning each chunk by its noise
//! (see `kernels/rotate.rs`) and, while a group of them is in the cache, scaling each by the sines
//! before it and the noisy magnitude. Between them short sequential scans over chunk totals. No angle
//! is ever formed.

use super::{PARALLEL_FROM, Perturb, Spread, check_batch, check_noise_multiplier, reference};
use crate::Error;
use crate::clip::Sensitivity;
use crate::kernels::Level;
use crate::kernels::elementary::MAX_REDUCED_RADIANS;
use crate::kernels::prefetch::prefetch;
use crate::kernels::rotate::{self, CHUNK, Place, Turn, Work};
use crate::noise::{NoiseSource, Purpose};
use crate::real::{Real, check_finite, check_length};
use rayon::prelude::*;
use std::cell::RefCell;
use std::f64::consts::PI;

/// The geometric perturbation.
///
/// # Guarantee
/// Only under an assumption: *if* every record moves the magnitude by at most C/B and the angles
/// by at most √(d+2)·β·π/B in norm, one release is two Gaussian releases with multiplier σ, i.e.
/// one with multiplier σ/√2. The first half is enforced by clipping; the second is **not**
/// enforced by anything: one record can turn a small mean by any angle. An ε made from this is
/// conditional, never certified.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometric {
    magnitude_std: f64,
    noise_multiplier: f64,
    beta: f64,
    batch: f64,
}

/// √(d+2)·β·π/B in radians: how far GeoDP assumes that one record turns a mean over B. Nothing
/// enforces it.
pub fn assumed_turn(dim: usize, batch: u64, beta: f64) -> f64 {
    angle_std(dim, 1.0, batch as f64, beta)
}

/// √(d+2)·β·π·σ/B in radians: the formula of GeoDP's direction, here only. With σ = 1 it is how far
/// one record is assumed to turn the mean.
pub(crate) fn angle_std(dim: usize, noise_multiplier: f64, batch: f64, beta: f64) -> f64 {
    noise_multiplier * beta * PI / batch * ((dim + 2) as f64).sqrt()
}

impl Geometric {
    /// Noise multiplier σ ≥ 0, public batch size B, bounding factor β in (0, 1].
    ///
    /// # Errors
    /// σ negative or not finite; B = 0; β outside (0, 1].
    pub fn new(
        sensitivity: Sensitivity,
        noise_multiplier: f64,
        batch: u64,
        beta: f64,
    ) -> Result<Self, Error> {
        let noise_multiplier = check_noise_multiplier(noise_multiplier)?;
        let batch = check_batch(batch)?;
        if !(beta > 0.0 && beta <= 1.0) {
            return Err(Error::Beta(beta));
        }
        Ok(Self {
            magnitude_std: sensitivity.get() * noise_multiplier / batch,
            noise_multiplier,
            beta,
            batch,
        })
    }

    /// C·σ/B: the standard deviation of the noise on the magnitude.
    pub fn magnitude_std(&self) -> f64 {
        self.magnitude_std
    }

    /// √(d+2)·β·π·σ/B: the standard deviation of the noise on each angle, in radians.
    pub fn angle_std(&self, dim: usize) -> f64 {
        angle_std(dim, self.noise_multiplier, self.batch, self.beta)
    }
}

impl<R: Real> Perturb<R> for Geometric {
    fn spread(&self, dim: usize) -> Spread {
        Spread::Polar {
            magnitude_std: self.magnitude_std,
            angle_std: self.angle_std(dim),
            assumed_turn: angle_std(dim, 1.0, self.batch, self.beta),
        }
    }

    fn perturb_in_place(
        &self,
        mean_gradient: &mut [R],
        noise: &NoiseSource,
        step: u64,
    ) -> Result<(), Error> {
        check_length(mean_gradient, 2)?;
        if R::SQUARES_OVERFLOW_F64 {
            check_finite(mean_gradient)?;
        }
        let scale = square_scale(mean_gradient);
        self.perturb_made(mean_gradient, scale, |_, _| (), noise, step)
    }
}

impl Geometric {
    /// Perturbs the gradient that `make` writes, chunk by chunk, from a chunk's number: what is to be
    /// turned anyway is in the cache when its squares are added up. `scale` as from [`square_scale`].
    pub(super) fn perturb_made<R: Real>(
        &self,
        gradient: &mut [R],
        scale: Option<f64>,
        make: impl Fn(usize, &mut [R]) + Sync,
        noise: &NoiseSource,
        step: u64,
    ) -> Result<(), Error> {
        check_length(gradient, 2)?;
        let angle_std = self.angle_std(gradient.len());
        let scale = match scale {
            // No normal exceeds 9.5 standard deviations.
            Some(scale) if angle_std * 9.5 < MAX_REDUCED_RADIANS => scale,
            _ => {
                gradient.chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| make(i, chunk));
                let release = reference::perturb(self, gradient, noise, step)?;
                gradient.copy_from_slice(&release);
                return Ok(());
            }
        };
        let mut places = places(gradient, scale, make);
        // Where squares do not overflow, their sum says whether every coordinate is finite.
        if !places[0].from.is_finite() {
            check_finite(gradient)?;
        }
        let norm = places[0].from.sqrt() / scale;
        let magnitude_noise =
            self.magnitude_std * noise.stream(Purpose::Magnitude, step, 0)?.first_normal();
        let magnitude = norm + magnitude_noise;
        if !magnitude.is_finite() {
            return Err(Error::NormOverflow);
        }
        // An address out of range must not leave half a release behind.
        noise.stream(Purpose::Angles, step, (places.len() - 1) as u64)?;

        let level = Level::best();
        let last = gradient.len() - 1;
        let last_is_negative = gradient[last].to_f64() < 0.0;
        let turn = Turn { scale, largest: 9.5 * angle_std };
        let far = gradient.len() >= FAR_FROM;
        let turn_chunk = |(index, (chunk, place)): (usize, (&mut [R], &mut Place))| {
            if far {
                // It arrives while its noise is drawn.
                prefetch(chunk);
            }
            with_work(|work| {
                let angles = &mut work.noise[..chunk.len()];
                noise.stream(Purpose::Angles, step, index as u64)?.fill_angles(angle_std, angles);
                // The last coordinate has no angle, and the sign of the last angle is its own.
                let at = |coordinate: usize| coordinate.checked_sub(index * CHUNK);
                if let Some(n) = at(last).and_then(|at| angles.get_mut(at)) {
                    *n = 0.0;
                }
                if let Some(n) = at(last - 1).and_then(|at| angles.get_mut(at))
                    && last_is_negative
                {
                    *n = -*n;
                }
                place.sines = rotate::turn_chunk(level, work, chunk, turn, *place);
                Ok(())
            })
        };
        let parallel = gradient.len() >= PARALLEL_FROM;
        let stretch_parallel = gradient.len() >= LIGHT_PARALLEL_FROM;
        let threads = if parallel { rayon::current_num_threads() } else { 1 };
        // The length of each chunk's unit vector: the magnitude times all sines before it.
        let mut length = magnitude;
        let groups = gradient.chunks_mut(threads * GROUP * CHUNK);
        for (group, (gradient, places)) in
            groups.zip(places.chunks_mut(threads * GROUP)).enumerate()
        {
            let first = group * threads * GROUP;
            let turn = |(index, (chunk, place))| turn_chunk((first + index, (chunk, place)));
            if parallel {
                gradient.par_chunks_mut(CHUNK).zip(&mut *places).enumerate().try_for_each(turn)?;
            } else {
                gradient.chunks_mut(CHUNK).zip(&mut *places).enumerate().try_for_each(turn)?;
            }
            for place in &mut *places {
                (place.length, length) = (length, length * place.sines);
            }
            let stretch = |(chunk, place): (&mut [R], &mut Place)| {
                rotate::stretch(level, chunk, place.length)
            };
            if stretch_parallel {
                gradient.par_chunks_mut(CHUNK).zip(places).for_each(stretch);
            } else {
                gradient.chunks_mut(CHUNK).zip(places).for_each(stretch);
            }
        }
        Ok(())
    }
}

/// Below this many coordinates one thread does what only reads or stretches them: others take longer to wake.
const LIGHT_PARALLEL_FROM: usize = 64 * CHUNK;
/// From this many coordinates on they are far from the processor when their turn comes; below, asking costs more
/// than waiting.
const FAR_FROM: usize = 1024 * CHUNK;
/// Chunks a thread turns before it stretches them: they are in its cache still.
const GROUP: usize = 128;

thread_local! {
    /// A chunk's arrays, kept for the next call: making them anew costs as much as a small gradient.
    static WORK: RefCell<Box<Work>> = RefCell::new(Work::new());
}

/// Lends this thread's arrays. Nothing inside may perturb again.
fn with_work<T>(use_it: impl FnOnce(&mut Work) -> T) -> T {
    WORK.with_borrow_mut(|work| use_it(work))
}

/// A power of two that brings the largest entry to [1, 2), or 1 where squares are safe anyway.
/// `None` if the entries span so many magnitudes that squares of small ones would vanish.
fn square_scale<R: Real>(gradient: &[R]) -> Option<f64> {
    if !R::SQUARES_OVERFLOW_F64 {
        return Some(1.0);
    }
    let (mut largest, mut smallest) = (0.0_f64, f64::INFINITY);
    for g in gradient {
        let size = g.to_f64().abs();
        largest = largest.max(size);
        smallest = smallest.min(if size == 0.0 { f64::INFINITY } else { size });
    }
    if largest == 0.0 {
        return Some(1.0);
    }
    // 2^−exponent as bits; the extremes where that is not a normal number take the other route.
    let exponent = (largest.to_bits() >> 52) as i64 - 1023;
    let scale = f64::from_bits(u64::try_from(1023 - exponent).ok()? << 52);
    (exponent > -1022 && exponent < 1022 && smallest > largest * 1e-140).then_some(scale)
}

/// Σ g² from each chunk on and behind it, in scaled units, of the gradient that `make` writes.
fn places<R: Real>(
    gradient: &mut [R],
    scale: f64,
    make: impl Fn(usize, &mut [R]) + Sync,
) -> Vec<Place> {
    let level = Level::best();
    let of_chunk = |(index, chunk): (usize, &mut [R])| {
        make(index, chunk);
        Place { from: rotate::sum_of_squares(level, chunk, scale), ..Place::default() }
    };
    let mut places: Vec<Place> = if gradient.len() < LIGHT_PARALLEL_FROM {
        gradient.chunks_mut(CHUNK).enumerate().map(of_chunk).collect()
    } else {
        gradient.par_chunks_mut(CHUNK).enumerate().map(of_chunk).collect()
    };
    let mut squares = 0.0;
    for place in places.iter_mut().rev() {
        (place.after, place.least) = (squares, squares);
        squares += place.from;
        place.from = squares;
    }
    if let (Some(place), Some(last)) = (places.last_mut(), gradient.last()) {
        place.least = (last.to_f64() * scale).powi(2);
    }
    places
}
