//! Trainings: a config as JSON in, a run folder out, with news on the way.
//!
//! The training works on a thread of its own. The calling thread waits with the interpreter's lock
//! free, wakes at news and every 50 ms, lets Python handle its signals and calls the observer. Ctrl-C,
//! or an exception of the observer, asks the run to stop: it ends its step, writes its checkpoint, and
//! only then the exception is raised. So a run stopped from Python resumes like any other.

use crate::error;
use crate::team::Through;
use geodp::config::RunConfig;
use geodp::run::{BlockMetrics, Ended, Run};
use geodp::team::Leader;
use geodp::watch::{Observer, Progress};
use geodp_audit::measure::Measure;
use geodp_mechanism::NoiseSource;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the calling thread sleeps at most before it looks for signals.
const NAP: Duration = Duration::from_millis(50);

/// Trains into `folder` as `config` (JSON) says, or resumes the run there if it is None. Answers the
/// steps done, and whether the run is finished. The observer is called with ("step", (step, steps)),
/// ("block", metrics as JSON) and ("warning", text). `team` links other processes (`team.rs`).
#[pyfunction]
#[pyo3(signature = (folder, config, observer, threads = None, team = None))]
pub(crate) fn train(
    py: Python<'_>,
    folder: PathBuf,
    config: Option<&str>,
    observer: &Bound<'_, PyAny>,
    threads: Option<usize>,
    team: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u64, bool)> {
    let leader = match team {
        None => None,
        Some(object) => Some(Leader::new(Arc::new(Through::new(object)?))),
    };
    let run = py.detach(|| open(leader, &folder, config))?;
    // A pool of its own, as large as there are cores if nothing is said: small steps are quicker inside of a pool,
    // and a callback that computes does not wait for the training's threads.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    let pool = pool.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let steps = run.plan().steps();
    let mut measure = measure(&run).map_err(error::training)?;
    let (stop, news) = (AtomicBool::new(false), News::default());
    let mut raised = None;
    let ended = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let work = || run.execute(&mut measure, &mut Reporter { news: &news }, &stop);
            let ended = pool.install(work);
            news.finish();
            ended
        });
        // The last news comes a moment before the thread's end: no nap for that.
        let mut done = false;
        while !(done || worker.is_finished()) {
            let fresh = py.detach(|| news.wait());
            done = fresh.done;
            let heard = py.check_signals().and_then(|()| tell(observer, fresh));
            if let Err(exception) = heard {
                stop.store(true, Ordering::Relaxed);
                raised.get_or_insert(exception);
            }
        }
        py.detach(|| worker.join())
    });
    let ended = ended.map_err(|_| PyRuntimeError::new_err("the training's thread panicked"))?;
    let ended = ended.map_err(error::training)?;
    tell(observer, news.take())?;
    match (raised, ended) {
        (Some(exception), _) => Err(exception),
        (None, Ended::Interrupted { step }) => Ok((step, false)),
        (None, _) => Ok((steps, true)),
    }
}

fn open(leader: Option<Arc<Leader>>, folder: &Path, config: Option<&str>) -> PyResult<Run> {
    let run = match config {
        None => Run::resume_among(leader, folder, &|_, _| ()),
        Some(text) => {
            let config: RunConfig = serde_json::from_str(text)
                .map_err(|e| error::argument(format!("the config cannot be used: {e}")))?;
            Run::create_among(leader, folder, config, &|_, _| ())
        }
    };
    run.map_err(error::training)
}

/// What measures the run's records, where its config asks for it.
fn measure(run: &Run) -> Result<Option<Measure>, geodp::Error> {
    let Some(count) = run.config().train.measure else { return Ok(None) };
    let source = match run.config().train.seed {
        Some(seed) => NoiseSource::from_seed(seed),
        None => NoiseSource::from_os()?,
    };
    Measure::new(run.plan().facts().records, count, 1, &source)
        .map(Some)
        .map_err(|error| geodp::Error::Plan(error.to_string()))
}

/// What happened since somebody last looked.
#[derive(Default)]
struct Fresh {
    /// Only the latest step is worth telling.
    step: Option<(u64, u64)>,
    blocks: Vec<String>,
    warnings: Vec<String>,
    done: bool,
}

/// What the training's thread tells the calling one.
#[derive(Default)]
struct News {
    fresh: Mutex<Fresh>,
    changed: Condvar,
}

impl News {
    fn lock(&self) -> MutexGuard<'_, Fresh> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Fresh {
        std::mem::take(&mut self.lock())
    }

    /// Waits for the end or for a nap, then takes what there is.
    fn wait(&self) -> Fresh {
        let fresh = self.lock();
        let waited = self.changed.wait_timeout_while(fresh, NAP, |fresh| !fresh.done);
        std::mem::take(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn finish(&self) {
        self.lock().done = true;
        self.changed.notify_one();
    }
}

struct Reporter<'a> {
    news: &'a News,
}

impl Observer for Reporter<'_> {
    fn on_step(&mut self, progress: &Progress) {
        self.news.lock().step = Some((progress.step, progress.steps));
    }

    fn on_block(&mut self, metrics: &BlockMetrics) {
        if let Ok(text) = serde_json::to_string(metrics) {
            self.news.lock().blocks.push(text);
        }
    }

    fn on_warning(&mut self, message: &str) {
        self.news.lock().warnings.push(message.to_owned());
    }
}

fn tell(observer: &Bound<'_, PyAny>, fresh: Fresh) -> PyResult<()> {
    for text in fresh.warnings {
        observer.call1(("warning", text))?;
    }
    for text in fresh.blocks {
        observer.call1(("block", text))?;
    }
    if let Some(step) = fresh.step {
        observer.call1(("step", step))?;
    }
    Ok(())
}
