//! What certified GeoDP's earlier releases say about the magnitude: public, and kept in checkpoints.

use geodp_mechanism::perturb::PolarCounts;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// What a state knows, in the order of its arguments.
type Values = (Option<f64>, f64, (u64, u64, u64), f64);

/// The public state of a training with certified GeoDP: every release of it learns from the ones
/// before. Made of releases alone, so it may be kept and shown. Pickles.
#[pyclass(frozen, module = "geodp.mechanism")]
pub(crate) struct PolarState {
    inner: Mutex<geodp_mechanism::PolarState>,
}

#[pymethods]
impl PolarState {
    /// Nothing is known before the first release; with [`values`](Self::values) of another state, what
    /// it knew.
    #[new]
    #[pyo3(signature = (squared_norm = None, variance = 0.0, counts = (0, 0, 0), ratio_total = 0.0))]
    fn new(
        squared_norm: Option<f64>,
        variance: f64,
        counts: (u64, u64, u64),
        ratio_total: f64,
    ) -> Self {
        let (polar, isotropic, directionless) = counts;
        let counts = PolarCounts { polar, isotropic, directionless };
        let inner = geodp_mechanism::PolarState { squared_norm, variance, counts, ratio_total };
        Self { inner: Mutex::new(inner) }
    }

    /// (‖Σ‖²/C² as followed or None, its variance, (polar, isotropic, directionless) steps, Σ a/L of
    /// the polar ones).
    fn values(&self) -> Values {
        let state = self.get();
        let counts = state.counts;
        let kinds = (counts.polar, counts.isotropic, counts.directionless);
        (state.squared_norm, state.variance, kinds, state.ratio_total)
    }

    fn __getnewargs__(&self) -> Values {
        self.values()
    }

    fn __repr__(&self) -> String {
        let counts = self.get().counts;
        format!(
            "PolarState(polar={}, isotropic={}, directionless={})",
            counts.polar, counts.isotropic, counts.directionless
        )
    }
}

impl PolarState {
    pub(crate) fn get(&self) -> geodp_mechanism::PolarState {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, state: geodp_mechanism::PolarState) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}
