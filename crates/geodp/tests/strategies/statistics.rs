//! What cannot be compared number by number: chances, biases, spreads.

use super::{Points, STANDARD_ERRORS, norm, params};
use geodp::Error;
use geodp::engine::Engine;
use geodp::importance::{ImportanceParams, Keep};
use geodp::params::{Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::select::SelectParams;
use geodp::trainer::Trainer;
use geodp::watch::{Silent, StepView, Watch};
use geodp_mechanism::NoiseSource;

/// What every step had before its noise.
#[derive(Default)]
struct Notes {
    kept: Vec<Vec<u32>>,
    means: Vec<Vec<f64>>,
    /// Sensitivity over denominator: the noise's std over σ.
    scales: Vec<f64>,
    candidates: Vec<usize>,
}

impl Watch for Notes {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), Error> {
        let mut kept = Vec::new();
        let mut gradient = vec![0.0; view.weights.len()];
        for (place, record) in view.batch.iter().enumerate() {
            view.engine.gradient_sum(view.weights, &[*record], &mut gradient).unwrap();
            let norm = norm(&gradient.iter().map(|g| f64::from(*g)).collect::<Vec<_>>());
            let weight = view.weight_of.weight(place, norm);
            assert!(weight * norm <= view.sensitivity * (1.0 + 1e-6), "{weight}·{norm}");
            kept.extend((weight > 0.0).then_some(*record));
        }
        self.kept.push(kept);
        self.means.push(view.mean.iter().map(|g| f64::from(*g)).collect());
        self.scales.push(view.sensitivity / view.denominator as f64);
        self.candidates.push(view.batch.len());
        Ok(())
    }
}

/// Runs with a learning rate so small that the weights stay at 0, and η·release is still exact
/// enough to be read off them.
fn run(
    points: &Points,
    params: &PlanParams,
) -> (Notes, Vec<Vec<f64>>, Option<geodp::select::Selection>) {
    let facts = points.facts();
    let plan = params.check(facts).unwrap();
    let rate = params.train.learning_rate.unwrap();
    let start = vec![0.0; points.facts().dim];
    let mut trainer = Trainer::new(plan, points, start, NoiseSource::from_seed(11)).unwrap();
    let (mut notes, mut releases) = (Notes::default(), Vec::new());
    loop {
        let before = trainer.weights().to_vec();
        if trainer.step(&mut notes).unwrap().is_none() {
            return (notes, releases, trainer.selection());
        }
        let moved = before.iter().zip(trainer.weights());
        releases.push(moved.map(|(b, a)| (f64::from(*b) - f64::from(*a)) / rate).collect());
    }
}

fn importance(steps: u64) -> PlanParams {
    let mut params = params(Mechanism::Dp, steps);
    params.train.learning_rate = Some(1e-9);
    params.privacy.importance = Some(ImportanceParams {
        candidate_rate: Some(0.9),
        noise_multiplier: Some(0.5),
        refresh: Some(50),
        ..ImportanceParams::default()
    });
    params
}

#[test]
fn importance_sampling_keeps_records_by_their_norms_and_has_no_bias() {
    let (points, steps) = (Points::spread(40, 3), 40_000);
    let (notes, _, _) = run(&points, &importance(steps));
    let (c, b, n) = (0.2, 10.0, 40.0);
    let lengths: Vec<f64> = (0..40).map(|i| norm(&points.gradient(&[0.0; 3], i)).min(c)).collect();
    // K̃ can be read from the sensitivity K̃/N; given it, a record is kept with chance p·s/C.
    for (record, length) in lengths.iter().enumerate() {
        let (mut seen, mut expected, mut variance) = (0.0, 0.0, 0.0);
        for (kept, scale) in notes.kept.iter().zip(&notes.scales) {
            let p = (b * c / (scale * b * n)).min(0.9) * length / c;
            seen += f64::from(u8::from(kept.contains(&(record as u32))));
            (expected, variance) = (expected + p, variance + p * (1.0 - p));
        }
        let bound = STANDARD_ERRORS * f64::sqrt(variance);
        assert!((seen - expected).abs() < bound, "record {record}: {seen} for {expected}");
    }
    // The mean estimates (1/N)·Σ g̃_i.
    for z in 0..3 {
        let truth: f64 = (0..40)
            .map(|i| (points.gradient(&[0.0; 3], i), lengths[i as usize]))
            .map(|(g, length)| g[z] * length / norm(&g) / n)
            .sum();
        let (mean, std, count) = mean_and_std(notes.means.iter().map(|m| m[z]));
        let bound = STANDARD_ERRORS * std / count.sqrt();
        assert!((mean - truth).abs() < bound, "coordinate {z}: {mean} for {truth} ± {bound}");
    }
    // The norms are short, so K̃/N is below C, and the noise is less than DP-SGD's.
    let mean_length = lengths.iter().sum::<f64>() / n;
    let (scale, ..) = mean_and_std(notes.scales.iter().map(|s| s * b));
    assert!((scale / mean_length - 1.0).abs() < 0.2, "{scale} for {mean_length}");
}

#[test]
fn the_control_computes_as_many_gradients_and_keeps_them_all() {
    let points = Points::spread(40, 3);
    let mut params = importance(5_000);
    let (by_norm, ..) = run(&points, &params);
    params.privacy.importance.as_mut().unwrap().keep = Keep::All;
    let (all, ..) = run(&points, &params);
    assert_eq!(by_norm.candidates, all.candidates, "the same candidates from the same coins");
    for (kept, candidates) in all.kept.iter().zip(&all.candidates) {
        assert_eq!(kept.len(), *candidates);
    }
}

/// The noise of a release is σ·sensitivity/denominator, whatever the strategy.
#[test]
fn noise_has_the_promised_spread_for_every_strategy() {
    let points = Points::spread(40, 3);
    for mechanism in [Mechanism::Dp, Mechanism::Geodp { beta: 0.001 }] {
        for (is, sur) in [(true, false), (false, true), (true, true)] {
            let mut params = importance(20_000);
            params.privacy.mechanism = mechanism;
            params.privacy.importance = params.privacy.importance.filter(|_| is);
            // Accepts everything: a release that is taken back cannot be read off the weights.
            let select = SelectParams { batch: 5, threshold: 1e9, ..SelectParams::default() };
            params.privacy.select = sur.then_some(select);
            let (notes, releases, _) = run(&points, &params);
            let steps = notes.means.iter().zip(&releases).zip(&notes.scales);
            let normals: Vec<f64> = steps
                .flat_map(|((mean, release), scale)| {
                    let scale = 0.7 * scale;
                    if mechanism == Mechanism::Dp {
                        let noise = release.iter().zip(mean).map(|(r, m)| (r - m) / scale);
                        noise.collect::<Vec<_>>()
                    } else {
                        // At this β the direction hardly moves: the magnitude's noise remains,
                        // along the mean, with its sign.
                        let along = release.iter().zip(mean).map(|(r, m)| r * m).sum::<f64>();
                        vec![(along / norm(mean) - norm(mean)) / scale]
                    }
                })
                .filter(|x| x.is_finite())
                .collect();
            let (mean, std, count) = mean_and_std(normals.iter().copied());
            assert!(mean.abs() < STANDARD_ERRORS / count.sqrt(), "{mechanism} {is} {sur}: {mean}");
            let bound = STANDARD_ERRORS / (2.0 * count).sqrt();
            assert!((std - 1.0).abs() < bound, "{mechanism} IS {is} SUR {sur}: {std} ± {bound}");
        }
    }
}

/// Accepted with Φ((β_v+1)/2σ_v) where the loss falls, Φ((β_v−1)/2σ_v) where it rises, in the
/// trainer and not just in the test: a rejected step leaves the weights as they were.
#[test]
fn steps_are_accepted_with_their_chances() {
    let points = Points(vec![vec![1.0, 0.0]; 30]);
    for sign in [1.0, -1.0] {
        let (mut accepted, runs, steps) = (0_u64, 4_000, 2);
        for seed in 0..runs {
            let mut params = params(Mechanism::Dp, steps);
            params.privacy.noise_multiplier = Some(1e-4);
            params.train.batch = Some(30);
            params.train.learning_rate = Some(0.5);
            let select = SelectParams { batch: 30, loss_clip: 1e-6, ..SelectParams::default() };
            params.privacy.select = Some(select);
            let facts = Facts { records: 30, dim: 2 };
            let plan = params.check(facts).unwrap();
            // Steps towards the points lower the loss by more than C_v; mirrored ones raise it.
            let engine = Mirrored { points: &points, sign };
            let noise = NoiseSource::from_seed(seed);
            let mut trainer = Trainer::new(plan, &engine, vec![0.0; 2], noise).unwrap();
            let mut before = trainer.weights().to_vec();
            let mut counted = 0;
            while trainer.step(&mut Silent).unwrap().is_some() {
                let now = trainer.selection().unwrap().accepted;
                assert_eq!(now > counted, trainer.weights() != before, "kept or taken back");
                (counted, before) = (now, trainer.weights().to_vec());
            }
            accepted += counted;
        }
        let count = (runs * steps) as f64;
        // β_v = −1, σ_v = 1: Φ(0) and Φ(−1).
        let p = if sign > 0.0 { 0.5 } else { 0.158_655_253_931_457 };
        let bound = STANDARD_ERRORS * (p * (1.0 - p) / count).sqrt();
        let share = accepted as f64 / count;
        assert!((share - p).abs() < bound, "{share} for {p}");
    }
}

/// Points whose gradients are multiplied by a sign: −1 climbs.
struct Mirrored<'a> {
    points: &'a Points,
    sign: f64,
}

impl Engine for Mirrored<'_> {
    fn facts(&self) -> Facts {
        self.points.facts()
    }
    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: geodp::engine::WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<geodp_nn::BatchOutcome, geodp::engine::EngineError> {
        let outcome = self.points.weighted_sum(weights, batch, weight_of, sum)?;
        sum.iter_mut().for_each(|s| *s *= self.sign as f32);
        Ok(outcome)
    }
    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, geodp::engine::EngineError> {
        self.points.mean_loss(weights, batch)
    }
}

fn mean_and_std(values: impl Iterator<Item = f64> + Clone) -> (f64, f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, variance.sqrt(), count)
}
