//! What the finished cells of a table say: one line a row and σ. The page, the CSV and the claims
//! all read these.

use super::rows::{Noise, Row};
use super::train::Outcome;
use super::{Job, Table};
use crate::options::Options;
use crate::store::{Settings, Store};
use crate::{Error, stats};

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
    /// One line a row and σ, whether it was run or not.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn lines(&self, store: &Store) -> Result<Vec<Line>, Error> {
        let settings = store.settings(self.id)?;
        let seeds = settings.as_ref().map_or(0, |s| s.seeds);
        let mut lines = Vec::new();
        for row in &self.rows {
            for (column, &sigma) in self.sigmas.iter().enumerate() {
                let stored_sigma = if row.method.noise == Noise::None { 0.0 } else { sigma };
                let mut line = Line {
                    row: *row,
                    sigma,
                    published: row.published.and_then(|p| p.get(column).copied()),
                    accuracies: Vec::new(),
                    diverged: 0,
                    first: None,
                };
                for seed in 0..seeds {
                    let job = Job::Train(row.method, stored_sigma, seed);
                    let Some(outcome) = self.finished(&job, settings.as_ref(), store)? else {
                        continue;
                    };
                    match outcome.accuracy {
                        Some(accuracy) => line.accuracies.push(100.0 * accuracy),
                        None => line.diverged += 1,
                    }
                    line.first.get_or_insert(outcome);
                }
                lines.push(line);
            }
        }
        Ok(lines)
    }

    /// The outcome of a cell, unless it was run by another protocol than the page describes.
    fn finished(
        &self,
        job: &Job,
        settings: Option<&Settings>,
        store: &Store,
    ) -> Result<Option<Outcome>, Error> {
        let (Some(settings), Some(record)) = (settings, store.read(self.id, &job.key())?) else {
            return Ok(None);
        };
        if record.config != self.cell(job, &Options::of(settings)).config {
            return Ok(None);
        }
        store.result(self.id, &job.key())
    }
}
