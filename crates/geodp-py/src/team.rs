//! Trainings over several Python processes: the link of rank 0 as a Python object, and the others' work as
//! one call that keeps nothing but a share of the records.
//!
//! The object has `size`, and `send(rank, bytes)`, `broadcast(weights)`, `sum() -> array` and
//! `receive(rank) -> bytes`, called in this order within a step (`geodp.ray` is one). It decides where
//! processes are and what to do when one is lost: a call can be made again with the same bits.

use crate::error;
use geodp::team::{Link, LinkError, Worker};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rank 0's link, through a Python object.
pub(crate) struct Through {
    object: Py<PyAny>,
    size: usize,
}

impl Through {
    pub(crate) fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let size = object.getattr("size")?.extract()?;
        Ok(Self { object: object.clone().unbind(), size })
    }

    /// Calls a method; an exception is a process that cannot be reached.
    fn call<R>(
        &self,
        with: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<R>,
    ) -> Result<R, LinkError> {
        Python::attach(|py| with(py, self.object.bind(py)))
            .map_err(|exception| LinkError(exception.to_string()))
    }
}

impl Link for Through {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), LinkError> {
        self.call(|py, object| object.call_method1("send", (to, PyBytes::new(py, bytes))).map(drop))
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>, LinkError> {
        self.call(|_, object| object.call_method1("receive", (from,))?.extract())
    }

    fn broadcast(&self, values: &mut [f32]) -> Result<(), LinkError> {
        self.call(|py, object| {
            object.call_method1("broadcast", (PyArray1::from_slice(py, values),)).map(drop)
        })
    }

    fn sum_to_first(&self, values: &mut [i64]) -> Result<(), LinkError> {
        self.call(|_, object| {
            let sum = object.call_method0("sum")?;
            let sum: PyReadonlyArray1<'_, i64> = sum.extract()?;
            let sum = sum.as_slice()?;
            if sum.len() != values.len() {
                let reason = format!("a sum of {} values for {}", sum.len(), values.len());
                return Err(error::argument(reason));
            }
            values.iter_mut().zip(sum).for_each(|(value, more)| *value += more);
            Ok(())
        })
    }
}

/// What a request brought, and what is answered.
struct Mailbox {
    rank: usize,
    size: usize,
    weights: Vec<f32>,
    answered: Mutex<Answered>,
}

#[derive(Default)]
struct Answered {
    sum: Option<Vec<i64>>,
    bytes: Vec<u8>,
}

impl Mailbox {
    fn answered(&self) -> MutexGuard<'_, Answered> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Link for Mailbox {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&self, _to: usize, bytes: &[u8]) -> Result<(), LinkError> {
        self.answered().bytes = bytes.to_vec();
        Ok(())
    }

    fn receive(&self, _from: usize) -> Result<Vec<u8>, LinkError> {
        Err(LinkError("requests are handed over, not waited for".to_owned()))
    }

    fn broadcast(&self, values: &mut [f32]) -> Result<(), LinkError> {
        if values.len() != self.weights.len() {
            let reason = format!("{} weights for {} parameters", self.weights.len(), values.len());
            return Err(LinkError(reason));
        }
        values.copy_from_slice(&self.weights);
        Ok(())
    }

    fn sum_to_first(&self, values: &mut [i64]) -> Result<(), LinkError> {
        self.answered().sum = Some(values.to_vec());
        Ok(())
    }
}

/// A process of several but the first: its share of the records.
#[pyclass(frozen, module = "geodp._native")]
pub(crate) struct TeamWorker {
    rank: usize,
    size: usize,
    worker: Mutex<Worker>,
}

/// A sum, where one was asked for, and the bytes of an answer.
type Answer<'py> = (Option<Bound<'py, PyArray1<i64>>>, Bound<'py, PyBytes>);

#[pymethods]
impl TeamWorker {
    #[new]
    fn new(rank: usize, size: usize) -> PyResult<Self> {
        if rank == 0 || rank >= size {
            return Err(error::argument(format!(
                "rank {rank} of {size}: it must be 1 to size - 1"
            )));
        }
        Ok(Self { rank, size, worker: Mutex::default() })
    }

    /// Does what a request asks, with the weights that belong to it.
    #[pyo3(signature = (request, weights = None))]
    fn handle<'py>(
        &self,
        py: Python<'py>,
        request: &[u8],
        weights: Option<PyReadonlyArray1<'py, f32>>,
    ) -> PyResult<Answer<'py>> {
        let weights = match weights {
            None => Vec::new(),
            Some(weights) => weights.as_slice()?.to_vec(),
        };
        let (rank, size) = (self.rank, self.size);
        let mailbox = Mailbox { rank, size, weights, answered: Mutex::default() };
        py.detach(|| {
            let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
            worker.handle(&mailbox, request)
        })
        .map_err(error::training)?;
        let Answered { sum, bytes } = std::mem::take(&mut *mailbox.answered());
        Ok((sum.map(|sum| PyArray1::from_vec(py, sum)), PyBytes::new(py, &bytes)))
    }
}
