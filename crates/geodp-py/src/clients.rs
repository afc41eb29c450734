//! What a client trains with where there is no torch, and whole federations of such clients in memory.

use crate::error;
use crate::federated::{floats, plan_params};
use crate::mechanism::wrong_array;
use geodp::PlanParams;
use geodp::engine::RowChoice;
use geodp::federated::{self, ClientEngine, Local, Shards, Simulated};
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_mechanism::NoiseSource;
use geodp_nn::{Network, NetworkSpec, Samples};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

/// A network for clients without torch: what it is, first weights, local training, a measurement.
#[pyclass(frozen, module = "geodp.federated")]
pub(crate) struct LocalNetwork {
    /// The description, for pickling.
    spec: String,
    inner: Network,
}

#[pymethods]
impl LocalNetwork {
    /// From a description as JSON, in the form that configs have.
    #[new]
    fn new(spec: &str) -> PyResult<Self> {
        let spec: NetworkSpec = serde_json::from_str(spec)
            .map_err(|e| error::argument(format!("the network cannot be used: {e}")))?;
        Self::build(&spec)
    }

    /// Pickled as its description.
    fn __getnewargs__(&self) -> (&str,) {
        (&self.spec,)
    }

    /// One linear layer.
    #[staticmethod]
    fn logistic(features: usize, classes: usize) -> PyResult<Self> {
        Self::build(&NetworkSpec::logistic(features, classes))
    }

    /// The CNN with 21,840 parameters for images of 28 × 28.
    #[staticmethod]
    fn cnn() -> PyResult<Self> {
        Self::build(&NetworkSpec::cnn())
    }

    /// d.
    #[getter]
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    /// First weights.
    #[pyo3(signature = (seed = 0))]
    fn init<'py>(&self, py: Python<'py>, seed: u64) -> Bound<'py, PyArray1<f32>> {
        self.inner.init(seed).into_pyarray(py)
    }

    /// The weights after `epochs` passes of SGD over these records, a row each. `client` and `bits`
    /// decide the order.
    #[pyo3(signature = (weights, inputs, labels, *, epochs, batch, learning_rate, client = 0, bits = 0))]
    #[allow(clippy::too_many_arguments, reason = "named in Python")]
    fn train<'py>(
        &self,
        py: Python<'py>,
        weights: &Bound<'py, PyAny>,
        inputs: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyArray1<i64>>,
        epochs: u64,
        batch: usize,
        learning_rate: f64,
        client: u32,
        bits: u64,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let (weights, samples) = (floats(weights)?, self.samples(inputs, labels)?);
        let local = Local { epochs, batch, learning_rate };
        let who = (client, RowChoice::from_bits(bits));
        let rows: Vec<u32> = (0..samples.labels.len() as u32).collect();
        let after = py.detach(|| local.train(&self.inner, &samples, &rows, who, &weights));
        Ok(after.map_err(|e| error::argument(e.to_string()))?.into_pyarray(py))
    }

    /// The weights after a whole federation in this process, without a folder: `params` is JSON as a
    /// server's, the client at place i has the records of row i of `shards`, and trains as `train` does.
    #[pyo3(signature = (weights, inputs, labels, shards, params, *, epochs, batch, learning_rate))]
    #[allow(clippy::too_many_arguments, reason = "named in Python")]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        weights: &Bound<'py, PyAny>,
        inputs: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyArray1<i64>>,
        shards: &Bound<'py, PyArray2<i64>>,
        params: &str,
        epochs: u64,
        batch: usize,
        learning_rate: f64,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let params = plan_params(params)?;
        let (weights, samples) = (floats(weights)?, self.samples(inputs, labels)?);
        let shards = dealt(shards, samples.labels.len())?;
        let clients = Simulated {
            network: &self.inner,
            train: &samples,
            test: None,
            shards: &shards,
            local: Local { epochs, batch, learning_rate },
            name: "arrays",
        };
        let after = py.detach(|| simulate(&clients, &params, weights));
        Ok(after.map_err(error::training)?.into_pyarray(py))
    }

    /// Mean loss and share of right answers.
    fn evaluate<'py>(
        &self,
        py: Python<'py>,
        weights: &Bound<'py, PyAny>,
        inputs: &Bound<'py, PyAny>,
        labels: &Bound<'py, PyArray1<i64>>,
    ) -> PyResult<(f64, f64)> {
        let (weights, samples) = (floats(weights)?, self.samples(inputs, labels)?);
        let rows: Vec<u32> = (0..samples.labels.len() as u32).collect();
        let found = py.detach(|| self.inner.evaluate(&weights, &samples, &rows));
        let found = found.map_err(|e| error::argument(e.to_string()))?;
        Ok((found.mean_loss, found.accuracy()))
    }
}

impl LocalNetwork {
    fn build(spec: &NetworkSpec) -> PyResult<Self> {
        let inner = spec.build().map_err(|e| error::argument(e.to_string()))?;
        let spec = serde_json::to_string(spec).map_err(|e| error::argument(e.to_string()))?;
        Ok(Self { spec, inner })
    }

    /// Copies of a client's records, checked.
    fn samples(
        &self,
        inputs: &Bound<'_, PyAny>,
        labels: &Bound<'_, PyArray1<i64>>,
    ) -> PyResult<Rows> {
        let Ok(array) = inputs.cast::<PyArray2<f32>>() else {
            return Err(wrong_array(inputs, "two-dimensional"));
        };
        let lent = array.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
        let lent_labels =
            labels.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
        let classes = self.inner.classes();
        let class = |label: &i64| match u32::try_from(*label) {
            Ok(class) if (class as usize) < classes => Ok(class),
            _ => Err(error::argument(format!(
                "label {label} is not one of {classes} classes from 0"
            ))),
        };
        let labels = lent_labels.as_slice()?.iter().map(class).collect::<PyResult<Vec<u32>>>()?;
        let (rows, width) = (array.shape()[0], array.shape()[1]);
        if rows != labels.len() || width != self.inner.input_len() {
            return Err(error::argument(format!(
                "inputs of shape ({rows}, {width}) and {} labels; a row for each label, of {} values",
                labels.len(),
                self.inner.input_len()
            )));
        }
        Ok(Rows { inputs: lent.as_slice()?.to_vec(), width, labels })
    }
}

/// All rounds of a plan, as the lab's simulator makes them.
fn simulate(
    clients: &Simulated<'_>,
    params: &PlanParams,
    weights: Vec<f32>,
) -> Result<Vec<f32>, geodp::Error> {
    let plan = federated::plan(params, clients.shards.clients(), weights.len())?;
    let noise = match params.train.seed {
        Some(seed) => NoiseSource::from_seed(seed),
        None => NoiseSource::from_os()?,
    };
    let engine = ClientEngine::new(*clients);
    let mut trainer = Trainer::new(plan, &engine, weights, noise)?;
    while trainer.step(&mut Silent)?.is_some() {}
    Ok(trainer.weights().to_vec())
}

/// Row numbers below `records`, a client's in each row.
fn dealt(shards: &Bound<'_, PyArray2<i64>>, records: usize) -> PyResult<Shards> {
    let lent = shards.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
    let row = |row: &i64| match u32::try_from(*row) {
        Ok(row) if (row as usize) < records => Ok(row),
        _ => Err(error::argument(format!("there is no record {row} of {records}"))),
    };
    let rows = lent.as_slice()?.iter().map(row).collect::<PyResult<Vec<u32>>>()?;
    Ok(Shards::Dealt { rows, each: shards.shape()[1] })
}

/// Deals records to clients, as many to each: at random, or with each client's classes mixed by a draw
/// from Dirichlet(`alpha`). Row i of the answer has the numbers of client i's records.
#[pyfunction]
#[pyo3(signature = (labels, clients, *, alpha = None, seed = 0))]
pub(crate) fn deal<'py>(
    py: Python<'py>,
    labels: &Bound<'py, PyArray1<i64>>,
    clients: usize,
    alpha: Option<f64>,
    seed: u64,
) -> PyResult<Bound<'py, PyArray2<i64>>> {
    let lent = labels.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
    let class = |label: &i64| {
        u32::try_from(*label)
            .map_err(|_| error::argument(format!("label {label} is not a class from 0")))
    };
    let labels = lent.as_slice()?.iter().map(class).collect::<PyResult<Vec<u32>>>()?;
    if clients == 0 || clients > labels.len() {
        let text = format!("{clients} clients for {} records; each wants one", labels.len());
        return Err(error::argument(text));
    }
    let shards = match alpha {
        None => Shards::iid(labels.len(), clients, seed),
        Some(alpha) if alpha > 0.0 && alpha < 1.0 => {
            let classes = labels.iter().max().map_or(0, |most| *most as usize + 1);
            Shards::dirichlet(&labels, classes, clients, alpha, seed)
        }
        Some(alpha) => {
            return Err(error::argument(format!("alpha is {alpha}; it must lie in (0, 1)")));
        }
    };
    let rows: Vec<i64> =
        (0..clients as u32).flat_map(|client| shards.rows(client)).map(i64::from).collect();
    let each = rows.len() / clients;
    rows.into_pyarray(py).reshape([clients, each])
}

/// Records in memory.
struct Rows {
    inputs: Vec<f32>,
    width: usize,
    labels: Vec<u32>,
}

impl Samples for Rows {
    fn len(&self) -> usize {
        self.labels.len()
    }

    fn input_len(&self) -> usize {
        self.width
    }

    fn read_input(&self, index: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.inputs[index * self.width..(index + 1) * self.width]);
    }

    fn label(&self, index: usize) -> u32 {
        self.labels[index]
    }
}
