//! What can stop an audit: what, where, and what to do.

use std::path::PathBuf;
use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its range.
    #[error("{name} is {found}; it must be {range}")]
    Parameter {
        /// Which parameter.
        name: &'static str,
        /// What it may be.
        range: &'static str,
        /// What it was.
        found: f64,
    },
    /// Two lists that belong together differ in length.
    #[error("{what}: {found} where {expected} were expected")]
    Length {
        /// Which list.
        what: &'static str,
        /// Length that fits.
        expected: usize,
        /// Length that was given.
        found: usize,
    },
    /// A score that is not a number: the procedure under audit has failed.
    #[error(
        "{what} {index} has the score {score}; a procedure under audit must give finite scores"
    )]
    Score {
        /// Which kind of thing was scored.
        what: &'static str,
        /// Which of them.
        index: usize,
        /// Its score.
        score: f64,
    },
    /// The accountant refused its input.
    #[error(transparent)]
    Account(#[from] geodp_account::Error),
    /// The mechanism refused its input.
    #[error(transparent)]
    Mechanism(#[from] geodp_mechanism::Error),
    /// A training failed.
    #[error(transparent)]
    Training(#[from] geodp::Error),
    /// The network refused its input.
    #[error(transparent)]
    Network(#[from] geodp_nn::Error),
    /// A file of an audit could not be read, or does not belong to it.
    #[error("{path}: {reason}", path = .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A cell's file is not what was written there.
    #[error("{path} is damaged ({reason}); delete it and it is made again", path = .path.display())]
    DamagedCell {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The user asked to stop; what is done is kept.
    #[error("stopped; what is done is kept, and the same command goes on from there")]
    Stopped,
}

/// `value` if it lies strictly between 0 and 1.
pub(crate) fn inside_unit(name: &'static str, value: f64) -> Result<f64, Error> {
    if value > 0.0 && value < 1.0 {
        Ok(value)
    } else {
        Err(Error::Parameter { name, range: "strictly between 0 and 1", found: value })
    }
}

/// Refuses a list of the wrong length.
pub(crate) fn same_length(what: &'static str, found: usize, expected: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}
