//! What can go wrong in the lab, with what to do about it.

use std::path::PathBuf;

/// An error of the lab.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A cell's file is not what the lab writes.
    #[error("{} is damaged ({reason}); delete it and the cell is run again", path.display())]
    DamagedCell {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
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
    /// A cell whose result a later cell needs is not there.
    #[error("cell {key} of {experiment} is missing; run again with --resume")]
    Missing {
        /// The experiment.
        experiment: &'static str,
        /// The cell.
        key: String,
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
    Audit(geodp_audit::Error),
    /// The training that makes a stream of gradients could not go on.
    #[error("gradient stream: {0}")]
    Stream(String),
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

impl From<geodp_audit::Error> for Error {
    /// Cells are kept as audits keep theirs; what goes wrong with a file is no audit's fault.
    fn from(error: geodp_audit::Error) -> Self {
        match error {
            geodp_audit::Error::DamagedCell { path, reason } => Self::DamagedCell { path, reason },
            geodp_audit::Error::Training(error) => Self::Training(error),
            other => Self::Audit(other),
        }
    }
}
