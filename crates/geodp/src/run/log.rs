//! What a run writes down: charge a block, run it, then show it. The order is the guarantee.
//!
//! A block that takes long is left with a checkpoint every few seconds and entered again.
//!
//! Ledger (durable) → steps → checkpoint (durable) → metrics. Whatever is seen of a step's weights
//! was charged before; a crash between any two leaves a state that resuming understands.

use super::checkpoint::{Checkpoint, Position};
use super::follow;
use super::metrics::{self, BlockMetrics, BlockSummary, TestMetrics};
use crate::Error;
use crate::config::TestIs;
use crate::plan::Plan;
use crate::scores::Scores;
use crate::statement::ReleasedAccuracy;
use crate::trainer::Trainer;
use crate::watch::{Observer, Progress, Watch};
use geodp_account::{Event, LedgerHeader, LedgerRun, LedgerWriter};
use geodp_mechanism::{Grid, NoiseSource, Purpose, RoundedNormal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After so long a checkpoint is written, wherever in a block the steps are.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(5);

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
    /// Whose the held-out records are.
    pub(crate) test_is: TestIs,
    /// Whether the ledger has paid for the accuracy.
    accuracy_charged: bool,
    /// The noisy accuracy, once it is released.
    pub(crate) released: Option<ReleasedAccuracy>,
    /// How good the last weights' answers are, once they are measured.
    pub(crate) scores: Option<Scores>,
}

impl RunLog {
    /// Of a run that has charged nothing.
    pub(crate) fn create(folder: &Path, plan: Plan, mut position: Position) -> Result<Self, Error> {
        let path = folder.join("ledger.jsonl");
        let header = header(&plan, &position);
        let ledger = LedgerWriter::create(&path, &header).map_err(|e| ledger_error(path, e))?;
        position.ledger_head = ledger.head().to_owned();
        let folder = folder.to_owned();
        Ok(Self::of(folder, plan, ledger, position))
    }

    /// As a run left it, checked against its checkpoint.
    ///
    /// The checkpoint's step must lie in the block charged last: before it, the checkpoint was
    /// rewound; after it, the ledger was cut.
    pub(crate) fn open(folder: &Path, plan: Plan, position: &Position) -> Result<Self, Error> {
        let refuse = |reason: String| Error::NotResumable { folder: folder.to_owned(), reason };
        let (writer, ledger) = LedgerWriter::open(&folder.join("ledger.jsonl"))?;
        let charged = ledger.steps();
        let before = ledger.steps_before_last_block();
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
        let last = ledger.records.last().map(|record| &record.event);
        let accuracy_charged = last.is_some() && last == plan.protection.accuracy();
        let log = Self::of(folder, plan, writer, position);
        Ok(Self { charged, accuracy_charged, ..log })
    }

    fn of(folder: PathBuf, plan: Plan, ledger: LedgerWriter, position: Position) -> Self {
        Self {
            folder,
            plan,
            ledger,
            charged: 0,
            position,
            metrics: Vec::new(),
            test_is: TestIs::default(),
            accuracy_charged: false,
            released: None,
            scores: None,
        }
    }

    /// Charges and releases the accuracy of the last measurement, where the plan says so: the number
    /// of right answers, to which a record contributes at most 1, plus a Gaussian rounded to 1/256.
    pub(crate) fn release_accuracy(&mut self, noise: &NoiseSource) -> Result<(), Error> {
        let Some(event) = self.plan.protection.accuracy().cloned() else { return Ok(()) };
        let (Event::Gaussian { noise_multiplier }, Some(test)) =
            (&event, self.metrics.iter().rev().find_map(|m| m.test))
        else {
            return Ok(());
        };
        if !self.accuracy_charged {
            let path = self.folder.join("ledger.jsonl");
            self.ledger.append(self.charged, &event, 1).map_err(|e| ledger_error(path, e))?;
            self.accuracy_charged = true;
        }
        let grid = Grid::new(8)?;
        let mut drawn = [0];
        let mut stream = noise.stream(Purpose::Accuracy, self.plan.steps, 0)?;
        stream.fill_rounded(RoundedNormal::new(*noise_multiplier, grid)?, &mut drawn);
        let right = (test.accuracy * test.records as f64).round();
        let noisy = right + drawn[0] as f64 / grid.most() as f64;
        self.released = Some(ReleasedAccuracy {
            accuracy: (noisy / test.records as f64).clamp(0.0, 1.0),
            standard_error: noise_multiplier / test.records as f64,
            records: test.records as u64,
            epsilon: self.plan.params.privacy.release_accuracy.unwrap_or(f64::INFINITY),
        });
        Ok(())
    }

    /// Pays again for every step that may have been taken since the checkpoint: they will be taken
    /// with other noise, or other bits under the same noise.
    pub(crate) fn charge_again(&mut self) -> Result<(), Error> {
        let (from, to) = (self.plan.protection.unit_start(self.position.step), self.charged);
        if from < to {
            let (event, count) = self.plan.protection.charge(from, to);
            let again = event.clone().repeated(count);
            super::data_ledger::charge_again(&self.plan, &self.position.run, again)?;
            let path = self.folder.join("ledger.jsonl");
            self.ledger.append(to, &event, count).map_err(|e| ledger_error(path, e))?;
        }
        Ok(())
    }

    /// Charges the block that holds the trainer's position, and runs what is left of it, or as much as
    /// [`CHECKPOINT_AFTER`] allows.
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
        let asked_to_stop = || stop.load(Ordering::Relaxed) || start.elapsed() > CHECKPOINT_AFTER;
        while trainer.steps_done() < end && !asked_to_stop() {
            let clip_norm = trainer.clip_norm();
            let Some(outcome) = trainer.step(watch)? else { break };
            summary.add(&outcome, clip_norm);
            let records = outcome.losses.len().max(outcome.norms.len());
            let losses = outcome.losses.iter().map(|l| f64::from(*l));
            let loss = losses.sum::<f64>() / outcome.losses.len() as f64;
            let loss = loss.is_finite().then_some(loss);
            let (step, steps) = (trainer.steps_done(), self.plan.steps);
            observer.on_step(&Progress { step, steps, records, loss });
        }
        let (step, seconds) = (trainer.steps_done(), start.elapsed().as_secs_f64());
        let ends_epoch = self.ends_epoch(first, step);
        // A claim takes milliseconds, in which a small model makes ten steps. The first epoch has one for each
        // block, so that the curve of a short run is one; how long a block took has no say in what is written.
        let claims =
            self.plan.protection.kind().is_some() && (ends_epoch || self.epochs(first) == 0);
        // A claim is computed by one thread; the others measure meanwhile.
        let (log, trainer) = (&*self, &*trainer);
        let (epsilon, measured) = rayon::join(
            || claims.then(|| log.ledger.account().claim()).transpose(),
            || if ends_epoch { log.measure(trainer) } else { Ok((None, None)) },
        );
        let (test, scores) = measured?;
        self.scores = scores;
        let metrics = BlockMetrics {
            step,
            epoch: step as f64 * self.plan.batch as f64 / self.plan.facts.records as f64,
            seconds,
            epsilon: epsilon?,
            test,
            selection: trainer.selection(),
            polar: trainer.polar(),
            ..summary.metrics()
        };
        follow::keep(&self.folder, step, watch)?;
        self.checkpoint(trainer).write(&self.folder.join("checkpoint"))?;
        follow::forget(&self.folder, Some(step))?;
        metrics::append(&self.folder.join("metrics.jsonl"), &metrics)?;
        observer.on_block(&metrics);
        self.metrics.push(metrics);
        Ok(())
    }

    /// Charges every step before `end` that is not charged yet, durably.
    pub(super) fn charge_until(&mut self, end: u64) -> Result<(), Error> {
        if self.charged < end {
            let (event, count) = self.plan.protection.charge(self.charged, end);
            let path = self.folder.join("ledger.jsonl");
            self.ledger.append(end, &event, count).map_err(|error| ledger_error(path, error))?;
            self.charged = end;
        }
        Ok(())
    }

    /// Where the trainer stands, tied to the ledger as it is.
    pub(super) fn checkpoint(&self, trainer: &Trainer<'_>) -> Checkpoint {
        let position = Position {
            ledger_records: self.ledger.records(),
            ledger_head: self.ledger.head().to_owned(),
            ..self.position.moved_to(trainer.state())
        };
        let (weights, optimizer_state) = (trainer.weights().to_vec(), trainer.optimizer_state());
        Checkpoint { position, weights, optimizer_state }
    }

    /// Whether the steps since `first` completed an epoch, or the run.
    fn ends_epoch(&self, first: u64, step: u64) -> bool {
        self.epochs(first) != self.epochs(step) || step == self.plan.steps
    }

    /// Whole epochs of so many steps.
    fn epochs(&self, steps: u64) -> u64 {
        steps * self.plan.batch / self.plan.facts.records
    }

    /// How the model does on held-out records; at the end, also what the report shows of its answers.
    fn measure(
        &self,
        trainer: &Trainer<'_>,
    ) -> Result<(Option<TestMetrics>, Option<Scores>), Error> {
        let (measured, scores) = match trainer.is_done() {
            true => trainer.evaluate_and_score()?,
            false => (trainer.glance()?, None),
        };
        let errors = trainer.errors()?;
        let metrics = measured.map(|e| TestMetrics {
            loss: e.mean_loss,
            accuracy: e.accuracy(),
            records: e.count,
            errors,
            is: self.test_is,
        });
        Ok((metrics, scores))
    }
}

/// What a statement will need, before anything is released.
fn header(plan: &Plan, position: &Position) -> LedgerHeader {
    let run = LedgerRun {
        id: position.run.clone(),
        unit: plan.unit.clone(),
        records: plan.facts.records,
        mechanism: plan.mechanism().to_string(),
        noise_multiplier: plan.noise_multiplier(),
        seed: plan.seed,
        data: position.data.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    LedgerHeader::new(plan.protection.terms(), &position.config, Some(run))
}

/// A failed write is the system's fault, anything else is the ledger's.
fn ledger_error(path: PathBuf, error: geodp_account::Error) -> Error {
    match error {
        geodp_account::Error::Io(source) => Error::Write { path, source },
        other => other.into(),
    }
}
