//! The audit by repetition: the same procedure many times with a record and without it, and how
//! well one number tells the two worlds apart.
//!
//! If a release is (ε, δ)-DP, every test has TPR ≤ e^ε·FPR + δ and TNR ≤ e^ε·FNR + δ. With limits
//! of Clopper and Pearson, ε ≥ max(ln((TPR_lo − δ)/FPR_hi), ln((TNR_lo − δ)/FNR_hi)). The threshold
//! is chosen on the first half of the trials and judged on the second, so that the choice costs no
//! confidence. Any score gives a valid bound; a good one gives a tight bound.

use crate::Error;
use crate::binomial::{lower_limit, upper_limit};
use crate::error::inside_unit;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};

/// Which of two neighbouring data sets a trial runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// The record is there.
    With,
    /// It is not.
    Without,
}

/// How to repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistinguishParams {
    /// Trials in each world; half of them choose the threshold.
    pub repeats: u64,
    /// δ of the claim.
    pub delta: f64,
    /// 1 − confidence.
    pub significance: f64,
}

/// What the repetitions showed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// A lower bound on ε, of the kind "audited".
    pub epsilon_lower: f64,
    /// δ.
    pub delta: f64,
    /// 1 − significance.
    pub confidence: f64,
    /// Trials judged in each world.
    pub judged: u64,
    /// Those of the world with the record whose score passed the threshold.
    pub true_positives: u64,
    /// Those of the world without it whose score passed.
    pub false_positives: u64,
}

/// Runs `score` `repeats` times in each world and bounds ε. Trials run on all cores; each is told
/// its world and its number, from which its randomness must come. `done` hears of every trial.
///
/// # Errors
/// Bad parameters, a failing trial, a score that is not finite; [`Error::Stopped`] if `stop` is set.
pub fn distinguish(
    params: &DistinguishParams,
    stop: &AtomicBool,
    done: &(dyn Fn() + Sync),
    score: impl Fn(World, u64) -> Result<f64, Error> + Sync,
) -> Result<Bound, Error> {
    inside_unit("significance", params.significance)?;
    if params.repeats < 2 {
        let (range, found) = ("at least 2", params.repeats as f64);
        return Err(Error::Parameter { name: "number of repeats", range, found });
    }
    let run = |world| {
        (0..params.repeats)
            .into_par_iter()
            .map(|trial| {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Stopped);
                }
                let value = score(world, trial)?;
                done();
                if value.is_finite() {
                    Ok(value)
                } else {
                    Err(Error::Score { what: "trial", index: trial as usize, score: value })
                }
            })
            .collect::<Result<Vec<f64>, Error>>()
    };
    let (with, without) = (run(World::With)?, run(World::Without)?);
    Ok(bound(params, &with, &without))
}

/// Chooses on the first halves, judges on the second.
fn bound(params: &DistinguishParams, with: &[f64], without: &[f64]) -> Bound {
    let choose = with.len() / 2;
    let (with_choose, with_judge) = with.split_at(choose);
    let (without_choose, without_judge) = without.split_at(choose);
    let threshold = best_threshold(params, with_choose, without_choose);
    let passed = |scores: &[f64]| scores.iter().filter(|score| **score > threshold).count() as u64;
    let (judged, hits, alarms) =
        (with_judge.len() as u64, passed(with_judge), passed(without_judge));
    Bound {
        epsilon_lower: epsilon_lower(params, judged, hits, alarms),
        delta: params.delta,
        confidence: 1.0 - params.significance,
        judged,
        true_positives: hits,
        false_positives: alarms,
    }
}

/// The bound of given counts. One limit each for TPR and FPR at half the significance serves both
/// directions: TNR = 1 − FPR and FNR = 1 − TPR.
fn epsilon_lower(params: &DistinguishParams, judged: u64, hits: u64, alarms: u64) -> f64 {
    let alpha = 0.5 * params.significance;
    let hits_low = lower_limit(judged, hits, alpha);
    let alarms_high = upper_limit(judged, alarms, alpha);
    let ln_ratio = |over: f64, under: f64| {
        if over > params.delta { ((over - params.delta) / under).ln() } else { 0.0 }
    };
    ln_ratio(hits_low, alarms_high).max(ln_ratio(1.0 - alarms_high, 1.0 - hits_low)).max(0.0)
}

/// The threshold whose bound on these scores is largest, of about 200 quantiles, denser towards
/// the ends, where ratios are large.
fn best_threshold(params: &DistinguishParams, with: &[f64], without: &[f64]) -> f64 {
    let sorted = |scores: &[f64]| {
        let mut sorted = scores.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let (with, without) = (sorted(with), sorted(without));
    let judged = with.len() as u64;
    let passed =
        |scores: &[f64], at: f64| (scores.len() - scores.partition_point(|s| *s <= at)) as u64;
    let mut best = (-1.0, f64::INFINITY);
    for scores in [&with, &without] {
        for place in places(scores.len()) {
            let at = scores[place];
            let epsilon = epsilon_lower(params, judged, passed(&with, at), passed(&without, at));
            if epsilon > best.0 {
                best = (epsilon, at);
            }
        }
    }
    best.1
}

/// Places in a sorted list: 0, 1, 2, 3, 5, 8, … from both ends.
fn places(len: usize) -> Vec<usize> {
    let mut steps = Vec::new();
    let mut at = 0usize;
    while at < len {
        steps.push(at);
        at += (at / 8).max(1);
    }
    let from_end: Vec<usize> = steps.iter().map(|step| len - 1 - step).collect();
    steps.into_iter().chain(from_end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use geodp_account::{Accountant, Adjacency, Event, PldAccountant};
    use geodp_mechanism::{NoiseSource, Purpose};

    fn gaussian(sigma: f64, params: &DistinguishParams, seed: u64) -> Bound {
        let noise = NoiseSource::from_seed(seed);
        distinguish(params, &AtomicBool::new(false), &|| {}, |world, trial| {
            let chunk = u64::from(world == World::With);
            let normal = noise.stream(Purpose::Coordinates, trial, chunk)?.normal();
            Ok(sigma * normal + if world == World::With { 1.0 } else { 0.0 })
        })
        .unwrap()
    }

    /// The Gaussian mechanism's bound comes near its ε and does not pass it.
    #[test]
    fn a_gaussian_is_bounded_from_below() {
        for (sigma, delta, near) in [(1.0, 0.01, 0.7), (0.5, 0.01, 0.6), (2.0, 0.05, 0.4)] {
            let params = DistinguishParams { repeats: 40_000, delta, significance: 0.05 };
            let mut accountant = PldAccountant::new(Adjacency::AddRemove);
            accountant.compose(&Event::gaussian(sigma), 1).unwrap();
            let truth = accountant.epsilon(delta).unwrap();
            for seed in 0..5 {
                let found = gaussian(sigma, &params, seed).epsilon_lower;
                assert!(found <= truth.upper, "{sigma} {seed}: {found} {truth}");
                assert!(found > near * truth.lower, "{sigma} {seed}: {found} {truth}");
            }
        }
    }

    /// A score that knows nothing bounds nothing, also if it is always the same.
    #[test]
    fn nothing_is_found_where_there_is_nothing() {
        let params = DistinguishParams { repeats: 2000, delta: 1e-5, significance: 0.05 };
        let stop = AtomicBool::new(false);
        let constant = distinguish(&params, &stop, &|| {}, |_, _| Ok(1.0)).unwrap();
        assert_eq!(constant.epsilon_lower, 0.0);
        let blind =
            distinguish(&params, &stop, &|| {}, |_, trial| Ok((trial % 97) as f64)).unwrap();
        assert!(blind.epsilon_lower < 0.2);
    }

    /// Scores that know nothing: the two limits part by chance in at most 0.28 % of the audits (two
    /// normals 2.77 apart). Of 2000, more than 18 would be 5.5 standard errors above 5.6; choosing and
    /// judging on the same trials shows about 50.
    #[test]
    fn choosing_the_threshold_costs_no_confidence() {
        let params = DistinguishParams { repeats: 200, delta: 1e-5, significance: 0.05 };
        let mut wrong = 0;
        for seed in 0..2000 {
            let noise = NoiseSource::from_seed(seed);
            let scores = |chunk: u64| {
                let mut scores = vec![0.0; 200];
                noise.stream(Purpose::Audit, 0, chunk).unwrap().fill_normals(&mut scores);
                scores
            };
            wrong += usize::from(bound(&params, &scores(0), &scores(1)).epsilon_lower > 0.0);
        }
        assert!(wrong <= 18, "{wrong} of 2000");
    }

    #[test]
    fn perfect_separation_is_limited_by_the_trials_alone() {
        let params = DistinguishParams { repeats: 2000, delta: 1e-5, significance: 0.05 };
        let tell = |world, _| Ok(if world == World::With { 1.0 } else { 0.0 });
        let found = distinguish(&params, &AtomicBool::new(false), &|| {}, tell).unwrap();
        assert_eq!((found.judged, found.true_positives, found.false_positives), (1000, 1000, 0));
        // 0 of 1000: FPR below 1 − 0.025^(1/1000) = 0.00368.
        assert!((found.epsilon_lower - (1.0f64 - 0.003_682).ln() + 0.003_682f64.ln()).abs() < 1e-2);
    }

    #[test]
    fn failures_and_stops_are_passed_on() {
        let params = DistinguishParams { repeats: 10, delta: 1e-5, significance: 0.05 };
        let run =
            |stop: bool| distinguish(&params, &AtomicBool::new(stop), &|| {}, |_, _| Ok(f64::NAN));
        assert!(matches!(run(false), Err(Error::Score { .. })));
        assert!(matches!(run(true), Err(Error::Stopped)));
    }
}
