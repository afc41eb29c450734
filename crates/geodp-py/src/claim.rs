//! Claims: every ε with its kind. A number that is not certified is handed out by name only.

use crate::account::{Bracket, parse_adjacency, parse_event};
use crate::error;
use geodp_account::{Arithmetic, Denominator, Kind, Method, Terms};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What may be said of some releases: one ε with its kind, δ and neighbours.
#[pyclass(frozen, eq, module = "geodp.account")]
#[derive(PartialEq)]
pub(crate) struct Claim {
    inner: geodp_account::Claim,
}

impl From<geodp_account::Claim> for Claim {
    fn from(inner: geodp_account::Claim) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Claim {
    /// A claim as it stands in a statement; it is as trustworthy as where it was read.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let inner = serde_json::from_str(text)
            .map_err(|e| error::argument(format!("the claim cannot be read: {e}")))?;
        Ok(Self { inner })
    }

    /// "certified", "conditional", "as published" or "no privacy".
    #[getter]
    fn kind(&self) -> String {
        self.inner.kind().to_string()
    }

    /// ε as a bracket.
    #[getter]
    fn epsilon(&self) -> Bracket {
        self.inner.epsilon().into()
    }

    /// δ.
    #[getter]
    fn delta(&self) -> f64 {
        self.inner.delta()
    }

    /// Which change of the data it is about.
    #[getter]
    fn adjacency(&self) -> String {
        self.inner.adjacency().to_string()
    }

    /// In which arithmetic it holds.
    #[getter]
    fn arithmetic(&self) -> String {
        self.inner.arithmetic().to_string()
    }

    /// What is assumed and not enforced, or None.
    #[getter]
    fn assumption(&self) -> Option<&str> {
        self.inner.assumption()
    }

    /// The certified ε; refuses where it is not certified.
    fn __float__(&self) -> PyResult<f64> {
        match self.inner.kind() {
            Kind::Certified => Ok(self.inner.upper()),
            kind => Err(PyTypeError::new_err(format!(
                "this ε is {kind}, not certified, and says nothing as a bare number; ask for \
                 .epsilon.upper and give its kind and assumption beside it"
            ))),
        }
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<{}>", self.inner)
    }
}

/// Everything charged so far, and what may be said of it: one claim for DP-SGD (certified); for GeoDP
/// a conditional one and the figure as published.
#[pyclass(frozen, module = "geodp.account")]
pub(crate) struct Account {
    inner: Mutex<geodp_account::Account>,
}

#[pymethods]
impl Account {
    /// An account on which nothing is charged. `arithmetic` is "floating-point", or "exact" for releases
    /// of exact sums; `noise_draws` is how often noise is drawn, coordinates × steps.
    #[new]
    #[pyo3(signature = (*, delta, adjacency = "add-remove", method = "pld", arithmetic = "floating-point", noise_draws = 0))]
    fn new(
        delta: f64,
        adjacency: &str,
        method: &str,
        arithmetic: &str,
        noise_draws: u64,
    ) -> PyResult<Self> {
        let method: Method = method.parse().map_err(error::account)?;
        let terms = terms(delta, adjacency, arithmetic, noise_draws)?;
        let account = geodp_account::Account::new(terms).with_method(method);
        Ok(Self { inner: Mutex::new(account) })
    }

    /// Charges an event in the form that stands in ledgers, `count` times.
    #[pyo3(signature = (event, count = 1))]
    fn charge(&self, event: &Bound<'_, PyAny>, count: u64) -> PyResult<()> {
        self.lock().charge(&parse_event(event)?, count).map_err(error::account)
    }

    /// Every claim, the strongest first.
    fn claims(&self, py: Python<'_>) -> PyResult<Vec<Claim>> {
        let claims = py.detach(|| self.lock().claims()).map_err(error::account)?;
        Ok(claims.into_iter().map(Claim::from).collect())
    }
}

impl Account {
    /// A charge happens as a whole or not at all, so a poisoned lock holds a usable account.
    fn lock(&self) -> MutexGuard<'_, geodp_account::Account> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What claims are stated under: sums over the expected batch, in this arithmetic, with at most so many
/// draws of noise.
pub(crate) fn terms(
    delta: f64,
    adjacency: &str,
    arithmetic: &str,
    noise_draws: u64,
) -> PyResult<Terms> {
    Ok(Terms {
        adjacency: parse_adjacency(adjacency)?,
        delta,
        arithmetic: match arithmetic {
            "exact" => Arithmetic::Exact,
            "floating-point" => Arithmetic::FloatingPoint,
            other => {
                let names = Arithmetic::NAMES.join(", ");
                let text = format!("unknown arithmetic '{other}': use one of {names}");
                return Err(error::argument(text));
            }
        },
        denominator: Denominator::ExpectedBatch,
        noise_draws,
    })
}
