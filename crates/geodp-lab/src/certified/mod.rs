//! Certified GeoDP beside DP and GeoDP in training, at equal σ: an addition to the paper.
//!
//! Two models on MNIST, B = 1024, 4096, 16384, and a σ for each B at which DP has a certified ε of about
//! 3. Every arm has the same σ, C, η, batches and first weights, so what differs is the perturbation:
//!
//! | arm | noise | ε |
//! |---|---|---|
//! | dp | on every coordinate | certified |
//! | geodp-certified | on magnitude and direction, or DP's where a/L is expected above 1.2 | certified, DP's up to 1 % of δ |
//! | geodp-star | GeoDP's at β*, where its direction error is DP's | conditional |
//! | polar-only | certified GeoDP without that choice: every step polar | certified |
//!
//! η and momentum are the product's defaults for the model, and η falls along a cosine, so that the last
//! steps' noise does not decide: nothing is chosen by looking.

mod draw;
pub(crate) mod train;

use crate::Error;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::model::Model;
use crate::options::{Options, Size};
use crate::tables::crossing::CrossingBeta;
use geodp::schedule::Decay;
use geodp_mechanism::{Mechanism, PolarSettings};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cell::OnceCell;
use train::{Outcome, Task};

/// How steps are perturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// DP-SGD.
    Dp,
    /// Certified GeoDP with its defaults.
    GeodpCertified,
    /// GeoDP as published, at β*.
    GeodpStar,
    /// Certified GeoDP, every step polar.
    PolarOnly,
}

/// Every arm, in the order of the table.
pub const ARMS: [Arm; 4] = [Arm::Dp, Arm::GeodpCertified, Arm::GeodpStar, Arm::PolarOnly];
/// B with its σ: over 20 epochs of MNIST DP has ε = 2.96, 2.99 and 2.96 at δ = 10⁻⁵.
pub const BATCHES: [(u64, f64); 3] = [(1024, 1.1), (4096, 1.85), (16384, 3.5)];
const MODELS: [Model; 2] = [Model::Scattering, Model::Cnn];
/// C of every training.
pub(crate) const CLIP_NORM: f64 = 0.1;
/// Momentum of every training.
const MOMENTUM: f64 = 0.9;
/// How η falls in every training.
const DECAY: Decay = Decay::Cosine;

/// One piece of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Job {
    /// The measurement of β* for a model.
    CrossingBeta(Model),
    /// A training.
    Train {
        /// The model.
        model: Model,
        /// B at full size.
        batch: u64,
        /// σ.
        sigma: f64,
        /// The perturbation.
        arm: Arm,
        /// Decides first weights, batches and noise.
        seed: u64,
    },
}

/// What a job found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Found {
    /// Of [`Job::CrossingBeta`].
    CrossingBeta(CrossingBeta),
    /// Of [`Job::Train`].
    Outcome(Box<Outcome>),
}

impl Model {
    /// η: the product's default for a private training of this model.
    fn learning_rate(self) -> f64 {
        match self {
            Self::Scattering => 8.0,
            Self::Cnn => 4.0,
        }
    }

    /// Samples a second on two cores, for the expected time.
    fn samples_per_second(self) -> f64 {
        match self {
            Self::Scattering => 60_000.0,
            Self::Cnn => 40_000.0,
        }
    }
}

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Self::Dp => "dp",
            Self::GeodpCertified => "geodp-certified",
            Self::GeodpStar => "geodp-star",
            Self::PolarOnly => "polar-only",
        }
    }

    /// As tables call it.
    fn title(self) -> &'static str {
        match self {
            Self::Dp => "DP",
            Self::GeodpCertified => "certified GeoDP",
            Self::GeodpStar => "GeoDP at β*",
            Self::PolarOnly => "certified GeoDP, polar steps only",
        }
    }

    /// The mechanism, with β* as it was found.
    fn mechanism(self, beta_star: f64) -> Mechanism {
        let polar = PolarSettings::default();
        match self {
            Self::Dp => Mechanism::Dp,
            Self::GeodpCertified => Mechanism::GeodpCertified(polar),
            Self::GeodpStar => Mechanism::Geodp { beta: beta_star },
            Self::PolarOnly => {
                Mechanism::GeodpCertified(PolarSettings { most_ratio: f64::INFINITY, ..polar })
            }
        }
    }
}

/// The size of the experiment: records and batches divided, and passes over the records.
fn scale(options: &Options) -> (u64, u64) {
    let (divide, epochs) = match options.size {
        Size::Full => (1, 20),
        Size::Quick => (8, 4),
        Size::Tiny => (128, 1),
    };
    (divide, options.epochs.unwrap_or(epochs))
}

/// The experiment. Records and features are loaded once.
#[derive(Default)]
pub struct Certified {
    scattering: OnceCell<Task>,
    cnn: OnceCell<Task>,
}

impl Certified {
    fn task(&self, model: Model, options: &Options) -> Result<&Task, Error> {
        let cell = match model {
            Model::Scattering => &self.scattering,
            Model::Cnn => &self.cnn,
        };
        if let Some(task) = cell.get() {
            return Ok(task);
        }
        let task = Task::open(model, scale(options).0 as usize)?;
        Ok(cell.get_or_init(|| task))
    }

    fn beta_star(&self, model: Model, context: &CellContext<'_>) -> Result<f64, Error> {
        let job = Job::CrossingBeta(model);
        match context.store.result(self, &job, context.options)? {
            Some(Found::CrossingBeta(found)) => Ok(found.beta),
            _ => Err(Error::Missing { experiment: Experiment::id(self), key: job.key() }),
        }
    }
}

impl Job {
    fn key(&self) -> String {
        match self {
            Self::CrossingBeta(model) => format!("beta-star-{}", model.name()),
            Self::Train { model, batch, arm, seed, .. } => {
                format!("{}-b{batch}-{}-seed{seed}", model.name(), arm.name())
            }
        }
    }
}

impl Experiment for Certified {
    type Job = Job;
    type Result = Found;

    fn id(&self) -> &'static str {
        "certified"
    }

    fn title(&self) -> &'static str {
        "Certified GeoDP beside DP and GeoDP at equal σ"
    }

    /// β* first; then seed by seed, the arm that only shows why certified GeoDP chooses last.
    fn jobs(&self, options: &Options) -> Vec<Job> {
        let mut jobs = MODELS.map(Job::CrossingBeta).to_vec();
        for arms in [&ARMS[..3], &ARMS[3..]] {
            for seed in 0..options.seeds {
                for model in MODELS {
                    for (batch, sigma) in BATCHES {
                        let train = |arm: &Arm| Job::Train { model, batch, sigma, arm: *arm, seed };
                        jobs.extend(arms.iter().map(train));
                    }
                }
            }
        }
        jobs
    }

    fn cell(&self, job: &Job, options: &Options) -> Cell {
        let (divide, epochs) = scale(options);
        let (model, seed) = match *job {
            Job::CrossingBeta(model) => (model, 0),
            Job::Train { model, seed, .. } => (model, seed),
        };
        let records = 60_000 / divide;
        let mut config = Task::recipe(model);
        config["records"] = json!(records);
        config["epochs"] = json!(epochs);
        if let Job::Train { batch, sigma, arm, .. } = *job {
            config["batch"] = json!(batch / divide);
            config["noise_multiplier"] = json!(sigma);
            config["arm"] = json!(arm);
        }
        let expected_seconds = (records * epochs) as f64 / model.samples_per_second();
        Cell { key: job.key(), config, seed, expected_seconds }
    }

    fn run(&self, job: &Job, context: &mut CellContext<'_>) -> Result<Found, Error> {
        let (divide, epochs) = scale(context.options);
        match *job {
            Job::CrossingBeta(model) => {
                let task = self.task(model, context.options)?;
                let batch = BATCHES[1].0 / divide;
                let found = task.crossing_beta(batch, &mut |share| context.tick(share))?;
                Ok(Found::CrossingBeta(found))
            }
            Job::Train { model, batch, sigma, arm, seed } => {
                let training = train::Training {
                    mechanism: arm.mechanism(self.beta_star(model, context)?),
                    amount: train::Amount::Multiplier(sigma),
                    batch: batch / divide,
                    epochs,
                    seed,
                };
                let task = self.task(model, context.options)?;
                let outcome = task.train(&training, &mut |share| context.tick(share))?;
                Ok(Found::Outcome(Box::new(outcome)))
            }
        }
    }

    fn draw(&self, finished: &FinishedOf<Self>, _: &PageContext<'_>) -> Result<Drawn, Error> {
        Ok(draw::draw(finished))
    }
}
