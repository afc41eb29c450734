//! What the finished cells of a table say: one line per row and σ. The page, the CSV and the claims
//! all read these.

use super::loss::Loss;
use super::rows::{Noise, Row};
use super::train::Outcome;
use super::{Found, Job, Table};
use crate::experiment::FinishedOf;
use crate::stats;

/// A row at one σ.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The row.
    pub row: Row,
    /// σ of the column; the row without noise has it, too, and the same numbers in both.
    pub sigma: f64,
    /// The paper's accuracy in %.
    pub published: Option<f64>,
    /// Test accuracy in % of each finished seed that did not diverge.
    pub accuracies: Vec<f64>,
    /// Finished seeds that diverged.
    pub diverged: usize,
    /// The first finished seed: η, β and statement are the same for all.
    pub first: Option<Outcome>,
    /// What the records of each finished seed were measured to pay.
    pub losses: Vec<Loss>,
}

impl Line {
    /// Whether no seed is finished.
    pub fn is_missing(&self) -> bool {
        self.first.is_none()
    }

    /// Mean accuracy in %; `None` if not run or diverged.
    pub fn mean(&self) -> Option<f64> {
        (!self.accuracies.is_empty()).then(|| stats::mean(&self.accuracies))
    }

    /// `93.58 ± 0.12`, `diverged` or `not run`.
    pub fn accuracy_text(&self) -> String {
        match (self.mean(), self.accuracies.len()) {
            (None, _) if self.is_missing() => "not run".to_owned(),
            (None, _) => "diverged".to_owned(),
            (Some(mean), 1) => format!("{mean:.2}"),
            (Some(mean), _) => format!("{mean:.2} ± {:.2}", stats::std_dev(&self.accuracies)),
        }
    }
}

impl Table {
    /// One line per row and σ, whether it was run or not.
    pub fn lines(&self, finished: &FinishedOf<Self>) -> Vec<Line> {
        let mut lines = Vec::new();
        for row in &self.rows {
            for (column, &sigma) in self.sigmas.iter().enumerate() {
                let stored_sigma = if row.method.noise == Noise::None { 0.0 } else { sigma };
                let outcomes =
                    finished.pairs.iter().filter_map(|(job, found)| match (job, found) {
                        (Job::Train(method, sigma, _), Found::Outcome(outcome)) => {
                            (*method == row.method && *sigma == stored_sigma).then_some(&**outcome)
                        }
                        _ => None,
                    });
                lines.push(line(*row, column, sigma, outcomes));
            }
        }
        lines
    }
}

/// The line of a row at a column's σ, from the outcomes of its finished seeds.
fn line<'a>(
    row: Row,
    column: usize,
    sigma: f64,
    outcomes: impl Iterator<Item = &'a Outcome>,
) -> Line {
    let published = row.published.and_then(|p| p.get(column).copied());
    let (accuracies, diverged, first, losses) = (Vec::new(), 0, None, Vec::new());
    let mut line = Line { row, sigma, published, accuracies, diverged, first, losses };
    for outcome in outcomes {
        match outcome.accuracy {
            Some(accuracy) => line.accuracies.push(100.0 * accuracy),
            None => line.diverged += 1,
        }
        line.losses.extend(outcome.measured.clone());
        line.first.get_or_insert_with(|| outcome.clone());
    }
    line
}
