//! Releases that hold except with a small probability: what that adds to δ.
//!
//! If, for each of two neighbours, what is released differs from the accounted release by at most m
//! in total variation, then (ε, δ) of the accounted one becomes (ε, δ + (1 + e^ε)·m): m on one side,
//! and e^ε·m on the other. Asked for ε at δ, a share of δ is set aside for that term, the smallest of
//! a few that suffices.

use crate::{Bracket, Error, Reason};

/// Shares of δ that may be set aside. The first is what plans aim at.
const SHARES: [f64; 4] = [0.01, 0.1, 0.5, 0.9];
/// Covers the roundings of the few operations below.
const ROUNDING: f64 = 1.0 + 16.0 * f64::EPSILON;

/// (1 + e^ε)·m, rounded up.
pub fn delta_of_misses(misses: f64, epsilon: f64) -> f64 {
    if misses == 0.0 { 0.0 } else { misses * (1.0 + epsilon.exp()) * ROUNDING }
}

/// ε at `delta` with `misses`, where `accounted` answers without. Bounded from above only: what may go
/// wrong with probability m need not.
pub(crate) fn epsilon_with_misses(
    misses: f64,
    delta: f64,
    accounted: impl Fn(f64) -> Result<Bracket, Error>,
) -> Result<Bracket, Error> {
    if misses == 0.0 {
        return accounted(delta);
    }
    for share in SHARES {
        let answer = accounted(delta * (1.0 - share) / ROUNDING)?;
        if answer.reason == Some(Reason::NoPrivacy) {
            return Ok(answer);
        }
        if delta_of_misses(misses, answer.upper) <= share * delta / ROUNDING {
            return Ok(Bracket::new(0.0, answer.upper, answer.adjacency, Some(Reason::OneSided)));
        }
    }
    let adjacency = accounted(delta)?.adjacency;
    Ok(Bracket::new(0.0, f64::INFINITY, adjacency, Some(Reason::Uncertified)))
}

/// δ at `epsilon` with `misses`.
pub(crate) fn delta_with_misses(misses: f64, epsilon: f64, accounted: Bracket) -> Bracket {
    if misses == 0.0 {
        return accounted;
    }
    let upper = (accounted.upper + delta_of_misses(misses, epsilon)).min(1.0);
    let reason = accounted.reason.unwrap_or(Reason::OneSided);
    Bracket::new(0.0, upper, accounted.adjacency, Some(reason))
}
