//! IS: importance sampling of records by their gradients' norms (DPIS, Wei et al., CCS 2022,
//! [arXiv:2210.09634](https://arxiv.org/abs/2210.09634)).
//!
//! With s_i = w(‖g_i‖)·‖g_i‖ ≤ C and K̃ a noisy Σ s_i: candidates join with probability
//! p = B·C/K̃, a candidate is kept with probability s_i/C and contributes (K̃/N)·g_i/‖g_i‖. The sum
//! over B estimates (1/N)·Σ w(‖g_i‖)·g_i without bias for *any* K̃ > 0; every contribution has the
//! length K̃/N ≤ C, so the noise shrinks with the norms.
//!
//! K̃ comes from a Poisson sample at rate B/N, once in `refresh` steps: its error, about σ_K/B,
//! does not matter, and the release costs one sampled Gaussian(B/N, σ_K). K̃ is held to
//! [B·C/p_most, N·C], and every step is charged at p_most: p depends on the data through K̃, and
//! composition by privacy-loss distributions wants its parameters fixed beforehand.

use crate::Error;
use crate::engine::Constant;
use crate::plan::refuse;
use crate::step::{Kept, StepContext, Weighing, Weights};
use geodp_account::Event;
use geodp_mechanism::noise::Coins;
use geodp_mechanism::perturb::release_scalar;
use geodp_mechanism::{Clip, Grid, Purpose, RoundedNormal};
use serde::{Deserialize, Serialize};

/// Chunks of the addresses of [`Purpose::Importance`].
const KEEP: u64 = 0;
const RELEASE_NOISE: u64 = 1;
const RELEASE_SAMPLE: u64 = 2;

/// σ_K where none is given.
pub(crate) const DEFAULT_NOISE_MULTIPLIER: f64 = 20.0;

/// What candidates are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Candidates are kept by the norms of their gradients: IS.
    #[default]
    ByNorm,
    /// All candidates are kept: DP-SGD that computes as many gradients, for comparison.
    All,
}

/// Parameters of importance sampling, unchecked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ImportanceParams {
    /// Which candidates are kept.
    pub keep: Keep,
    /// p_most: the rate candidates are drawn at, at most, and charged at; 1.5·B/N if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_rate: Option<f64>,
    /// σ_K: noise of each release of K over C; 20 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// Steps between releases of K; an epoch if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<u64>,
}

/// Importance sampling, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Importance {
    pub(crate) keep: Keep,
    pub(crate) candidate_rate: f64,
    pub(crate) noise_multiplier: f64,
    pub(crate) refresh: u64,
    records: u64,
    batch: u64,
}

/// Room for a release of K: whose gradients are looked at, and a sum that nobody reads.
pub(crate) struct Scratch<'a> {
    pub(crate) sample: &'a mut Vec<u32>,
    pub(crate) gradient: &'a mut [f32],
}

impl ImportanceParams {
    pub(crate) fn check(
        &self,
        records: u64,
        batch: u64,
        per_epoch: u64,
    ) -> Result<Importance, Error> {
        let rate = batch as f64 / records as f64;
        let candidate_rate = self.candidate_rate.unwrap_or((1.5 * rate).min(1.0));
        if !(candidate_rate >= rate && candidate_rate <= 1.0) {
            return refuse(format!(
                "importance.candidate_rate is {candidate_rate}; it must lie between B/N = {rate:.6} \
                 and 1"
            ));
        }
        let noise_multiplier = self.noise_multiplier.unwrap_or(DEFAULT_NOISE_MULTIPLIER);
        if !(noise_multiplier.is_finite() && noise_multiplier > 0.0) {
            return refuse(format!(
                "importance.noise_multiplier is {noise_multiplier}; it must be finite and > 0"
            ));
        }
        let refresh = self.refresh.unwrap_or(per_epoch);
        if refresh == 0 {
            return refuse("importance.refresh is 0; it must be at least 1 step");
        }
        Ok(Importance {
            keep: self.keep,
            candidate_rate,
            noise_multiplier,
            refresh,
            records,
            batch,
        })
    }
}

impl Importance {
    /// What a release of K costs.
    pub(crate) fn release_event(&self) -> Event {
        Event::sampled_gaussian(self.batch as f64 / self.records as f64, self.noise_multiplier)
    }

    /// Whether K is released anew before `step`.
    pub(crate) fn is_due(&self, step: u64) -> bool {
        step.is_multiple_of(self.refresh)
    }

    /// Draws the candidates of a step into `batch`, with K̃ = `norm_total`.
    pub(crate) fn draw(
        &self,
        rule: &Clip,
        norm_total: f64,
        at: StepContext<'_>,
        batch: &mut Vec<u32>,
    ) -> Result<Weights, Error> {
        let most = rule.sensitivity().get();
        let rate = (self.batch as f64 * most / norm_total).min(self.candidate_rate);
        let mut stream = at.noise.stream(Purpose::Sampling, at.step, 0)?;
        batch.clear();
        Coins::of_rate(rate, self.records as u32).select(&mut stream, batch);
        Ok(match self.keep {
            Keep::ByNorm => {
                let mut stream = at.noise.stream(Purpose::Importance, at.step, KEEP)?;
                let uniforms = batch.iter().map(|_| stream.uniform()).collect();
                let length = norm_total / self.records as f64;
                Weights {
                    by: Weighing::Kept(Kept::new(rule.clone(), length, uniforms)?),
                    denominator: self.batch,
                }
            }
            Keep::All => Weights {
                by: Weighing::Clipped(rule.clone()),
                // A function of K̃, which is released.
                denominator: ((rate * self.records as f64).round() as u64).max(1),
            },
        })
    }

    /// K̃: (Σ s_i over a Poisson sample + σ_K·C·N(0, 1))·N/B, held to its bounds.
    pub(crate) fn release(
        &self,
        rule: &Clip,
        at: StepContext<'_>,
        scratch: Scratch<'_>,
    ) -> Result<f64, Error> {
        let rate = self.batch as f64 / self.records as f64;
        let mut stream = at.noise.stream(Purpose::Importance, at.step, RELEASE_SAMPLE)?;
        scratch.sample.clear();
        Coins::of_rate(rate, self.records as u32).select(&mut stream, scratch.sample);
        let outcome = at
            .engine
            .weighted_sum(at.weights, scratch.sample, &Constant(0.0), scratch.gradient)
            .map_err(|source| at.engine_error(source))?;
        let (grid, most) = (Grid::default(), rule.sensitivity().get());
        // On the grid every s_i is an integer of at most 2ᴷ, so the sum's sensitivity is C exactly.
        let sum: i64 = outcome
            .norms
            .iter()
            .map(|norm| f64::from(*norm))
            .map(|norm| grid.place(rule.weight(norm) * norm, most))
            .sum();
        let law = RoundedNormal::new(self.noise_multiplier, grid)?;
        let purpose = Purpose::Importance;
        let noisy = release_scalar(sum, law, at.noise, purpose, at.step, RELEASE_NOISE)?;
        let total = noisy as f64 * grid.unit(rule.sensitivity()) / rate;
        let floor = self.batch as f64 * most / self.candidate_rate;
        Ok(total.clamp(floor, self.records as f64 * most))
    }
}
