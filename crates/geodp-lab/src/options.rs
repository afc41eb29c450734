//! How an experiment is to be run.

use crate::Error;
use crate::store::Settings;
use std::path::PathBuf;

/// The user's choices.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The small form: at most two minutes on two cores.
    pub quick: bool,
    /// Repetitions of each training, with seeds 0, 1, …
    pub seeds: u64,
    /// Length of trainings; the paper's 20 epochs if absent.
    pub epochs: Option<u64>,
    /// Where CIFAR-10 is looked for.
    pub data_dir: PathBuf,
}

impl Options {
    /// Checks that numbers make sense.
    ///
    /// # Errors
    /// No seeds, no epochs.
    pub fn check(&self) -> Result<(), Error> {
        if self.seeds == 0 || self.epochs == Some(0) {
            return Err(Error::Argument("--seeds and --epochs must be at least 1".into()));
        }
        Ok(())
    }

    /// What the store keeps of them.
    pub(crate) fn settings(&self, provenance: &str) -> Settings {
        Settings {
            quick: self.quick,
            epochs: self.epochs,
            seeds: self.seeds,
            provenance: provenance.to_owned(),
        }
    }
}
