//! Noise sources: a key, and a count of the steps it has served.

use crate::error;
use geodp::sampler::{Sampler, Sampling};
use geodp_mechanism::{Origin, Purpose};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// A key from which noise is drawn, and a count of the steps it has served. It cannot be pickled:
/// whoever has the key can subtract the noise.
#[pyclass(frozen, module = "geodp.mechanism")]
pub(crate) struct NoiseSource {
    pub(crate) inner: geodp_mechanism::NoiseSource,
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
    pub(crate) fn step(&self, step: Option<u64>) -> u64 {
        match step {
            Some(step) => {
                self.next_step.fetch_max(step.saturating_add(1), Ordering::Relaxed);
                step
            }
            None => self.take_step(),
        }
    }
}
