//! Membership inference end to end: an overfitted model without privacy gives its members away, and
//! one trained with much noise does not.

use crate::data;

use data::Blobs;
use geodp::engine::NetworkEngine;
use geodp::params::{Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_audit::Hooks;
use geodp_audit::membership::{Evidence, Pool, Roc, Shadows};
use geodp_mechanism::NoiseSource;
use geodp_nn::NetworkSpec;
use std::sync::atomic::AtomicBool;

const RECORDS: usize = 150;

fn params(private: bool) -> PlanParams {
    let mut params = PlanParams::default();
    if private {
        params.privacy.noise_multiplier = Some(40.0);
        params.privacy.clip_norm = Some(0.5);
    } else {
        params.privacy.mechanism = Mechanism::None;
    }
    params.train.batch = Some(50);
    params.train.steps = Some(if private { 200 } else { 1000 });
    params.train.learning_rate = Some(1.0);
    params
}

/// Evidence of a target trained on the whole training set.
fn evidence(private: bool, models: u64) -> Evidence {
    let (train, test) = (Blobs::new(RECORDS, 20, 10, 1), Blobs::new(2 * RECORDS, 20, 10, 2));
    let network = NetworkSpec::mlp(20, &[64], 10).build().unwrap();
    let params = params(private);
    let plan = params.check(Facts { records: RECORDS as u64, dim: network.dim() }).unwrap();
    let engine = NetworkEngine::new(&network, &train, None);
    let noise = NoiseSource::from_seed(11);
    let mut trainer = Trainer::new(plan, &engine, network.init(0), noise).unwrap();
    while trainer.step(&mut Silent).unwrap().is_some() {}

    let pool = Pool { train: &train, test: &test };
    let members: Vec<u32> = (0..RECORDS as u32).collect();
    let population: Vec<u32> = (RECORDS as u32..2 * RECORDS as u32).collect();
    let source = NoiseSource::from_seed(12);
    let shadows =
        Shadows::new(&network, &pool, &params, &members, &members, &population, source).unwrap();
    let (target, population) = shadows.ask(trainer.weights()).unwrap();
    let stop = AtomicBool::new(false);
    let hooks = Hooks { on_step: &|| {}, stop: &stop };
    let shadows = (0..models)
        .map(|number| shadows.shadow(number, NoiseSource::from_seed(100 + number), &hooks).unwrap())
        .collect();
    let evidence = Evidence { target, population, shadows };
    evidence.check().unwrap();
    evidence
}

fn auc(scores: &[f64]) -> f64 {
    Roc::new(&scores[..RECORDS], &scores[RECORDS..]).unwrap().auc
}

#[test]
fn an_overfitted_model_gives_its_members_away() {
    let evidence = evidence(false, 16);
    for (name, scores) in [
        ("loss", evidence.loss()),
        ("LiRA online", evidence.lira_online()),
        ("LiRA offline", evidence.lira_offline()),
        ("RMIA", evidence.rmia()),
    ] {
        let auc = auc(&scores);
        assert!(auc > 0.9, "{name}: {auc}");
    }
}

/// 5.5 standard errors of an AUC of one half over 150 and 150 records: 0.5 ± 0.18.
#[test]
fn much_noise_hides_the_members() {
    let evidence = evidence(true, 6);
    for scores in [evidence.loss(), evidence.lira_online(), evidence.rmia()] {
        let auc = auc(&scores);
        assert!((auc - 0.5).abs() < 0.18, "{auc}");
    }
}

#[test]
fn every_record_is_in_half_of_the_models() {
    let evidence = evidence(true, 4);
    for record in 0..2 * RECORDS {
        let inside = evidence.shadows.iter().filter(|s| s.member[record]).count();
        assert_eq!(inside, 2);
    }
    assert!(evidence.shadows.iter().all(|s| s.member.iter().filter(|m| **m).count() == RECORDS));
    assert_ne!(evidence.shadows[0].member, evidence.shadows[2].member);
}

#[test]
fn rows_beyond_their_set_are_refused() {
    let (train, test) = (Blobs::new(10, 4, 2, 1), Blobs::new(10, 4, 2, 2));
    let network = NetworkSpec::logistic(4, 2).build().unwrap();
    let pool = Pool { train: &train, test: &test };
    let mut params = params(true);
    params.train.batch = Some(2);
    let source = NoiseSource::from_seed(1);
    let new = |members: &[u32], non_members: &[u32], population: &[u32]| {
        Shadows::new(&network, &pool, &params, members, non_members, population, source.clone())
            .is_err()
    };
    assert!(new(&[10], &[0], &[]) && new(&[0], &[10], &[]) && new(&[0], &[0], &[10]));
    assert!(!new(&[9], &[9], &[8]));
}
