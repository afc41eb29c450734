//! Noise sources, clipping and perturbation of NumPy arrays, in place and without a copy.
//!
//! Arrays are flat (gradients side by side are rows), C-contiguous, `float32` or `float64`. The
//! interpreter's lock is free while Rust works on them; an array lent twice at once is refused.

use crate::error;
use geodp::sampler::{Sampler, Sampling};
use geodp_mechanism::{Clip, Gaussian, Geometric, Origin, Perturb, Purpose, Real};
use numpy::{
    Element, IntoPyArray, PyArray, PyArray1, PyArrayMethods, PyReadwriteArray,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// A key from which noise is drawn, and a count of the steps it has served. It cannot be pickled:
/// whoever has the key can subtract the noise.
#[pyclass(frozen, module = "geodp.mechanism")]
pub(crate) struct NoiseSource {
    inner: geodp_mechanism::NoiseSource,
    next_step: AtomicU64,
}

#[pymethods]
impl NoiseSource {
    /// A fresh key from the operating system; with a seed a repeatable one, for experiments only.
    #[new]
    #[pyo3(signature = (seed = None))]
    fn new(seed: Option<u64>) -> PyResult<Self> {
        let inner = match seed {
            Some(seed) => geodp_mechanism::NoiseSource::from_seed(seed),
            None => geodp_mechanism::NoiseSource::from_os().map_err(error::mechanism)?,
        };
        Ok(Self { inner, next_step: AtomicU64::new(0) })
    }

    /// A source with this key of 32 random bytes, which processes share to draw the same coins.
    #[staticmethod]
    fn from_key(key: [u8; 32]) -> Self {
        let origin = Origin::OperatingSystem;
        let inner = geodp_mechanism::NoiseSource::from_secret_key(key, origin);
        Self { inner, next_step: AtomicU64::new(0) }
    }

    /// The seed, or None where the key came from the operating system.
    #[getter]
    fn seed(&self) -> Option<u64> {
        match self.inner.origin() {
            Origin::Seed(seed) => Some(seed),
            Origin::OperatingSystem => None,
        }
    }

    /// Takes a step nobody has taken from this source.
    fn take_step(&self) -> u64 {
        self.next_step.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes `count` such steps one after another, and answers the first.
    fn take_block(&self, count: u64) -> u64 {
        self.next_step.fetch_add(count, Ordering::Relaxed)
    }

    /// The Poisson sample of a step: each of `records` records joins with probability
    /// batch / records. Ascending; may be empty.
    fn poisson<'py>(
        &self,
        py: Python<'py>,
        step: u64,
        records: u32,
        batch: u32,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        if batch == 0 || batch > records {
            let text = format!("the batch is {batch}; it must be in 1..={records}, the records");
            return Err(error::argument(text));
        }
        let drawn = py.detach(|| {
            let mut sample = Vec::new();
            Sampler::new(Sampling::Poisson, records, batch).draw(&self.inner, step, &mut sample)?;
            Ok(sample.into_iter().map(i64::from).collect::<Vec<_>>())
        });
        Ok(drawn.map_err(error::mechanism)?.into_pyarray(py))
    }

    /// `count` standard normals of one stream: purpose "coordinates", "magnitude" or "angles".
    fn normals<'py>(
        &self,
        py: Python<'py>,
        purpose: &str,
        step: u64,
        chunk: u64,
        count: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let purpose = match purpose {
            "coordinates" => Purpose::Coordinates,
            "magnitude" => Purpose::Magnitude,
            "angles" => Purpose::Angles,
            _ => {
                let text = format!(
                    "unknown purpose '{purpose}': use one of coordinates, magnitude, angles"
                );
                return Err(error::argument(text));
            }
        };
        let mut stream = self.inner.stream(purpose, step, chunk).map_err(error::mechanism)?;
        let mut normals = vec![0.0; count];
        py.detach(|| stream.fill_normals(&mut normals));
        Ok(normals.into_pyarray(py))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a NoiseSource holds a secret key and cannot be copied or pickled",
        ))
    }

    fn __repr__(&self) -> String {
        match self.seed() {
            Some(seed) => format!("NoiseSource(seed={seed})"),
            None => "NoiseSource(secure)".to_owned(),
        }
    }
}

impl NoiseSource {
    /// The step asked for, or the next one; a step asked for is not handed out later.
    fn step(&self, step: Option<u64>) -> u64 {
        match step {
            Some(step) => {
                self.next_step.fetch_max(step.saturating_add(1), Ordering::Relaxed);
                step
            }
            None => self.take_step(),
        }
    }
}

/// Adds DP-SGD's noise to a clipped mean gradient, in place; answers the step used.
#[pyfunction]
#[pyo3(signature = (mean, clip_norm, noise_multiplier, batch, noise, step = None))]
pub(crate) fn perturb_dp(
    mean: &Bound<'_, PyAny>,
    clip_norm: f64,
    noise_multiplier: f64,
    batch: u64,
    noise: &NoiseSource,
    step: Option<u64>,
) -> PyResult<u64> {
    let sensitivity = Clip::flat(clip_norm).map_err(error::mechanism)?.sensitivity();
    let mechanism =
        Gaussian::new(sensitivity, noise_multiplier, batch).map_err(error::mechanism)?;
    perturb(mean, &mechanism, noise, step)
}

/// Perturbs a clipped mean gradient geometrically (GeoDP), in place; answers the step used.
#[pyfunction]
#[pyo3(signature = (mean, clip_norm, noise_multiplier, batch, beta, noise, step = None))]
pub(crate) fn perturb_geodp(
    mean: &Bound<'_, PyAny>,
    clip_norm: f64,
    noise_multiplier: f64,
    batch: u64,
    beta: f64,
    noise: &NoiseSource,
    step: Option<u64>,
) -> PyResult<u64> {
    let sensitivity = Clip::flat(clip_norm).map_err(error::mechanism)?.sensitivity();
    let mechanism =
        Geometric::new(sensitivity, noise_multiplier, batch, beta).map_err(error::mechanism)?;
    perturb(mean, &mechanism, noise, step)
}

fn perturb<M: Perturb<f32> + Perturb<f64>>(
    mean: &Bound<'_, PyAny>,
    mechanism: &M,
    noise: &NoiseSource,
    step: Option<u64>,
) -> PyResult<u64> {
    fn release<R: Real + Element>(
        array: &Bound<'_, PyArray1<R>>,
        mechanism: &dyn Perturb<R>,
        noise: &NoiseSource,
        step: Option<u64>,
    ) -> PyResult<u64> {
        let mut lent = lend(array)?;
        let gradient = lent.as_slice_mut()?;
        let step = noise.step(step);
        let work = || mechanism.perturb_in_place(gradient, &noise.inner, step);
        array.py().detach(work).map_err(error::mechanism)?;
        Ok(step)
    }
    if let Ok(array) = mean.cast::<PyArray1<f32>>() {
        release(array, mechanism, noise, step)
    } else if let Ok(array) = mean.cast::<PyArray1<f64>>() {
        release(array, mechanism, noise, step)
    } else {
        Err(wrong_array(mean, "one-dimensional"))
    }
}

/// Clips each row of `gradients` in place and answers the norms they had. The rule is "flat",
/// "auto-s" or "psac"; a row that is not finite becomes 0.
#[pyfunction]
pub(crate) fn clip_rows<'py>(
    gradients: &Bound<'py, PyAny>,
    clip_norm: f64,
    rule: &str,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    use geodp_mechanism::clip::{AutoS, Psac};
    let clip = match rule {
        "flat" => Clip::flat(clip_norm),
        "auto-s" => Clip::auto_s(clip_norm, AutoS::GAMMA),
        "psac" => Clip::psac(clip_norm, Psac::R),
        _ => {
            let text = format!("unknown clipping rule '{rule}': use one of flat, auto-s, psac");
            return Err(error::argument(text));
        }
    }
    .map_err(error::mechanism)?;
    if let Ok(array) = gradients.cast::<PyArray<f32, numpy::Ix2>>() {
        clip_each(array, &clip)
    } else if let Ok(array) = gradients.cast::<PyArray<f64, numpy::Ix2>>() {
        clip_each(array, &clip)
    } else {
        Err(wrong_array(gradients, "two-dimensional"))
    }
}

fn clip_each<'py, R: Real + Element>(
    array: &Bound<'py, PyArray<R, numpy::Ix2>>,
    clip: &Clip,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let mut lent = lend(array)?;
    let dim = lent.as_array().ncols();
    let rows = lent.as_slice_mut()?;
    if dim == 0 {
        return Err(error::argument("the gradients have no coordinates"));
    }
    let clip_row = |row: &mut [R]| {
        let norm = row.iter().map(|g| g.to_f64() * g.to_f64()).sum::<f64>().sqrt();
        let weight = clip.weight(norm);
        for g in row {
            *g = if weight == 0.0 { R::default() } else { R::from_f64(weight * g.to_f64()) };
        }
        norm
    };
    let work = || rows.par_chunks_exact_mut(dim).map(clip_row).collect::<Vec<f64>>();
    Ok(array.py().detach(work).into_pyarray(array.py()))
}

/// The array for writing, by this call alone.
fn lend<'py, R: Element, D: numpy::ndarray::Dimension>(
    array: &Bound<'py, PyArray<R, D>>,
) -> PyResult<PyReadwriteArray<'py, R, D>> {
    if !array.is_c_contiguous() {
        return Err(error::argument(
            "the array is not C-contiguous; pass numpy.ascontiguousarray(array)",
        ));
    }
    array.try_readwrite().map_err(|reason| error::argument(format!("the array: {reason}")))
}

fn wrong_array(found: &Bound<'_, PyAny>, dimensions: &str) -> PyErr {
    let kind = found.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    let shape = found.getattr("shape").map_or_else(|_| String::new(), |s| format!(" of shape {s}"));
    let dtype =
        found.getattr("dtype").map_or_else(|_| String::new(), |d| format!(" and dtype {d}"));
    PyTypeError::new_err(format!(
        "expected a {dimensions} NumPy array of float32 or float64, found {kind}{shape}{dtype}"
    ))
}
