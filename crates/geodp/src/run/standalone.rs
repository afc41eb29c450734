//! Checkpoints of trainings without a run folder: audits, whose models are never released.
//!
//! The same file as a run's, but no ledger stands behind it, so nothing trained this way may claim a
//! guarantee. The noise's source is not in it: whoever resumes must give the same one.

use super::checkpoint::{Checkpoint, Position};
use crate::Error;
use crate::trainer::Trainer;
use std::path::Path;

impl Trainer<'_> {
    /// Writes where the training stands, atomically; `tag` says which training it is.
    ///
    /// # Errors
    /// A failed write.
    pub fn save(&self, path: &Path, tag: &str) -> Result<(), Error> {
        let position = Position {
            step: 0,
            run: String::new(),
            config: tag.to_owned(),
            data: String::new(),
            machine: String::new(),
            noise: String::new(),
            strategy: Default::default(),
            ledger_records: 0,
            ledger_head: String::new(),
        }
        .moved_to(self.state());
        let (weights, optimizer_state) = (self.weights().to_vec(), self.optimizer_state());
        Checkpoint { position, weights, optimizer_state }.write(path)
    }

    /// Goes on where [`save`](Self::save) with the same tag left off.
    ///
    /// # Errors
    /// A damaged file, or one of another training.
    pub fn load(&mut self, path: &Path, tag: &str) -> Result<(), Error> {
        let Checkpoint { position, weights, optimizer_state } = Checkpoint::read(path)?;
        let fits = position.config == tag
            && position.step <= self.plan().steps()
            && self.restore(position.state(), weights, optimizer_state);
        if fits {
            return Ok(());
        }
        let reason = "it belongs to another training".to_owned();
        Err(Error::Damaged { path: path.to_owned(), reason })
    }
}
