//! What is written down after each block of steps.

use geodp::config::{ModelConfig, RunConfig};
use geodp::run::{Ended, Run};
use geodp::watch::Silent;

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
