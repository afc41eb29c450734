//! Certified GeoDP in a training: its plan, its ε, its kinds of steps, and what it goes with.

use geodp::Statement;
use geodp::config::{ModelConfig, RunConfig};
use geodp::engine::{Engine, EngineError, WeightOf};
use geodp::importance::ImportanceParams;
use geodp::optimizer::{Moments, OptimizerKind};
use geodp::params::{ClipKind, Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::run::{BlockMetrics, Ended, Run};
use geodp::sampler::Sampling;
use geodp::select::SelectParams;
use geodp::trainer::Trainer;
use geodp::watch::{Observer, Progress, Silent};
use geodp_account::{Arithmetic, Kind, Ledger};
use geodp_mechanism::{NoiseSource, PolarSettings};
use geodp_nn::BatchOutcome;
use std::path::Path;
use std::sync::atomic::AtomicBool;

const DIM: usize = 30;
const RECORDS: u64 = 2_000;

/// Records that all pull the weights to one point, from where they are: their gradients agree until
/// the weights arrive.
struct Pull;

impl Engine for Pull {
    fn facts(&self) -> Facts {
        Facts { records: RECORDS, dim: DIM }
    }
    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        let mut outcome = BatchOutcome::default();
        sum.fill(0.0);
        for (place, record) in batch.iter().enumerate() {
            let at = |z: usize| 1.0 + 0.1 * ((*record as f32 + z as f32) * 1.7).sin();
            let gradient: Vec<f32> = weights.iter().enumerate().map(|(z, w)| w - at(z)).collect();
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            let weight = weight_of.weight(place, norm) as f32;
            sum.iter_mut().zip(&gradient).for_each(|(s, g)| *s += weight * g);
            outcome.norms.push(norm as f32);
            outcome.losses.push((norm * norm / 2.0) as f32);
        }
        Ok(outcome)
    }
    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        let mut sum = vec![0.0; DIM];
        let outcome = self.weighted_sum(weights, batch, &|_, _| 0.0, &mut sum)?;
        let losses = outcome.losses.iter().map(|loss| f64::from(*loss));
        Ok(losses.sum::<f64>() / batch.len().max(1) as f64)
    }
}

fn certified() -> Mechanism {
    Mechanism::GeodpCertified(PolarSettings::default())
}

fn params(mechanism: Mechanism) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.mechanism = mechanism;
    params.privacy.noise_multiplier = Some(1.0);
    params.train.batch = Some(400);
    params.train.steps = Some(60);
    params.train.learning_rate = Some(2.0);
    params
}

fn epsilon(params: &PlanParams) -> (Kind, f64) {
    let plan = params.check(Pull.facts()).unwrap();
    let statement = Statement::new(&plan, plan.steps(), None).unwrap();
    (statement.claims[0].kind(), statement.claims[0].upper())
}

#[test]
fn its_epsilon_is_certified_and_dps_within_a_hundredth() {
    let (kind, dp) = epsilon(&params(Mechanism::Dp));
    assert_eq!(kind, Kind::Certified);
    let (kind, polar) = epsilon(&params(certified()));
    assert_eq!(kind, Kind::Certified);
    assert!(polar > dp && polar < 1.005 * dp, "{polar} for {dp}");
    let plan = params(certified()).check(Pull.facts()).unwrap();
    let text = Statement::new(&plan, plan.steps(), None).unwrap().to_string();
    assert!(text.contains("What a step releases") && text.contains("Certified ε"), "{text}");
}

#[test]
fn targets_and_limits_hold() {
    let mut target = params(certified());
    target.privacy.noise_multiplier = None;
    target.privacy.epsilon = Some(2.0);
    let (_, reached) = epsilon(&target);
    assert!(reached <= 2.0 && reached > 1.99, "{reached}");
    let mut limited = params(certified());
    limited.privacy.epsilon_limit = Some(3.0);
    let plan = limited.check(Pull.facts()).unwrap();
    assert!(plan.steps() < 60);
    let (_, reached) = epsilon(&limited);
    assert!(reached <= 3.0 && reached > 2.8, "{reached}");
    // With little noise ε is large, and a miss must be rarer than any normal is.
    let mut loud = params(certified());
    loud.privacy.noise_multiplier = Some(0.6);
    let (_, reached) = epsilon(&loud);
    loud.privacy.mechanism = Mechanism::Dp;
    let (_, plain) = epsilon(&loud);
    assert!(plain > 20.0 && reached < 1.01 * plain, "{reached} for {plain}");
}

/// Gradients agree at first and cancel later: both kinds of steps are made, and the weights arrive.
#[test]
fn kinds_of_steps_follow_the_training() {
    let plan = params(certified()).check(Pull.facts()).unwrap();
    let noise = NoiseSource::from_seed(1);
    let mut trainer = Trainer::new(plan, &Pull, vec![0.0; DIM], noise).unwrap();
    while trainer.step(&mut Silent).unwrap().is_some() {}
    let summary = trainer.polar().unwrap();
    let counts = summary.counts;
    assert_eq!(counts.polar + counts.isotropic + counts.directionless, 60);
    assert!(counts.polar > 5 && counts.isotropic > 5, "{counts:?}");
    let ratio = summary.mean_ratio.unwrap();
    assert!(ratio > 1.0 && ratio < 1.2, "{summary}");
    let off: f32 = trainer.weights().iter().map(|w| (w - 1.0).powi(2)).sum::<f32>().sqrt();
    assert!(off < 0.3, "{off}");
    let plan = params(Mechanism::Dp).check(Pull.facts()).unwrap();
    let dp = Trainer::new(plan, &Pull, vec![0.0; DIM], NoiseSource::from_seed(1)).unwrap();
    assert_eq!(dp.polar(), None);
}

#[test]
fn goes_with_every_strategy() {
    let moments = Moments::default();
    for optimizer in [
        OptimizerKind::Sgd,
        OptimizerKind::Momentum { momentum: 0.5 },
        OptimizerKind::Adam(moments),
    ] {
        for clip in [ClipKind::Flat, ClipKind::AutoS, ClipKind::Psac] {
            for (is, sur) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut params = params(certified());
                params.privacy.clip = clip;
                params.privacy.importance = is.then(ImportanceParams::default);
                params.privacy.select = sur.then(SelectParams::default);
                params.train.optimizer = Some(optimizer);
                params.train.steps = Some(8);
                let plan = params.check(Pull.facts()).unwrap();
                assert_eq!(plan.protection().kind(), Some(Kind::Certified));
                let noise = NoiseSource::from_seed(2);
                let mut trainer = Trainer::new(plan, &Pull, vec![0.0; DIM], noise).unwrap();
                while trainer.step(&mut Silent).unwrap().is_some() {}
                assert!(trainer.weights().iter().all(|w| w.is_finite()), "{is} {sur} {clip}");
            }
        }
    }
}

/// Copies the run's folder at some steps: what a kill at that moment leaves on the disk.
struct Copies<'a> {
    from: &'a Path,
    to: &'a Path,
    at: &'a [u64],
}

impl Observer for Copies<'_> {
    fn on_step(&mut self, progress: &Progress) {
        if self.at.contains(&progress.step) {
            let to = self.to.join(progress.step.to_string());
            std::fs::create_dir(&to).unwrap();
            for entry in std::fs::read_dir(self.from).unwrap().map(Result::unwrap) {
                std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
            }
        }
    }
}

/// Runs to the end, killed at some steps and resumed: the same weights, the same kinds of steps, the
/// same charges. The noise comes from the system, so only key and checkpoint can tell it again.
fn survives<E: Engine>(
    create: impl FnOnce(&Path) -> Run<E>,
    resume: impl Fn(&Path) -> Result<Run<E>, geodp::Error>,
) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let at = [5, 20, 33];
    let mut copies = Copies { from: &folder, to: parent.path(), at: &at };
    let stop = AtomicBool::new(false);
    let whole = create(&folder).execute(&mut Silent, &mut copies, &stop).unwrap();
    let Ended::Finished(whole) = whole else { panic!("not finished") };
    let counts = whole.statement.polar.unwrap().counts;
    assert_eq!(counts.polar + counts.isotropic + counts.directionless, 40);
    assert!(counts.polar > 4 && counts.isotropic > 0, "{counts:?}");
    for step in at {
        let copy = parent.path().join(step.to_string());
        let resumed = resume(&copy).unwrap();
        assert!(resumed.steps_done() < step, "the copy is from within a block");
        let ended = resumed.execute(&mut Silent, &mut Silent, &stop).unwrap();
        let Ended::Finished(resumed) = ended else { panic!("not finished") };
        assert!(resumed.weights == whole.weights, "killed at step {step}");
        assert_eq!(resumed.statement, whole.statement, "killed at step {step}");
        let ledger = |folder: &Path| Ledger::read(&folder.join("ledger.jsonl")).unwrap().records;
        assert_eq!(ledger(&copy), ledger(&folder));
        let polar = |metrics: &[BlockMetrics]| metrics.iter().map(|m| m.polar).collect::<Vec<_>>();
        assert_eq!(polar(&resumed.metrics), polar(&whole.metrics));
    }
}

#[test]
fn killed_and_resumed_runs_make_the_same_steps_with_every_strategy() {
    let moments = Moments::default();
    for (optimizer, clip, is, sur) in [
        (OptimizerKind::Sgd, ClipKind::Flat, false, false),
        (OptimizerKind::Momentum { momentum: 0.5 }, ClipKind::AutoS, false, true),
        (OptimizerKind::Adam(moments), ClipKind::Psac, true, false),
    ] {
        let mut params = params(certified());
        params.privacy.clip = clip;
        params.privacy.importance = is.then(ImportanceParams::default);
        params.privacy.select = sur.then(SelectParams::default);
        params.train.optimizer = Some(optimizer);
        if let OptimizerKind::Adam(_) = optimizer {
            params.train.learning_rate = Some(0.02);
        }
        params.train.steps = Some(40);
        params.train.checkpoint_every = Some(6);
        let plan = || params.check(Pull.facts()).unwrap();
        survives(
            |folder| Run::create_with(folder, plan(), Pull).unwrap(),
            |folder| Run::resume_with(folder, plan(), Pull),
        );
    }
}

/// The same with the exact sums of a network.
#[test]
fn killed_and_resumed_runs_make_the_same_steps_in_exact_arithmetic() {
    let mut config = RunConfig::mnist().model(ModelConfig::Logistic).mechanism(certified());
    config.privacy.noise_multiplier = Some(0.8);
    config.train.batch = Some(512);
    config.train.steps = Some(40);
    // Slow, so that gradients still agree, and steps are polar, after every resumption.
    config.train.learning_rate = Some(0.3);
    config.train.checkpoint_every = Some(6);
    survives(
        |folder| {
            let run = Run::create(folder, config).unwrap();
            assert_eq!(run.plan().arithmetic(), Arithmetic::Exact);
            run
        },
        Run::resume,
    );
}

#[test]
fn what_does_not_go_with_it_is_refused_with_the_reason() {
    let refusal = |change: fn(&mut PlanParams)| {
        let mut params = params(certified());
        change(&mut params);
        params.check(Pull.facts()).unwrap_err().to_string()
    };
    let adam_bc = refusal(|p| {
        p.train.optimizer = Some(OptimizerKind::AdamBc(Moments::default()));
    });
    assert!(adam_bc.contains("same in every direction"), "{adam_bc}");
    let shuffle = refusal(|p| p.privacy.sampling = Sampling::Shuffle);
    assert!(shuffle.contains("poisson"), "{shuffle}");
    for bad in [
        PolarSettings { delta_share: 0.0, ..PolarSettings::default() },
        PolarSettings { least_radius: -1.0, ..PolarSettings::default() },
        PolarSettings { most_ratio: 0.9, ..PolarSettings::default() },
    ] {
        let params = params(Mechanism::GeodpCertified(bad));
        let error = params.check(Pull.facts()).unwrap_err().to_string();
        assert!(error.contains("certified GeoDP"), "{error}");
    }
}

#[test]
fn its_settings_are_keys_of_a_file() {
    let read = |privacy: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        let text = "[data]\nsource = \"mnist\"\n[model]\nname = \"cnn\"\n[privacy]\n";
        std::fs::write(&path, format!("{text}{privacy}\n")).unwrap();
        RunConfig::read(&path)
    };
    let config =
        read("mechanism = \"geodp-certified\"\nleast_radius = 3.0\nnormalised = true").unwrap();
    let expected =
        PolarSettings { least_radius: 3.0, normalised: true, ..PolarSettings::default() };
    assert_eq!(config.privacy.mechanism, Mechanism::GeodpCertified(expected));
    let written = toml::to_string(&config.privacy).unwrap();
    assert_eq!(read(&written).unwrap().privacy, config.privacy);
    let misplaced = read("mechanism = \"dp\"\nmost_ratio = 2.0").unwrap_err().to_string();
    assert!(misplaced.contains("certified GeoDP"), "{misplaced}");
    assert!(read("mechanism = \"geodp-certified\"\nbeta = 0.1").is_err());
}
