//! Accuracy at a certified ε: the best recipe of this project on MNIST, Fashion-MNIST and CIFAR-10 at
//! ε = 1, 2, 3, 8, beside what was published; and GeoDP under the same recipe, at its conditional ε.
//!
//! A job is one training, from the config that `geodp train` would complete, with a seed of its own. The
//! test set is measured once, at the end. Features are computed once for all jobs of a data set in one
//! process.

mod draw;
mod published;
mod recipe;

use crate::Error;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::options::{Options, Size};
use geodp::Statement;
use geodp::config::RunConfig;
use geodp::engine::Engine;
use geodp::plan::Plan;
use geodp::run::Configured;
use geodp::trainer::Trainer;
use geodp::watch::{Silent, StepView, Watch};
use geodp_account::Claim;
use geodp_mechanism::{Mechanism, NoiseSource, analysis};
pub use recipe::Set;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::cell::RefCell;

/// The experiment.
#[derive(Default)]
pub struct Accuracy {
    /// The data set used last, with its features.
    loaded: RefCell<Option<(Set, Configured)>>,
}

/// How gradients are perturbed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Noise {
    /// DP-SGD.
    Dp,
    /// GeoDP with β = 0.1.
    Geodp,
    /// GeoDP with β*, where its direction error equals DP's at the start of a training.
    GeodpAtCrossing,
}

/// One training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Training {
    /// On what.
    pub set: Set,
    /// With which noise.
    pub noise: Noise,
    /// Target ε: certified for DP, conditional for GeoDP.
    pub epsilon: f64,
    /// Decides batches, views and noise.
    pub seed: u64,
}

/// What a training came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Share of the test records that were classified rightly; `None` if training diverged.
    pub accuracy: Option<f64>,
    /// Mean test loss.
    pub loss: Option<f64>,
    /// Test records.
    pub records: usize,
    /// What was bought, with its kind.
    pub claims: Vec<Claim>,
    /// β as it was used.
    pub beta: Option<f64>,
    /// Steps made.
    pub steps: u64,
    /// σ.
    pub noise_multiplier: f64,
}

const EPSILONS: [f64; 4] = [3.0, 1.0, 2.0, 8.0];

/// What is trained on, at which ε: the small form is MNIST at ε = 3.
fn extent(size: Size) -> (&'static [Set], &'static [f64]) {
    match size {
        Size::Full | Size::Tiny => (&Set::ALL, &EPSILONS),
        Size::Quick => (&[Set::Mnist], &[3.0]),
    }
}

const BETA: f64 = 0.1;
/// Steps of a training without noise whose mean gradients give β*.
const CROSSING_STEPS: u64 = 20;

impl Accuracy {
    /// Runs `work` on the data set, loading it if another was used before.
    fn with<R>(
        &self,
        set: Set,
        options: &Options,
        work: impl FnOnce(&Configured) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut loaded = self.loaded.borrow_mut();
        if loaded.as_ref().is_none_or(|(of, _)| *of != set) {
            // The old one goes first: two sets of features may not fit into memory.
            *loaded = None;
            *loaded = Some((set, Configured::load(set.config(3.0, options)?, &|_, _| ())?));
        }
        match &*loaded {
            Some((_, engine)) => work(engine),
            None => Err(Error::Argument(format!("{} could not be loaded", set.title()))),
        }
    }
}

/// β* of each step's mean gradient, before its noise.
#[derive(Default)]
struct Crossing(Vec<f64>);

impl Watch for Crossing {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), geodp::Error> {
        let beta = analysis::crossing_beta(view.mean, view.sensitivity, 1.0, view.denominator);
        self.0.extend(beta.ok().map(|beta| beta.by_rotation.min(1.0)));
        Ok(())
    }
}

/// The median β* over the first steps of the recipe without noise.
fn crossing(config: &RunConfig, engine: &Configured, seed: u64) -> Result<f64, Error> {
    let mut config = config.clone();
    config.privacy = geodp::params::PrivacyParams {
        mechanism: Mechanism::None,
        clip_norm: config.privacy.clip_norm,
        ..Default::default()
    };
    (config.train.epochs, config.train.steps) = (None, Some(CROSSING_STEPS));
    let plan = config.plan_params().check(engine.facts())?;
    let mut watch = Crossing::default();
    let noise = NoiseSource::from_seed(seed);
    let mut trainer = Trainer::new(plan, engine, engine.initial_weights(), noise)?;
    while trainer.step(&mut watch)?.is_some() {}
    Ok(crate::stats::median(&watch.0))
}

/// The config of a training, and what it is checked to.
fn planned(job: &Training, engine: &Configured, options: &Options) -> Result<Plan, Error> {
    let mut config = job.set.config(job.epsilon, options)?;
    config.complete_on(&engine.split().train);
    config.privacy.mechanism = match job.noise {
        Noise::Dp => Mechanism::Dp,
        Noise::Geodp => Mechanism::Geodp { beta: BETA },
        Noise::GeodpAtCrossing => Mechanism::Geodp { beta: crossing(&config, engine, job.seed)? },
    };
    config.train.seed = Some(job.seed);
    Ok(config.plan_params().check(engine.facts())?)
}

impl Experiment for Accuracy {
    type Job = Training;
    type Result = Outcome;

    fn id(&self) -> &'static str {
        "accuracy"
    }

    fn title(&self) -> &'static str {
        "Accuracy at a certified ε, beside what was published"
    }

    fn jobs(&self, options: &Options) -> Vec<Training> {
        let mut jobs = Vec::new();
        let (sets, epsilons) = extent(options.size);
        for &set in sets {
            for &epsilon in epsilons {
                let seeds = set.seeds(epsilon, options.seeds);
                let of = |noise| move |seed| Training { set, noise, epsilon, seed };
                jobs.extend((0..seeds).map(of(Noise::Dp)));
                if set.compares_geodp(epsilon) {
                    jobs.extend([Noise::Geodp, Noise::GeodpAtCrossing].map(|noise| of(noise)(0)));
                }
            }
        }
        jobs
    }

    fn cell(&self, job: &Training, options: &Options) -> Cell {
        let Training { set, noise, epsilon, seed } = *job;
        let kind = match noise {
            Noise::Dp => "dp",
            Noise::Geodp => "geodp",
            Noise::GeodpAtCrossing => "geodp-crossing",
        };
        Cell {
            key: format!("{}-{kind}-epsilon{epsilon}-seed{seed}", set.name()),
            config: json!({
                "data": set.name(), "noise": noise, "epsilon": epsilon,
                "recipe": set.recipe(epsilon, options),
            }),
            seed,
            expected_seconds: set.seconds(options.size),
        }
    }

    fn run(&self, job: &Training, context: &mut CellContext<'_>) -> Result<Outcome, Error> {
        self.with(job.set, context.options, |engine| {
            let plan = planned(job, engine, context.options)?;
            let (steps, beta) = (plan.steps(), plan.mechanism().beta());
            let claims = Statement::new(&plan, steps, None)?.claims;
            let noise_multiplier = plan.noise_multiplier().unwrap_or(0.0);
            let noise = NoiseSource::from_seed(job.seed);
            let mut trainer = Trainer::new(plan, engine, engine.initial_weights(), noise)?;
            loop {
                match trainer.step(&mut Silent) {
                    Ok(Some(_)) => context.tick(trainer.steps_done() as f64 / steps as f64)?,
                    Ok(None) => break,
                    Err(geodp::Error::Diverged { .. }) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            let done = trainer.is_done();
            let found = if done { trainer.evaluate()? } else { None };
            Ok(Outcome {
                accuracy: found.map(|found| found.accuracy()),
                loss: found.map(|found| found.mean_loss).filter(|loss| loss.is_finite()),
                records: found.map_or(0, |found| found.count),
                claims,
                beta,
                steps: trainer.steps_done(),
                noise_multiplier,
            })
        })
    }

    fn draw(&self, finished: &FinishedOf<Self>, _: &PageContext<'_>) -> Result<Drawn, Error> {
        Ok(draw::draw(self.title(), finished))
    }
}

impl Set {
    /// How many seeds of how many asked for: CIFAR-10 takes minutes each.
    fn seeds(self, epsilon: f64, asked: u64) -> u64 {
        match (self, epsilon == 3.0) {
            (Set::Cifar10, true) => asked.min(3),
            (Set::Cifar10, false) => 1,
            _ => asked,
        }
    }

    /// Whether GeoDP is trained beside DP: on CIFAR-10, whose trainings take minutes, at one ε.
    fn compares_geodp(self, epsilon: f64) -> bool {
        self != Set::Cifar10 || epsilon == 3.0
    }

    /// Seconds of a training on two cores.
    fn seconds(self, size: Size) -> f64 {
        match (size, self) {
            (Size::Tiny, _) => 1.0,
            (Size::Quick, _) => 15.0,
            (_, Set::Cifar10) => 700.0,
            _ => 25.0,
        }
    }
}
