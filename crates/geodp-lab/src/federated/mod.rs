//! Federated learning with a client as the unit of privacy: DP, GeoDP and certified GeoDP on the mean of
//! client updates. The paper leaves it to future work.
//!
//! 1,000 clients share MNIST (and Fashion-MNIST), dealt at random or by Dirichlet(0.3). A round draws a
//! Poisson cohort of q = 0.1; each client of it trains one pass over its records and sends Δ, clipped to C
//! on the server. 100 rounds at ε = 3, δ = 10⁻⁴: certified for DP and certified GeoDP, conditional for
//! GeoDP. All arms share local training, C, cohorts and the server's rate, which is chosen once for each
//! model and set, with DP's noise, on held-back training records; the test set is never looked at for it.
//!
//! | job | gives |
//! |---|---|
//! | choose | accuracy on held-back records at one server rate |
//! | train | the curve of one arm, direction error, what clients pay |
//! | scale | time of a round over the clients' own training, memory, at 10⁴ and 10⁵ clients |

mod draw;
mod scale;
mod train;

pub use scale::Scale;
pub use train::{Outcome, Point};

use crate::Error;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::model::Model;
use crate::options::{Options, Size};
use geodp::federated::Local;
use geodp_mechanism::{Mechanism, PolarSettings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cell::RefCell;
use train::Task;

/// C of every training.
pub const CLIP_NORM: f64 = 0.25;
/// δ: below 1/N of 1,000 clients.
pub const DELTA: f64 = 1e-4;
/// Target ε.
pub const EPSILON: f64 = 3.0;
/// Server rates to choose from.
pub const SERVER_RATES: [f64; 3] = [1.0, 2.0, 4.0];

/// Whose records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// Handwritten digits.
    Mnist,
    /// Photographs of clothes.
    FashionMnist,
}

/// How records are dealt to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// At random.
    Iid,
    /// Classes mixed by Dirichlet(0.3).
    Dirichlet,
}

/// How the mean of updates is perturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// Not at all.
    None,
    /// DP.
    Dp,
    /// GeoDP with β = 0.1.
    Geodp,
    /// Certified GeoDP.
    GeodpCertified,
}

/// Every arm, in the order of the tables.
pub const ARMS: [Arm; 4] = [Arm::Dp, Arm::GeodpCertified, Arm::Geodp, Arm::None];
const MODELS: [Model; 2] = [Model::Scattering, Model::Cnn];
const SPLITS: [Split; 2] = [Split::Iid, Split::Dirichlet];

/// One piece of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Job {
    /// A training with DP on IID clients, measured on held-back records.
    Choose {
        /// Data.
        set: Set,
        /// Model.
        model: Model,
        /// The server's rate.
        server_rate: f64,
    },
    /// A training, measured on the test set.
    Train {
        /// Data.
        set: Set,
        /// Model.
        model: Model,
        /// How clients differ.
        split: Split,
        /// Perturbation.
        arm: Arm,
        /// Decides clients, first weights, cohorts and noise.
        seed: u64,
    },
    /// Time and memory of rounds of a large population.
    Scale,
}

/// What a job found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    /// Of [`Job::Scale`].
    Scale(Scale),
    /// Of the others.
    Outcome(Box<Outcome>),
}

/// A training to be done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Training {
    pub(crate) split: Split,
    pub(crate) mechanism: Mechanism,
    pub(crate) epsilon: f64,
    pub(crate) clients: u64,
    pub(crate) cohort: u64,
    pub(crate) rounds: u64,
    pub(crate) server_rate: f64,
    pub(crate) local: Local,
    pub(crate) seed: u64,
}

impl Set {
    fn name(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::FashionMnist => "fashion-mnist",
        }
    }

    /// As captions call it.
    fn title(self) -> &'static str {
        match self {
            Self::Mnist => "MNIST",
            Self::FashionMnist => "Fashion-MNIST",
        }
    }
}

impl Model {
    /// How a client trains: one pass in batches of 20.
    fn local(self) -> Local {
        let learning_rate = match self {
            Self::Scattering => 0.05,
            Self::Cnn => 0.1,
        };
        Local { epochs: 1, batch: 20, learning_rate }
    }
}

impl Split {
    fn name(self) -> &'static str {
        match self {
            Self::Iid => "iid",
            Self::Dirichlet => "dirichlet",
        }
    }
}

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Dp => "dp",
            Self::Geodp => "geodp",
            Self::GeodpCertified => "geodp-certified",
        }
    }

    /// As tables call it.
    fn title(self) -> &'static str {
        match self {
            Self::None => "no noise",
            Self::Dp => "DP",
            Self::Geodp => "GeoDP, β = 0.1",
            Self::GeodpCertified => "certified GeoDP",
        }
    }

    fn mechanism(self) -> Mechanism {
        match self {
            Self::None => Mechanism::None,
            Self::Dp => Mechanism::Dp,
            Self::Geodp => Mechanism::Geodp { beta: 0.1 },
            Self::GeodpCertified => Mechanism::GeodpCertified(PolarSettings::default()),
        }
    }
}

impl Job {
    fn key(&self) -> String {
        match self {
            Self::Choose { set, model, server_rate } => {
                format!("choose-{}-{}-rate{server_rate}", set.name(), model.name())
            }
            Self::Train { set, model, split, arm, seed } => {
                let (set, model, split) = (set.name(), model.name(), split.name());
                format!("{set}-{model}-{split}-{}-seed{seed}", arm.name())
            }
            Self::Scale => "scale".to_owned(),
        }
    }

    /// The job as a training with this server rate; `None` for [`Job::Scale`].
    fn training(&self, server_rate: f64, options: &Options) -> Option<Training> {
        let (model, split, arm, seed) = match *self {
            Self::Choose { model, .. } => (model, Split::Iid, Arm::Dp, 0),
            Self::Train { model, split, arm, seed, .. } => (model, split, arm, seed),
            Self::Scale => return None,
        };
        let (clients, cohort, rounds) = match options.size {
            Size::Full => (1000, 100, 100),
            Size::Quick => (1000, 100, 10),
            Size::Tiny => (40, 10, 2),
        };
        let (mechanism, local) = (arm.mechanism(), model.local());
        let epsilon = EPSILON;
        Some(Training {
            split,
            mechanism,
            epsilon,
            clients,
            cohort,
            rounds,
            server_rate,
            local,
            seed,
        })
    }

    /// What is kept of the settings.
    fn config(&self, options: &Options) -> Value {
        let Some(training) = self.training(0.0, options) else {
            return json!({ "sizes": scale::sizes(options.size) });
        };
        let Training { clients, cohort, rounds, local, .. } = training;
        let mut config = json!({
            "clients": clients, "cohort": cohort, "rounds": rounds, "local": local,
            "epsilon": EPSILON, "delta": DELTA, "clip_norm": CLIP_NORM,
        });
        match self {
            Self::Choose { set, model, server_rate } => {
                (config["set"], config["model"]) = (json!(set), json!(model));
                config["server_rate"] = json!(server_rate);
            }
            Self::Train { set, model, split, arm, .. } => {
                (config["set"], config["model"]) = (json!(set), json!(model));
                (config["split"], config["arm"]) = (json!(split), json!(arm));
                config["server_rates"] = json!(SERVER_RATES);
            }
            Self::Scale => {}
        }
        config
    }
}

/// The experiment. Records and features of one model are kept at a time.
#[derive(Default)]
pub struct Federated {
    loaded: RefCell<Option<(Set, Model, Task)>>,
}

impl Federated {
    fn with<R>(
        &self,
        set: Set,
        model: Model,
        options: &Options,
        work: impl FnOnce(&Task) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut loaded = self.loaded.borrow_mut();
        if loaded.as_ref().is_none_or(|(s, m, _)| (*s, *m) != (set, model)) {
            // The old one goes first: two sets of features may not fit into memory.
            *loaded = None;
            *loaded = Some((set, model, Task::open(set, model, options)?));
        }
        match &*loaded {
            Some((_, _, task)) => work(task),
            None => Err(Error::Argument(format!("{} could not be loaded", set.title()))),
        }
    }

    /// The rate with the highest accuracy on held-back records.
    fn server_rate(&self, set: Set, model: Model, context: &CellContext<'_>) -> Result<f64, Error> {
        let mut best = (f64::NEG_INFINITY, SERVER_RATES[0]);
        for server_rate in SERVER_RATES {
            let job = Job::Choose { set, model, server_rate };
            match context.store.result(self, &job, context.options)? {
                Some(Found::Outcome(found)) => {
                    let accuracy = found.last().map_or(f64::NEG_INFINITY, |point| point.accuracy);
                    best = if accuracy > best.0 { (accuracy, server_rate) } else { best };
                }
                _ => {
                    return Err(Error::Missing {
                        experiment: Experiment::id(self),
                        key: job.key(),
                    });
                }
            }
        }
        Ok(best.1)
    }
}

impl Experiment for Federated {
    type Job = Job;
    type Result = Found;

    fn id(&self) -> &'static str {
        "federated"
    }

    fn title(&self) -> &'static str {
        "Federated learning: DP and GeoDP on the mean of client updates"
    }

    /// Set by set and model by model; Fashion-MNIST, whose files may be missing, comes last.
    fn jobs(&self, options: &Options) -> Vec<Job> {
        let mut jobs = Vec::new();
        let sets: &[Set] = if options.size == Size::Full {
            &[Set::Mnist, Set::FashionMnist]
        } else {
            &[Set::Mnist]
        };
        for set in sets.iter().copied() {
            for model in MODELS {
                jobs.extend(SERVER_RATES.map(|server_rate| Job::Choose {
                    set,
                    model,
                    server_rate,
                }));
                for split in SPLITS {
                    // What is claimed with its spread is MNIST with IID clients; the others are seen once.
                    let repeated = (set, split) == (Set::Mnist, Split::Iid);
                    let seeds = if repeated { options.seeds } else { options.seeds.min(1) };
                    for seed in 0..seeds {
                        jobs.extend(ARMS.map(|arm| Job::Train { set, model, split, arm, seed }));
                    }
                }
                if (set, model) == (Set::Mnist, Model::Scattering) {
                    jobs.push(Job::Scale);
                }
            }
        }
        jobs
    }

    fn cell(&self, job: &Job, options: &Options) -> Cell {
        let seed = if let Job::Train { seed, .. } = job { *seed } else { 0 };
        let expected_seconds = match (job, options.size) {
            (_, Size::Tiny) => 1.0,
            (Job::Scale, Size::Quick) => 8.0,
            (Job::Scale, _) => 30.0,
            (_, Size::Quick) => 4.0,
            _ => 30.0,
        };
        Cell { key: job.key(), config: job.config(options), seed, expected_seconds }
    }

    fn run(&self, job: &Job, context: &mut CellContext<'_>) -> Result<Found, Error> {
        let options = context.options;
        let (set, model, rate) = match *job {
            Job::Scale => {
                return self.with(Set::Mnist, Model::Scattering, options, |task| {
                    let found =
                        scale::measure(task, options.size, &mut |share| context.tick(share))?;
                    Ok(Found::Scale(found))
                });
            }
            Job::Choose { set, model, server_rate } => (set, model, server_rate),
            Job::Train { set, model, .. } => (set, model, self.server_rate(set, model, context)?),
        };
        let to_choose = matches!(job, Job::Choose { .. });
        let Some(training) = job.training(rate, options) else {
            return Err(Error::Argument(format!("{} is no training", job.key())));
        };
        self.with(set, model, options, |task| {
            let outcome = task.run(&training, to_choose, &mut |share| context.tick(share))?;
            Ok(Found::Outcome(Box::new(outcome)))
        })
    }

    fn draw(&self, finished: &FinishedOf<Self>, _: &PageContext<'_>) -> Result<Drawn, Error> {
        Ok(draw::draw(self.title(), finished))
    }
}
