//! Exact arithmetic of a noisy sum: an integer grid, and a Gaussian rounded to it.
//!
//! Sums are integers in units of γ = C·2⁻ᴷ; a record's integer vector has norm ≤ 2ᴷ, so sums are
//! exact and the sensitivity is C in the machine's own arithmetic. The release is
//! n + round(σ·2ᴷ·Z) with Z standard normal. Since n is an integer vector, that is
//! round(n + σ·2ᴷ·Z): the Gaussian mechanism followed by rounding, which is post-processing. So the
//! theorem about the Gaussian mechanism is about the bits released.
//!
//! Z is a *real* normal, of which only as many random bits are looked at as the rounding needs.
//! f64 decides it with a proved error interval (`kernels/rounded.rs`); where that interval holds a
//! half-integer, more bits of the same uniforms are drawn and the decision is made in 256-bit
//! integers (`refine.rs`), about one draw in 10⁵. Nothing is cut off the tail. What even that does
//! not decide has probability [`LEFT_OVER_PER_DRAW`].
//!
//! The idea of refining on demand: Haney et al. 2022
//! ([arXiv:2207.13793](https://arxiv.org/abs/2207.13793)); why it is needed: Mironov 2012.

pub(crate) mod fixed;
mod refine;
#[cfg(test)]
mod tests;

use crate::Error;
use crate::clip::Sensitivity;
use crate::kernels::rounded;
pub(crate) use refine::{Uniform, round_pair};

/// τ: the probability that one draw is not the rounded real normal. With m draws the released
/// vector is within m·τ of the ideal one in total variation, which adds (1 + e^ε)·m·τ to δ.
pub const LEFT_OVER_PER_DRAW: f64 = 1.0 / (1_u128 << 127) as f64 / 2.0;

/// What `draws` rounded normals add to δ at ε: (1 + e^ε)·draws·τ, rounded up.
pub fn left_over_delta(draws: f64, epsilon: f64) -> f64 {
    const ROUNDING: f64 = 1.0 + 8.0 * f64::EPSILON;
    draws * LEFT_OVER_PER_DRAW * (1.0 + epsilon.exp()) * ROUNDING
}

/// The grid of a sum: units of C·2⁻ᴷ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    bits: u32,
}

impl Default for Grid {
    /// K = 26: sums of 2²⁴ records fit, and truncation moves a gradient of 10⁶ coordinates by less
    /// than C·2⁻¹⁶.
    fn default() -> Self {
        Self { bits: 26 }
    }
}

impl Grid {
    /// The coarsest and the finest K.
    pub const RANGE: std::ops::RangeInclusive<u32> = 8..=36;

    /// Units of C·2⁻ᴷ, K = `bits`.
    ///
    /// # Errors
    /// [`Error::Grid`] outside [`RANGE`](Self::RANGE).
    pub fn new(bits: u32) -> Result<Self, Error> {
        if Self::RANGE.contains(&bits) { Ok(Self { bits }) } else { Err(Error::Grid(bits)) }
    }

    /// K.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// 2ᴷ: the largest norm of a record's integer vector.
    pub fn most(self) -> i64 {
        1 << self.bits
    }

    /// γ = C·2⁻ᴷ: what one unit is worth. Exact.
    pub fn unit(self, sensitivity: Sensitivity) -> f64 {
        sensitivity.get() / self.most() as f64
    }

    /// A number in [−`bound`, `bound`] in units of `bound`·2⁻ᴷ, truncated toward zero; what is
    /// outside is held to the bound, and NaN is 0. For sums of one coordinate.
    ///
    /// # Guarantee
    /// The size of the result is at most 2ᴷ.
    pub fn place(self, value: f64, bound: f64) -> i64 {
        ((value / bound) * self.most() as f64).clamp(-(self.most() as f64), self.most() as f64)
            as i64
    }
}

/// round(σ·2ᴷ·Z), the noise of one coordinate on the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoundedNormal {
    /// S = σ·2ᴷ, or 0.
    scale: f64,
    /// Half the width of the interval in which S·Z is known to lie.
    margin: f64,
}

impl RoundedNormal {
    /// Noise multiplier σ on a grid: σ = 0 for no noise, else σ·2ᴷ in [1, 2⁴⁰].
    ///
    /// # Errors
    /// [`Error::NoiseMultiplier`]; [`Error::NoiseOffGrid`] if the grid is too coarse or too fine.
    pub fn new(noise_multiplier: f64, grid: Grid) -> Result<Self, Error> {
        let noise_multiplier = crate::perturb::check_noise_multiplier(noise_multiplier)?;
        let scale = noise_multiplier * grid.most() as f64;
        if scale != 0.0 && !(1.0..=rounded::LARGEST_SCALE).contains(&scale) {
            return Err(Error::NoiseOffGrid { noise_multiplier, bits: grid.bits() });
        }
        Ok(Self { scale, margin: scale * rounded::ERROR })
    }

    /// S = σ·2ᴷ: the standard deviation in units of the grid, before rounding.
    pub fn scale(self) -> f64 {
        self.scale
    }

    pub(crate) fn margin(self) -> f64 {
        self.margin
    }

    /// Makes every draw a suspect: the whole noise comes from the refinement.
    #[cfg(test)]
    pub(crate) fn always_refined(self) -> Self {
        Self { margin: 0.5, ..self }
    }
}
