//! What strategies cost, against events composed by hand; stops, refusals, ledgers, resuming.

use super::{combinations, params};
use geodp::config::{DataConfig, ModelConfig, RunConfig};
use geodp::importance::{ImportanceParams, Keep};
use geodp::optimizer::{Moments, OptimizerKind};
use geodp::params::{Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::run::{Ended, Run};
use geodp::sampler::Sampling;
use geodp::select::{SelectParams, Selection};
use geodp::statement::Statement;
use geodp::watch::{Observer, Progress, Silent};
use geodp_account::{Accountant, Adjacency, Event, Kind, Ledger, PldAccountant};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

const FACTS: Facts = Facts { records: 1000, dim: 10 };

fn with(is: bool, sur: bool, steps: u64) -> PlanParams {
    let mut params = params(Mechanism::Dp, steps);
    params.privacy.importance = is.then(|| ImportanceParams {
        candidate_rate: Some(0.03),
        noise_multiplier: Some(0.5),
        refresh: Some(12),
        ..ImportanceParams::default()
    });
    params.privacy.select =
        sur.then(|| SelectParams { batch: 50, noise_multiplier: 1.5, ..SelectParams::default() });
    params
}

fn by_hand(events: &[(Event, u64)]) -> f64 {
    let mut accountant = PldAccountant::new(Adjacency::AddRemove);
    for (event, count) in events {
        accountant.compose(event, *count).unwrap();
    }
    accountant.epsilon(1e-5).unwrap().upper
}

fn epsilon(params: &PlanParams, steps: u64) -> f64 {
    let plan = params.check(FACTS).unwrap();
    plan.protection().claim_after(steps).unwrap().unwrap().upper()
}

#[test]
fn costs_are_those_of_events_composed_by_hand() {
    let gradient = |q| Event::sampled_gaussian(q, 0.7);
    let test = Event::sampled_gaussian(0.05, 1.5);
    let release = Event::sampled_gaussian(0.01, 0.5);
    let cases = [
        (with(true, false, 100), vec![(gradient(0.03), 100), (release.clone(), 9)]),
        (with(false, true, 100), vec![(gradient(0.01), 100), (test.clone(), 100)]),
        (with(true, true, 100), vec![(gradient(0.03), 100), (test, 100), (release, 9)]),
    ];
    for (mut params, events) in cases {
        let (ours, expected) = (epsilon(&params, 100), by_hand(&events));
        assert!((ours / expected - 1.0).abs() < 2e-3, "{ours} for {expected}");
        // GeoDP: the gradient's σ counts as σ/√2, the rest as it is.
        params.privacy.mechanism = Mechanism::Geodp { beta: 0.1 };
        let mut events = events;
        let Event::SampledGaussian { sample_rate, .. } = events[0].0 else { unreachable!() };
        events[0].0 = Event::sampled_gaussian(sample_rate, 0.7 / 2f64.sqrt());
        let (ours, expected) = (epsilon(&params, 100), by_hand(&events));
        assert!((ours / expected - 1.0).abs() < 2e-3, "GeoDP: {ours} for {expected}");
    }
}

#[test]
fn rejected_steps_are_charged_and_the_published_figure_stands_beside() {
    let params = with(false, true, 100);
    let plan = params.check(FACTS).unwrap();
    let selection = Selection { accepted: 30, rejected: 70 };
    let statement = Statement::new(&plan, 100, Some(selection)).unwrap();
    let [certified, published] = &statement.claims[..] else { panic!("{:?}", statement.claims) };
    assert_eq!((certified.kind(), published.kind()), (Kind::Certified, Kind::AsPublishedSur));
    assert!((certified.upper() / epsilon(&params, 100) - 1.0).abs() < 1e-9);
    assert!((published.upper() / epsilon(&params, 30) - 1.0).abs() < 1e-9);
    let text = statement.to_string();
    assert!(text.contains("30 accepted, 70 rejected; all are charged"), "{text}");
    assert!(text.contains("As published ε"), "{text}");
}

/// GeoDP's assumption speaks of the denominator that is used: IS's control has another.
#[test]
fn the_assumption_names_the_denominator_used() {
    let assumption = |keep| {
        let mut params = with(true, false, 10);
        params.privacy.mechanism = Mechanism::Geodp { beta: 0.1 };
        params.privacy.importance.as_mut().unwrap().keep = keep;
        let plan = params.check(FACTS).unwrap();
        let claim = plan.protection().claim_after(10).unwrap().unwrap();
        claim.assumption().unwrap().to_owned()
    };
    assert!(assumption(Keep::ByNorm).contains("B = 10,"), "{}", assumption(Keep::ByNorm));
    assert!(assumption(Keep::All).contains("expected number of candidates"));
    for keep in [Keep::ByNorm, Keep::All] {
        let text = assumption(keep);
        for part in ["δ″", "batch S drawn", "weights visited", "empty S", "nothing enforces it"]
        {
            assert!(text.contains(part), "“{part}” is not in {text}");
        }
    }
}

#[test]
fn a_limit_stops_before_the_step_that_would_exceed_it() {
    for (is, sur) in [(true, false), (false, true), (true, true)] {
        let mut params = with(is, sur, 5_000);
        params.privacy.epsilon_limit = Some(4.0);
        let plan = params.check(FACTS).unwrap();
        assert!(plan.steps() < 5_000);
        params.privacy.epsilon_limit = None;
        assert!(epsilon(&params, plan.steps()) <= 4.0);
        assert!(epsilon(&params, plan.steps() + 1) > 4.0);
    }
}

#[test]
fn a_target_is_met_with_strategies_or_said_to_be_out_of_reach() {
    let mut params = with(true, true, 200);
    params.privacy.noise_multiplier = None;
    params.privacy.epsilon = Some(6.0);
    let reached = epsilon(&params, 200);
    assert!(reached <= 6.0 && reached > 5.98, "{reached}");
    params.privacy.epsilon = Some(0.5);
    let refusal = params.check(FACTS).unwrap_err().to_string();
    assert!(
        refusal.contains("out of reach") && refusal.contains("select.noise_multiplier"),
        "{refusal}"
    );
}

#[test]
fn what_cannot_be_accounted_is_refused_with_the_reason() {
    let refusal = |change: &dyn Fn(&mut PlanParams)| {
        let mut params = with(true, true, 10);
        change(&mut params);
        params.check(FACTS).unwrap_err().to_string()
    };
    let none = refusal(&|p| {
        p.privacy.mechanism = Mechanism::None;
        p.privacy.noise_multiplier = None;
    });
    assert!(none.contains("not private"), "{none}");
    assert!(refusal(&|p| p.privacy.sampling = Sampling::Shuffle).contains("do not compose"));
    let below = refusal(&|p| p.privacy.importance.as_mut().unwrap().candidate_rate = Some(0.001));
    assert!(below.contains("candidate_rate is 0.001"), "{below}");
    let geodp = refusal(&|p| {
        p.privacy.mechanism = Mechanism::Geodp { beta: 0.1 };
        p.train.optimizer = Some(OptimizerKind::AdamBc(Moments::default()));
    });
    assert!(geodp.contains("depends on the gradient"), "{geodp}");
}

/// Sets a flag after a step.
struct StopAfter<'a>(u64, &'a AtomicBool);

impl Observer for StopAfter<'_> {
    fn on_step(&mut self, progress: &Progress) {
        self.1.store(progress.step >= self.0, Ordering::Relaxed);
    }
}

/// A run of MNIST's 0 and 1 by logistic regression.
fn config(params: &PlanParams) -> RunConfig {
    let mut config = RunConfig {
        data: DataConfig::Mnist { labels: Some(vec![0, 1]), unit_scaling: true, holdout: None },
        features: None,
        views: None,
        model: ModelConfig::Logistic,
        privacy: params.privacy.clone(),
        train: params.train.clone(),
        ledger: Default::default(),
    };
    config.train.batch = Some(64);
    config.train.seed = Some(3);
    config.train.checkpoint_every = Some(4);
    if let Some(importance) = &mut config.privacy.importance {
        *importance = ImportanceParams { refresh: Some(5), ..ImportanceParams::default() };
    }
    config.complete();
    config
}

fn finish(run: Run) -> (Vec<f32>, Statement) {
    let Ended::Finished(finished) =
        run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false)).unwrap()
    else {
        panic!("it was not stopped")
    };
    (finished.weights, finished.statement)
}

fn interrupted(folder: &Path, config: &RunConfig) -> (Vec<f32>, Statement) {
    let mut run = Run::create(folder, config.clone()).unwrap();
    for at in [2, 6, 7] {
        let stop = AtomicBool::new(false);
        run.execute(&mut Silent, &mut StopAfter(at, &stop), &stop).unwrap();
        run = Run::resume(folder).unwrap();
    }
    finish(run)
}

/// The same bits with and without interruptions, and a ledger that adds up to the statement.
#[test]
fn strategies_resume_bit_by_bit_with_a_complete_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = combinations(11).into_iter().filter(|(_, params)| {
        let adam = matches!(params.train.optimizer, Some(OptimizerKind::AdamBc(_)));
        let strategy = params.privacy.importance.is_some() || params.privacy.select.is_some();
        let geodp = params.privacy.mechanism.beta().is_some();
        let momentum = matches!(params.train.optimizer, Some(OptimizerKind::Momentum { .. }));
        params.privacy.clip == geodp::params::ClipKind::Psac
            && (adam || strategy && geodp && momentum)
    });
    let mut seen = 0;
    for (at, (name, params)) in chosen.enumerate() {
        let config = config(&params);
        let whole = folder.path().join(format!("whole{at}"));
        let (weights, statement) = finish(Run::create(&whole, config.clone()).unwrap());
        let parts = folder.path().join(format!("parts{at}"));
        let (resumed, same) = interrupted(&parts, &config);
        assert!(weights == resumed, "{name}: other weights after a resume");
        assert_eq!(statement, same, "{name}");
        assert_eq!(statement.selection.is_some(), params.privacy.select.is_some());
        let ledger = Ledger::read(&parts.join("ledger.jsonl")).unwrap();
        assert_eq!(ledger.steps(), 11);
        let claim = &statement.claims[0];
        assert_eq!(&ledger.account().unwrap().claim().unwrap(), claim, "{name}");
        seen += 1;
    }
    assert_eq!(seen, 4 + 3);
}
