//! Bundled data as arrays, for examples and benchmarks of other libraries.

use crate::error;
use geodp_data::{Dataset, Scaling, mnist as bundled};
use numpy::{IntoPyArray, PyArray1, PyArray3, PyArrayMethods};
use pyo3::prelude::*;

/// Images N × 28 × 28 in [0, 1], and labels.
type Part<'py> = (Bound<'py, PyArray3<f32>>, Bound<'py, PyArray1<i64>>);

/// MNIST: (images, labels) to train on and to test on.
#[pyfunction]
pub(crate) fn mnist(py: Python<'_>) -> PyResult<(Part<'_>, Part<'_>)> {
    let split = py.detach(|| bundled::load(&Scaling::Unit));
    let split = split.map_err(|e| error::argument(e.to_string()))?;
    Ok((part(py, &split.train)?, part(py, &split.test)?))
}

fn part<'py>(py: Python<'py>, data: &Dataset) -> PyResult<Part<'py>> {
    let (count, shape) = (data.len(), data.shape());
    let pixels = py.detach(|| {
        let mut pixels = vec![0.0; count * data.input_len()];
        for (index, image) in pixels.chunks_exact_mut(data.input_len()).enumerate() {
            data.records().read_input(index, image);
        }
        pixels
    });
    let labels: Vec<i64> = (0..count).map(|index| i64::from(data.label(index))).collect();
    let images = pixels.into_pyarray(py).reshape([count, shape.height, shape.width])?;
    Ok((images, labels.into_pyarray(py)))
}
