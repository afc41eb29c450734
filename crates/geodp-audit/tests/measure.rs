//! A training that is measured against one whose movements are known: by the textbook, record by
//! record, from an engine with given gradients.

use crate::common;

use common::Given;
use geodp::engine::Engine;
use geodp::params::{Mechanism, PlanParams};
use geodp::sampler::Sampling;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_audit::measure::Measure;
use geodp_mechanism::NoiseSource;
use geodp_mechanism::sphere::{squared_direction_error, to_spherical};

fn params(batch: u64, steps: u64, beta: Option<f64>) -> PlanParams {
    let mut params = PlanParams::default();
    if let Some(beta) = beta {
        params.privacy.mechanism = Mechanism::Geodp { beta };
    }
    params.privacy.clip_norm = Some(0.5);
    params.privacy.noise_multiplier = Some(1.5);
    params.train.batch = Some(batch);
    params.train.steps = Some(steps);
    params.train.learning_rate = Some(1.0);
    params
}

fn measured(engine: &Given, params: &PlanParams, count: u64, every: u64) -> (Measure, geodp::Plan) {
    let facts = engine.facts();
    let plan = params.check(facts).unwrap();
    let source = NoiseSource::from_seed(4);
    let mut measure = Measure::new(facts.records, count, every, &source).unwrap();
    let start = vec![0.0; facts.dim];
    let mut trainer = Trainer::new(plan.clone(), engine, start, source).unwrap();
    while trainer.step(&mut measure).unwrap().is_some() {}
    (measure, plan)
}

/// A full batch every step: each record's μ is the same every step, and known.
#[test]
fn movements_are_those_of_the_textbook() {
    let engine = Given::waves(6, 40);
    let beta = 0.2;
    let (measure, plan) = measured(&engine, &params(6, 3, Some(beta)), 100, 1);
    assert_eq!(measure.loss().totals().len(), 6, "no more records than there are");
    let clipped: Vec<Vec<f64>> = engine.gradients.iter().map(|g| common::clip(g, 0.5)).collect();
    let mean = |skip: Option<usize>| -> Vec<f64> {
        (0..40)
            .map(|z| {
                let kept = clipped.iter().enumerate().filter(|(j, _)| Some(*j) != skip);
                kept.map(|(_, g)| g[z]).sum::<f64>() / 6.0
            })
            .collect()
    };
    let whole = to_spherical(&mean(None)).unwrap();
    let beta_unit = 42f64.sqrt() * std::f64::consts::PI / 6.0;
    let (s_theta, s_m) = (beta * beta_unit * 1.5, 0.5 * 1.5 / 6.0);
    let mut beta_safe: f64 = 0.0;
    for totals in measure.loss().totals() {
        let without = to_spherical(&mean(Some(totals.record as usize))).unwrap();
        let squares = squared_direction_error(&without.angles, &whole.angles).unwrap();
        let magnitude = whole.magnitude - without.magnitude;
        let mu = (squares / s_theta.powi(2) + (magnitude / s_m).powi(2)).sqrt();
        // The engine's mean is f32.
        assert!((totals.mu_rms().unwrap() / mu - 1.0).abs() < 1e-5);
        assert_eq!((totals.used, totals.measured), (3, 3));
        assert_eq!(totals.outside > 0, squares.sqrt() > beta * beta_unit);
        beta_safe = beta_safe.max(squares.sqrt() / beta_unit);
    }
    let summary = measure.summary(&plan).unwrap().unwrap();
    assert!((summary.beta_safe.unwrap() / beta_safe - 1.0).abs() < 1e-5);
    assert_eq!((summary.steps, summary.measurements, summary.beta), (3, 18, Some(beta)));
}

/// DP-SGD: no record pays more than what is certified, and a long one pays exactly that.
#[test]
fn no_record_of_dp_pays_more_than_certified() {
    let mut engine = Given::waves(50, 30);
    engine.gradients[7].iter_mut().for_each(|g| *g *= 1e4);
    engine.gradients[8].iter_mut().for_each(|g| *g *= 1e-4);
    let (measure, plan) = measured(&engine, &params(20, 200, None), 50, 1);
    let summary = measure.summary(&plan).unwrap().unwrap();
    let certified = plan.protection().claim_after(200).unwrap().unwrap().upper();
    let with = summary.with_amplification.unwrap();
    assert!(with.largest < certified * 1.001 && with.largest > certified * 0.999);
    assert_eq!(summary.share_of_records_inside, 1.0);
    let small = measure.loss().place(8).unwrap();
    assert!(measure.loss().totals()[small].mu_rms().unwrap() < 1e-3);
}

/// Every third step measured: uses are still all counted, and the totals come out alike.
#[test]
fn measuring_now_and_then_estimates_the_same() {
    let engine = Given::waves(40, 10);
    let (all, plan) = measured(&engine, &params(10, 300, None), 40, 1);
    let (some, _) = measured(&engine, &params(10, 300, None), 40, 3);
    for (a, b) in all.loss().totals().iter().zip(some.loss().totals()) {
        assert_eq!(a.used, b.used);
        assert!(b.measured < a.measured && b.measured > 0);
        let ratio = b.mu_total().unwrap() / a.mu_total().unwrap();
        assert!((ratio - 1.0).abs() < 1e-5, "gradients are constant: {ratio}");
    }
    assert!(some.summary(&plan).unwrap().is_some());
    assert!(Measure::new(10, 5, 0, &NoiseSource::from_seed(1)).is_err());
}

/// Alone in a batch, a record's leaving takes everything with it.
#[test]
fn a_batch_of_one_is_left_empty() {
    let engine = Given::waves(1, 20);
    let (measure, _) = measured(&engine, &params(1, 1, Some(0.5)), 1, 1);
    let mean = to_spherical(&common::clip(&engine.gradients[0], 0.5)).unwrap();
    let squares: f64 = mean.angles.iter().map(|a| a * a).sum();
    let beta_unit = 22f64.sqrt() * std::f64::consts::PI;
    let needed = measure.loss().totals()[0].beta_needed;
    assert!((needed * beta_unit / squares.sqrt() - 1.0).abs() < 1e-5);
}

/// Watching changes nothing, gradients that are not finite take no part, and shuffling claims no
/// amplification.
#[test]
fn watching_is_only_watching() {
    let mut engine = Given::waves(30, 12);
    engine.gradients[3][0] = f32::NAN;
    let mut params = params(10, 6, None);
    params.privacy.sampling = Sampling::Shuffle;
    let (measure, plan) = measured(&engine, &params, 30, 1);
    let broken = measure.loss().place(3).unwrap();
    assert_eq!(measure.loss().totals()[broken].measured, 0);
    assert_eq!(measure.summary(&plan).unwrap().unwrap().with_amplification, None);
    let mut plain =
        Trainer::new(plan.clone(), &engine, vec![0.0; 12], NoiseSource::from_seed(4)).unwrap();
    while plain.step(&mut Silent).unwrap().is_some() {}
    let mut again = Measure::new(30, 30, 1, &NoiseSource::from_seed(4)).unwrap();
    let mut watched =
        Trainer::new(plan, &engine, vec![0.0; 12], NoiseSource::from_seed(4)).unwrap();
    while watched.step(&mut again).unwrap().is_some() {}
    assert_eq!(plain.weights(), watched.weights());
    assert_eq!(again, measure);
}
