//! A run: a training with a folder that survives anything.
//!
//! | file | holds |
//! |---|---|
//! | `run.toml` | the whole config, re-runnable |
//! | `ledger.jsonl` | every charged event, hash-chained, durable before its release |
//! | `checkpoint` | weights, optimiser, position; replaced atomically |
//! | `metrics.jsonl` | losses, accuracies, norms; for the data's owner |
//! | `following-STEP.json`, `measured.json` | what a follower knows, and what it found; for the owner |
//! | `noise.key` | the noise's key while the run is unfinished; for the owner; deleted at the end |
//! | `model.safetensors`, `statement.json`, `report.html` | the result |
//!
//! Steps happen in blocks. A block is charged in the ledger and synced before its first step; its
//! weights are seen (checkpoint, metrics, model) only after. A killed run resumes at its last
//! checkpoint and repeats the steps since with the same batches and the same noise: the same bits
//! are released again, so nothing is charged twice and nothing is missed.

mod books;
pub(crate) mod checkpoint;
pub(crate) mod files;
mod finish;
mod follow;
pub mod metrics;
mod open;
mod review;
mod standalone;

pub use files::write_atomically;
pub use follow::{Findings, Follow};
pub use metrics::{BlockMetrics, TestMetrics};
pub use review::Review;

use crate::Error;
use crate::config::RunConfig;
use crate::engine::NetworkEngine;
use crate::plan::Plan;
use crate::statement::Statement;
use crate::trainer::Trainer;
use books::Books;
use checkpoint::Checkpoint;
use files::FolderLock;
use geodp_data::Split;
use geodp_mechanism::NoiseSource;
use geodp_nn::Network;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a run tells while it works. All methods have empty defaults.
pub trait Observer {
    /// After every step.
    fn on_step(&mut self, _progress: &Progress) {}
    /// After every block, with everything measured.
    fn on_block(&mut self, _metrics: &BlockMetrics) {}
    /// Something the user should read.
    fn on_warning(&mut self, _message: &str) {}
}

/// An observer that does not look.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {}

/// Where a run stands within a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Steps of the plan.
    pub steps: u64,
    /// Records used in this step.
    pub records: usize,
    /// Mean training loss of this step's records (private), if there were any.
    pub loss: Option<f64>,
}

/// How a run ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Ended {
    /// All steps of the plan are done, and the results are written.
    Finished(Box<Finished>),
    /// It was asked to stop; resume it any time.
    Interrupted {
        /// Steps done.
        step: u64,
    },
}

/// The result of a finished run.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The privacy statement.
    pub statement: Statement,
    /// Every block's metrics.
    pub metrics: Vec<BlockMetrics>,
    /// The final weights.
    pub weights: Vec<f32>,
}

impl Finished {
    /// Accuracy on held-out records at the end.
    pub fn test(&self) -> Option<TestMetrics> {
        self.metrics.iter().rev().find_map(|m| m.test)
    }
}

/// A run whose folder is held by this process.
pub struct Run {
    config: RunConfig,
    split: Split,
    network: Network,
    noise: NoiseSource,
    start: Checkpoint,
    books: Books,
    _lock: FolderLock,
}

impl Run {
    /// The plan, calibrated.
    pub fn plan(&self) -> &Plan {
        &self.books.plan
    }

    /// The config, as `run.toml` has it.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// The records.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The run folder.
    pub fn folder(&self) -> &Path {
        &self.books.folder
    }

    /// Steps done so far.
    pub fn steps_done(&self) -> u64 {
        self.start.position.step
    }

    /// Trains to the end of the plan, or until `stop` is set (then to the end of a step).
    ///
    /// # Errors
    /// A failed write, a diverging training, a failing engine. Nothing is lost: the run can be
    /// resumed from its last checkpoint.
    pub fn execute(self, observer: &mut dyn Observer, stop: &AtomicBool) -> Result<Ended, Error> {
        if self.config.train.measure.is_some() {
            let reason = "the run measures its records: give its follower to execute_followed";
            return Err(Error::Plan(reason.to_owned()));
        }
        self.work(observer, stop, None)
    }

    /// The same with a follower, which sees every step once, however often the run is killed and
    /// resumed. For runs whose config says `measure`.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and whatever the follower gives; a follower for a run that does
    /// not measure.
    pub fn execute_followed(
        self,
        follower: &mut dyn Follow,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<Ended, Error> {
        if self.config.train.measure.is_none() {
            let reason = "the run's config does not say measure, so its follower would be lost";
            return Err(Error::Plan(reason.to_owned()));
        }
        follow::restore(&self.books.folder, self.steps_done(), follower)?;
        self.work(observer, stop, Some(follower))
    }

    fn work(
        self,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
        mut follower: Option<&mut dyn Follow>,
    ) -> Result<Ended, Error> {
        let Self { config, split, network, noise, start, mut books, _lock } = self;
        for warning in books.plan.warnings() {
            observer.on_warning(warning);
        }
        let engine = NetworkEngine::new(&network, &split.train, Some(&split.test));
        let Checkpoint { position, weights, optimizer_state } = start;
        let mut trainer = Trainer::new(books.plan.clone(), &engine, weights.clone(), noise)?;
        if !trainer.restore(position.progress(), weights, optimizer_state) {
            let reason = "the checkpoint does not fit the model".to_owned();
            return Err(Error::NotResumable { folder: books.folder, reason });
        }
        while !trainer.is_done() {
            // Reborrowed for one block.
            let follower = follower.as_mut().map(|follower| &mut **follower as &mut dyn Follow);
            books.run_block(&mut trainer, observer, stop, follower)?;
            if stop.load(Ordering::Relaxed) && !trainer.is_done() {
                return Ok(Ended::Interrupted { step: trainer.steps_done() });
            }
        }
        let (weights, selection) = (trainer.weights().to_vec(), trainer.selection());
        let result = (weights, selection);
        let follower = follower.as_deref();
        let finished = finish::finish(books, &config, &split, result, observer, follower)?;
        Ok(Ended::Finished(Box::new(finished)))
    }
}
