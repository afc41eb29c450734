//! What can go wrong with a plan or a run: what, where, and what to do.

use std::path::PathBuf;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan makes no sense; nothing was done.
    #[error("{0}")]
    Plan(String),
    /// A config file that cannot be understood.
    #[error("{path}: {reason}", path = .path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column where known.
        reason: String,
    },
    /// The mechanism refused its input.
    #[error(transparent)]
    Mechanism(#[from] geodp_mechanism::Error),
    /// The accountant refused its input.
    #[error(transparent)]
    Account(#[from] geodp_account::Error),
    /// The data could not be read.
    #[error(transparent)]
    Data(#[from] geodp_data::DataError),
    /// The network could not be built.
    #[error(transparent)]
    Network(#[from] geodp_nn::Error),
    /// The engine failed during a step.
    #[error("step {step}: {source}")]
    Engine {
        /// The step, from 0.
        step: u64,
        /// What the engine said.
        source: crate::engine::EngineError,
    },
    /// Another process of the training failed, or has other data.
    #[error("process {rank}: {reason}")]
    Process {
        /// Which one, from 0.
        rank: usize,
        /// What it said.
        reason: String,
    },
    /// Another process of the training cannot be reached.
    #[error(transparent)]
    Link(#[from] crate::team::LinkError),
    /// The weights are no longer numbers.
    #[error(
        "after step {step} the weights are no longer finite: training diverged. Lower the learning \
         rate and start a new run"
    )]
    Diverged {
        /// The step, from 0.
        step: u64,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error(
        "cannot write {path}: {source}. What was there before is unharmed; free space or fix \
         permissions, then resume the run",
        path = .path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of the run folder is damaged.
    #[error("{path} is damaged: {reason}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How it shows.
        reason: String,
    },
    /// Another process is using the folder.
    #[error("{} is in use by another process; wait for it or choose another folder", .0.display())]
    FolderInUse(PathBuf),
    /// A new run was asked for where one already is.
    #[error(
        "{folder} already holds a run; resume it with `geodp train --resume {folder}`, or choose \
         another folder",
        folder = .0.display()
    )]
    FolderTaken(PathBuf),
    /// A run cannot be resumed as it stands.
    #[error("{folder} cannot be resumed: {reason}", folder = .folder.display())]
    NotResumable {
        /// The run folder.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The files of a run folder do not belong together, so no ε can be stated from them.
    #[error("{folder} is not as its run left it: {reason}", folder = .folder.display())]
    Mismatch {
        /// The run folder.
        folder: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A model that cannot be written in another form.
    #[error("cannot export: {0}")]
    Export(String),
    /// A folder without a model.
    #[error("{folder}: {reason}", folder = .folder.display())]
    NotAModel {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
}
