//! Audits of procedures given as Python callables, and what is read off scores.

use crate::error;
use geodp_audit::Error;
use geodp_audit::membership::Roc;
use geodp_audit::one_run::{self, OneRunParams};
use geodp_mechanism::NoiseSource;
use pyo3::prelude::*;

/// Audits one training: `train` is called with a list of coins, one for each canary, and answers a
/// score for each. Answers the findings as JSON.
#[pyfunction]
#[pyo3(signature = (train, canaries, delta, significance, seed = None))]
pub(crate) fn audit_one_run(
    train: &Bound<'_, PyAny>,
    canaries: usize,
    delta: f64,
    significance: f64,
    seed: Option<u64>,
) -> PyResult<String> {
    let coins = match seed {
        Some(seed) => NoiseSource::from_seed(seed),
        None => NoiseSource::from_os().map_err(error::mechanism)?,
    };
    let params = OneRunParams { canaries, delta, significance };
    let mut raised = None;
    let found = one_run::audit(&params, &coins, |included| {
        let scores = train.call1((included.to_vec(),)).and_then(|scores| scores.extract());
        scores.map_err(|exception: PyErr| {
            raised = Some(exception);
            Error::Stopped
        })
    });
    match (raised, found) {
        (Some(exception), _) => Err(exception),
        (None, found) => to_json(&found.map_err(refused)?),
    }
}

/// The smallest ε that `correct` of `guesses` about `canaries` coins do not refute.
#[pyfunction]
pub(crate) fn audit_lower_bound(
    canaries: u64,
    guesses: u64,
    correct: u64,
    delta: f64,
    significance: f64,
) -> PyResult<f64> {
    one_run::epsilon_lower_bound(canaries, guesses, correct, delta, significance).map_err(refused)
}

/// ROC, area and true positive rates of two lists of scores, as JSON.
#[pyfunction]
pub(crate) fn audit_roc(members: Vec<f64>, non_members: Vec<f64>) -> PyResult<String> {
    to_json(&Roc::new(&members, &non_members).map_err(refused)?)
}

fn refused(error: Error) -> PyErr {
    error::argument(error.to_string())
}

fn to_json(found: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(found).map_err(|error| error::argument(error.to_string()))
}
