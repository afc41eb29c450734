//! A run: a training with a folder that survives anything.
//!
//! | file | holds |
//! |---|---|
//! | `run.toml` | the whole config, re-runnable |
//! | `ledger.jsonl` | every charged event, hash-chained, durable before its release |
//! | `checkpoint` | weights, optimiser, position; replaced atomically |
//! | `metrics.jsonl` | losses, accuracies, norms; for the data's owner |
//! | `following-STEP.json`, `measured.json` | what a watch knows, and what it found; for the owner |
//! | `noise.key` | the noise's key while the run is unfinished; for the owner; destroyed at the end |
//! | `data.key` | the key of the data's hash; for the owner |
//! | `schema.toml` | of a table: the schema as it was when the run began |
//! | `model.safetensors`, `MODEL_CARD.md`, `statement.json`, `report.html` | the result |
//!
//! Steps happen in blocks. A block is charged in the ledger and synced before its first step; its
//! weights are seen (checkpoint, metrics, model) only after. A killed run resumes at its last
//! checkpoint and repeats the steps since with the same batches and the same noise: the same bits
//! are released again, so nothing is charged twice and nothing is missed. Where the bits would be others
//! (another program or processor), those steps get noise of a new key and are charged again.
//!
//! Whatever states an ε takes it from the ledger's events, after checking that config, data, checkpoint
//! and ledger belong together; `run.toml` as it reads today is never a source of it.
//!
//! [`Run::create`] makes everything from a config. [`Run::create_with`] takes a plan and an engine of
//! one's own: the same folder, ledger, checkpoints and resuming.

mod card;
pub(crate) mod checkpoint;
mod configured;
mod data_ledger;
pub(crate) mod files;
mod finish;
mod follow;
pub(crate) mod identity;
mod key;
mod log;
pub mod metrics;
mod open;
mod review;
mod rounds;
mod standalone;

pub use configured::Configured;
pub use files::write_atomically;
pub use metrics::{BlockMetrics, TestMetrics};
pub use review::Review;

use crate::Error;
use crate::config::{Imported, RunConfig};
use crate::engine::Engine;
use crate::plan::Plan;
use crate::statement::Statement;
use crate::trainer::Trainer;
use crate::watch::{Observer, Watch};
use checkpoint::Checkpoint;
use files::FolderLock;
use geodp_data::Split;
use geodp_mechanism::NoiseSource;
use geodp_nn::Network;
use log::RunLog;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// Accuracy on held-out records at the end, and whose those are.
    pub fn test(&self) -> Option<TestMetrics> {
        self.metrics.iter().rev().find_map(|m| m.test)
    }
}

/// A run whose folder is held by this process. Its engine is made from a config, or one's own.
pub struct Run<E = Configured> {
    engine: E,
    noise: NoiseSource,
    start: Checkpoint,
    log: RunLog,
    /// The text of `run.toml`.
    text: String,
    _lock: FolderLock,
}

impl Run {
    /// The config, as `run.toml` has it.
    pub fn config(&self) -> &RunConfig {
        &self.engine.config
    }

    /// The records.
    pub fn split(&self) -> &Split {
        &self.engine.split
    }

    /// What reading did to the run's tables. Private.
    pub fn imported(&self) -> &[Imported] {
        &self.engine.imported
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.engine.network
    }
}

impl<E: Engine> Run<E> {
    /// The plan, calibrated.
    pub fn plan(&self) -> &Plan {
        &self.log.plan
    }

    /// The run folder.
    pub fn folder(&self) -> &Path {
        &self.log.folder
    }

    /// Steps done so far.
    pub fn steps_done(&self) -> u64 {
        self.start.position.step
    }

    /// Trains to the end of the plan, or until `stop` is set (then to the end of a step).
    ///
    /// `watch` sees every step once, however often the run is killed and resumed; `observer` hears
    /// how it goes. [`Silent`](crate::watch::Silent) is both and does neither. Called from a thread of a rayon pool
    /// (`pool.install`), small steps do not wait for another thread to wake; it is left to the caller, because
    /// watch and observer need not be `Send`.
    ///
    /// # Errors
    /// A failed write, a diverging training, a failing engine or watch. Nothing is lost: the run can
    /// be resumed from its last checkpoint. A watch that keeps a state where the plan does not say
    /// `measure`, or the other way round.
    pub fn execute(
        self,
        watch: &mut dyn Watch,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<Ended, Error> {
        let Self { engine, noise, start, mut log, text, _lock } = self;
        match (log.plan.params.train.measure, watch.save()?) {
            (Some(_), None) => {
                let reason = "the run measures its records: give it a watch that keeps a state";
                return Err(Error::Plan(reason.to_owned()));
            }
            (None, Some(_)) => {
                let reason = "the run's config does not say measure, so its watch would be lost";
                return Err(Error::Plan(reason.to_owned()));
            }
            (Some(_), Some(state)) => {
                follow::restore(&log.folder, start.position.step, watch, &state)?;
            }
            (None, None) => {}
        }
        for warning in log.plan.warnings() {
            observer.on_warning(warning);
        }
        let mut trainer = trainer_at(&log, &engine, start, &noise)?;
        while !trainer.is_done() {
            log.run_block(&mut trainer, watch, observer, stop)?;
            if stop.load(Ordering::Relaxed) && !trainer.is_done() {
                return Ok(Ended::Interrupted { step: trainer.steps_done() });
            }
        }
        let finished = end(log, &engine, &text, &trainer, &noise, watch, observer)?;
        Ok(Ended::Finished(Box::new(finished)))
    }
}

/// A trainer that stands where the checkpoint says.
fn trainer_at<'e>(
    log: &RunLog,
    engine: &'e dyn Engine,
    at: Checkpoint,
    noise: &NoiseSource,
) -> Result<Trainer<'e>, Error> {
    let Checkpoint { position, weights, optimizer_state } = at;
    let mut trainer = Trainer::new(log.plan.clone(), engine, weights.clone(), noise.clone())?;
    if !trainer.restore(position.state(), weights, optimizer_state) {
        let reason = "the checkpoint does not fit the model".to_owned();
        return Err(Error::NotResumable { folder: log.folder.clone(), reason });
    }
    Ok(trainer)
}

/// Writes the results of a trainer whose steps are done.
fn end(
    mut log: RunLog,
    engine: &dyn Engine,
    text: &str,
    trainer: &Trainer<'_>,
    noise: &NoiseSource,
    watch: &dyn Watch,
    observer: &mut dyn Observer,
) -> Result<Finished, Error> {
    let result = finish::Trained {
        weights: trainer.released_weights().to_vec(),
        selection: trainer.selection(),
        polar: trainer.polar(),
    };
    log.release_accuracy(noise)?;
    finish::finish(log, engine, text, result, watch, observer)
}
