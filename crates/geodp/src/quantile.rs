//! Adaptive clipping: C follows a quantile of the norms (Andrew et al. 2021,
//! [arXiv:1905.03871](https://arxiv.org/abs/1905.03871)), and what that tells is paid for.
//!
//! Each contribution i of a round also votes v_i = 1 if ‖Δ_i‖ ≤ C, else −1; what did not come does not
//! vote. With b̃ = (Σ v_i + σ_v·N(0, 1))/2B + 1/2, the noisy share of votes for "shorter",
//! C ← C·exp(−r·(b̃ − quantile)): a function of a release, so C is public.
//!
//! Sum and votes are of the same cohort, with independent noise. In units of their noise a contribution
//! moves the pair by at most √(1/σ_s² + 1/σ_v²). The sum's σ_s = 1/√(1/σ² − 1/σ_v²) makes that 1/σ: both
//! together are one Gaussian of the plan's σ, and the ledger's events, the calibration and the limit are
//! those of a fixed C. Certified GeoDP is a Gaussian of σ_s but for its misses, and GeoDP's two releases
//! of σ_s each leave more room than is needed. On integers as everything else: votes are whole numbers.

use crate::Error;
use crate::plan::refuse;
use crate::step::StepContext;
use geodp_mechanism::perturb::release_scalar;
use geodp_mechanism::{Grid, Purpose, RoundedNormal};
use serde::{Deserialize, Serialize};

/// How C follows a quantile; unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuantileParams {
    /// The share of contributions that C should leave as they are.
    pub quantile: f64,
    /// r: how fast C moves.
    pub rate: f64,
    /// σ_v, the noise of the votes; the larger of B/10 and 4σ if absent, which costs the sum at most
    /// 3.3 % more noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
}

impl Default for QuantileParams {
    /// The median, at the paper's rate.
    fn default() -> Self {
        Self { quantile: 0.5, rate: 0.2, noise_multiplier: None }
    }
}

/// How C follows a quantile; checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantile {
    params: QuantileParams,
    batch: u64,
    /// C at the start; it stays within a factor of [`RANGE`] of it.
    start: f64,
}

/// C moves by at most this factor from where it started: the grid's unit stays an ordinary number.
const RANGE: f64 = (1_u64 << 20) as f64;
/// A little more than the roundings of σ_s.
const ROUNDING: f64 = 1.0 + 8.0 * f64::EPSILON;

impl QuantileParams {
    /// For a plan of this σ, B and first C.
    pub(crate) fn check(&self, sigma: f64, batch: u64, start: f64) -> Result<Quantile, Error> {
        for (name, value, range) in [
            ("quantile", self.quantile, "between 0 and 1"),
            ("rate", self.rate, "above 0 and at most 1"),
        ] {
            if !(value > 0.0 && (value < 1.0 || name == "rate" && value == 1.0)) {
                return refuse(format!("quantile.{name} is {value}; it must be {range}"));
            }
        }
        let quantile = Quantile { params: self.clone(), batch, start };
        let votes = quantile.votes_multiplier(sigma);
        if !(votes.is_finite() && votes > sigma) {
            return refuse(format!(
                "quantile.noise_multiplier is {votes}; it must be above σ = {sigma}, or the votes \
                 alone cost more than the whole round may"
            ));
        }
        RoundedNormal::new(votes, Grid::default())?;
        Ok(quantile)
    }
}

impl Quantile {
    /// σ_v.
    fn votes_multiplier(&self, sigma: f64) -> f64 {
        let usual = (self.batch as f64 / 10.0).max(4.0 * sigma);
        self.params.noise_multiplier.unwrap_or(usual)
    }

    /// σ_s: what is left of σ for the sum, beside the votes.
    pub(crate) fn sum_multiplier(&self, sigma: f64) -> f64 {
        let ratio = sigma / self.votes_multiplier(sigma);
        sigma / ((1.0 - ratio) * (1.0 + ratio)).sqrt() * ROUNDING
    }

    /// The C of the next step, when contributions of these norms were clipped at `clip_norm`.
    pub(crate) fn next(
        &self,
        sigma: f64,
        clip_norm: f64,
        norms: &[f32],
        at: StepContext<'_>,
    ) -> Result<f64, Error> {
        let (grid, votes) = (Grid::default(), self.votes_multiplier(sigma));
        // Whoever's norm is not a number contributes nothing, and may vote all the same.
        let vote = |norm: &f32| if f64::from(*norm) <= clip_norm { 1 } else { -1 };
        let sum = grid.most() * norms.iter().map(vote).sum::<i64>();
        let law = RoundedNormal::new(votes, grid)?;
        let noisy = release_scalar(sum, law, at.noise, Purpose::Quantile, at.step, 0)?;
        let share = 0.5 + noisy as f64 / (2.0 * self.batch as f64 * grid.most() as f64);
        let moved = clip_norm * exp(-self.params.rate * (share - self.params.quantile));
        Ok(moved.clamp(self.start / RANGE, self.start * RANGE))
    }

    /// For a plan's table.
    pub(crate) fn text(&self, sigma: f64) -> String {
        let (QuantileParams { quantile, rate, .. }, votes) =
            (&self.params, self.votes_multiplier(sigma));
        format!(
            "C follows the {quantile} quantile of the norms from {}, at rate {rate}; votes with \
             σ = {votes:.4} and the sum with σ = {:.4} are together one release of σ = {sigma:.4}",
            self.start,
            self.sum_multiplier(sigma)
        )
    }
}

/// eˣ for x held to [−1, 1], by plain arithmetic: the same bits on every machine.
fn exp(x: f64) -> f64 {
    let x = x.clamp(-1.0, 1.0);
    (1..=20).rev().fold(1.0, |sum, n| 1.0 + sum * x / f64::from(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_right() {
        for x in (-100..=100).map(|x| f64::from(x) / 100.0) {
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-15, "{x}");
        }
        assert_eq!((exp(7.0), exp(-7.0)), (exp(1.0), exp(-1.0)));
    }

    /// 1/σ_s² + 1/σ_v² ≤ 1/σ², and no more is wasted than roundings need.
    #[test]
    fn sum_and_votes_together_are_one_release_of_sigma() {
        for sigma in [0.3, 0.8, 1.0, 3.7, 50.0] {
            for given in [None, Some(1.0001 * sigma), Some(9.0 * sigma), Some(60.0 * sigma)] {
                let params = QuantileParams { noise_multiplier: given, ..Default::default() };
                let quantile = params.check(sigma, 100, 0.5).unwrap();
                let (sum, votes) =
                    (quantile.sum_multiplier(sigma), quantile.votes_multiplier(sigma));
                let together = (sum.powi(-2) + votes.powi(-2)).sqrt() * sigma;
                assert!(together <= 1.0 && together > 1.0 - 1e-11, "{sigma} {given:?}: {together}");
            }
        }
    }

    #[test]
    fn bad_parameters_are_refused() {
        let bad = |change: fn(&mut QuantileParams)| {
            let mut params = QuantileParams::default();
            change(&mut params);
            params.check(1.0, 100, 0.5).unwrap_err().to_string()
        };
        assert!(bad(|p| p.quantile = 1.0).contains("quantile.quantile"));
        assert!(bad(|p| p.quantile = f64::NAN).contains("quantile.quantile"));
        assert!(bad(|p| p.rate = 0.0).contains("quantile.rate"));
        assert!(bad(|p| p.rate = 1.5).contains("quantile.rate"));
        assert!(bad(|p| p.noise_multiplier = Some(1.0)).contains("above σ"));
        assert!(bad(|p| p.noise_multiplier = Some(f64::INFINITY)).contains("above σ"));
    }
}
