//! Rounds of a federation, for a server loop in Python.
//!
//! The server's folder is a run's: `begin` charges a round durably and draws its cohort, `add` clips an
//! update and adds it in whole numbers, `finish` releases. At most one round is open.

use crate::claim::Claim;
use crate::error;
use crate::mechanism::wrong_array;
use geodp::PlanParams;
use geodp::federated::{self, Reply, Round, Server, Start};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A federation whose folder this process holds.
#[pyclass(frozen, module = "geodp.federated")]
pub(crate) struct FederatedServer {
    state: Mutex<State>,
}

struct State {
    /// Absent once the federation is concluded.
    server: Option<Server>,
    round: Option<Round>,
}

impl State {
    fn server(&mut self) -> PyResult<&mut Server> {
        self.server.as_mut().ok_or_else(|| error::argument("the federation is concluded"))
    }
}

/// What a cohort is asked: the round, the clients, the bits their batches are drawn by.
type Begun<'py> = (u64, Bound<'py, PyArray1<i64>>, u64);

#[pymethods]
impl FederatedServer {
    /// Starts a federation in `folder`, or takes up the one there. `params` is JSON with the tables
    /// "privacy" and "train"; `weights` are the first ones.
    #[new]
    #[pyo3(signature = (folder, params, population, weights, model = "", clients = ""))]
    fn new(
        py: Python<'_>,
        folder: PathBuf,
        params: &str,
        population: u64,
        weights: &Bound<'_, PyAny>,
        model: &str,
        clients: &str,
    ) -> PyResult<Self> {
        let (params, weights) = (plan_params(params)?, floats(weights)?);
        let (model, clients) = (model.to_owned(), clients.to_owned());
        let server =
            py.detach(|| open(&folder, &params, population, Start { weights, model, clients }));
        let server = Some(server.map_err(error::training)?);
        Ok(Self { state: Mutex::new(State { server, round: None }) })
    }

    /// Rounds of the plan: those that the limit allows.
    #[getter]
    fn rounds(&self) -> PyResult<u64> {
        Ok(self.lock().server()?.plan().steps())
    }

    /// Rounds done.
    #[getter]
    fn rounds_done(&self) -> PyResult<u64> {
        Ok(self.lock().server()?.rounds_done())
    }

    /// σ.
    #[getter]
    fn noise_multiplier(&self) -> PyResult<Option<f64>> {
        Ok(self.lock().server()?.plan().noise_multiplier())
    }

    /// What the user should know before starting.
    #[getter]
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.lock().server()?.plan().warnings().to_vec())
    }

    /// C of the next round.
    #[getter]
    fn clip_norm(&self) -> PyResult<Option<f64>> {
        self.lock().server()?.clip_norm().map_err(error::training)
    }

    /// The weights after the rounds done.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        Ok(self.lock().server()?.weights().to_vec().into_pyarray(py))
    }

    /// What everything charged so far amounts to.
    fn claim(&self, py: Python<'_>) -> PyResult<Claim> {
        let claim = py.detach(|| self.lock().server().map(|server| server.claim()))?;
        Ok(claim.map_err(error::training)?.into())
    }

    /// Charges the next round and draws its cohort; None when the rounds are done.
    fn begin<'py>(&self, py: Python<'py>) -> PyResult<Option<Begun<'py>>> {
        let begun = py.detach(|| {
            let mut state = self.lock();
            state.round = state.server()?.begin().map_err(error::training)?;
            let begun = state.round.as_ref().map(|round| {
                let cohort = round.cohort().iter().map(|client| i64::from(*client));
                (round.number(), cohort.collect::<Vec<i64>>(), round.choice().get())
            });
            Ok::<_, PyErr>(begun)
        })?;
        Ok(begun.map(|(number, cohort, bits)| (number, cohort.into_pyarray(py), bits)))
    }

    /// Clips and adds the update of a client; says what became of it: "added", "not in cohort", "twice"
    /// or "unusable".
    fn add(&self, client: i64, update: &Bound<'_, PyAny>) -> PyResult<&'static str> {
        let Ok(array) = update.cast::<PyArray1<f32>>() else {
            return Err(wrong_array(update, "one-dimensional"));
        };
        let lent = array.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
        let mut state = self.lock();
        let round = state.round.as_mut().ok_or_else(no_round)?;
        let reply = match u32::try_from(client) {
            Ok(client) => round.add(client, lent.as_slice()?),
            Err(_) => Reply::NotInCohort,
        };
        Ok(match reply {
            Reply::Added => "added",
            Reply::NotInCohort => "not in cohort",
            Reply::Twice => "twice",
            _ => "unusable",
        })
    }

    /// Releases the round that was begun, and answers the new weights.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f32>>> {
        py.detach(|| {
            let mut state = self.lock();
            let round = state.round.take().ok_or_else(no_round)?;
            state.server()?.finish(round).map_err(error::training)
        })?;
        self.weights(py)
    }

    /// Writes model, statement and report of a federation whose rounds are done; answers the statement
    /// as JSON.
    fn conclude(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mut state = self.lock();
            let left = state.server()?;
            if left.rounds_done() < left.plan().steps() {
                let text =
                    format!("{} of {} rounds are done", left.rounds_done(), left.plan().steps());
                return Err(error::argument(text));
            }
            let Some(server) = state.server.take() else { return Ok(String::new()) };
            let statement = server.conclude().map_err(error::training)?.statement;
            serde_json::to_string(&statement).map_err(|e| error::argument(e.to_string()))
        })
    }
}

impl FederatedServer {
    /// A round is replaced as a whole, so a poisoned lock holds a usable state.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_round() -> PyErr {
    error::argument("no round is open; begin one")
}

fn open(
    folder: &Path,
    params: &PlanParams,
    population: u64,
    start: Start,
) -> Result<Server, geodp::Error> {
    let plan = federated::plan(params, population, start.weights.len())?;
    if folder.join("run.toml").exists() {
        Server::resume(folder, plan, start)
    } else {
        Server::create(folder, plan, start)
    }
}

pub(crate) fn plan_params(json: &str) -> PyResult<PlanParams> {
    serde_json::from_str(json)
        .map_err(|e| error::argument(format!("the settings cannot be used: {e}")))
}

pub(crate) fn floats(array: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
    let Ok(found) = array.cast::<PyArray1<f32>>() else {
        return Err(wrong_array(array, "one-dimensional"));
    };
    let lent = found.try_readonly().map_err(|reason| error::argument(reason.to_string()))?;
    Ok(lent.as_slice()?.to_vec())
}
