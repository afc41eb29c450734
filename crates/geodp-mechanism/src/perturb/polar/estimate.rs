//! What earlier releases say about the magnitude: the public state behind the choice of a step's kind.
//!
//! A polar step costs the direction a factor a/L in noise, L ≈ a − C(tσ + 1). Late in training a is
//! small and the factor large; an isotropic step is better then. Both are the same event, and the
//! choice is a function of releases, so it costs nothing. a²/C² is followed by what is unbiased for
//! it: m̃²/C² − σ² of polar steps, ‖release·B/C‖² − d·σ² of isotropic ones. Each counts as much as its
//! variance deserves beside what is known, with a² free to change by a fifth a step (a scalar Kalman
//! filter), and at least a tenth. So a precise magnitude counts at once, and a single isotropic
//! release in high dimension says little. a is taken two standard deviations low.

use super::{PolarRelease, StepKind};
use serde::{Deserialize, Serialize};

/// Least weight of the newest step.
const LEAST_WEIGHT: f64 = 0.1;
/// How much of itself a² may change in a step: one standard deviation.
const DRIFT: f64 = 0.2;
/// Standard deviations by which the estimate is lowered before it is trusted.
const CAUTION: f64 = 2.0;

/// Steps of each kind so far. Public.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolarCounts {
    /// Steps that released a magnitude and a direction.
    pub polar: u64,
    /// Steps with isotropic noise.
    pub isotropic: u64,
    /// Steps that released a magnitude alone and moved nothing.
    pub directionless: u64,
}

/// How the steps of a training went. Public.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PolarSummary {
    /// Steps of each kind.
    #[serde(flatten)]
    pub counts: PolarCounts,
    /// Mean m̃/L of the polar steps, by which their direction has more noise than DP's; `None`
    /// before the first.
    #[serde(default)]
    pub mean_ratio: Option<f64>,
}

impl std::fmt::Display for PolarSummary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PolarCounts { polar, isotropic, directionless } = self.counts;
        write!(f, "{polar} polar, {isotropic} isotropic, {directionless} without direction")?;
        self.mean_ratio.map_or(Ok(()), |ratio| write!(f, ", mean a/L {ratio:.3}"))
    }
}

/// The running estimate of a²/C². Made of releases only; a checkpoint keeps it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PolarState {
    /// a²/C² as followed; nothing before the first step.
    pub squared_norm: Option<f64>,
    /// Variance of that.
    pub variance: f64,
    /// Steps of each kind.
    pub counts: PolarCounts,
    /// Σ m̃/L over the polar steps.
    pub ratio_total: f64,
}

impl PolarState {
    /// How the steps went so far.
    pub fn summary(&self) -> PolarSummary {
        let polar = self.counts.polar;
        let mean_ratio = (polar > 0).then(|| self.ratio_total / polar as f64);
        PolarSummary { counts: self.counts, mean_ratio }
    }

    /// a/C as far as releases tell, lowered by its uncertainty.
    pub fn cautious_norm(&self) -> f64 {
        let squared = self.squared_norm.unwrap_or(0.0) - CAUTION * self.variance.sqrt();
        squared.max(0.0).sqrt()
    }

    /// Whether a/L = a/(a − loss) is expected to be at most `most_ratio`; `loss` in units of C.
    pub(super) fn expects_ratio_below(&self, most_ratio: f64, loss: f64) -> bool {
        if most_ratio == f64::INFINITY {
            return true;
        }
        self.squared_norm.is_some() && self.cautious_norm() * (1.0 - 1.0 / most_ratio) >= loss
    }

    /// A polar step released m̃ = `magnitude`·C.
    pub(super) fn saw_magnitude(&mut self, magnitude: f64, noise_multiplier: f64) {
        let noise = noise_multiplier * noise_multiplier;
        let squared = magnitude * magnitude - noise;
        self.learn(squared, noise * (4.0 * squared.max(0.0) + 2.0 * noise));
    }

    /// An isotropic step released a vector with this ‖release·B/C‖².
    pub(super) fn saw_vector(&mut self, squares: f64, dim: usize, noise_multiplier: f64) {
        let noise = noise_multiplier * noise_multiplier;
        let squared = squares - dim as f64 * noise;
        self.learn(squared, noise * (4.0 * squared.max(0.0) + 2.0 * dim as f64 * noise));
    }

    fn learn(&mut self, squared: f64, variance: f64) {
        let Some(before) = self.squared_norm else {
            (self.squared_norm, self.variance) = (Some(squared), variance);
            return;
        };
        let expected = self.variance + (DRIFT * before.max(0.0)).powi(2);
        let weight = (expected / (expected + variance)).max(LEAST_WEIGHT);
        self.squared_norm = Some(before + weight * (squared - before));
        self.variance = (1.0 - weight).powi(2) * expected + weight * weight * variance;
    }

    pub(super) fn count(&mut self, release: &PolarRelease) {
        match release.kind {
            StepKind::Polar => self.counts.polar += 1,
            StepKind::Isotropic => self.counts.isotropic += 1,
            StepKind::Directionless => self.counts.directionless += 1,
        }
        if let (Some(magnitude), Some(radius)) = (release.magnitude, release.radius) {
            self.ratio_total += magnitude / radius;
        }
    }
}
