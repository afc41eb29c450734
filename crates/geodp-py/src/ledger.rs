//! Ledgers: read and verified, or appended to durably.

use crate::account::{event_to_python, parse_event};
use crate::claim::{Claim, terms};
use crate::error;
use geodp_account::{Error, LedgerHeader};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A ledger that was read and found whole: every charge, chained by SHA-256. The chain finds accidents
/// and careless edits. It has no key, so it does not stop an owner who rewrites all of it.
#[pyclass(frozen, module = "geodp.account")]
pub(crate) struct Ledger {
    inner: geodp_account::Ledger,
}

#[pymethods]
impl Ledger {
    /// Reads and verifies a ledger file; raises `LedgerError` where its chain is broken.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let inner = py.detach(|| geodp_account::Ledger::read(&path)).map_err(error::account)?;
        Ok(Self { inner })
    }

    /// The neighbouring relation its totals are about.
    #[getter]
    fn adjacency(&self) -> String {
        self.inner.header.terms.adjacency.to_string()
    }

    /// δ its totals are stated at.
    #[getter]
    fn delta(&self) -> f64 {
        self.inner.header.terms.delta
    }

    /// What ties it to its run.
    #[getter]
    fn plan(&self) -> &str {
        &self.inner.header.plan
    }

    /// Hash of its last line.
    #[getter]
    fn head(&self) -> &str {
        self.inner.head()
    }

    /// Steps paid for.
    #[getter]
    fn steps(&self) -> u64 {
        self.inner.steps()
    }

    /// Whether a torn last line was passed over.
    #[getter]
    fn torn(&self) -> bool {
        self.inner.torn
    }

    /// Every charge as (steps paid for once it is charged, event, count).
    #[getter]
    fn charges<'py>(&self, py: Python<'py>) -> PyResult<Vec<(u64, Bound<'py, PyAny>, u64)>> {
        let charge = |record: &geodp_account::LedgerRecord| {
            Ok((record.step, event_to_python(py, &record.event)?, record.count))
        };
        self.inner.records.iter().map(charge).collect()
    }

    /// What may be said of all its charges, the strongest claim first.
    fn claims(&self, py: Python<'_>) -> PyResult<Vec<Claim>> {
        let claims = py.detach(|| self.inner.account()?.claims()).map_err(error::account)?;
        Ok(claims.into_iter().map(Claim::from).collect())
    }

    /// Raises `LedgerError` unless this ledger continues one of `charges` charges and hash `head`.
    fn verify_against(&self, charges: u64, head: &str) -> PyResult<()> {
        self.inner.verify_against(charges, head).map_err(error::account)
    }

    fn __len__(&self) -> usize {
        self.inner.records.len()
    }
}

/// The one who may write to a ledger; a charge is on the disk before `append` returns.
#[pyclass(frozen, module = "geodp.account")]
pub(crate) struct LedgerWriter {
    inner: Mutex<geodp_account::LedgerWriter>,
}

#[pymethods]
impl LedgerWriter {
    /// Starts a new ledger; refuses a path where something stands already.
    #[staticmethod]
    #[pyo3(signature = (path, *, delta, plan, adjacency = "add-remove", arithmetic = "floating-point", noise_draws = 0))]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        delta: f64,
        plan: &str,
        adjacency: &str,
        arithmetic: &str,
        noise_draws: u64,
    ) -> PyResult<Self> {
        let terms = terms(delta, adjacency, arithmetic, noise_draws)?;
        let made = py.detach(|| {
            if path.exists() {
                let taken = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
                return Err(Error::Io(taken));
            }
            let header = LedgerHeader::new(terms, plan, None);
            geodp_account::LedgerWriter::create(&path, &header)
        });
        Ok(Self { inner: Mutex::new(made.map_err(error::account)?) })
    }

    /// Continues a ledger after verifying it; a torn last line is removed.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| geodp_account::LedgerWriter::open(&path));
        let (writer, _) = opened.map_err(error::account)?;
        Ok(Self { inner: Mutex::new(writer) })
    }

    /// Charges `event`, `count` times, which pays for the run's steps before `step`.
    #[pyo3(signature = (*, step, event, count = 1))]
    fn append(&self, step: u64, event: &Bound<'_, PyAny>, count: u64) -> PyResult<()> {
        let (py, event) = (event.py(), parse_event(event)?);
        py.detach(|| self.lock().append(step, &event, count)).map_err(error::account)
    }

    /// Hash of its last line.
    #[getter]
    fn head(&self) -> String {
        self.lock().head().to_owned()
    }

    /// Charges so far.
    fn __len__(&self) -> usize {
        self.lock().records() as usize
    }
}

impl LedgerWriter {
    /// A failed append leaves the writer whole, so a poisoned lock holds a usable one.
    fn lock(&self) -> std::sync::MutexGuard<'_, geodp_account::LedgerWriter> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
