//! What is free in the certified polar mechanism: as a config says it, and settled.

use crate::Error;
use serde::{Deserialize, Serialize};

/// What a config may say; t is settled from δ, the number of steps and ε.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolarSettings {
    /// Share of δ set aside for steps whose radius is not below the private one.
    pub delta_share: f64,
    /// κ: a direction is released only if L ≥ κ·C.
    pub least_radius: f64,
    /// Release m̃·w/‖w‖ (of length m̃) instead of m̃·w/L (unbiased).
    pub normalised: bool,
    /// Take an isotropic step where a/L is expected above this.
    pub most_ratio: f64,
}

impl Default for PolarSettings {
    fn default() -> Self {
        Self { delta_share: 0.01, least_radius: 2.0, normalised: false, most_ratio: 1.2 }
    }
}

impl PolarSettings {
    /// δ₁ of each of `steps` steps, so that all of them add at most the share to δ at ε.
    ///
    /// # Errors
    /// [`Error::Polar`] unless the share is in (0, ½].
    pub fn miss(&self, delta: f64, steps: u64, epsilon: f64) -> Result<f64, Error> {
        if !(self.delta_share > 0.0 && self.delta_share <= 0.5) {
            return Err(Error::Polar { what: "the share of δ", value: self.delta_share });
        }
        // A little less than the share, so that roundings do not exceed it.
        let all = 0.999 * self.delta_share * delta / (1.0 + epsilon.exp());
        Ok((all / steps.max(1) as f64).max(f64::MIN_POSITIVE))
    }

    /// The parameters for this δ₁.
    ///
    /// # Errors
    /// A δ₁ outside (0, ½).
    pub fn params(&self, miss: f64) -> Result<PolarParams, Error> {
        Ok(PolarParams {
            margin: PolarParams::margin_for(miss)?,
            least_radius: self.least_radius,
            normalised: self.normalised,
            most_ratio: self.most_ratio,
        })
    }
}

/// What is free in the mechanism; all of it public.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolarParams {
    /// t: standard deviations of the magnitude's noise between m̃ and the public radius.
    pub margin: f64,
    /// κ: a direction is released only if L ≥ κ·C.
    pub least_radius: f64,
    /// Release m̃·w/‖w‖ (of length m̃) instead of m̃·w/L (unbiased).
    pub normalised: bool,
    /// Take an isotropic step where a/L is expected above this; ∞ for polar steps only.
    pub most_ratio: f64,
}

impl PolarParams {
    /// κ = 2, unbiased, a/L up to 1.2, with the given t.
    pub fn with_margin(margin: f64) -> Self {
        Self { margin, least_radius: 2.0, normalised: false, most_ratio: 1.2 }
    }

    /// δ₁ = Φ(−t): the chance, for each step, that L exceeds √(ab). Rounded up.
    pub fn miss(&self) -> f64 {
        let tail = 0.5 * libm::erfc(self.margin / std::f64::consts::SQRT_2);
        (tail * (1.0 + 1e-12)).max(f64::MIN_POSITIVE)
    }

    /// The t for a given δ₁, rounded up.
    ///
    /// # Errors
    /// [`Error::Negative`] unless 0 < δ₁ < ½.
    pub fn margin_for(miss: f64) -> Result<f64, Error> {
        if !(miss > 0.0 && miss < 0.5) {
            return Err(Error::Negative { what: "the chance of a miss", value: miss });
        }
        let (mut low, mut high) = (0.0, 40.0);
        for _ in 0..80 {
            let middle = 0.5 * (low + high);
            if Self::with_margin(middle).miss() > miss { low = middle } else { high = middle }
        }
        Ok(high)
    }

    pub(super) fn check(self) -> Result<Self, Error> {
        for (what, value, ok) in [
            ("the margin t", self.margin, self.margin > 0.0 && self.margin.is_finite()),
            ("the least radius κ", self.least_radius, self.least_radius > 0.0),
            ("the largest ratio a/L", self.most_ratio, self.most_ratio > 1.0),
        ] {
            if !ok {
                return Err(Error::Polar { what, value });
            }
        }
        Ok(self)
    }
}
