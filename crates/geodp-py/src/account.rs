//! Brackets, accountants and the questions turned round.
//!
//! An event is a mapping in the form of the JSON of [`geodp_account::Event`], which stands in ledgers:
//! one form for every present and future event.

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
    #[pyo3(signature = (*, sample_rate, noise_multiplier, steps = 1))]
    fn compose(&self, sample_rate: f64, noise_multiplier: f64, steps: u64) -> PyResult<()> {
        self.add(&Event::sampled_gaussian(sample_rate, noise_multiplier), steps)
    }

    /// Adds an event in the form that stands in ledgers, `count` times.
    #[pyo3(signature = (event, count = 1))]
    fn compose_event(&self, event: &Bound<'_, PyAny>, count: u64) -> PyResult<()> {
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

/// An event from a mapping in the form that stands in ledgers, checked.
pub(crate) fn parse_event(event: &Bound<'_, PyAny>) -> PyResult<Event> {
    let text: String = json(event.py())?.call_method1("dumps", (event,))?.extract()?;
    let event: Event = serde_json::from_str(&text)
        .map_err(|error| error::argument(format!("the event cannot be read: {error}")))?;
    event.check().map_err(error::account)?;
    Ok(event)
}

/// The mapping that [`parse_event`] reads.
pub(crate) fn event_to_python<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(event).map_err(|error| error::argument(error.to_string()))?;
    json(py)?.call_method1("loads", (text,))
}

/// Python's own `json`: events are small, and it knows every mapping.
fn json(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("json")
}

pub(crate) fn parse_adjacency(adjacency: &str) -> PyResult<Adjacency> {
    adjacency.parse().map_err(error::account)
}

/// The certified ε of `steps` steps of DP-SGD at `delta`.
#[pyfunction]
#[pyo3(signature = (*, sample_rate, noise_multiplier, steps, delta, adjacency = "add-remove", method = "pld"))]
pub(crate) fn epsilon(
    py: Python<'_>,
    sample_rate: f64,
    noise_multiplier: f64,
    steps: u64,
    delta: f64,
    adjacency: &str,
    method: &str,
) -> PyResult<Bracket> {
    let accountant = Accountant::new(adjacency, method)?;
    accountant.compose(sample_rate, noise_multiplier, steps)?;
    accountant.epsilon(py, delta)
}

/// The certified δ of `steps` steps of DP-SGD at `epsilon`.
#[pyfunction]
#[pyo3(signature = (*, sample_rate, noise_multiplier, steps, epsilon, adjacency = "add-remove", method = "pld"))]
pub(crate) fn delta(
    py: Python<'_>,
    sample_rate: f64,
    noise_multiplier: f64,
    steps: u64,
    epsilon: f64,
    adjacency: &str,
    method: &str,
) -> PyResult<Bracket> {
    let accountant = Accountant::new(adjacency, method)?;
    accountant.compose(sample_rate, noise_multiplier, steps)?;
    accountant.delta(py, epsilon)
}

/// The smallest σ whose certified ε does not exceed `epsilon`. With `miss`, of certified GeoDP whose
/// steps each miss with that chance.
#[pyfunction]
#[pyo3(signature = (*, epsilon, delta, sample_rate, steps, adjacency = "add-remove", miss = None))]
pub(crate) fn noise_multiplier(
    py: Python<'_>,
    epsilon: f64,
    delta: f64,
    sample_rate: f64,
    steps: u64,
    adjacency: &str,
    miss: Option<f64>,
) -> PyResult<f64> {
    let adjacency = parse_adjacency(adjacency)?;
    let run = |sigma| {
        let plain = Event::sampled_gaussian(sample_rate, sigma);
        miss.map_or(plain.clone(), |miss| Event::polar(plain, miss)).repeated(steps)
    };
    py.detach(|| calibrate::noise_multiplier(epsilon, delta, adjacency, run))
        .map_err(error::account)
}

/// The largest number of steps whose certified ε does not exceed `epsilon`.
#[pyfunction]
#[pyo3(signature = (*, epsilon, delta, sample_rate, noise_multiplier, adjacency = "add-remove"))]
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

/// The largest sample rate whose certified ε does not exceed `epsilon`.
#[pyfunction]
#[pyo3(signature = (*, epsilon, delta, noise_multiplier, steps, adjacency = "add-remove"))]
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
