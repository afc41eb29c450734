//! What can go wrong in the lab, with what to do about it.

use std::path::PathBuf;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder of results could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A cell's file is not what the lab writes.
    #[error("{} is damaged ({source}); delete it and the cell is run again", path.display())]
    DamagedCell {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A new run into a folder that has results of the same experiment.
    #[error(
        "{} holds cells of {experiment} already: add --resume to continue them, or give another --out",
        folder.display()
    )]
    AlreadyThere {
        /// The experiment.
        experiment: &'static str,
        /// The folder.
        folder: PathBuf,
    },
    /// A run with other settings than the folder's.
    #[error(
        "{} holds {experiment} with {stored}, but {wanted} was asked for: give the same settings, \
         or another --out",
        folder.display()
    )]
    OtherSettings {
        /// The experiment.
        experiment: &'static str,
        /// The folder.
        folder: PathBuf,
        /// What the folder was made with.
        stored: String,
        /// What was asked for.
        wanted: String,
    },
    /// A parameter that makes no sense.
    #[error("{0}")]
    Argument(String),
    /// The user stopped the run; finished cells are kept.
    #[error("stopped; finished cells are kept, continue with --resume")]
    Interrupted,
    /// A training failed.
    #[error(transparent)]
    Training(#[from] geodp::Error),
    /// A measurement of records failed.
    #[error(transparent)]
    Audit(#[from] geodp_audit::Error),
    /// A data set is missing or broken.
    #[error(transparent)]
    Data(#[from] geodp_data::DataError),
    /// A perturbation refused its input.
    #[error(transparent)]
    Mechanism(#[from] geodp_mechanism::Error),
    /// A network refused its input.
    #[error(transparent)]
    Network(#[from] geodp_nn::Error),
    /// An accountant refused its input.
    #[error(transparent)]
    Accounting(#[from] geodp_account::Error),
}

impl Error {
    /// For `map_err`: an I/O error with what was tried on which file.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
