//! How an experiment is to be run.

use crate::Error;
use crate::store::Settings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How large the experiments are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Size {
    /// The paper's.
    #[default]
    Full,
    /// At most two minutes each on two cores.
    Quick,
    /// A second or so: shows that everything runs, and nothing else. For tests.
    Tiny,
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Quick => "quick",
            Self::Tiny => "tiny",
        })
    }
}

/// The user's choices.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How large the experiments are.
    pub size: Size,
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

    /// As flags of the command line, without the folders of this machine.
    pub(crate) fn flags(&self) -> String {
        let mut flags =
            if self.size == Size::Full { String::new() } else { format!(" --{}", self.size) };
        flags += &format!(" --seeds {}", self.seeds);
        if let Some(epochs) = self.epochs {
            flags += &format!(" --epochs {epochs}");
        }
        flags
    }

    /// The options that these settings came from; where the data was does not matter any more.
    pub(crate) fn of(settings: &Settings) -> Self {
        let Settings { size, seeds, epochs, .. } = *settings;
        Self { size, seeds, epochs, data_dir: PathBuf::new() }
    }

    /// What the store keeps of them.
    pub(crate) fn settings(&self, provenance: &str) -> Settings {
        Settings {
            size: self.size,
            epochs: self.epochs,
            seeds: self.seeds,
            provenance: provenance.to_owned(),
        }
    }
}
