//! `geodp._native`: what the Python package `geodp` calls.
//!
//! One file per Python module: `account`, `claim` and `ledger` behind `geodp.account`, `mechanism`
//! behind `geodp.mechanism`, `train` and `model` behind `geodp.train`,
//! `audit` behind `geodp.audit`. Nothing is decided here: arguments are turned into the types of the
//! Rust crates, which check them, and errors into Python's (`error`). Every call that computes or
//! waits for the disk frees the interpreter's lock (`Python::detach`), so other Python threads go on.
//!
//! Defaults, keyword names and documentation for people live in `python/geodp`; the types stand in
//! `python/geodp/_native.pyi`, which the tests hold against this module.

mod account;
mod audit;
mod claim;
mod error;
mod ledger;
mod mechanism;
mod model;
mod train;

use pyo3::prelude::*;

/// The native half of geodp; use `geodp.account`, `geodp.mechanism` and their siblings instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::account::{Accountant, Bracket, noise_multiplier, sample_rate, steps};
    #[pymodule_export]
    use super::audit::{audit_lower_bound, audit_one_run, audit_roc};
    #[pymodule_export]
    use super::claim::{Account, Claim};
    #[pymodule_export]
    use super::error::LedgerError;
    #[pymodule_export]
    use super::ledger::{Ledger, LedgerWriter};
    #[pymodule_export]
    use super::mechanism::{NoiseSource, clip_rows, perturb_dp, perturb_geodp};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::train::train;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
