//! Plans that make no sense are refused with a reason that names the parameter.

use geodp::Statement;
use geodp::config::{ConfigFile, RunConfig};
use geodp::optimizer::OptimizerKind;
use geodp::params::{Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::sampler::Sampling;
use geodp_data::{FeatureSpec, Storage};

const FACTS: Facts = Facts { records: 1000, dim: 10 };

fn good() -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.noise_multiplier = Some(1.0);
    params.train.batch = Some(50);
    params.train.epochs = Some(2);
    params.train.learning_rate = Some(0.1);
    params
}

fn refusal(change: impl FnOnce(&mut PlanParams)) -> String {
    let mut params = good();
    change(&mut params);
    params.check(FACTS).expect_err("this plan should be refused").to_string()
}

/// What a file with this under `[privacy]` is refused for.
fn refused(privacy: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    let text = "[data]\nsource = \"mnist\"\n[model]\nname = \"cnn\"\n[privacy]\n";
    std::fs::write(&path, format!("{text}{privacy}\n")).unwrap();
    RunConfig::read(&path).expect_err("this file should be refused").to_string()
}

#[test]
fn a_good_plan_passes() {
    let plan = good().check(FACTS).unwrap();
    assert_eq!((plan.steps(), plan.batch(), plan.noise_multiplier()), (40, 50, Some(1.0)));
    assert!(plan.warnings().is_empty());
}

#[test]
fn wrong_mixes_are_refused_with_the_reason() {
    let cases: Vec<(String, &str)> = vec![
        (refusal(|p| p.privacy.epsilon = Some(1.0)), "noise_multiplier and epsilon are both given"),
        (refused("beta = 0.1"), "DP has none"),
        (refused("mechanism = \"none\"\nbeta = 0.1"), "no noise has none"),
        (refused("mechanism = \"geodp\""), "needs beta"),
        (refused("mechanism = \"geodpp\""), "Did you mean `geodp`?"),
        (refusal(|p| p.privacy.mechanism = Mechanism::Geodp { beta: 1.5 }), "β is 1.5"),
        (refusal(|p| p.privacy.mechanism = Mechanism::Geodp { beta: f64::NAN }), "β is NaN"),
        (refusal(|p| p.privacy.mechanism = Mechanism::None), "adds no noise"),
        (refusal(|p| p.train.batch = Some(1001)), "exceeds the 1000 records"),
        (refusal(|p| p.train.batch = Some(0)), "batch is 0"),
        (refusal(|p| p.train.batch = None), "batch is missing"),
        (refusal(|p| p.train.steps = Some(7)), "epochs and steps are both given"),
        (refusal(|p| p.train.epochs = None), "neither epochs nor steps"),
        (refusal(|p| p.train.epochs = Some(0)), "0 steps"),
        (refusal(|p| p.train.learning_rate = Some(-1.0)), "learning_rate is -1"),
        (refusal(|p| p.train.learning_rate = None), "learning_rate is missing"),
        (refusal(|p| p.privacy.noise_multiplier = Some(0.0)), "noise_multiplier is 0"),
        (refusal(|p| p.privacy.noise_multiplier = Some(f64::NAN)), "noise_multiplier is NaN"),
        (refusal(|p| p.privacy.clip_norm = Some(0.0)), "C is 0"),
        (refusal(|p| p.privacy.delta = Some(1.0)), "delta"),
        (refusal(|p| p.privacy.epsilon_limit = Some(1e-6)), "does not allow a single step"),
        (
            refusal(|p| p.train.optimizer = Some(OptimizerKind::Momentum { momentum: 1.0 })),
            "momentum is 1",
        ),
        (refusal(|p| p.train.checkpoint_every = Some(0)), "checkpoint_every is 0"),
    ];
    for (message, expected) in cases {
        assert!(message.contains(expected), "“{message}” should say “{expected}”");
    }
    let empty = good().check(Facts { records: 0, dim: 10 }).unwrap_err().to_string();
    assert!(empty.contains("empty"));
}

#[test]
fn a_target_is_met_and_never_passed() {
    for mechanism in [Mechanism::Dp, Mechanism::Geodp { beta: 0.1 }] {
        for sampling in [Sampling::Poisson, Sampling::Shuffle] {
            let mut params = good();
            params.privacy.mechanism = mechanism;
            params.privacy.noise_multiplier = None;
            params.privacy.epsilon = Some(2.0);
            params.privacy.sampling = sampling;
            let plan = params.check(FACTS).unwrap();
            let spent = plan.protection().claim_after(plan.steps()).unwrap().unwrap();
            let epsilon = spent.upper();
            assert!(epsilon <= 2.0 && epsilon > 1.995, "{mechanism} {sampling}: {spent}");
            let statement = Statement::new(&plan, plan.steps(), None).unwrap();
            assert_eq!(statement.claims[0], spent, "{mechanism} {sampling}: two answers");
        }
    }
}

/// GeoDP releases magnitude and direction: its conditional ε needs √2 times the noise of DP's.
#[test]
fn geodp_needs_root_two_more_noise_for_the_same_epsilon() {
    let sigma = |mechanism| {
        let mut params = good();
        params.privacy.noise_multiplier = None;
        params.privacy.epsilon = Some(2.0);
        params.privacy.mechanism = mechanism;
        params.check(FACTS).unwrap().noise_multiplier().unwrap()
    };
    let ratio = sigma(Mechanism::Geodp { beta: 0.1 }) / sigma(Mechanism::Dp);
    assert!((ratio - std::f64::consts::SQRT_2).abs() < 2e-3, "{ratio}");
}

#[test]
fn a_limit_cuts_the_steps() {
    let mut params = good();
    let free = params.check(FACTS).unwrap();
    params.privacy.epsilon_limit = Some(1.5);
    let limited = params.check(FACTS).unwrap();
    assert!(limited.steps() < free.steps() && limited.steps() > 0);
    let epsilon = |steps: u64| limited.protection().claim_after(steps).unwrap().unwrap().upper();
    assert!(epsilon(limited.steps()) <= 1.5 && epsilon(limited.steps() + 1) > 1.5);
}

#[test]
fn a_large_delta_and_a_seed_are_warned_of() {
    let mut params = good();
    params.privacy.delta = Some(0.01);
    params.train.seed = Some(4);
    let warnings = params.check(FACTS).unwrap().warnings().join("\n");
    assert!(warnings.contains("not below 1/N") && warnings.contains("seed = 4"), "{warnings}");
}

#[test]
fn configs_come_back_from_toml_and_unknown_keys_name_the_nearest() {
    let text = "[data]\nsource = \"mnist\"\n[model]\nname = \"cnn\"\n[privacy]\nepsilon = 3.0\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    std::fs::write(&path, text).unwrap();
    let mut config = RunConfig::read(&path).unwrap();
    config.complete();
    std::fs::write(&path, config.to_toml().unwrap()).unwrap();
    assert_eq!(RunConfig::read(&path).unwrap(), config);

    std::fs::write(&path, text.replace("epsilon", "epsilom")).unwrap();
    let error = RunConfig::read(&path).unwrap_err().to_string();
    assert!(error.contains("epsilom") && error.contains("Did you mean `epsilon`?"), "{error}");
    std::fs::write(&path, text.replace("mnist", "mnits")).unwrap();
    let error = RunConfig::read(&path).unwrap_err().to_string();
    assert!(error.contains("Did you mean `mnist`?"), "{error}");
}

/// Whoever leaves features open gets halves, written down; a file that has features but no storage means floats, as
/// it did when it was written.
#[test]
fn new_configs_keep_features_as_halves_and_old_files_as_floats() {
    let read = |text: &str| RunConfig::from(toml::from_str::<ConfigFile>(text).unwrap());
    for new in [RunConfig::mnist(), read("[data]\nsource = \"cifar10\"\n")] {
        assert_eq!(new.features, Some(FeatureSpec::scattering_as(Storage::Half)));
        let text = new.to_toml().unwrap();
        assert!(text.contains("storage = \"half\""), "{text}");
        assert_eq!(read(&text), new);
    }
    for model in ["", "[model]\nname = \"logistic\"\n"] {
        let old = read(&format!("[features]\nkind = \"scattering\"\n{model}"));
        assert_eq!(old.features, Some(FeatureSpec::scattering_as(Storage::Single)));
        let text = old.to_toml().unwrap();
        assert!(!text.contains("storage"), "{text}");
        assert_eq!(read(&text), old);
    }
}
