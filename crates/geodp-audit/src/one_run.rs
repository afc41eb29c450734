//! The audit of one training run: m canaries, a fair coin for each, and how often an attacker who
//! sees the result guesses the coins.
//!
//! Steinke, Nasr, Jagielski 2023 ([arXiv:2305.08846](https://arxiv.org/abs/2305.08846), Theorem 5.2):
//! if training is (ε, δ)-DP, of r guesses the number right is dominated by Bin(r, Q) with
//! Q = 1/(1 + e^{−ε}), up to 2mδ·max_i P[v − i ≤ Bin ≤ v − 1]/i. A hypothesis ε whose p-value is
//! below the significance is refuted; the bound is the smallest ε that is not.
//!
//! The attacker guesses "in" for the canaries of highest score and "out" for those of lowest, and
//! abstains between. How many guesses are best is not known beforehand: several numbers are tried,
//! each at its share of the significance, so that the confidence holds for the best of them.

use crate::binomial::{at_least, ln_pmf};
use crate::error::{inside_unit, same_length};
use crate::{AuditStream, Error};
use geodp_mechanism::NoiseSource;
use serde::Serialize;

/// No bound is looked for beyond this ε.
const LARGEST_EPSILON: f64 = 100.0;

/// The p-value of `correct` right guesses of `guesses`, with `canaries` in the game, if training
/// were (ε, δ)-DP.
pub fn p_value(canaries: u64, guesses: u64, correct: u64, delta: f64, epsilon: f64) -> f64 {
    let q = 1.0 / (1.0 + (-epsilon).exp());
    let tail = at_least(guesses, q, correct);
    let mut below = 0.0;
    let mut largest = 0.0_f64;
    if delta > 0.0 {
        for i in 1..=correct {
            below += ln_pmf(guesses, q, correct - i).exp();
            largest = largest.max(below / i as f64);
            // What is left can add at most 1 − below, and i only grows.
            if 1.0 / i as f64 <= largest {
                break;
            }
        }
    }
    (tail + 2.0 * canaries as f64 * delta * largest).min(1.0)
}

/// The smallest ε that `correct` of `guesses` do not refute at `significance`: with confidence
/// 1 − significance, training is not (ε′, δ)-DP for any ε′ below it.
///
/// # Errors
/// Counts that contradict each other, δ outside [0, 1), significance outside (0, 1).
pub fn epsilon_lower_bound(
    canaries: u64,
    guesses: u64,
    correct: u64,
    delta: f64,
    significance: f64,
) -> Result<f64, Error> {
    inside_unit("significance", significance)?;
    if !(0.0..1.0).contains(&delta) {
        return Err(Error::Parameter { name: "delta", range: "in [0, 1)", found: delta });
    }
    if guesses > canaries || correct > guesses {
        let found = if correct > guesses { correct } else { guesses };
        let range = "at most the canaries, and no more right than guessed";
        return Err(Error::Parameter { name: "number of guesses", range, found: found as f64 });
    }
    let refuted = |epsilon: f64| p_value(canaries, guesses, correct, delta, epsilon) < significance;
    if !refuted(0.0) {
        return Ok(0.0);
    }
    // The p-value rises with ε wherever the first term rules; walking up in small steps to the
    // first ε that is not refuted keeps the bound valid even if it should not.
    let mut low = 0.0;
    let mut high = low;
    while high < LARGEST_EPSILON {
        high = low + 0.05;
        if !refuted(high) {
            break;
        }
        low = high;
    }
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if refuted(middle) { low = middle } else { high = middle }
    }
    Ok(low)
}

/// How to audit.
#[derive(Debug, Clone, PartialEq)]
pub struct OneRunParams {
    /// m: how many canaries.
    pub canaries: usize,
    /// δ of the claim.
    pub delta: f64,
    /// 1 − confidence; 0.05 gives 95 %.
    pub significance: f64,
}

/// A number of guesses and how many were right.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Guesses {
    /// r.
    pub guesses: u64,
    /// v.
    pub correct: u64,
    /// ε that these guesses alone refute, at this number's share of the significance.
    pub epsilon_lower: f64,
}

/// What one run showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneRun {
    /// m.
    pub canaries: u64,
    /// δ.
    pub delta: f64,
    /// 1 − significance.
    pub confidence: f64,
    /// A lower bound on ε, of the kind "audited": whatever is claimed below it is refuted.
    pub epsilon_lower: f64,
    /// Every number of guesses tried.
    pub tried: Vec<Guesses>,
    /// Scores of the canaries that took part.
    pub scores_in: Vec<f64>,
    /// Scores of those that did not.
    pub scores_out: Vec<f64>,
}

/// Tosses a fair coin for every canary, trains once with those whose coin fell "in", and bounds ε
/// by how well the scores tell the coins.
///
/// `train` is any procedure: given which canaries take part, it returns a score for each, higher
/// where the result looks as if it took part. It must not depend on the coins in any other way.
///
/// # Errors
/// Bad parameters, a failing procedure, scores that are not one finite number per canary.
pub fn audit(
    params: &OneRunParams,
    coins: &NoiseSource,
    train: impl FnOnce(&[bool]) -> Result<Vec<f64>, Error>,
) -> Result<OneRun, Error> {
    let present = toss(params.canaries, coins)?;
    let scores = train(&present)?;
    judge(params, &present, &scores)
}

/// The coins of an audit.
///
/// # Errors
/// If the source refuses the address.
pub fn toss(canaries: usize, coins: &NoiseSource) -> Result<Vec<bool>, Error> {
    let mut stream = AuditStream::Coins.open(coins, 0)?;
    Ok((0..canaries).map(|_| stream.word() & 1 == 1).collect())
}

/// Bounds ε by how well `scores` tell which canaries were `present`.
///
/// # Errors
/// As [`audit`].
pub fn judge(params: &OneRunParams, present: &[bool], scores: &[f64]) -> Result<OneRun, Error> {
    same_length("scores of canaries", scores.len(), params.canaries)?;
    same_length("coins of canaries", present.len(), params.canaries)?;
    if let Some(index) = scores.iter().position(|score| !score.is_finite()) {
        return Err(Error::Score { what: "canary", index, score: scores[index] });
    }
    let canaries = params.canaries as u64;
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let counts = guess_counts(params.canaries);
    let share = params.significance / counts.len().max(1) as f64;
    let mut tried = Vec::new();
    for guesses in counts {
        let half = guesses / 2;
        let hits = order[..half].iter().filter(|at| present[**at]).count()
            + order[order.len() - half..].iter().filter(|at| !present[**at]).count();
        let (guesses, correct) = (2 * half as u64, hits as u64);
        let epsilon_lower = epsilon_lower_bound(canaries, guesses, correct, params.delta, share)?;
        tried.push(Guesses { guesses, correct, epsilon_lower });
    }
    let of = |wanted: bool| {
        scores.iter().zip(present).filter(move |(_, p)| **p == wanted).map(|(s, _)| *s).collect()
    };
    Ok(OneRun {
        canaries,
        delta: params.delta,
        confidence: 1.0 - params.significance,
        epsilon_lower: tried.iter().map(|t| t.epsilon_lower).fold(0.0, f64::max),
        tried,
        scores_in: of(true),
        scores_out: of(false),
    })
}

/// Numbers of guesses tried, even ones: few confident guesses, or many.
fn guess_counts(canaries: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = [0.03, 0.1, 0.3, 1.0]
        .iter()
        .map(|share| 2 * (share * canaries as f64 / 2.0).floor() as usize)
        .filter(|count| *count >= 2)
        .collect();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `tests/golden/make_golden.py`.
    #[test]
    fn golden_values() {
        for (m, r, v, delta, expected) in [
            (1000, 100, 100, 0.0, 3.492_965),
            (1000, 100, 100, 1e-5, 3.465_376),
            (1000, 100, 95, 1e-5, 2.165_176),
            (1000, 1000, 600, 1e-5, 0.297_227),
            (5000, 1000, 800, 1e-5, 1.252_583),
        ] {
            let found = epsilon_lower_bound(m, r, v, delta, 0.05).unwrap();
            assert!((found - expected).abs() < 2e-6, "{m} {r} {v} {delta}: {found} {expected}");
        }
    }

    #[test]
    fn guessing_no_better_than_a_coin_refutes_nothing() {
        assert_eq!(epsilon_lower_bound(1000, 1000, 500, 1e-5, 0.05).unwrap(), 0.0);
        assert_eq!(epsilon_lower_bound(1000, 0, 0, 1e-5, 0.05).unwrap(), 0.0);
        // So large a δ allows anything.
        assert_eq!(epsilon_lower_bound(1000, 100, 100, 0.4, 0.05).unwrap(), 0.0);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(epsilon_lower_bound(10, 11, 5, 0.0, 0.05).is_err());
        assert!(epsilon_lower_bound(10, 5, 6, 0.0, 0.05).is_err());
        assert!(epsilon_lower_bound(10, 5, 5, f64::NAN, 0.05).is_err());
        assert!(epsilon_lower_bound(10, 5, 5, 0.0, 0.0).is_err());
        let params = OneRunParams { canaries: 2, delta: 0.0, significance: 0.05 };
        assert!(judge(&params, &[true, false], &[1.0]).is_err());
        assert!(judge(&params, &[true, false], &[1.0, f64::NAN]).is_err());
    }

    /// Four numbers of guesses are tried, each at a quarter of the significance.
    #[test]
    fn the_significance_is_shared_out() {
        let params = OneRunParams { canaries: 1000, delta: 1e-5, significance: 0.05 };
        let present: Vec<bool> = (0..1000).map(|i| i % 3 != 0).collect();
        let scores: Vec<f64> = present.iter().map(|p| f64::from(u8::from(*p))).collect();
        let found = judge(&params, &present, &scores).unwrap();
        assert_eq!(found.tried.iter().map(|t| t.guesses).collect::<Vec<_>>(), [30, 100, 300, 1000]);
        for tried in &found.tried {
            let Guesses { guesses, correct, epsilon_lower } = *tried;
            let alone = epsilon_lower_bound(1000, guesses, correct, 1e-5, 0.0125).unwrap();
            assert_eq!(epsilon_lower, alone);
        }
        assert_eq!(
            found.epsilon_lower,
            found.tried[3].epsilon_lower.max(found.tried[2].epsilon_lower)
        );
    }

    #[test]
    fn perfect_scores_are_found_and_blind_ones_are_not() {
        let params = OneRunParams { canaries: 1000, delta: 1e-5, significance: 0.05 };
        let coins = NoiseSource::from_seed(3);
        let tell = |present: &[bool]| Ok(present.iter().map(|p| f64::from(u8::from(*p))).collect());
        let found = audit(&params, &coins, tell).unwrap();
        assert!(found.epsilon_lower > 3.0, "{}", found.epsilon_lower);
        assert_eq!(found.scores_in.len() + found.scores_out.len(), 1000);
        let found = audit(&params, &coins, |_| Ok((0..1000).map(f64::from).collect())).unwrap();
        assert!(found.epsilon_lower < 0.5, "{}", found.epsilon_lower);
    }
}
