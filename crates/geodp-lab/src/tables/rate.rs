//! The search of η: one public grid for every method, on a split of the training set.
//!
//! Every rate of the grid trains for a part of the epochs on five sixths of the training records;
//! the one with the highest accuracy on the held-back sixth wins. Large steps make single
//! measurements jump, so the accuracy is the mean over up to four moments of the last half. The
//! test set is never looked at, and the seed is the search's own.

use super::train::{Training, advance};
use crate::Error;
use serde::{Deserialize, Serialize};

/// Randomness of every search, unlike that of any seed of a table.
const SEARCH_SEED: u64 = 10_000_000;
/// Moments at which a rate's accuracy is measured, evenly over the last half of its training.
const MOMENTS: u64 = 4;

/// What a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The winner.
    pub chosen: f64,
    /// Whether the winner is the smallest or largest rate of the grid.
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
    let mut tried = Vec::with_capacity(rates.len());
    for (at, &rate) in rates.iter().enumerate() {
        let one = Training { learning_rate: rate, seed: SEARCH_SEED, ..*training };
        let mut trainer = one.start(&engine)?;
        let mut inner = |share: f64| tick((at as f64 + share) / rates.len() as f64);
        let steps = trainer.plan().steps();
        let mut accuracies = Vec::new();
        for moment in moments(steps) {
            match advance(&mut trainer, moment, None, &mut inner)? {
                Some((accuracy, _)) => accuracies.push(accuracy),
                None => {
                    accuracies.clear();
                    break;
                }
            }
        }
        let accuracy = (!accuracies.is_empty()).then(|| crate::stats::mean(&accuracies));
        tried.push(Tried { rate, accuracy });
    }
    let best = best_of(&tried);
    Ok(Search { chosen: rates[best], at_edge: best == 0 || best + 1 == rates.len(), tried })
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
    fn accuracy_is_measured_over_the_last_half() {
        assert_eq!(moments(16), [10, 12, 14, 16]);
        assert_eq!(moments(1), [1]);
        assert_eq!(moments(5), [4, 5]);
    }
}
