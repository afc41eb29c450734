//! What is written down after each block of steps.

use geodp::config::{ModelConfig, RunConfig};
use geodp::engine::Engine;
use geodp::run::{Configured, Ended, Run};
use geodp::watch::Silent;
use geodp_nn::NetworkSpec;

/// ε is computed in the first epoch and, as held-out records are measured, where one ends; what the last block says
/// is what the statement says.
#[test]
fn an_epoch_ends_with_its_claim_and_its_accuracy() {
    let mut config = RunConfig::mnist().model(ModelConfig::Logistic).epsilon(3.0).epochs(3);
    config.train.batch = Some(3_000);
    config.train.checkpoint_every = Some(10);
    config.train.seed = Some(1);
    let folder = tempfile::tempdir().unwrap();
    let run = Run::create(&folder.path().join("run"), config).unwrap();
    let Ended::Finished(done) = run.execute(&mut Silent, &mut Silent, &false.into()).unwrap()
    else {
        panic!("nobody stopped it")
    };
    let metrics = &done.metrics;
    assert_eq!(metrics.iter().map(|m| m.step).collect::<Vec<_>>(), [10, 20, 30, 40, 50, 60]);
    for block in metrics {
        let ends = block.step % 20 == 0;
        assert_eq!(block.test.is_some(), ends, "step {}", block.step);
        assert_eq!(block.epsilon.is_some(), ends || block.step < 20, "step {}", block.step);
    }
    let ends: Vec<f64> = metrics
        .iter()
        .filter(|m| m.test.is_some())
        .map(|m| m.epsilon.as_ref().unwrap().upper())
        .collect();
    assert!(ends.is_sorted() && ends[0] < ends[2], "{ends:?}");
    assert_eq!(metrics[5].epsilon.as_ref(), done.statement.claims.first());
}

/// A curve is made of a quarter of MNIST's held-out images, evenly spread; what stands in the end is of all, and what
/// they are asked for by themselves.
#[test]
fn a_curve_is_of_some_records_and_the_end_of_all() {
    let mut config = RunConfig::mnist().model(ModelConfig::Logistic).epsilon(3.0).epochs(2);
    config.train.batch = Some(6_000);
    config.train.checkpoint_every = Some(10);
    config.train.seed = Some(1);
    let folder = tempfile::tempdir().unwrap();
    let run = Run::create(&folder.path().join("run"), config).unwrap();
    let engine = Configured::load(run.config().clone(), &|_, _| ()).unwrap();
    let Ended::Finished(done) = run.execute(&mut Silent, &mut Silent, &false.into()).unwrap()
    else {
        panic!("nobody stopped it")
    };
    let records: Vec<_> = done.metrics.iter().filter_map(|m| Some(m.test?.records)).collect();
    assert_eq!(records, [2_500, 10_000]);
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    let caption =
        "the last point on all 10\u{202f}000 of them, the points before it on the same 2500.";
    assert!(page.contains(caption));

    let all = engine.evaluate(&done.weights).unwrap().unwrap();
    let end = done.test().unwrap();
    assert_eq!((end.loss, end.accuracy), (all.mean_loss, all.accuracy()));

    let network = NetworkSpec::logistic(784, 10).build().unwrap();
    let quarter: Vec<u32> = (0..10_000).step_by(4).collect();
    let of_quarter = network.evaluate(&done.weights, &engine.split().test, &quarter).unwrap();
    assert_eq!(engine.glance(&done.weights).unwrap(), Some(of_quarter));
}
