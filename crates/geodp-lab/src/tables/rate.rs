//! The search of η: one public grid for every method, on a split of the training set.
//!
//! Every rate of the grid trains for a part of the epochs on five sixths of the training records;
//! the one with the highest accuracy on the held-back sixth wins. A winner at the edge of the grid
//! may have a better neighbour outside, so the grid then grows by factors of two, at most
//! [`MOST_MORE`] times: no method is held back by where the grid happens to end. Large steps make
//! single measurements jump, so the accuracy is the mean over up to four moments of the last half.
//! The test set is never looked at, and the seed is the search's own.

use super::train::{Training, advance};
use crate::Error;
use geodp::watch::Silent;
use serde::{Deserialize, Serialize};

/// Randomness of every search, unlike that of any seed of a table.
const SEARCH_SEED: u64 = 10_000_000;
/// Moments at which a rate's accuracy is measured, evenly over the last half of its training.
const MOMENTS: u64 = 4;
/// Rates tried beyond the grid.
pub const MOST_MORE: usize = 3;

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The winner.
    pub chosen: f64,
    /// Whether the winner is the smallest or largest rate tried.
    pub at_edge: bool,
    /// Every rate tried.
    pub tried: Vec<Tried>,
}

/// One rate of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// η.
    pub rate: f64,
    /// Mean accuracy on the held-back records; `None` if it diverged.
    pub accuracy: Option<f64>,
}

/// Searches η for the method of `training` (whose own rate and seed are ignored).
///
/// # Errors
/// What `tick` gives, and failures other than divergence.
pub fn search(
    training: &Training<'_>,
    rates: &[f64],
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Search, Error> {
    let engine = training.engine();
    let mut done = 0;
    let mut attempt = |rate: f64| {
        let one = Training { learning_rate: rate, seed: SEARCH_SEED, ..*training };
        let mut trainer = one.start(&engine)?;
        let at = done.min(rates.len() - 1) as f64;
        let mut inner = |share: f64| tick((at + share) / rates.len() as f64);
        let mut accuracies = Vec::new();
        for moment in moments(trainer.plan().steps()) {
            match advance(&mut trainer, moment, &mut Silent, &mut inner)? {
                Some((accuracy, _)) => accuracies.push(accuracy),
                None => {
                    accuracies.clear();
                    break;
                }
            }
        }
        done += 1;
        let accuracy = (!accuracies.is_empty()).then(|| crate::stats::mean(&accuracies));
        Ok(Tried { rate, accuracy })
    };
    climb(rates, &mut attempt)
}

/// Tries the ascending grid, then goes on beyond the edge at which the winner stands.
fn climb(
    rates: &[f64],
    attempt: &mut dyn FnMut(f64) -> Result<Tried, Error>,
) -> Result<Search, Error> {
    let mut tried = rates.iter().map(|&rate| attempt(rate)).collect::<Result<Vec<_>, _>>()?;
    for _ in 0..MOST_MORE {
        let best = best_of(&tried);
        if best + 1 == tried.len() {
            tried.push(attempt(tried[best].rate * 2.0)?);
        } else if best == 0 {
            tried.insert(0, attempt(tried[0].rate / 2.0)?);
        } else {
            break;
        }
    }
    let best = best_of(&tried);
    let at_edge = best == 0 || best + 1 == tried.len();
    Ok(Search { chosen: tried[best].rate, at_edge, tried })
}

/// Step numbers at which to measure, ending with the last.
fn moments(steps: u64) -> Vec<u64> {
    let mut all: Vec<u64> = (1..=MOMENTS).map(|k| steps - (MOMENTS - k) * steps / 8).collect();
    all.dedup();
    all
}

/// The most accurate; the smaller rate on a tie.
fn best_of(tried: &[Tried]) -> usize {
    let score = |i: usize| tried[i].accuracy.unwrap_or(-1.0);
    (0..tried.len()).fold(0, |best, i| if score(i) > score(best) { i } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_wins_and_divergence_loses() {
        let of = |accuracy: &[Option<f64>]| {
            let tried = accuracy.iter().map(|&accuracy| Tried { rate: 1.0, accuracy });
            best_of(&tried.collect::<Vec<_>>())
        };
        assert_eq!(of(&[Some(0.3), None, Some(0.9), Some(0.8)]), 2);
        assert_eq!(of(&[None, Some(0.1), Some(0.1)]), 1);
        assert_eq!(of(&[None, None]), 0);
    }

    #[test]
    fn the_search_leaves_the_grid_when_the_winner_stands_at_its_edge() {
        // Accuracy falls with the distance, in factors of two, from the best rate.
        let found = |best: f64| {
            let score = |rate: f64| 0.9 - 0.1 * (rate / best).log2().abs();
            climb(&[8.0, 16.0, 32.0], &mut |rate| Ok(Tried { rate, accuracy: Some(score(rate)) }))
                .unwrap()
        };
        let inside = found(16.0);
        assert_eq!((inside.chosen, inside.at_edge, inside.tried.len()), (16.0, false, 3));
        let above = found(64.0);
        assert_eq!((above.chosen, above.at_edge, above.tried.len()), (64.0, false, 5));
        let below = found(4.0);
        assert_eq!((below.chosen, below.at_edge, below.tried.len()), (4.0, false, 5));
        let far = found(4096.0);
        assert_eq!((far.chosen, far.at_edge), (256.0, true));
    }

    #[test]
    fn accuracy_is_measured_over_the_last_half() {
        assert_eq!(moments(16), [10, 12, 14, 16]);
        assert_eq!(moments(1), [1]);
        assert_eq!(moments(5), [4, 5]);
    }
}
