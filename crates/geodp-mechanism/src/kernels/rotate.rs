//! One chunk of the fast GeoDP route: angles are turned without ever being formed.
//!
//! With suffix norms r_z = √(Σ_{i ≥ z} g_i²): cos θ_z = g_z / r_z and sin θ_z = r_{z+1} / r_z
//! (the last angle's sine is signed: g_d / r_{d−1}). For noise n_z the addition theorems give
//! cos(θ_z + n_z) and sin(θ_z + n_z), and coordinate z of the turned unit vector is
//! cos(θ_z + n_z) · Π_{i < z} sin(θ_i + n_i). Sums and products are scans over the chunk; what
//! lies before and after it enters as one number each. Zero tails: cos = 1, sin = 0.

use super::scan::{self, CHAINS};
use super::{elementary, multiversion};

/// Coordinates in one chunk: the unit of work, of noise addresses, and of the scans.
pub(crate) const CHUNK: usize = 1024;

/// The arrays of one chunk; reused from chunk to chunk. Only the first `len` entries count, and
/// a length that is not a multiple of [`CHAINS`] is padded.
pub(crate) struct Work {
    /// In: coordinates, scaled so that squares neither overflow nor vanish. f64.
    pub(crate) gradient: [f64; CHUNK],
    /// In: noise on each angle, in radians.
    pub(crate) noise: [f64; CHUNK],
    /// Out: the turned chunk, but for the sines before it.
    pub(crate) turned: [f64; CHUNK],
    radii: [f64; CHUNK + 1],
    sines: [f64; CHUNK],
}

impl Work {
    pub(crate) fn new() -> Box<Self> {
        let zeros = [0.0; CHUNK];
        Box::new(Self {
            gradient: zeros,
            noise: zeros,
            turned: zeros,
            radii: [0.0; CHUNK + 1],
            sines: zeros,
        })
    }
}

/// What lies behind a chunk.
#[derive(Clone, Copy)]
pub(crate) enum Tail {
    /// Coordinates follow: the sum of their squares, and the radius that the chunk's last sine is
    /// made of (the norm of what follows, or the last coordinate itself, signed, if only that
    /// follows).
    Follows { squares: f64, radius: f64 },
    /// The chunk ends with the gradient's last coordinate.
    End,
}

multiversion!(
    /// Turns the chunk in `work` by its noise, leaves it in `work.turned` and returns the product
    /// of its sines. Noise must be within [`elementary::MAX_REDUCED_RADIANS`].
    turn_chunk = turn_chunk_source; (work: &mut Work, len: usize, tail: Tail) -> f64
);

multiversion!(
    /// Σ of squares of a slice, by eight chains.
    sum_of_squares = sum_of_squares_source; (values: &[f64]) -> f64
);

#[inline(always)]
pub(super) fn sum_of_squares_source(values: &[f64]) -> f64 {
    sum_of_squares_by(values, |x| x)
}

/// Σ of squares of what `float` makes of each value, by eight chains.
#[inline(always)]
pub(super) fn sum_of_squares_by<T: Copy>(values: &[T], float: impl Fn(T) -> f64) -> f64 {
    let mut lanes = [0.0; 8];
    let (blocks, rest) = values.as_chunks::<8>();
    for block in blocks {
        for (lane, value) in lanes.iter_mut().zip(block) {
            let x = float(*value);
            *lane = f64::mul_add(x, x, *lane);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        let x = float(*value);
        *lane = f64::mul_add(x, x, *lane);
    }
    lanes.iter().sum()
}

#[inline(always)]
fn turn_chunk_source(work: &mut Work, len: usize, tail: Tail) -> f64 {
    let padded = len.next_multiple_of(CHAINS).min(CHUNK);
    work.gradient[len..padded].fill(0.0);
    work.noise[len..padded].fill(0.0);
    fill_radii(work, len, padded, tail);

    let radii_after = &work.radii[1..=padded];
    let arrays = work.gradient[..padded].iter().zip(&work.noise).zip(&work.radii).zip(radii_after);
    let outputs = work.turned.iter_mut().zip(work.sines.iter_mut());
    for ((((g, n), r), r_after), (turned, sine)) in arrays.zip(outputs) {
        let empty = *r <= 0.0;
        let inverse = if empty { 0.0 } else { 1.0 / r };
        let cos = if empty { 1.0 } else { g * inverse };
        let sin = r_after * inverse;
        let (sin_n, cos_n) = elementary::sin_cos_radians(*n);
        *turned = f64::mul_add(cos, cos_n, -(sin * sin_n));
        *sine = f64::mul_add(sin, cos_n, cos * sin_n);
    }
    if matches!(tail, Tail::End) {
        // Coordinate d has no angle of its own: it is the product of all sines.
        work.turned[len - 1] = 1.0;
        work.sines[len - 1..padded].fill(1.0);
    }

    let totals = scan::prefix_products(&work.sines[..padded], &mut work.turned[..padded]);
    let mut before = 1.0;
    let segment = padded / CHAINS;
    for (chain, total) in totals.iter().enumerate() {
        for value in &mut work.turned[chain * segment..(chain + 1) * segment] {
            *value *= before;
        }
        before *= total;
    }
    before
}

/// Suffix norms of the chunk, and of what follows it in `radii[len]`.
#[inline(always)]
fn fill_radii(work: &mut Work, len: usize, padded: usize, tail: Tail) {
    let totals = scan::suffix_squares(&work.gradient[..padded], &mut work.radii[..padded]);
    let segment = padded / CHAINS;
    let mut after = match tail {
        Tail::Follows { squares, .. } => squares,
        Tail::End => 0.0,
    };
    for (chain, total) in totals.iter().enumerate().rev() {
        for radius in &mut work.radii[chain * segment..(chain + 1) * segment] {
            *radius = (*radius + after).sqrt();
        }
        after += total;
    }
    match tail {
        Tail::Follows { radius, .. } => work.radii[len] = radius,
        // The last coordinate takes the place of its norm: this signs the last angle's sine.
        Tail::End => work.radii[len - 1] = work.gradient[len - 1],
    }
}
