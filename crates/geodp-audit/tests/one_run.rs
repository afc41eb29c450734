//! The one-run audit on the real trainer: over 100 seeds of a small DP-SGD problem the lower bound
//! never exceeds the certified ε, and it is not blind.

use crate::data;

use data::Blobs;
use geodp::params::PlanParams;
use geodp_audit::canaries::{CanaryKind, CanaryTraining, Population};
use geodp_audit::one_run::{OneRun, OneRunParams, audit};
use geodp_audit::{Error, Hooks};
use geodp_data::Units;
use geodp_mechanism::NoiseSource;
use geodp_nn::NetworkSpec;
use std::sync::atomic::AtomicBool;

const CANARIES: usize = 200;

fn params(batch: u64, steps: u64, sigma: f64) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.clip_norm = Some(0.5);
    params.privacy.noise_multiplier = Some(sigma);
    params.train.batch = Some(batch);
    params.train.steps = Some(steps);
    params.train.learning_rate = Some(0.5);
    params
}

/// The bound and the certified ε of one run.
fn run(params: &PlanParams, kind: CanaryKind, seed: u64) -> (OneRun, f64) {
    let data = Blobs::new(100, 6, 3, 1);
    let network = NetworkSpec::mlp(6, &[8], 3).build().unwrap();
    let source = NoiseSource::from_seed(1_000_000 + seed);
    let training =
        CanaryTraining::new(&network, Population::of_rows(&data), params, kind, CANARIES, &source)
            .unwrap();
    let guarantee = training.plan().protection();
    let steps = training.plan().steps();
    let claim = guarantee.claim_after(steps).unwrap().unwrap().upper();
    let audit_params = OneRunParams { canaries: CANARIES, delta: 1e-5, significance: 0.05 };
    let stop = AtomicBool::new(false);
    let hooks = Hooks { on_step: &|| {}, stop: &stop };
    let found = audit(&audit_params, &source, |present| {
        training.scores(present, NoiseSource::from_seed(seed), &hooks, None)
    });
    (found.unwrap(), claim)
}

#[test]
fn the_bound_never_exceeds_the_certified_epsilon() {
    let mut informative = 0;
    for seed in 0..100 {
        // Full batches and sampled ones in turn.
        let params = if seed % 2 == 0 { params(300, 2, 1.0) } else { params(60, 20, 1.0) };
        let (found, claim) = run(&params, CanaryKind::Gradient, seed);
        assert!(found.epsilon_lower <= claim, "seed {seed}: {} > {claim}", found.epsilon_lower);
        informative += usize::from(found.epsilon_lower > 0.3);
    }
    assert!(informative > 30, "only {informative} of 100 runs showed anything");
}

/// With hardly any noise, gradient canaries are read off one by one.
#[test]
fn a_run_without_noise_to_speak_of_is_seen_through() {
    let (found, _) = run(&params(300, 3, 0.01), CanaryKind::Gradient, 5);
    assert!(found.epsilon_lower > 3.0, "{}", found.epsilon_lower);
}

/// Canaries that have inputs train through the network, absent ones without a trace.
#[test]
fn input_canaries_train_and_are_scored() {
    for kind in [CanaryKind::Mislabelled, CanaryKind::Blank] {
        let (found, claim) = run(&params(60, 20, 1.0), kind, 2);
        assert_eq!(found.scores_in.len() + found.scores_out.len(), CANARIES);
        assert!(found.epsilon_lower <= claim);
    }
}

/// A canary among units is a unit: of whatever kind, it shows no more than the ε of units.
#[test]
fn canaries_among_units_are_units() {
    let data = Blobs::new(100, 6, 3, 1);
    let units = Units::even(25, 4, 2).unwrap();
    let network = NetworkSpec::mlp(6, &[8], 3).build().unwrap();
    let stop = AtomicBool::new(false);
    let hooks = Hooks { on_step: &|| {}, stop: &stop };
    let audit_params = OneRunParams { canaries: CANARIES, delta: 1e-5, significance: 0.05 };
    for kind in [CanaryKind::Gradient, CanaryKind::Mislabelled, CanaryKind::Blank] {
        let source = NoiseSource::from_seed(4);
        let train = Population { rows: &data, units: Some(&units) };
        let params = params(225, 3, 0.7);
        let training =
            CanaryTraining::new(&network, train, &params, kind, CANARIES, &source).unwrap();
        assert_eq!(training.plan().facts().records, 225);
        let claim = training.plan().protection().claim_after(3).unwrap().unwrap().upper();
        let found = audit(&audit_params, &source, |present| {
            training.scores(present, NoiseSource::from_seed(9), &hooks, None)
        });
        let shown = found.unwrap().epsilon_lower;
        assert!(shown <= claim, "{kind}: {shown} of {claim}");
        assert!(kind != CanaryKind::Gradient || shown > 0.3, "{shown}");
    }
}

/// Stopped after every step and taken up again, a training scores its canaries as if it had not been.
#[test]
fn a_stopped_training_goes_on() {
    let data = Blobs::new(50, 6, 3, 1);
    let network = NetworkSpec::mlp(6, &[8], 3).build().unwrap();
    let source = NoiseSource::from_seed(1);
    let kind = CanaryKind::Gradient;
    let training = CanaryTraining::new(
        &network,
        Population::of_rows(&data),
        &params(10, 5, 1.0),
        kind,
        4,
        &source,
    )
    .unwrap();
    let present = [true, false, true, false];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("training.checkpoint");
    let scores = |stop: bool, checkpoint: Option<&std::path::Path>| {
        let stop = AtomicBool::new(stop);
        let hooks = Hooks { on_step: &|| {}, stop: &stop };
        training.scores(&present, NoiseSource::from_seed(1), &hooks, checkpoint)
    };
    let whole = scores(false, None).unwrap();
    for _ in 0..4 {
        assert!(matches!(scores(true, Some(&path)), Err(Error::Stopped)));
    }
    assert_eq!(scores(false, Some(&path)).unwrap(), whole);
    std::fs::write(&path, "nonsense").unwrap();
    assert!(scores(false, Some(&path)).is_err());
    let hooks = Hooks { on_step: &|| {}, stop: &AtomicBool::new(false) };
    assert!(training.scores(&[true; 3], NoiseSource::from_seed(1), &hooks, None).is_err());
}
