//! Rust's errors as Python's: a wrong argument is a `ValueError`, a failing disk an `OSError`, a
//! damaged ledger a `LedgerError`. The sentence of the Rust error is kept as it is.

use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    geodp,
    LedgerError,
    PyValueError,
    "A ledger was altered, cut or cannot be read; the message names the line."
);

/// An error of the accountants.
pub(crate) fn account(error: geodp_account::Error) -> PyErr {
    let text = error.to_string();
    match error {
        geodp_account::Error::Io(_) => PyOSError::new_err(text),
        geodp_account::Error::Ledger { .. } => LedgerError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// An error of the mechanisms.
pub(crate) fn mechanism(error: geodp_mechanism::Error) -> PyErr {
    let text = error.to_string();
    match error {
        geodp_mechanism::Error::Entropy(_) => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// An error of a training: of its parts as above, of files an `OSError`, else a `ValueError`.
pub(crate) fn training(error: geodp::Error) -> PyErr {
    let text = error.to_string();
    match error {
        geodp::Error::Mechanism(error) => mechanism(error),
        geodp::Error::Account(error) => account(error),
        geodp::Error::Read { .. }
        | geodp::Error::Write { .. }
        | geodp::Error::FolderInUse(_)
        | geodp::Error::FolderTaken(_) => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// An argument that only the binding can judge.
pub(crate) fn argument(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}
