//! Sums of clipped gradients in whole numbers, as the trainer makes them.
//!
//! A record adds integers n in units of C·2⁻³⁰ with ‖n‖ ≤ 2³⁰, so its contribution is no longer than
//! C in exact arithmetic, and the sum does not depend on the order of records or on how they are
//! split. The noise is a Gaussian rounded to the same grid: what is proved of the release is true of
//! its bits.

use crate::error;
use crate::mechanism::{Perturbation, parse_clip, wrong_array};
use crate::noise::NoiseSource;
use crate::polar::PolarState;
use geodp_mechanism::Clip;
use geodp_nn::Grid;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use rayon::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An exact sum of clipped gradients. Private until released.
#[pyclass(frozen, module = "geodp.mechanism")]
pub(crate) struct ExactSum {
    clip: Clip,
    grid: Grid,
    dim: usize,
    units: Mutex<Vec<i64>>,
}

#[pymethods]
impl ExactSum {
    /// An empty sum of `dim` coordinates; each gradient is clipped to `clip_norm` by `rule`.
    #[new]
    #[pyo3(signature = (dim, clip_norm, rule = "flat"))]
    fn new(dim: usize, clip_norm: f64, rule: &str) -> PyResult<Self> {
        if dim == 0 {
            return Err(error::argument("a sum needs at least one coordinate"));
        }
        let clip = parse_clip(clip_norm, rule)?;
        let grid =
            Grid::new(clip.sensitivity().get()).map_err(|e| error::argument(e.to_string()))?;
        Ok(Self { clip, grid, dim, units: Mutex::new(vec![0; dim]) })
    }

    /// Clips each row (float32) and adds it; answers the norms before. A row that is not finite adds
    /// nothing.
    fn add<'py>(&self, gradients: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let Ok(array) = gradients.cast::<PyArray2<f32>>() else {
            return Err(wrong_array(gradients, "two-dimensional"));
        };
        let lent = array.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
        let rows = lent.as_slice()?;
        let dim = self.dim;
        if array.shape()[1] != dim {
            let text = format!("gradients of {} coordinates; {dim} are summed", array.shape()[1]);
            return Err(error::argument(text));
        }
        let py = gradients.py();
        let norms = py.detach(|| {
            // A part of the rows for each thread, and whole numbers: the order does not matter.
            let stripe = rows.len().div_ceil(dim).div_ceil(rayon::current_num_threads()).max(1);
            let parts: Vec<(Vec<i64>, Vec<f64>)> =
                rows.par_chunks(stripe * dim).map(|rows| self.stripe(rows, dim)).collect();
            let (mut sum, mut norms) = (self.lock(), Vec::with_capacity(rows.len() / dim));
            for (part, of_part) in parts {
                sum.iter_mut().zip(part).for_each(|(sum, n)| *sum += n);
                norms.extend(of_part);
            }
            norms
        });
        Ok(norms.into_pyarray(py))
    }

    /// Adds the whole numbers of another sum of the same size and threshold, given as [`units`].
    fn add_units(&self, units: &Bound<'_, PyArray1<i64>>) -> PyResult<()> {
        let lent = units.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
        let (mut sum, other) = (self.lock(), lent.as_slice()?);
        if other.len() != sum.len() {
            let text = format!("{} whole numbers; {} are summed", other.len(), sum.len());
            return Err(error::argument(text));
        }
        sum.iter_mut().zip(other).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
        Ok(())
    }

    /// The whole numbers, in units of C·2⁻³⁰. Private.
    fn units<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.lock().clone().into_pyarray(py)
    }

    /// Makes it empty again.
    fn clear(&self) {
        self.lock().fill(0);
    }

    /// The noisy mean, as float32, and the step of its noise.
    #[pyo3(signature = (perturbation, noise, step = None, history = None))]
    fn release<'py>(
        &self,
        py: Python<'py>,
        perturbation: &Perturbation,
        noise: &NoiseSource,
        step: Option<u64>,
        history: Option<&PolarState>,
    ) -> PyResult<(Bound<'py, PyArray1<f32>>, u64)> {
        let (ours, theirs) = (self.grid.bound(), perturbation.clip_norm());
        if ours != theirs {
            let text = format!("gradients were clipped to {ours}, the noise is for {theirs}");
            return Err(error::argument(text));
        }
        let mechanism = perturbation.exact(self.dim).map_err(error::mechanism)?;
        let mut before = perturbation.history(history)?;
        let step = noise.step(step);
        let mut out = vec![0.0; self.dim];
        let work =
            || mechanism.release_step(&self.lock(), &noise.inner, step, &mut before, &mut out);
        py.detach(work).map_err(error::mechanism)?;
        if let Some(history) = history {
            history.set(before);
        }
        Ok((out.into_pyarray(py), step))
    }
}

impl ExactSum {
    /// The sum of some rows, and their norms.
    fn stripe(&self, rows: &[f32], dim: usize) -> (Vec<i64>, Vec<f64>) {
        let mut sum = vec![0; dim];
        let add = |row| self.grid.add_gradient(row, |norm| self.clip.weight(norm), &mut sum);
        let norms = rows.chunks_exact(dim).map(add).collect();
        (sum, norms)
    }

    /// An addition happens as a whole or not at all, so a poisoned lock holds a usable sum.
    fn lock(&self) -> MutexGuard<'_, Vec<i64>> {
        self.units.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
