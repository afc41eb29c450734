//! The jobs of a table and their order: `rate-…` (a search), `beta-star`, and one training per row, σ and seed.
//!
//! All seeds of the rows without add-ons come first, then the add-ons; each search stands before the first
//! training that takes its η from it, so that a run may be stopped anywhere and what is finished says something.

use super::Table;
use super::crossing::CrossingBeta;
use super::protocol::Protocol;
use super::rate::Search;
use super::rows::{self, Beta, Method, Noise, Row};
use super::train::Outcome;
use crate::options::{Options, Size};
use serde::{Deserialize, Serialize};

/// Trainings of the row without noise, on which a reading of B is judged.
const YARDSTICK_SEEDS: u64 = 3;

pub(super) const CROSSING: Noise = Noise::Geodp { beta: Beta::Crossing };

/// One piece of work of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Job {
    /// The measurement of β*.
    CrossingBeta,
    /// The search of η for a method at a σ.
    Rate(Method, f64),
    /// The training of a method at a σ with a seed.
    Train(Method, f64, u64),
}

/// What a job found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    /// Of [`Job::CrossingBeta`].
    CrossingBeta(CrossingBeta),
    /// Of [`Job::Rate`].
    Search(Search),
    /// Of [`Job::Train`].
    Outcome(Box<Outcome>),
}

impl Found {
    /// β*, if that is what was found.
    pub fn crossing_beta(&self) -> Option<&CrossingBeta> {
        if let Self::CrossingBeta(found) = self { Some(found) } else { None }
    }

    /// The search, if that is what was found.
    pub fn search(&self) -> Option<&Search> {
        if let Self::Search(found) = self { Some(found) } else { None }
    }
}

impl Job {
    /// What is trained, at which σ.
    pub(super) fn method(&self) -> (Method, f64) {
        match *self {
            Job::CrossingBeta => (Method::plain(Noise::None, rows::LARGE_BATCH), 0.0),
            Job::Rate(method, sigma) | Job::Train(method, sigma, _) => (method, sigma),
        }
    }

    pub(super) fn key(&self) -> String {
        match self {
            Job::CrossingBeta => "beta-star".to_owned(),
            Job::Rate(method, sigma) => format!("rate-{}-sigma{sigma}", method.key()),
            Job::Train(method, sigma, seed) => format!("{}-sigma{sigma}-seed{seed}", method.key()),
        }
    }
}

impl Table {
    /// The rows with or without add-ons, the most wanted first. Outside the reading as stated these are the
    /// one without noise, which shows whether the reading holds, and the others at B = 16384, which carry
    /// the claims.
    fn by_want(&self, add_ons: bool) -> Vec<&Row> {
        let mut rows: Vec<&Row> =
            self.rows.iter().filter(|row| row.method.has_add_on() == add_ons).collect();
        if self.protocol != Protocol::AsStated {
            let last = |row: &&Row| match row.method {
                Method { noise: Noise::None, .. } => 0,
                Method { batch: rows::LARGE_BATCH, .. } => 1,
                _ => 2,
            };
            rows.sort_by_key(last);
        }
        rows
    }

    /// Repetitions of a row. A reading of B stands or falls with the row without noise, and one training of the
    /// ResNet moves by 0.7 points with its seed: it has three at least.
    fn seeds(&self, row: &Row, options: &Options) -> u64 {
        let yardstick = row.method.noise == Noise::None
            && self.protocol != Protocol::AsStated
            && options.size == Size::Full;
        if yardstick { options.seeds.max(YARDSTICK_SEEDS) } else { options.seeds }
    }

    /// Every job: each search comes before the first training it serves.
    pub(super) fn list_jobs(&self, options: &Options) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        for add_ons in [false, true] {
            let rows = self.by_want(add_ons);
            let most = rows.iter().map(|row| self.seeds(row, options)).max().unwrap_or(0);
            for seed in 0..most {
                for row in rows.iter().filter(|row| seed < self.seeds(row, options)) {
                    for sigma in self.columns(&row.method) {
                        let needed = [
                            (row.method.noise == CROSSING).then_some(Job::CrossingBeta),
                            Some(Job::Rate(row.method.rate_owner(), sigma)),
                            Some(Job::Train(row.method, sigma, seed)),
                        ];
                        for job in needed.into_iter().flatten() {
                            if !jobs.contains(&job) {
                                jobs.push(job);
                            }
                        }
                    }
                }
            }
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_reading_is_judged_on_three_trainings_without_noise() {
        let options = |size| Options { size, seeds: 1, epochs: None, data_dir: PathBuf::new() };
        let trainings = |table: Table, size, noise_free: bool| {
            let jobs = table.list_jobs(&options(size));
            let of = |job: &&Job| match job {
                Job::Train(method, ..) => (method.noise == Noise::None) == noise_free,
                _ => false,
            };
            jobs.iter().filter(of).count()
        };
        assert_eq!(trainings(Table::two_in_small_steps(), Size::Full, true), 3);
        assert_eq!(trainings(Table::three_trained(), Size::Full, true), 3);
        assert_eq!(trainings(Table::two_in_small_steps(), Size::Quick, true), 1);
        assert_eq!(trainings(Table::three(), Size::Full, true), 1);
        assert_eq!(trainings(Table::three_in_small_steps(), Size::Full, false), 40);
    }

    /// A training finds its η, and β* where it wants it, among the cells before it.
    #[test]
    fn every_job_comes_after_what_it_needs() {
        let data_dir = PathBuf::new();
        let options = Options { size: Size::Full, seeds: 2, epochs: None, data_dir };
        for table in Protocol::ALL.into_iter().flat_map(Table::under) {
            let jobs = table.list_jobs(&options);
            for (at, job) in jobs.iter().enumerate() {
                let earlier = |needed: Job| jobs[..at].contains(&needed);
                if let Job::Train(method, sigma, _) = job {
                    assert!(earlier(Job::Rate(method.rate_owner(), *sigma)), "{job:?}");
                }
                let crossing = job.method().0.noise == CROSSING;
                assert!(!crossing || earlier(Job::CrossingBeta), "{job:?}");
                assert!(!earlier(*job), "{job:?} stands twice");
            }
        }
    }
}
