//! The noise audit of the whole trainer: known gradients go in, released gradients come out, and
//! their spread and sensitivity are what the plan promised.
//!
//! A released gradient is read off the weights (SGD with η = 1: w before − w after). Each of these
//! faults makes a test here fail: no clipping, a mean over the realised batch, noise a chunk instead
//! of a step, noise before clipping, noise reused between steps, shuffling accounted as Poisson.
//! Statistical bounds are 5.5 standard errors (false-alarm rate 4e-8 a check), seeds are fixed.

use geodp::engine::{Engine, EngineError, WeightOf};
use geodp::params::{ClipKind, Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::sampler::Sampling;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_account::{Accountant, Adjacency, Event, PldAccountant};
use geodp_mechanism::NoiseSource;
use geodp_mechanism::sphere::to_spherical;
use geodp_nn::BatchOutcome;

const STANDARD_ERRORS: f64 = 5.5;

/// A model whose per-record gradients are given and constant.
struct Canary {
    gradients: Vec<Vec<f32>>,
}

impl Canary {
    fn constant(records: usize, gradient: &[f32]) -> Self {
        Self { gradients: vec![gradient.to_vec(); records] }
    }

    fn sum(
        &self,
        batch: &[u32],
        weight: impl Fn(usize, f64) -> f64,
        sum: &mut [f32],
    ) -> BatchOutcome {
        sum.fill(0.0);
        let mut outcome = BatchOutcome::default();
        for (place, index) in batch.iter().enumerate() {
            let gradient = &self.gradients[*index as usize];
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            sum.iter_mut()
                .zip(gradient)
                .for_each(|(s, g)| *s += (weight(place, norm) * f64::from(*g)) as f32);
            outcome.norms.push(norm as f32);
            outcome.losses.push(1.0);
        }
        outcome
    }
}

impl Engine for Canary {
    fn facts(&self) -> Facts {
        Facts { records: self.gradients.len() as u64, dim: self.gradients[0].len() }
    }
    fn weighted_sum(
        &self,
        _weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        Ok(self.sum(batch, |place, norm| weight_of.weight(place, norm), sum))
    }
    fn mean_loss(&self, _weights: &[f32], _batch: &[u32]) -> Result<f64, EngineError> {
        Ok(1.0)
    }
}

fn params(batch: u64, steps: u64, clip_norm: f64, noise_multiplier: f64) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.clip_norm = Some(clip_norm);
    params.privacy.noise_multiplier = Some(noise_multiplier);
    params.train.batch = Some(batch);
    params.train.steps = Some(steps);
    params.train.learning_rate = Some(1.0);
    params
}

/// The released gradient of every step, over `repeats` runs with seeds of their own. Runs are short:
/// weights stay small, and f32 rounding does not blur their differences.
fn releases(engine: &Canary, params: &PlanParams, repeats: u64) -> Vec<Vec<f64>> {
    let plan = params.check(engine.facts()).unwrap();
    let mut all = Vec::new();
    for seed in 0..repeats {
        let start = vec![0.0; engine.facts().dim];
        let noise = NoiseSource::from_seed(seed);
        let mut trainer = Trainer::new(plan.clone(), engine, start, noise).unwrap();
        let mut before = trainer.weights().to_vec();
        while trainer.step(&mut Silent).unwrap().is_some() {
            let after = trainer.weights().to_vec();
            let moved = before.iter().zip(&after).map(|(b, a)| f64::from(*b) - f64::from(*a));
            all.push(moved.collect());
            before = after;
        }
    }
    all
}

fn mean_and_std(values: impl Iterator<Item = f64> + Clone) -> (f64, f64, f64) {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, variance.sqrt(), count)
}

/// DP: every coordinate of every release has noise of std C·σ/B around the clipped mean.
#[test]
fn dp_noise_has_the_promised_spread_and_centre() {
    // Norm 5, clipped to C = 0.5; all 8 records take part (B = N), so the mean is known.
    let engine = Canary::constant(8, &[3.0, -4.0, 0.0]);
    let (clip_norm, sigma) = (0.5, 1.7);
    let releases = releases(&engine, &params(8, 10, clip_norm, sigma), 3_000);
    let expected_std = clip_norm * sigma / 8.0;
    for (z, expected_mean) in [0.3, -0.4, 0.0].into_iter().enumerate() {
        let (mean, std, count) = mean_and_std(releases.iter().map(|r| r[z]));
        let bound = STANDARD_ERRORS * expected_std / count.sqrt();
        assert!((mean - expected_mean).abs() < bound, "coordinate {z}: mean {mean}");
        let relative = std / expected_std - 1.0;
        assert!(relative.abs() < STANDARD_ERRORS / (2.0 * count).sqrt(), "coordinate {z}: {std}");
    }
    // Fresh noise every step: neighbours in time do not correlate.
    let lagged: f64 = releases.windows(2).map(|w| (w[0][2]) * (w[1][2])).sum();
    let bound = STANDARD_ERRORS * expected_std.powi(2) * (releases.len() as f64).sqrt();
    assert!(lagged.abs() < bound);
}

/// GeoDP: the released magnitude has std C·σ/B, each angle √(d+2)·β·π·σ/B.
#[test]
fn geodp_noise_has_the_promised_spread() {
    let engine = Canary::constant(4, &[3.0, -4.0, 1.0, 2.0]);
    let (clip_norm, sigma, beta) = (0.5, 0.3, 0.02);
    let mut params = params(4, 10, clip_norm, sigma);
    params.privacy.mechanism = Mechanism::Geodp { beta };
    let released: Vec<_> =
        releases(&engine, &params, 3_000).iter().map(|r| to_spherical(r).unwrap()).collect();
    let original = to_spherical(&[3.0, -4.0, 1.0, 2.0]).unwrap();
    let (mean, std, count) = mean_and_std(released.iter().map(|s| s.magnitude));
    let expected = clip_norm * sigma / 4.0;
    assert!((std / expected - 1.0).abs() < STANDARD_ERRORS / (2.0 * count).sqrt());
    assert!((mean - clip_norm).abs() < STANDARD_ERRORS * expected / count.sqrt());
    let expected = 6f64.sqrt() * beta * std::f64::consts::PI * sigma / 4.0;
    for z in 0..3 {
        let (mean, std, count) = mean_and_std(released.iter().map(|s| s.angles[z]));
        assert!((std / expected - 1.0).abs() < STANDARD_ERRORS / (2.0 * count).sqrt(), "angle {z}");
        // f32 weights blur an angle by about 1e-7.
        let bound = STANDARD_ERRORS * expected / count.sqrt() + 1e-6;
        assert!((mean - original.angles[z]).abs() < bound, "angle {z}");
    }
}

/// One record moves a release by at most C/B, and a long one by exactly that.
#[test]
fn one_record_moves_a_release_by_the_sensitivity() {
    for clip in [ClipKind::Flat, ClipKind::AutoS, ClipKind::Psac] {
        let with = Canary { gradients: vec![vec![0.1, 0.2], vec![-3e4, 4e4], vec![0.3, 0.0]] };
        let mut without = Canary { gradients: with.gradients.clone() };
        without.gradients[1] = vec![0.0, 0.0];
        let mut params = params(3, 5, 0.5, 1.0);
        params.privacy.clip = clip;
        let (a, b) = (releases(&with, &params, 2), releases(&without, &params, 2));
        for (a, b) in a.iter().zip(&b) {
            let moved = a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt();
            assert!((moved - 0.5 / 3.0).abs() < 1e-5, "{clip}: {moved}");
        }
    }
}

/// The denominator is the public B: a release grows with the realised batch.
#[test]
fn the_denominator_is_public() {
    let engine = Canary::constant(100, &[0.3, 0.4]);
    let mut params = params(20, 10, 10.0, 1e-7);
    params.privacy.sampling = Sampling::Poisson;
    let sizes: Vec<f64> =
        releases(&engine, &params, 60).iter().map(|r| 20.0 * r[0] / 0.3).collect();
    let distinct: std::collections::BTreeSet<i64> =
        sizes.iter().map(|s| s.round() as i64).collect();
    assert!(distinct.len() > 5, "a mean over the realised batch would always be the same");
    assert!(sizes.iter().all(|s| (s - s.round()).abs() < 0.05));
    let (mean, std, count) = mean_and_std(sizes.iter().copied());
    assert!((mean - 20.0).abs() < STANDARD_ERRORS * 4.0 / count.sqrt());
    assert!((std - 4.0).abs() < STANDARD_ERRORS * 4.0 / (2.0 * count).sqrt());
}

/// An empty batch is an ordinary step: noise alone is released, and it is counted.
#[test]
fn empty_batches_release_noise() {
    let engine = Canary::constant(50, &[0.0, 1.0]);
    let releases = releases(&engine, &params(1, 10, 1.0, 0.5), 200);
    let empty: Vec<f64> = releases.iter().map(|r| r[1]).filter(|x| x.abs() < 0.5).collect();
    assert!(empty.len() > 300 && empty.iter().all(|x| *x != 0.0));
    let (_, std, count) = mean_and_std(releases.iter().map(|r| r[0]));
    assert!((std / 0.5 - 1.0).abs() < STANDARD_ERRORS / (2.0 * count).sqrt());
}

/// Shuffled batches are accounted as unsampled releases under replace-one, one an epoch.
#[test]
fn shuffling_is_accounted_as_what_it_is() {
    let mut params = params(10, 1, 1.0, 2.0);
    params.train.steps = None;
    params.train.epochs = Some(3);
    let facts = Facts { records: 100, dim: 2 };
    let poisson = params.check(facts).unwrap();
    params.privacy.sampling = Sampling::Shuffle;
    let shuffled = params.check(facts).unwrap();
    assert_eq!(shuffled.steps(), 30);
    let mut by_hand = PldAccountant::new(Adjacency::AddRemove);
    // Replacing moves a sum by 2C: multiplier σ/2.
    by_hand.compose(&Event::gaussian(1.0), 3).unwrap();
    // A thousandth of δ is kept for what is left over of the noise.
    let expected = by_hand.epsilon(1e-5 * (1.0 - 1e-3)).unwrap();
    let epsilon = |plan: &geodp::plan::Plan, steps: u64| {
        plan.protection().claim_after(steps).unwrap().unwrap().upper()
    };
    assert!((epsilon(&shuffled, 30) - expected.upper).abs() < 1e-6 * expected.upper);
    // Beginning an epoch costs the whole epoch.
    assert_eq!(epsilon(&shuffled, 11), epsilon(&shuffled, 20));
    assert!(epsilon(&poisson, 30) < epsilon(&shuffled, 30));
}

/// Without a mechanism nothing is clipped and nothing is added.
#[test]
fn no_mechanism_means_the_plain_mean() {
    let engine = Canary::constant(4, &[30.0, -40.0]);
    let mut params = params(4, 3, 1.0, 1.0);
    params.privacy = Default::default();
    params.privacy.mechanism = Mechanism::None;
    for release in releases(&engine, &params, 2) {
        assert!((release[0] - 30.0).abs() < 1e-4 && (release[1] + 40.0).abs() < 1e-4);
    }
}
