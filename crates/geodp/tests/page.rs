//! The report page of real runs, as a browser shows it.

#[path = "../../geodp-report/tests/in_browser/mod.rs"]
mod in_browser;

use geodp::config::{DataConfig, ModelConfig, RunConfig};
use geodp::params::Mechanism;
use geodp::run::{Ended, Run};
use geodp::watch::Silent;

/// Trains on MNIST's 0 and 1 and returns the page.
fn report(name: &str, change: impl FnOnce(&mut RunConfig)) -> String {
    let mut config = RunConfig {
        data: DataConfig::Mnist { labels: Some(vec![0, 1]), unit_scaling: true, holdout: None },
        features: None,
        views: None,
        model: ModelConfig::Logistic,
        privacy: Default::default(),
        train: Default::default(),
        ledger: Default::default(),
    };
    config.train.epochs = Some(3);
    change(&mut config);
    config.complete();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join(name);
    let run = Run::create(&folder, config).unwrap();
    let Ended::Finished(_) = run.execute(&mut Silent, &mut Silent, &false.into()).unwrap() else {
        panic!("nobody stopped it")
    };
    std::fs::read_to_string(folder.join("report.html")).unwrap()
}

#[test]
fn the_page_of_a_dp_run_fits_a_phone_and_a_desk() {
    let page = report("dp", |_| {});
    assert!(page.contains("certified ε") || page.contains("Certified ε"));
    // All points are of all records: nothing is said of how many.
    assert!(page.contains("that took no part in training."));
    in_browser::check("run-dp", &page, 5);
}

#[test]
fn the_page_of_a_geodp_run_with_strategies_fits_a_phone_and_a_desk() {
    let page = report("geodp", |config| {
        config.privacy.mechanism = Mechanism::Geodp { beta: 0.1 };
        config.privacy.noise_multiplier = Some(1.0);
        config.privacy.select = Some(Default::default());
        config.privacy.importance = Some(Default::default());
        config.train.seed = Some(1);
    });
    assert!(page.contains("Conditional ε") && !page.contains("ertified ε"));
    assert!(page.contains("accepted") && page.contains("all are charged"));
    in_browser::check("run-geodp", &page, 5);
}
