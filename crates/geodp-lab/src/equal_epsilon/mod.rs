//! Equal ε under the best recipes: DP at a certified ε, GeoDP at the σ where the record that pays most is
//! *measured* to pay as much. An addition to the paper.
//!
//! A measured ε is less than any that could be certified for GeoDP, so the comparison leans towards
//! it. The trainings are those of `certified` (product's defaults: momentum, η falling along a cosine,
//! B = 4096, 20 epochs of MNIST), on scattering features and with the CNN.
//!
//! Cells: `sigma-…` searches GeoDP's σ with a seed of its own (`search`); then one training a seed.

mod draw;
mod search;

use crate::Error;
use crate::certified::train::{Amount, Task, Training};
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::model::Model;
use crate::options::{Options, Size};
use crate::tables::loss::Loss;
use geodp_audit::measure::Measure;
use geodp_mechanism::{Mechanism, NoiseSource};
use search::{Search, Tried};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cell::OnceCell;

/// B.
const BATCH: u64 = 4096;
/// Records whose loss is measured.
const FOLLOWED: u64 = 1000;
/// Steps between measurements; the others count at the mean of those measured.
const MEASURE_EVERY: u64 = 2;
/// Randomness of every search, unlike that of any seed.
const SEARCH_SEED: u64 = 30_000_000;
const MODELS: [Model; 2] = [Model::Scattering, Model::Cnn];

/// A side of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// DP, σ calibrated to a certified ε.
    Dp,
    /// GeoDP with this β, σ searched.
    Geodp(f64),
}

const ARMS: [Arm; 3] = [Arm::Dp, Arm::Geodp(0.1), Arm::Geodp(0.01)];

/// A model at an ε.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// What is trained.
    pub model: Model,
    /// DP's certified ε, GeoDP's largest measured one.
    pub epsilon: f64,
}

/// One piece of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Job {
    /// The search of GeoDP's σ for a β.
    Sigma(Place, f64),
    /// A training with a seed.
    Train(Place, Arm, u64),
}

/// What a training gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Share of test records classified rightly; `None` if training diverged.
    pub accuracy: Option<f64>,
    /// Steps made.
    pub steps: u64,
    /// σ as it was used.
    pub noise_multiplier: f64,
    /// What the followed records paid.
    pub measured: Option<Loss>,
}

impl Outcome {
    /// The largest measured ε; ∞ if it is beyond all bounds.
    fn largest(&self) -> f64 {
        self.measured.as_ref().and_then(|m| m.compared().largest).unwrap_or(f64::INFINITY)
    }
}

/// What a job found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    /// Of [`Job::Sigma`].
    Search(Search),
    /// Of [`Job::Train`].
    Outcome(Outcome),
}

/// The size of the experiment.
struct Scale {
    /// Records and batches are divided by this.
    divide: u64,
    epochs: u64,
    epsilons: &'static [f64],
    /// Trainings of a search at most.
    attempts: usize,
}

fn scale(options: &Options) -> Scale {
    let (divide, epochs, epsilons, attempts): (_, _, &[f64], _) = match options.size {
        Size::Full => (1, 20, &[3.0, 1.0], 8),
        Size::Quick => (8, 4, &[3.0], 6),
        Size::Tiny => (128, 1, &[3.0], 2),
    };
    Scale { divide, epochs: options.epochs.unwrap_or(epochs), epsilons, attempts }
}

/// ε by ε, and within it model by model: a part of the table is a comparison. The CNN is trained at the
/// first ε alone: each of its searches takes eight trainings of minutes.
fn places(options: &Options) -> Vec<Place> {
    let epsilons = scale(options).epsilons.iter().enumerate();
    let of = |(at, &epsilon): (usize, &f64)| {
        let models = MODELS.into_iter().filter(move |model| at == 0 || *model != Model::Cnn);
        models.map(move |model| Place { model, epsilon })
    };
    epsilons.flat_map(of).collect()
}

impl Arm {
    fn name(self) -> String {
        match self {
            Self::Dp => "dp".to_owned(),
            Self::Geodp(beta) => format!("geodp{beta}"),
        }
    }
}

impl Job {
    fn place(&self) -> Place {
        match *self {
            Self::Sigma(place, _) | Self::Train(place, _, _) => place,
        }
    }

    fn key(&self) -> String {
        let Place { model, epsilon } = self.place();
        let place = format!("{}-epsilon{epsilon}", model.name());
        match self {
            Self::Sigma(_, beta) => format!("sigma-{place}-geodp{beta}"),
            Self::Train(_, arm, seed) => format!("{place}-{}-seed{seed}", arm.name()),
        }
    }
}

/// The experiment. Records and features are loaded once.
#[derive(Default)]
pub struct EqualEpsilon {
    tasks: [OnceCell<Task>; 2],
}

impl EqualEpsilon {
    fn task(&self, model: Model, options: &Options) -> Result<&Task, Error> {
        let cell = &self.tasks[MODELS.iter().position(|m| *m == model).unwrap_or(0)];
        if let Some(task) = cell.get() {
            return Ok(task);
        }
        let task = Task::open(model, scale(options).divide as usize)?;
        Ok(cell.get_or_init(|| task))
    }

    /// GeoDP's σ: what an earlier job found.
    fn sigma(&self, place: Place, beta: f64, context: &CellContext<'_>) -> Result<f64, Error> {
        let job = Job::Sigma(place, beta);
        match context.store.result(self, &job, context.options)? {
            Some(Found::Search(found)) => Ok(found.chosen),
            _ => Err(Error::Missing { experiment: Experiment::id(self), key: job.key() }),
        }
    }
}

/// Trains and measures.
fn train(
    task: &Task,
    mechanism: Mechanism,
    amount: Amount,
    scale: &Scale,
    seed: u64,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    let Scale { divide, epochs, .. } = *scale;
    let training = Training { mechanism, amount, batch: BATCH / divide, epochs, seed };
    let source = NoiseSource::from_seed(seed);
    let records = task.records().len() as u64;
    let mut measure = Measure::new(records, FOLLOWED, MEASURE_EVERY, &source)?;
    let engine = task.engine();
    let mut trainer = task.start(&training, &engine)?;
    let test = crate::tables::train::advance(&mut trainer, u64::MAX, &mut measure, tick)?;
    Ok(Outcome {
        accuracy: test.map(|(accuracy, _)| accuracy),
        steps: trainer.steps_done(),
        noise_multiplier: trainer.plan().noise_multiplier().unwrap_or(0.0),
        measured: measure.summary(trainer.plan())?.map(|s| Loss::new(s, measure.loss())),
    })
}

impl Experiment for EqualEpsilon {
    type Job = Job;
    type Result = Found;

    fn id(&self) -> &'static str {
        "equal-epsilon"
    }

    fn title(&self) -> &'static str {
        "GeoDP against DP at equal ε, under the best recipes"
    }

    fn jobs(&self, options: &Options) -> Vec<Job> {
        let mut jobs = Vec::new();
        for place in places(options) {
            for arm in ARMS {
                if let Arm::Geodp(beta) = arm {
                    jobs.push(Job::Sigma(place, beta));
                }
                jobs.extend((0..options.seeds).map(|seed| Job::Train(place, arm, seed)));
            }
        }
        jobs
    }

    fn cell(&self, job: &Job, options: &Options) -> Cell {
        let Scale { divide, epochs, attempts, .. } = scale(options);
        let Place { model, epsilon } = job.place();
        let records = 60_000 / divide;
        let mut config = json!({
            "recipe": Task::recipe(model),
            "records": records,
            "batch": BATCH / divide,
            "epochs": epochs,
            "epsilon": epsilon,
            "followed": FOLLOWED,
            "measure_every": MEASURE_EVERY,
        });
        let one = (records * epochs) as f64 / 25_000.0;
        let (seed, expected_seconds) = match *job {
            Job::Sigma(_, beta) => {
                config["beta"] = json!(beta);
                config["attempts"] = json!(attempts);
                (SEARCH_SEED, one * attempts as f64 / 2.0)
            }
            Job::Train(_, arm, seed) => {
                config["arm"] = json!(arm);
                (seed, one)
            }
        };
        Cell { key: job.key(), config, seed, expected_seconds }
    }

    fn run(&self, job: &Job, context: &mut CellContext<'_>) -> Result<Found, Error> {
        let scale = scale(context.options);
        let task = self.task(job.place().model, context.options)?;
        match *job {
            Job::Sigma(place, beta) => {
                let mechanism = Mechanism::Geodp { beta };
                let mut done = 0.0;
                let mut attempt = |sigma: f64| {
                    let mut tick =
                        |share: f64| context.tick((done + share) / scale.attempts as f64);
                    let amount = Amount::Multiplier(sigma);
                    let outcome = train(task, mechanism, amount, &scale, SEARCH_SEED, &mut tick)?;
                    done += 1.0;
                    Ok(Tried { sigma, epsilon: Some(outcome.largest()).filter(|e| e.is_finite()) })
                };
                search::search(place.epsilon, scale.attempts, &mut attempt).map(Found::Search)
            }
            Job::Train(place, arm, seed) => {
                let (mechanism, amount) = match arm {
                    Arm::Dp => (Mechanism::Dp, Amount::Epsilon(place.epsilon)),
                    Arm::Geodp(beta) => {
                        let sigma = self.sigma(place, beta, context)?;
                        (Mechanism::Geodp { beta }, Amount::Multiplier(sigma))
                    }
                };
                let mut tick = |share: f64| context.tick(share);
                train(task, mechanism, amount, &scale, seed, &mut tick).map(Found::Outcome)
            }
        }
    }

    fn draw(&self, finished: &FinishedOf<Self>, _: &PageContext<'_>) -> Result<Drawn, Error> {
        Ok(draw::draw(self, finished))
    }
}
