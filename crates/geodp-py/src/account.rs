//! Brackets, accountants and the questions turned round.
//!
//! An event crosses the border as the JSON of [`geodp_account::Event`], the same text that stands in
//! ledgers: one form for every present and future event.

use crate::error;
use geodp_account::{Adjacency, Event, Method, calibrate};
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// lower ≤ truth ≤ upper; `upper` is the number to report.
#[pyclass(frozen, eq, module = "geodp.account")]
#[derive(Clone, PartialEq)]
pub(crate) struct Bracket {
    inner: geodp_account::Bracket,
}

impl From<geodp_account::Bracket> for Bracket {
    fn from(inner: geodp_account::Bracket) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Bracket {
    /// No smaller value is true.
    #[getter]
    fn lower(&self) -> f64 {
        self.inner.lower
    }

    /// A bound, not an estimate: the number to report.
    #[getter]
    fn upper(&self) -> f64 {
        self.inner.upper
    }

    /// upper − lower.
    #[getter]
    fn width(&self) -> f64 {
        self.inner.width()
    }

    /// The neighbouring relation the answer is for.
    #[getter]
    fn adjacency(&self) -> String {
        self.inner.adjacency.to_string()
    }

    /// Why the bracket is wide or one-sided, or None.
    #[getter]
    fn reason(&self) -> Option<String> {
        self.inner.reason.map(|reason| reason.to_string())
    }

    fn __contains__(&self, value: f64) -> bool {
        self.inner.contains(value)
    }

    /// The upper end.
    fn __float__(&self) -> f64 {
        self.inner.upper
    }

    fn __repr__(&self) -> String {
        format!("Bracket{}", self.inner)
    }
}

/// Composes releases and answers ε(δ) or δ(ε) about all of them together.
#[pyclass(frozen, module = "geodp.account")]
pub(crate) struct Accountant {
    inner: Mutex<Box<dyn geodp_account::Accountant + Send + Sync>>,
}

#[pymethods]
impl Accountant {
    /// `adjacency` is "add-remove" or "replace-one", `method` "pld" or "rdp".
    #[new]
    #[pyo3(signature = (adjacency = "add-remove", method = "pld"))]
    fn new(adjacency: &str, method: &str) -> PyResult<Self> {
        let method: Method = method.parse().map_err(error::account)?;
        Ok(Self { inner: Mutex::new(method.accountant(parse_adjacency(adjacency)?)) })
    }

    /// The neighbouring relation of every answer.
    #[getter]
    fn adjacency(&self) -> String {
        self.lock().adjacency().to_string()
    }

    /// Adds `steps` Poisson-sampled Gaussian releases.
    fn compose(&self, sample_rate: f64, noise_multiplier: f64, steps: u64) -> PyResult<()> {
        self.add(&Event::sampled_gaussian(sample_rate, noise_multiplier), steps)
    }

    /// Adds an event, given as the JSON that stands in ledgers, `count` times.
    fn compose_event(&self, event: &str, count: u64) -> PyResult<()> {
        self.add(&parse_event(event)?, count)
    }

    /// ε at `delta`.
    fn epsilon(&self, py: Python<'_>, delta: f64) -> PyResult<Bracket> {
        let answer = py.detach(|| self.lock().epsilon(delta));
        Ok(answer.map_err(error::account)?.into())
    }

    /// δ at `epsilon`.
    fn delta(&self, py: Python<'_>, epsilon: f64) -> PyResult<Bracket> {
        let answer = py.detach(|| self.lock().delta(epsilon));
        Ok(answer.map_err(error::account)?.into())
    }
}

impl Accountant {
    fn add(&self, event: &Event, count: u64) -> PyResult<()> {
        self.lock().compose(event, count).map_err(error::account)
    }

    /// A composition happens as a whole or not at all, so a poisoned lock holds a usable accountant.
    fn lock(&self) -> MutexGuard<'_, Box<dyn geodp_account::Accountant + Send + Sync>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An event from the JSON that stands in ledgers, checked.
pub(crate) fn parse_event(text: &str) -> PyResult<Event> {
    let event: Event = serde_json::from_str(text)
        .map_err(|error| error::argument(format!("the event cannot be read: {error}")))?;
    event.check().map_err(error::account)?;
    Ok(event)
}

pub(crate) fn parse_adjacency(adjacency: &str) -> PyResult<Adjacency> {
    adjacency.parse().map_err(error::account)
}

/// The smallest noise multiplier at which `steps` steps at `sample_rate` fit (ε, δ).
#[pyfunction]
pub(crate) fn noise_multiplier(
    py: Python<'_>,
    epsilon: f64,
    delta: f64,
    sample_rate: f64,
    steps: u64,
    adjacency: &str,
) -> PyResult<f64> {
    let adjacency = parse_adjacency(adjacency)?;
    let run = |sigma| Event::sampled_gaussian(sample_rate, sigma).repeated(steps);
    py.detach(|| calibrate::noise_multiplier(epsilon, delta, adjacency, run))
        .map_err(error::account)
}

/// The largest number of steps that fits (ε, δ).
#[pyfunction]
pub(crate) fn steps(
    py: Python<'_>,
    epsilon: f64,
    delta: f64,
    sample_rate: f64,
    noise_multiplier: f64,
    adjacency: &str,
) -> PyResult<u64> {
    let adjacency = parse_adjacency(adjacency)?;
    let event = Event::sampled_gaussian(sample_rate, noise_multiplier);
    py.detach(|| calibrate::steps(epsilon, delta, adjacency, &event)).map_err(error::account)
}

/// The largest sample rate at which `steps` steps fit (ε, δ).
#[pyfunction]
pub(crate) fn sample_rate(
    py: Python<'_>,
    epsilon: f64,
    delta: f64,
    noise_multiplier: f64,
    steps: u64,
    adjacency: &str,
) -> PyResult<f64> {
    let adjacency = parse_adjacency(adjacency)?;
    let run = |rate| Event::sampled_gaussian(rate, noise_multiplier).repeated(steps);
    py.detach(|| calibrate::sample_rate(epsilon, delta, adjacency, run)).map_err(error::account)
}
