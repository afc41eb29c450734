//! The privacy each record really paid: how far it moved what was released, against the noise.
//!
//! A step that used record j releases a Gaussian whose centre it moved by μ_j standard deviations:
//! DP μ_j = ‖c_j‖/(Cσ); GeoDP μ_j² = (Δθ/s_θ)² + (Δm/s_m)², Δθ and Δm the movement of the mean's
//! angles and magnitude when j is left out, s_θ = √(d+2)·β·π·σ/B, s_m = Cσ/B. Over a run:
//!
//! | reading | amounts to | says |
//! |---|---|---|
//! | without amplification | Gaussian with μ² = Σ μ_j² over the steps that used j | against one who knows which batches were drawn |
//! | with amplification | sampled Gaussian(q, 1/μ_rms), T times | before they are drawn |
//!
//! All of it is measured on the records: for the data's owner, not for release.

mod summary;

pub use summary::{
    NOTICE, Quantiles, RecordLossSummary, RunFacts, gaussian_epsilon, sampled_epsilon,
};

use geodp_mechanism::Movement;
use serde::{Deserialize, Serialize};

/// What the noise of a step is, and what it was scaled for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepNoise {
    /// C·σ/B: std of the noise on a coordinate (DP) or on the magnitude (GeoDP).
    pub magnitude_std: f64,
    /// C/B: the largest movement of the magnitude.
    pub magnitude_bound: f64,
    /// GeoDP only.
    pub angles: Option<AngleNoise>,
}

/// GeoDP's noise on angles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AngleNoise {
    /// √(d+2)·β·π·σ/B.
    pub std: f64,
    /// √(d+2)·β·π/B: the movement GeoDP assumes no record exceeds.
    pub assumed: f64,
}

/// What one record did to one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepEffect {
    /// ‖w_j·g_j‖/B: the length of its contribution to the mean.
    pub contribution: f64,
    /// How far leaving it out moves magnitude and angles.
    pub movement: Movement,
}

impl StepNoise {
    /// μ_j².
    pub fn mu_squared(&self, effect: &StepEffect) -> f64 {
        match self.angles {
            None => (effect.contribution / self.magnitude_std).powi(2),
            Some(angles) => {
                (effect.movement.direction / angles.std).powi(2)
                    + (effect.movement.magnitude / self.magnitude_std).powi(2)
            }
        }
    }

    /// Whether the record moved no further than the noise was scaled for.
    fn covers(&self, effect: &StepEffect) -> bool {
        // Sums are f32: a contribution of exactly C may measure a little more.
        let bound = self.magnitude_bound * (1.0 + 1e-5);
        match self.angles {
            None => effect.contribution <= bound,
            Some(angles) => {
                effect.movement.magnitude <= bound && effect.movement.direction <= angles.assumed
            }
        }
    }
}

/// What is kept of one record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordTotals {
    /// Which record.
    pub record: u32,
    /// Σ μ² over the steps measured.
    pub mu_squared: f64,
    /// Steps that used it.
    pub used: u64,
    /// Of these, steps that were measured.
    pub measured: u64,
    /// Of these, steps in which it moved further than assumed.
    pub outside: u64,
    /// Largest movement of the angles, in units of √(d+2)·π/B: the β that would have covered it.
    pub beta_needed: f64,
}

impl RecordTotals {
    /// Root mean square of μ over the steps measured; `None` if there were none.
    pub fn mu_rms(&self) -> Option<f64> {
        (self.measured > 0).then(|| (self.mu_squared / self.measured as f64).sqrt())
    }

    /// √(Σ μ²) over all steps that used it, unmeasured ones taken at the mean of the measured.
    pub fn mu_total(&self) -> Option<f64> {
        self.mu_rms().map(|rms| rms * (self.used as f64).sqrt())
    }
}

/// Running totals of some records over a run. Serialises whole, for a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordLoss {
    /// Totals, in ascending order of records.
    totals: Vec<RecordTotals>,
    /// Steps seen, whether or not they used any of the records.
    steps: u64,
}

impl RecordLoss {
    /// Of these records; repeated ones count once.
    pub fn new(records: impl IntoIterator<Item = u32>) -> Self {
        let mut records: Vec<u32> = records.into_iter().collect();
        records.sort_unstable();
        records.dedup();
        let totals =
            records.into_iter().map(|record| RecordTotals { record, ..Default::default() });
        Self { totals: totals.collect(), steps: 0 }
    }

    /// Totals, in ascending order of records.
    pub fn totals(&self) -> &[RecordTotals] {
        &self.totals
    }

    /// Steps seen.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts a step.
    pub fn add_step(&mut self) {
        self.steps += 1;
    }

    /// The place of a record among the totals, if it is one of those followed.
    pub fn place(&self, record: u32) -> Option<usize> {
        self.totals.binary_search_by_key(&record, |t| t.record).ok()
    }

    /// The record at `place` took part in a step that was not measured.
    pub fn add_use(&mut self, place: usize) {
        self.totals[place].used += 1;
    }

    /// The record at `place` took part in a step and was measured; `beta_unit` is √(d+2)·π/B.
    pub fn add(&mut self, place: usize, noise: &StepNoise, effect: &StepEffect, beta_unit: f64) {
        let totals = &mut self.totals[place];
        totals.used += 1;
        totals.measured += 1;
        totals.mu_squared += noise.mu_squared(effect);
        totals.outside += u64::from(!noise.covers(effect));
        totals.beta_needed = totals.beta_needed.max(effect.movement.direction / beta_unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geodp_account::{Accountant, Adjacency, Event, PldAccountant};

    fn dp(sigma: f64) -> StepNoise {
        StepNoise { magnitude_std: 0.1 * sigma / 10.0, magnitude_bound: 0.01, angles: None }
    }

    fn effect(contribution: f64, direction: f64) -> StepEffect {
        let movement = Movement { magnitude: contribution, direction };
        StepEffect { contribution, movement }
    }

    /// A record of full length in every step of DP-SGD pays exactly what is certified.
    #[test]
    fn the_worst_record_of_dp_pays_the_certified_epsilon() {
        let (sigma, steps, q, delta) = (1.3, 400, 0.05, 1e-5);
        let mut loss = RecordLoss::new([7, 3, 3]);
        assert_eq!(loss.totals().iter().map(|t| t.record).collect::<Vec<_>>(), [3, 7]);
        let (full, half) = (loss.place(7).unwrap(), loss.place(3).unwrap());
        for step in 0..steps {
            loss.add_step();
            if step % 20 == 0 {
                loss.add(full, &dp(sigma), &effect(0.01, 0.2), 1.0);
                loss.add(half, &dp(sigma), &effect(0.005, 0.1), 1.0);
            }
        }
        let facts = RunFacts { delta, sample_rate: Some(q), beta: None };
        let summary = loss.summary(&facts).unwrap().unwrap();
        let event = |event: Event, count| {
            let mut accountant = PldAccountant::new(Adjacency::AddRemove);
            accountant.compose(&event, count).unwrap();
            accountant.epsilon(delta).unwrap().upper
        };
        let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-3, "{a} {b}");
        let with = summary.with_amplification.unwrap();
        close(with.largest, event(Event::sampled_gaussian(q, sigma), 400));
        close(with.median, event(Event::sampled_gaussian(q, 2.0 * sigma), 400));
        close(summary.without_amplification.largest, event(Event::gaussian(sigma), 20));
        assert_eq!((summary.records, summary.measurements), (2, 40));
        assert_eq!(summary.share_of_records_inside, 1.0);
        assert_eq!(summary.beta_safe, None, "DP has no β");
        assert!((loss.beta_needed() - 0.2).abs() < 1e-12);
        assert!(!summary.claim().to_string().contains('β'), "{}", summary.claim());
        assert_eq!(summary.claim().epsilon_largest, with.largest);
    }

    /// GeoDP at its assumed bounds pays what is conditional: σ/√2.
    #[test]
    fn geodp_at_its_bounds_pays_the_conditional_epsilon() {
        let sigma = 2.0;
        let angles = Some(AngleNoise { std: 0.3 * sigma, assumed: 0.3 });
        let noise = StepNoise { magnitude_std: 0.01 * sigma, magnitude_bound: 0.01, angles };
        let at_bounds = effect(0.01, 0.3);
        assert!((noise.mu_squared(&at_bounds) - 2.0 / (sigma * sigma)).abs() < 1e-12);
        let mut loss = RecordLoss::new([0, 1, 2]);
        loss.add(0, &noise, &at_bounds, 3.0);
        loss.add(1, &noise, &effect(0.01, 0.9), 3.0);
        let facts = RunFacts { delta: 1e-5, sample_rate: None, beta: Some(0.1) };
        let summary = loss.summary(&facts).unwrap().unwrap();
        // Record 2 was never measured and does not count.
        assert_eq!((summary.records, summary.share_of_records_inside), (2, 0.5));
        assert!((summary.beta_safe.unwrap() - 0.3).abs() < 1e-12);
        assert!(summary.claim().to_string().contains("β = 0.3000"), "{}", summary.claim());
        assert_eq!(summary.with_amplification, None);
        let worst = gaussian_epsilon((9.0 + 1.0f64).sqrt() / sigma, 1e-5).unwrap();
        assert!((summary.without_amplification.largest / worst - 1.0).abs() < 1e-9);
    }

    #[test]
    fn unmeasured_uses_count_at_the_mean_of_the_measured() {
        let mut loss = RecordLoss::new([5]);
        loss.add(0, &dp(1.0), &effect(0.01, 0.0), 1.0);
        loss.add_use(0);
        loss.add_use(0);
        loss.add(0, &dp(1.0), &effect(0.01, 0.0), 1.0);
        let totals = loss.totals()[0];
        assert!((totals.mu_rms().unwrap() - 1.0).abs() < 1e-9);
        assert!((totals.mu_total().unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(
            RecordLoss::new([5])
                .summary(&RunFacts { delta: 1e-5, sample_rate: None, beta: None })
                .unwrap(),
            None
        );
    }

    #[test]
    fn state_comes_back_bit_for_bit() {
        let mut loss = RecordLoss::new([1, 9]);
        loss.add_step();
        loss.add(1, &dp(0.7), &effect(0.003, 1.0 / 3.0), 0.1);
        let text = serde_json::to_string(&loss).unwrap();
        assert_eq!(serde_json::from_str::<RecordLoss>(&text).unwrap(), loss);
    }

    #[test]
    fn a_record_that_moves_nothing_pays_nothing() {
        assert_eq!(gaussian_epsilon(0.0, 1e-5).unwrap(), 0.0);
        assert_eq!(sampled_epsilon(0.0, 0.1, 10, 1e-5).unwrap(), 0.0);
        assert!(gaussian_epsilon(f64::NAN, 1e-5).is_err());
        assert!(gaussian_epsilon(1.0, 0.0).is_err());
    }
}
