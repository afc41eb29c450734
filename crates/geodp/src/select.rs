//! SUR: selective update and release (DPSUR, Fu et al., VLDB 2024,
//! [arXiv:2311.14056](https://arxiv.org/abs/2311.14056)).
//!
//! After a private step from w to w′, a fresh Poisson batch measures ΔE = J(w′) − J(w), clamped to
//! ±C_v, with noise 2·C_v·σ_v·N(0, 1). The step is accepted if that is below β_v·C_v; otherwise
//! weights and optimiser go back to where they were.
//!
//! The published accounting charges accepted iterations only. It is not sound: the rejected update
//! and its test were computed on the data, and their outcome shows. Here every update and every
//! test is charged; the published figure stands beside, named as such.

use crate::Error;
use crate::plan::refuse;
use crate::step::StepContext;
use geodp_account::Event;
use geodp_mechanism::noise::Coins;
use geodp_mechanism::perturb::release_scalar;
use geodp_mechanism::{Grid, Purpose, RoundedNormal};
use serde::{Deserialize, Serialize};

/// Parameters of the accept/reject test, unchecked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SelectParams {
    /// B_v: expected size of the batch that tests a step.
    pub batch: u64,
    /// C_v: bound of the loss difference.
    pub loss_clip: f64,
    /// σ_v: noise over the sensitivity 2·C_v.
    pub noise_multiplier: f64,
    /// β_v: a step is accepted if the noisy difference is below β_v·C_v.
    pub threshold: f64,
}

impl Default for SelectParams {
    /// The authors' values.
    fn default() -> Self {
        Self { batch: 256, loss_clip: 0.001, noise_multiplier: 1.0, threshold: -1.0 }
    }
}

/// How many steps were accepted and rejected: a release like the weights, and paid for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Steps that were kept.
    pub accepted: u64,
    /// Steps that were taken back.
    pub rejected: u64,
}

/// The test, checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Select {
    params: SelectParams,
    records: u64,
}

impl SelectParams {
    pub(crate) fn check(&self, records: u64) -> Result<Select, Error> {
        if self.batch == 0 || self.batch > records {
            return refuse(format!(
                "select.batch is {}; it must be between 1 and the {records} records",
                self.batch
            ));
        }
        for (name, value) in
            [("loss_clip", self.loss_clip), ("noise_multiplier", self.noise_multiplier)]
        {
            if !(value.is_finite() && value > 0.0) {
                return refuse(format!("select.{name} is {value}; it must be finite and > 0"));
            }
        }
        if !self.threshold.is_finite() {
            return refuse(format!("select.threshold is {}; it must be finite", self.threshold));
        }
        Ok(Select { params: self.clone(), records })
    }
}

impl std::fmt::Display for Select {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let SelectParams { batch, loss_clip, noise_multiplier, threshold } = self.params;
        write!(
            f,
            "a step is kept if its loss difference on {batch} records, within ±{loss_clip} and with \
             noise σ = {noise_multiplier}, is below {threshold}·{loss_clip}"
        )
    }
}

impl Select {
    fn rate(&self) -> f64 {
        self.params.batch as f64 / self.records as f64
    }

    /// What one test costs: a value in ±C_v of a Poisson sample, with noise σ_v times its range.
    pub(crate) fn event(&self) -> Event {
        Event::sampled_gaussian(self.rate(), self.params.noise_multiplier)
    }

    /// Whether the step from the weights of `before` to `after` is kept.
    pub(crate) fn accepts(&self, before: StepContext<'_>, after: &[f32]) -> Result<bool, Error> {
        let StepContext { engine, noise, step, .. } = before;
        let mut batch = Vec::new();
        let mut stream = noise.stream(Purpose::SelectionSampling, step, 0)?;
        Coins::of_rate(self.rate(), self.records as u32).select(&mut stream, &mut batch);
        let loss = |weights| {
            engine.mean_loss(weights, &batch).map_err(|source| before.engine_error(source))
        };
        let placed = self.place(loss(after)? - loss(before.weights)?);
        let law = RoundedNormal::new(self.params.noise_multiplier, Grid::default())?;
        let noisy = release_scalar(placed, law, noise, Purpose::Selection, step, 0)?;
        Ok(self.decides(noisy))
    }

    /// ΔE, held to ±C_v, in units of 2·C_v·2⁻ᴷ: whatever one record changes, it changes by at most 2ᴷ.
    fn place(&self, difference: f64) -> i64 {
        let most = self.params.loss_clip;
        // A loss that is not a number speaks against the step.
        let held = if difference.is_nan() { most } else { difference.clamp(-most, most) };
        Grid::default().place(held, 2.0 * most)
    }

    /// The decision for a noisy difference: whether it is below β_v·C_v.
    fn decides(&self, noisy: i64) -> bool {
        (noisy as f64) < self.params.threshold * (Grid::default().most() / 2) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geodp_mechanism::NoiseSource;

    fn select(noise_multiplier: f64, threshold: f64) -> Select {
        let params = SelectParams { noise_multiplier, threshold, ..SelectParams::default() };
        params.check(1000).unwrap()
    }

    /// ΔE ≤ −C_v is accepted with probability Φ((β_v+1)/2σ_v), ΔE ≥ C_v with Φ((β_v−1)/2σ_v).
    /// 5.5 standard errors: a false alarm in 3e-8 for each.
    #[test]
    fn acceptance_has_its_probabilities() {
        let (draws, mut tests_done) = (200_000, 0);
        let source = NoiseSource::from_seed(5);
        for (sigma, threshold) in [(0.8, -1.0), (1.3, -1.0), (1.0, 0.5)] {
            let select = select(sigma, threshold);
            for (difference, sign) in [(-0.7, 1.0), (0.002, -1.0), (f64::NAN, -1.0)] {
                let law = RoundedNormal::new(sigma, Grid::default()).unwrap();
                let mut noise = vec![0; draws as usize];
                tests_done += 1;
                source
                    .stream(Purpose::Selection, tests_done, 0)
                    .unwrap()
                    .fill_rounded(law, &mut noise);
                let placed = select.place(difference);
                let accepted = noise.iter().filter(|noise| select.decides(placed + **noise));
                let share = accepted.count() as f64 / f64::from(draws);
                let p = normal_cdf((threshold + sign) / (2.0 * sigma));
                let bound = 5.5 * (p * (1.0 - p) / f64::from(draws)).sqrt();
                assert!((share - p).abs() < bound, "{difference}: {share} for {p}");
            }
        }
    }

    /// Φ by Simpson's rule, independent of any library.
    fn normal_cdf(x: f64) -> f64 {
        let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let (from, pieces) = (-12.0, 4000);
        let h = (x - from) / f64::from(pieces);
        let inner = |i: i32| f64::from(2 + 2 * (i % 2)) * density(from + f64::from(i) * h);
        (density(from) + density(x) + (1..pieces).map(inner).sum::<f64>()) * h / 3.0
    }

    #[test]
    fn bad_parameters_are_refused() {
        let bad = |change: fn(&mut SelectParams)| {
            let mut params = SelectParams::default();
            change(&mut params);
            params.check(1000).unwrap_err().to_string()
        };
        assert!(bad(|p| p.batch = 1001).contains("select.batch"));
        assert!(bad(|p| p.loss_clip = 0.0).contains("select.loss_clip"));
        assert!(bad(|p| p.noise_multiplier = f64::NAN).contains("select.noise_multiplier"));
        assert!(bad(|p| p.threshold = f64::INFINITY).contains("select.threshold"));
    }
}
