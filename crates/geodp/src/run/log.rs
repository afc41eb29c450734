//! What a run writes down: charge a block, run it, then show it. The order is the guarantee.
//!
//! Ledger (durable) → steps → checkpoint (durable) → metrics. Whatever is seen of a step's weights
//! was charged before; a crash between any two leaves a state that resuming understands.

use super::checkpoint::{Checkpoint, Position};
use super::follow;
use super::metrics::{self, BlockMetrics, BlockSummary, TestMetrics};
use crate::Error;
use crate::plan::Plan;
use crate::trainer::Trainer;
use crate::watch::{Observer, Progress, Watch};
use geodp_account::{Ledger, LedgerWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What a ledger amounts to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Charges {
    /// Steps charged.
    pub(crate) steps: u64,
    /// Lines.
    pub(crate) records: u64,
    /// Hash of the last line.
    pub(crate) head: String,
}

/// Everything of a run that is written down.
pub(crate) struct RunLog {
    pub(crate) folder: PathBuf,
    pub(crate) plan: Plan,
    pub(crate) ledger: LedgerWriter,
    /// Steps the ledger has charged.
    pub(crate) charged: u64,
    /// Ties checkpoints to config and data.
    pub(crate) position: Position,
    pub(crate) metrics: Vec<BlockMetrics>,
}

impl RunLog {
    /// Of a run that has charged nothing.
    pub(crate) fn create(folder: &Path, plan: Plan, mut position: Position) -> Result<Self, Error> {
        let geodp_account::Terms { adjacency, delta, .. } = plan.protection.terms();
        let path = folder.join("ledger.jsonl");
        let ledger = LedgerWriter::create(&path, adjacency, delta, &position.config)
            .map_err(|error| ledger_error(path, error))?;
        position.ledger_head = ledger.head().to_owned();
        let folder = folder.to_owned();
        Ok(Self { folder, plan, ledger, charged: 0, position, metrics: Vec::new() })
    }

    /// As a run left it, checked against its checkpoint.
    ///
    /// The checkpoint's step must lie in the block charged last: before it, the checkpoint was
    /// rewound; after it, the ledger was cut.
    pub(crate) fn open(folder: &Path, plan: Plan, position: &Position) -> Result<Self, Error> {
        let refuse = |reason: String| Error::NotResumable { folder: folder.to_owned(), reason };
        let (writer, ledger) = LedgerWriter::open(&folder.join("ledger.jsonl"))?;
        ledger.verify_against(position.ledger_records, &position.ledger_head)?;
        let charged = ledger.steps();
        let before = match ledger.records.as_slice() {
            [.., before, _] => before.step,
            _ => 0,
        };
        if position.step < before {
            return Err(refuse(format!(
                "its checkpoint was rewound: it stands at step {}, but steps up to {before} were \
                 finished before the last block was charged",
                position.step
            )));
        }
        if position.step > charged {
            return Err(refuse(format!(
                "its checkpoint stands at step {}, but the ledger paid for {charged} only",
                position.step
            )));
        }
        let (folder, position) = (folder.to_owned(), position.clone());
        Ok(Self { folder, plan, ledger: writer, charged, position, metrics: Vec::new() })
    }

    /// What the folder's ledger says, verified; nothing if there is no ledger.
    pub(crate) fn read_ledger(folder: &Path) -> Result<Charges, Error> {
        let path = folder.join("ledger.jsonl");
        if !path.exists() {
            return Ok(Charges::default());
        }
        let ledger = Ledger::read(&path)?;
        let records = ledger.records.len() as u64;
        Ok(Charges { steps: ledger.steps(), records, head: ledger.head().to_owned() })
    }

    /// Charges and runs the block that holds the trainer's position, or what is left of it.
    pub(crate) fn run_block(
        &mut self,
        trainer: &mut Trainer<'_>,
        watch: &mut dyn Watch,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let first = trainer.steps_done();
        let end = ((first / self.plan.block + 1) * self.plan.block).min(self.plan.steps);
        self.charge_until(end)?;

        let start = Instant::now();
        let mut summary = BlockSummary::default();
        let clip_norm = self.plan.clip_norm();
        while trainer.steps_done() < end && !stop.load(Ordering::Relaxed) {
            let Some(outcome) = trainer.step(watch)? else { break };
            summary.add(&outcome, clip_norm);
            let records = outcome.losses.len();
            let loss = outcome.losses.iter().map(|l| f64::from(*l)).sum::<f64>() / records as f64;
            let loss = loss.is_finite().then_some(loss);
            let (step, steps) = (trainer.steps_done(), self.plan.steps);
            observer.on_step(&Progress { step, steps, records, loss });
        }
        let step = trainer.steps_done();
        let metrics = BlockMetrics {
            step,
            epoch: step as f64 * self.plan.batch as f64 / self.plan.facts.records as f64,
            seconds: start.elapsed().as_secs_f64(),
            epsilon: self.plan.protection.claim_after(self.charged)?,
            test: self.measure(trainer, first, step)?,
            selection: trainer.selection(),
            polar: trainer.polar_counts(),
            ..summary.metrics()
        };
        follow::keep(&self.folder, step, watch)?;
        self.write_checkpoint(trainer)?;
        follow::forget(&self.folder, Some(step))?;
        metrics::append(&self.folder.join("metrics.jsonl"), &metrics)?;
        observer.on_block(&metrics);
        self.metrics.push(metrics);
        Ok(())
    }

    /// Charges every step before `end` that is not charged yet, durably.
    fn charge_until(&mut self, end: u64) -> Result<(), Error> {
        if self.charged < end {
            let (event, count) = self.plan.protection.charge(self.charged, end);
            let path = self.folder.join("ledger.jsonl");
            self.ledger.append(end, &event, count).map_err(|error| ledger_error(path, error))?;
            self.charged = end;
        }
        Ok(())
    }

    fn write_checkpoint(&self, trainer: &Trainer<'_>) -> Result<(), Error> {
        let position = Position {
            ledger_records: self.ledger.records(),
            ledger_head: self.ledger.head().to_owned(),
            ..self.position.moved_to(trainer.state())
        };
        let weights = trainer.weights().to_vec();
        let optimizer_state = trainer.optimizer_state().to_vec();
        Checkpoint { position, weights, optimizer_state }.write(&self.folder.join("checkpoint"))
    }

    /// Held-out records are measured when an epoch was completed, and at the end.
    fn measure(
        &self,
        trainer: &Trainer<'_>,
        first: u64,
        step: u64,
    ) -> Result<Option<TestMetrics>, Error> {
        let epoch = |step: u64| step * self.plan.batch / self.plan.facts.records;
        if epoch(first) == epoch(step) && step < self.plan.steps {
            return Ok(None);
        }
        let measured = trainer.evaluate()?;
        Ok(measured.map(|e| TestMetrics {
            loss: e.mean_loss,
            accuracy: e.accuracy(),
            records: e.count,
        }))
    }
}

/// A failed write is the system's fault, anything else is the ledger's.
fn ledger_error(path: PathBuf, error: geodp_account::Error) -> Error {
    match error {
        geodp_account::Error::Io(source) => Error::Write { path, source },
        other => other.into(),
    }
}
