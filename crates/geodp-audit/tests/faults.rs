//! Faults that have been found in real libraries, planted in a small trainer: for each, at least one
//! audit must report an ε above what is claimed; without a fault, none may.
//!
//! The trainer is its own, thirty lines long, and goes through the same audits as everything else.
//! One record of ten is the target. Attackers know the trainer's code and look at the releases.

use geodp_account::{Accountant, Adjacency, Event, PldAccountant};
use geodp_audit::Error;
use geodp_audit::distinguish::{DistinguishParams, World, distinguish};
use geodp_audit::one_run::{OneRunParams, audit};
use geodp_mechanism::{NoiseSource, Purpose};
use std::sync::atomic::AtomicBool;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    NoClipping,
    NoiseHalved,
    RealisedDenominator,
    OneRecordNeverClipped,
    NoiseReused,
}

const CLIP: f64 = 1.0;
const SIGMA: f64 = 1.0;
const OTHERS: usize = 9;
/// Public: all ten records, every step.
const BATCH: f64 = 10.0;
const DELTA: f64 = 0.01;

/// Gradients along one axis: the others pull one way, the long target the other way at even steps
/// and along with them at odd ones.
fn gradient(record: usize, step: u64) -> f64 {
    if record < OTHERS {
        CLIP
    } else if step.is_multiple_of(2) {
        -10.0 * CLIP
    } else {
        10.0 * CLIP
    }
}

/// DP-SGD on constant gradients: the releases of every step, along the axis and beside it.
fn train(fault: Fault, world: World, steps: u64, noise: &NoiseSource, trial: u64) -> Vec<[f64; 2]> {
    let records = OTHERS + usize::from(world == World::With);
    let run = 2 * trial + u64::from(world == World::With);
    (0..steps)
        .map(|step| {
            let sum: f64 = (0..records)
                .map(|record| {
                    let g = gradient(record, step);
                    let free = fault == Fault::NoClipping
                        || (fault == Fault::OneRecordNeverClipped && record == OTHERS);
                    if free { g } else { g.clamp(-CLIP, CLIP) }
                })
                .sum();
            let denominator =
                if fault == Fault::RealisedDenominator { records as f64 } else { BATCH };
            let chunk = if fault == Fault::NoiseReused { 0 } else { step };
            let mut normals = [0.0; 2];
            noise.stream(Purpose::Coordinates, run, chunk).unwrap().fill_normals(&mut normals);
            let scale = SIGMA * CLIP / BATCH * if fault == Fault::NoiseHalved { 0.5 } else { 1.0 };
            [sum / denominator + scale * normals[0], scale * normals[1]]
        })
        .collect()
}

type Attacker = fn(&[[f64; 2]]) -> f64;

/// What an auditor tries.
const ATTACKERS: [(&str, Attacker); 3] = [
    ("mean of even steps", |r| -r.iter().step_by(2).map(|x| x[0]).sum::<f64>()),
    ("mean of all steps", |r| -r.iter().map(|x| x[0]).sum::<f64>()),
    ("difference of steps", |r| {
        r.windows(2).map(|pair| pair[1][0] - pair[0][0]).fold(0.0, f64::max)
    }),
];

/// The certified ε of `steps` full-batch releases, and the largest ε that any attacker shows.
fn claim_and_bound(fault: Fault, steps: u64, seed: u64) -> (f64, f64) {
    let mut accountant = PldAccountant::new(Adjacency::AddRemove);
    accountant.compose(&Event::gaussian(SIGMA), steps).unwrap();
    let claim = accountant.epsilon(DELTA).unwrap().upper;
    let noise = NoiseSource::from_seed(seed);
    let params = DistinguishParams { repeats: 20_000, delta: DELTA, significance: 0.05 };
    let bound = ATTACKERS
        .iter()
        .map(|(_, attacker)| {
            distinguish(&params, &AtomicBool::new(false), &|| {}, |world, trial| {
                Ok(attacker(&train(fault, world, steps, &noise, trial)))
            })
            .unwrap()
            .epsilon_lower
        })
        .fold(0.0, f64::max);
    (claim, bound)
}

#[test]
fn without_a_fault_no_audit_exceeds_the_claim() {
    for steps in [1, 2, 4] {
        for seed in 0..2 {
            let (claim, bound) = claim_and_bound(Fault::None, steps, seed);
            assert!(bound <= claim, "{steps} steps, seed {seed}: {bound} > {claim}");
            assert!(bound > 0.3 * claim, "an audit that sees nothing: {bound} of {claim}");
        }
    }
}

#[test]
fn missing_clipping_is_caught() {
    let (claim, bound) = claim_and_bound(Fault::NoClipping, 1, 1);
    assert!(bound > claim, "{bound} {claim}");
}

#[test]
fn halved_noise_is_caught() {
    let (claim, bound) = claim_and_bound(Fault::NoiseHalved, 1, 1);
    assert!(bound > claim, "{bound} {claim}");
}

#[test]
fn a_mean_over_the_realised_batch_is_caught() {
    let (claim, bound) = claim_and_bound(Fault::RealisedDenominator, 1, 1);
    assert!(bound > claim, "{bound} {claim}");
}

#[test]
fn one_record_that_is_never_clipped_is_caught() {
    let (claim, bound) = claim_and_bound(Fault::OneRecordNeverClipped, 1, 1);
    assert!(bound > claim, "{bound} {claim}");
}

#[test]
fn noise_reused_between_steps_is_caught() {
    let (claim, bound) = claim_and_bound(Fault::NoiseReused, 2, 1);
    assert!(bound > claim, "{bound} {claim}");
}

/// The same fault in one run: canaries ten times too long, clipped and not.
#[test]
fn missing_clipping_is_caught_in_one_run() {
    let (canaries, delta, sigma) = (500, 1e-5, 2.0);
    let mut accountant = PldAccountant::new(Adjacency::AddRemove);
    accountant.compose(&Event::gaussian(sigma), 1).unwrap();
    let claim = accountant.epsilon(delta).unwrap().upper;
    let params = OneRunParams { canaries, delta, significance: 0.05 };
    let run = |clipped: bool| {
        let noise = NoiseSource::from_seed(7);
        audit(&params, &noise, |present| {
            let mut scores = vec![0.0; canaries];
            noise
                .stream(Purpose::Coordinates, 0, 0)
                .map_err(Error::from)?
                .fill_normals(&mut scores);
            let length = if clipped { CLIP } else { 10.0 * CLIP };
            for (score, present) in scores.iter_mut().zip(present) {
                *score = sigma * CLIP * *score + if *present { length } else { 0.0 };
            }
            Ok(scores)
        })
        .unwrap()
        .epsilon_lower
    };
    assert!(run(true) <= claim, "{} {claim}", run(true));
    assert!(run(false) > claim, "{} {claim}", run(false));
}
