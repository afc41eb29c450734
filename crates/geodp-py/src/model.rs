//! A finished run's model: probabilities of new records.

use crate::error;
use geodp::trained::Trained;
use geodp_data::{Records, Scaling, Shape};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// Probabilities of classes, or numbers.
type Answers<'py> = (Option<Bound<'py, PyArray2<f32>>>, Option<Bound<'py, PyArray1<f64>>>);

/// The model of a finished run folder.
#[pyclass(frozen, module = "geodp")]
pub(crate) struct Model {
    inner: Trained,
}

#[pymethods]
impl Model {
    /// Opens the folder of a finished run.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let inner = py.detach(|| Trained::open(&folder)).map_err(error::training)?;
        Ok(Self { inner })
    }

    /// What the model's file claims of its privacy; as trustworthy as the file.
    #[getter]
    fn claimed(&self) -> String {
        self.inner.claimed_by_the_file()
    }

    /// For each record the probability of each class, or else the number that is learnt. Inputs are
    /// N × features, N × height × width or N × channels × height × width, as float32, or as bytes
    /// that mean p/255.
    fn predict<'py>(&self, py: Python<'py>, inputs: &Bound<'py, PyAny>) -> PyResult<Answers<'py>> {
        let records = records(inputs)?;
        let predictions = py.detach(|| self.inner.predict(&records)).map_err(error::training)?;
        if predictions.label.is_some() {
            let values: Vec<f64> = predictions.rows.iter().filter_map(|row| row.value).collect();
            return Ok((None, Some(values.into_pyarray(py))));
        }
        let rows: Vec<Vec<f32>> = predictions.rows.into_iter().map(|r| r.probabilities).collect();
        Ok((Some(PyArray2::from_vec2(py, &rows)?), None))
    }
}

fn records(inputs: &Bound<'_, PyAny>) -> PyResult<Records> {
    if let Ok(array) = inputs.cast::<PyArrayDyn<f32>>() {
        let array = read(array)?;
        let shape = shape(array.shape())?;
        let records = Records::from_floats(shape, array.as_slice()?.to_vec(), "as given");
        records.map_err(|e| error::argument(e.to_string()))
    } else if let Ok(array) = inputs.cast::<PyArrayDyn<u8>>() {
        let array = read(array)?;
        let shape = shape(array.shape())?;
        let pixels = Arc::new(array.as_slice()?.to_vec());
        Records::from_bytes(shape, pixels, &Scaling::Unit)
            .map_err(|e| error::argument(e.to_string()))
    } else {
        Err(PyTypeError::new_err("inputs must be a NumPy array of float32 or uint8"))
    }
}

fn read<'py, T: numpy::Element>(
    array: &Bound<'py, PyArrayDyn<T>>,
) -> PyResult<PyReadonlyArrayDyn<'py, T>> {
    if !array.is_c_contiguous() {
        return Err(error::argument("inputs must be C-contiguous"));
    }
    array.try_readonly().map_err(|reason| error::argument(format!("inputs: {reason}")))
}

fn shape(dims: &[usize]) -> PyResult<Shape> {
    match *dims {
        [_, features] => Ok(Shape::features(features)),
        [_, height, width] => Ok(Shape::image(1, height, width)),
        [_, channels, height, width] => Ok(Shape::image(channels, height, width)),
        _ => Err(error::argument(format!(
            "inputs of dimensions {dims:?}; N × features, N × height × width or N × channels × \
             height × width is needed"
        ))),
    }
}
