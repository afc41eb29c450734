//! Bundled data as arrays, for examples and benchmarks of other libraries.

use crate::error;
use geodp_data::{
    DataError, Dataset, FeatureSpec, Records, Scaling, Shape, Storage, mnist as bundled,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// Images N × 28 × 28 in [0, 1], and labels.
type Part<'py> = (Bound<'py, PyArray3<f32>>, Bound<'py, PyArray1<i64>>);

/// Scattering features of images N × height × width, a row of 81·(height/4)·(width/4) for each. What an
/// image's are depends on that image alone, so nothing is spent.
#[pyfunction]
pub(crate) fn scattering<'py>(
    py: Python<'py>,
    images: &Bound<'py, PyArray3<f32>>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let lent = images.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
    let (count, pixels) = (images.shape()[0], lent.as_slice()?.to_vec());
    let shape = Shape::image(1, images.shape()[1], images.shape()[2]);
    let features = py.detach(|| {
        let records = Records::from_floats(shape, pixels, "as given".to_owned())?;
        // They leave as f32: nothing is gained by rounding them.
        let features = FeatureSpec::scattering_as(Storage::Single);
        let found = features.apply(&records, &|_, _| {})?;
        Ok::<_, DataError>(floats(&found))
    });
    let features = features.map_err(|e| error::argument(e.to_string()))?;
    let width = features.len() / count.max(1);
    features.into_pyarray(py).reshape([count, width])
}

/// All records, one after another.
fn floats(records: &Records) -> Vec<f32> {
    let mut values = vec![0.0; records.len() * records.input_len()];
    for (index, record) in values.chunks_exact_mut(records.input_len().max(1)).enumerate() {
        records.read_input(index, record);
    }
    values
}

/// MNIST: (images, labels) to train on and to test on.
#[pyfunction]
pub(crate) fn mnist(py: Python<'_>) -> PyResult<(Part<'_>, Part<'_>)> {
    let split = py.detach(|| bundled::load(&Scaling::Unit));
    let split = split.map_err(|e| error::argument(e.to_string()))?;
    Ok((part(py, &split.train)?, part(py, &split.test)?))
}

fn part<'py>(py: Python<'py>, data: &Dataset) -> PyResult<Part<'py>> {
    let (count, shape) = (data.len(), data.shape());
    let pixels = py.detach(|| floats(data.records()));
    let labels: Vec<i64> = (0..count).map(|index| i64::from(data.label(index))).collect();
    let images = pixels.into_pyarray(py).reshape([count, shape.height, shape.width])?;
    Ok((images, labels.into_pyarray(py)))
}
