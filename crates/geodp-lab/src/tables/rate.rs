//! The search of η: one public grid for every method, on a split of the training set.
//!
//! All rates of the grid train for a few epochs on five sixths of the training records; the better
//! half goes on; the one with the highest accuracy on the held-back sixth wins. The test set is
//! never looked at. The seed is the search's own.

use super::train::{Training, advance};
use crate::Error;
use serde::{Deserialize, Serialize};

/// Randomness of every search, unlike that of any seed of a table.
const SEARCH_SEED: u64 = 10_000_000;

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
    /// Accuracy on the held-back records when it was last measured; `None` if it diverged.
    pub accuracy: Option<f64>,
    /// Whether it was among the better half.
    pub kept: bool,
}

/// Searches η for the method of `training` (whose own rate is ignored).
///
/// # Errors
/// What `tick` gives, and failures other than divergence.
pub fn search(
    training: &Training<'_>,
    rates: &[f64],
    stages: [u64; 2],
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Search, Error> {
    let engine = training.engine();
    let start = |&rate: &f64| {
        let search = Training { learning_rate: rate, seed: SEARCH_SEED, ..*training };
        search.start(&engine)
    };
    let mut runs = rates.iter().map(start).collect::<Result<Vec<_>, Error>>()?;
    let mut tried: Vec<Tried> =
        rates.iter().map(|&rate| Tried { rate, accuracy: None, kept: true }).collect();
    let kept = rates.len().div_ceil(2);
    let total = (rates.len() as u64 * stages[0] + kept as u64 * (stages[1] - stages[0])) as f64;
    let mut done = 0.0;
    for (stage, &epochs) in stages.iter().enumerate() {
        let length = (epochs - if stage == 0 { 0 } else { stages[0] }) as f64;
        if length == 0.0 {
            continue;
        }
        for (run, tried) in runs.iter_mut().zip(&mut tried).filter(|(_, t)| t.kept) {
            let until = (epochs * engine_records(training)).div_ceil(training.batch);
            let mut inner = |_: f64| tick(done / total);
            tried.accuracy = advance(run, until, &mut inner)?.map(|(accuracy, _)| accuracy);
            done += length;
        }
        if stage == 0 {
            keep_best(&mut tried, kept);
        }
    }
    let best = best_of(&tried);
    Ok(Search {
        chosen: rates[best],
        at_edge: best == 0 || best + 1 == rates.len(),
        tried,
    })
}

fn engine_records(training: &Training<'_>) -> u64 {
    training.data.train.len() as u64
}

/// The most accurate of those kept; the smaller rate on a tie.
fn best_of(tried: &[Tried]) -> usize {
    let score = |i: usize| tried[i].accuracy.filter(|_| tried[i].kept).unwrap_or(-1.0);
    (0..tried.len()).fold(0, |best, i| if score(i) > score(best) { i } else { best })
}

fn keep_best(tried: &mut [Tried], count: usize) {
    let mut order: Vec<usize> = (0..tried.len()).collect();
    let score = |t: &Tried| t.accuracy.unwrap_or(-1.0);
    order.sort_by(|&a, &b| score(&tried[b]).total_cmp(&score(&tried[a])));
    for &i in &order[count..] {
        tried[i].kept = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_half_goes_on_and_the_best_wins() {
        let accuracy = [Some(0.3), None, Some(0.9), Some(0.8), Some(0.8)];
        let mut tried: Vec<Tried> = accuracy
            .iter()
            .enumerate()
            .map(|(i, &accuracy)| Tried { rate: i as f64, accuracy, kept: true })
            .collect();
        assert_eq!(best_of(&tried), 2);
        keep_best(&mut tried, 3);
        assert_eq!(tried.iter().map(|t| t.kept).collect::<Vec<_>>(), [false, false, true, true, true]);
        tried[2].accuracy = Some(0.5);
        assert_eq!(best_of(&tried), 3);
    }
}
