//! Why the geometry gives what it gives: isotropic noise in polar form, held against measurements.
//!
//! Noise of standard deviation s = σC/B on every coordinate of a mean gradient g is s along g and s in each
//! of the d − 1 directions across it: the direction moves by σ·C/(B‖g‖) per tangent dimension. C/(B‖g‖) is
//! how far one record can turn that very mean, so DP-SGD already perturbs the direction by σ times its own
//! local sensitivity. The page derives from it the β* at which GeoDP's direction error equals DP's, and what
//! any private mechanism must add. [`measure`] is what is measured on a mean gradient:
//!
//! | cell | means of |
//! |---|---|
//! | gradients-d, -batch, -clip | the gradient stream of Figure 3, over d, B and C |
//! | training-cnn, -scattering | a DP training on MNIST, σ as in `certified`, at moments along it |

mod draw;
mod gradients;
pub mod measure;
mod training;
mod words;

use crate::Error;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::model::Model;
use crate::options::{Options, Size};
use measure::Geometry;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What is varied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// d at B = 4096 and C = 0.1.
    Dimensions,
    /// B at d = 5000 and C = 0.1.
    Batch,
    /// C at d = 5000 and B = 4096.
    ClipNorm,
    /// The time of a training.
    Training(Model),
}

/// Every job, in the order of the figures.
const JOBS: [Job; 5] = [
    Job::Dimensions,
    Job::Batch,
    Job::ClipNorm,
    Job::Training(Model::Cnn),
    Job::Training(Model::Scattering),
];

/// A cell's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Which data the gradients came from.
    pub dataset: String,
    /// One entry a mean, by the value of what is varied.
    pub points: Vec<(f64, Geometry)>,
}

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Effort {
    /// Records and batches are divided by this where means are formed and trainings run.
    divide: u64,
    /// Passes over the records of a training.
    epochs: u64,
    /// Moments of a training at which its gradient is looked at.
    moments: u64,
    /// Perturbations of each mean by each mechanism.
    repeats: u64,
    /// Records of which each is left out.
    left_out: usize,
}

fn effort(options: &Options) -> Effort {
    let (divide, epochs, moments, repeats, left_out) = match options.size {
        Size::Full => (1, 20, 16, 40, 512),
        Size::Quick => (8, 4, 6, 10, 128),
        Size::Tiny => (128, 1, 3, 3, 8),
    };
    Effort { divide, epochs: options.epochs.unwrap_or(epochs), moments, repeats, left_out }
}

/// The experiment.
#[derive(Debug, Default)]
pub struct Theory;

impl Job {
    fn key(self) -> String {
        match self {
            Self::Dimensions => "gradients-d".to_owned(),
            Self::Batch => "gradients-batch".to_owned(),
            Self::ClipNorm => "gradients-clip".to_owned(),
            Self::Training(model) => format!("training-{}", model.name()),
        }
    }

    /// As captions and legends call it.
    fn title(self) -> &'static str {
        match self {
            Self::Dimensions => "over d",
            Self::Batch => "over B",
            Self::ClipNorm => "over C",
            Self::Training(Model::Cnn) => "along a training, CNN",
            Self::Training(Model::Scattering) => "along a training, scattering",
        }
    }
}

impl Experiment for Theory {
    type Job = Job;
    type Result = Found;

    fn id(&self) -> &'static str {
        "theory"
    }

    fn title(&self) -> &'static str {
        "Why the geometry gives what it gives"
    }

    fn jobs(&self, _: &Options) -> Vec<Job> {
        JOBS.to_vec()
    }

    fn cell(&self, job: &Job, options: &Options) -> Cell {
        let Effort { divide, epochs, moments, repeats, left_out } = effort(options);
        let mut config = json!({ "divide": divide, "repeats": repeats });
        let (seed, expected_seconds) = match *job {
            Job::Training(model) => {
                let samples = 60_000 / divide * epochs + moments * training::BATCH;
                config["training"] = json!({
                    "model": model,
                    "epochs": epochs,
                    "moments": moments,
                    "left_out": left_out,
                    "batch": training::BATCH / divide,
                    "noise_multiplier": training::SIGMA,
                });
                (training::SEED, samples as f64 / 30_000.0)
            }
            gradients => {
                let settings = gradients::settings(gradients, options.size);
                let streamed: u64 = settings.iter().map(|s| s.batch / divide).sum();
                config["settings"] = json!(settings);
                (gradients::SEED, 1.0 + streamed as f64 / 2500.0)
            }
        };
        Cell { key: job.key(), config, seed, expected_seconds }
    }

    fn run(&self, job: &Job, context: &mut CellContext<'_>) -> Result<Found, Error> {
        let (effort, options) = (effort(context.options), context.options);
        let mut tick = |share: f64| context.tick(share);
        match *job {
            Job::Training(model) => training::run(model, effort, &mut tick),
            varied => gradients::run(varied, effort, options, &mut tick),
        }
    }

    fn draw(&self, finished: &FinishedOf<Self>, _: &PageContext<'_>) -> Result<Drawn, Error> {
        Ok(draw::draw(finished))
    }
}
