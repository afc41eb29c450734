//! The search of the σ at which the largest measured ε is the wanted one.
//!
//! Measured ε falls as σ grows, between 1/σ and 1/σ², and each value costs a training. So: grow or shrink σ
//! by what the last ratio suggests until the wanted ε lies between two trainings, then interpolate in
//! logarithms. Ends within [`NEAR`] of the wanted ε or after as many trainings as are allowed.

use crate::Error;
use serde::{Deserialize, Serialize};

/// Share by which the measured ε may miss the wanted one.
const NEAR: f64 = 0.04;
/// Most by which σ changes from one training to the next before the wanted ε is between two.
const MOST_CHANGE: f64 = 16.0;

/// One training of a search.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// σ.
    pub sigma: f64,
    /// Largest measured ε; `None` for ∞.
    pub epsilon: Option<f64>,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The σ whose measured ε is nearest to the wanted one.
    pub chosen: f64,
    /// Every σ tried, in order.
    pub tried: Vec<Tried>,
}

/// Searches, beginning at σ = 3.
pub(super) fn search(
    wanted: f64,
    attempts: usize,
    attempt: &mut dyn FnMut(f64) -> Result<Tried, Error>,
) -> Result<Search, Error> {
    let mut tried: Vec<Tried> = Vec::new();
    let mut sigma = 3.0;
    for _ in 0..attempts.max(1) {
        tried.push(attempt(sigma)?);
        if tried.iter().any(|t| miss(t, wanted) <= NEAR) {
            break;
        }
        sigma = next(&tried, wanted);
    }
    let nearest = tried.iter().min_by(|a, b| miss(a, wanted).total_cmp(&miss(b, wanted)));
    let chosen = nearest.map_or(sigma, |t| t.sigma);
    Ok(Search { chosen, tried })
}

/// |ln(measured/wanted)|.
fn miss(tried: &Tried, wanted: f64) -> f64 {
    tried.epsilon.map_or(f64::INFINITY, |e| (e / wanted).ln().abs())
}

fn next(tried: &[Tried], wanted: f64) -> f64 {
    // The largest σ that pays too much, the smallest that pays too little.
    let too_much = tried.iter().filter(|t| t.epsilon.is_none_or(|e| e > wanted));
    let too_much = too_much.max_by(|a, b| a.sigma.total_cmp(&b.sigma));
    let too_little = tried.iter().filter(|t| t.epsilon.is_some_and(|e| e <= wanted));
    let too_little = too_little.min_by(|a, b| a.sigma.total_cmp(&b.sigma));
    match (too_much, too_little) {
        (Some(low), Some(high)) => {
            let share = match (low.epsilon, high.epsilon) {
                (Some(more), Some(less)) if more > less => {
                    (more / wanted).ln() / (more / less).ln()
                }
                _ => 0.5,
            };
            // Not so near an end that nothing is learnt.
            let share = share.clamp(0.1, 0.9);
            low.sigma * (high.sigma / low.sigma).powf(share)
        }
        (Some(low), None) => {
            let ratio = low.epsilon.map_or(MOST_CHANGE, |e| (e / wanted).powf(0.7));
            low.sigma * ratio.clamp(1.1, MOST_CHANGE)
        }
        (None, Some(high)) => {
            let ratio = high.epsilon.map_or(1.0, |e| (e / wanted).powf(0.7));
            high.sigma * ratio.clamp(1.0 / MOST_CHANGE, 0.9)
        }
        (None, None) => 3.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_epsilon_is_found_where_it_falls_with_sigma() {
        for (scale, power) in [(5.0_f64, 1.0), (400.0, 1.6), (0.02, 1.2)] {
            // Beyond all bounds where σ is tiny.
            let measured = |sigma: f64| (sigma > 0.01).then(|| scale * sigma.powf(-power));
            let found =
                search(3.0, 8, &mut |sigma| Ok(Tried { sigma, epsilon: measured(sigma) })).unwrap();
            let ended = measured(found.chosen).unwrap();
            assert!((ended / 3.0).ln().abs() < 0.05, "{ended} of {found:?}");
        }
    }

    #[test]
    fn attempts_are_bounded() {
        let found = search(3.0, 3, &mut |sigma| Ok(Tried { sigma, epsilon: None })).unwrap();
        assert_eq!(found.tried.len(), 3);
        assert!(found.tried[2].sigma > found.tried[0].sigma);
    }
}
