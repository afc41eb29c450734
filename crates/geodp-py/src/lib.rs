//! `geodp._native`: what the Python package `geodp` calls.
//!
//! Behind `geodp.account` stand `account`, `claim` and `ledger`; behind `geodp.mechanism` `mechanism`,
//! `exact`, `noise` and `polar`; behind `geodp.train` `train` and `model`, behind `geodp.ray` `team`;
//! `audit`, `data` and `federated` behind the modules of their names. Nothing is decided here: arguments are
//! turned into the types of the Rust crates, which check them, and errors into Python's (`error`). Every
//! call that computes or waits for the disk frees the interpreter's lock (`Python::detach`), so other Python
//! threads go on.
//!
//! What is more than a call of Rust lives in `python/geodp`; the types stand in
//! `python/geodp/_native.pyi`, which the tests hold against this module.

mod account;
mod audit;
mod claim;
mod clients;
mod data;
mod error;
mod exact;
mod federated;
mod ledger;
mod mechanism;
mod model;
mod noise;
mod polar;
mod team;
mod train;

use pyo3::prelude::*;

/// The native half of geodp; use `geodp.account`, `geodp.mechanism` and their siblings instead.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::account::{
        Accountant, Bracket, delta, epsilon, noise_multiplier, sample_rate, steps,
    };
    #[pymodule_export]
    use super::audit::{audit_lower_bound, audit_one_run, audit_roc};
    #[pymodule_export]
    use super::claim::{Account, Claim};
    #[pymodule_export]
    use super::clients::{LocalNetwork, deal};
    #[pymodule_export]
    use super::data::{mnist, scattering};
    #[pymodule_export]
    use super::error::LedgerError;
    #[pymodule_export]
    use super::exact::ExactSum;
    #[pymodule_export]
    use super::federated::FederatedServer;
    #[pymodule_export]
    use super::ledger::{Ledger, LedgerWriter};
    #[pymodule_export]
    use super::mechanism::{Perturbation, clip_rows};
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::noise::NoiseSource;
    #[pymodule_export]
    use super::polar::PolarState;
    #[pymodule_export]
    use super::team::TeamWorker;
    #[pymodule_export]
    use super::train::train;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
