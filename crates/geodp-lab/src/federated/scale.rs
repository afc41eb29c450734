//! What a round costs besides the clients' own training, and whether memory grows with the population.
//!
//! The same cohorts are trained twice in turn: by the trainer (cohort, training, clipping, sum, noise,
//! optimiser), and by the clients alone, whose updates are thrown away. The ratio of the two sums of time
//! is the result. Clients draw their records by their number, so a population is nothing but a number.

use super::train::Task;
use super::{CLIP_NORM, DELTA, Model};
use crate::Error;
use crate::options::Size;
use geodp::PlanParams;
use geodp::engine::RowChoice;
use geodp::federated::{self, ClientEngine, Clients, Shards, Simulated};
use geodp::params::{PrivacyParams, TrainParams};
use geodp::trainer::Trainer;
use geodp::watch::{Silent, StepView, Watch};
use geodp_mechanism::NoiseSource;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// How much is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Sizes {
    populations: [u64; 2],
    cohort: u64,
    rounds: u64,
    records_each: usize,
}

pub(super) fn sizes(size: Size) -> Sizes {
    let populations = if size == Size::Tiny { [100, 1000] } else { [10_000, 100_000] };
    let (cohort, rounds, records_each) = match size {
        Size::Full => (1000, 10, 60),
        Size::Quick => (1000, 2, 20),
        Size::Tiny => (20, 2, 5),
    };
    Sizes { populations, cohort, rounds, records_each }
}

/// Rounds of one population.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rounds {
    /// N.
    pub population: u64,
    /// Expected cohort.
    pub cohort: u64,
    /// d.
    pub dim: usize,
    /// Rounds measured.
    pub rounds: u64,
    /// Seconds of a round, everything in it.
    pub round_seconds: f64,
    /// Seconds of the same cohorts' own training.
    pub training_seconds: f64,
    /// Memory of the process after it, in MB; absent where the system does not say.
    pub resident_megabytes: Option<f64>,
}

impl Rounds {
    /// A round over the clients' own training.
    pub fn ratio(&self) -> f64 {
        self.round_seconds / self.training_seconds
    }
}

/// What was measured, the smaller population first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// One entry for each population.
    pub populations: Vec<Rounds>,
}

pub(super) fn measure(
    task: &Task,
    size: Size,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Scale, Error> {
    let Sizes { populations, cohort, rounds, records_each: each } = sizes(size);
    let mut found = Vec::new();
    for population in populations {
        let records = task.train_set().len();
        let shards = Shards::Drawn { clients: population, each, records };
        let clients = Simulated {
            network: task.network(),
            train: task.train_set(),
            test: None,
            shards: &shards,
            local: Model::Scattering.local(),
            name: task.train_set().name(),
        };
        found.push(measure_population(&clients, cohort, rounds, tick)?);
    }
    Ok(Scale { populations: found })
}

/// Notes who was asked.
#[derive(Default)]
struct Asked(Vec<u32>);

impl Watch for Asked {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), geodp::Error> {
        self.0 = view.batch.to_vec();
        Ok(())
    }
}

fn measure_population(
    clients: &Simulated<'_>,
    cohort: u64,
    rounds: u64,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Rounds, Error> {
    let (population, dim) = (clients.population(), clients.dim());
    let privacy = PrivacyParams {
        noise_multiplier: Some(1.0),
        delta: Some(DELTA / 100.0),
        clip_norm: Some(CLIP_NORM),
        ..PrivacyParams::default()
    };
    let train = TrainParams {
        batch: Some(cohort),
        // One more, to warm up.
        steps: Some(rounds + 1),
        learning_rate: Some(1.0),
        seed: Some(0),
        ..TrainParams::default()
    };
    let plan = federated::plan(&PlanParams { privacy, train }, population, dim)?;
    let engine = ClientEngine::new(clients as &dyn Clients);
    let mut trainer =
        Trainer::new(plan, &engine, clients.network.init(0), NoiseSource::from_seed(0))?;
    trainer.step(&mut Silent)?;
    let (mut round_seconds, mut training_seconds) = (0.0, 0.0);
    for round in 0..rounds {
        let weights = trainer.weights().to_vec();
        let mut asked = Asked::default();
        let started = Instant::now();
        trainer.step(&mut asked)?;
        round_seconds += started.elapsed().as_secs_f64();
        let started = Instant::now();
        let choice = RowChoice::from_bits(round);
        let update = |client: &u32| clients.update(*client, &weights, choice).map(drop);
        asked
            .0
            .par_iter()
            .try_for_each(update)
            .map_err(|source| Error::from(geodp::Error::Engine { step: round, source }))?;
        training_seconds += started.elapsed().as_secs_f64();
        tick(round as f64 / rounds as f64)?;
    }
    let count = rounds as f64;
    Ok(Rounds {
        population,
        cohort,
        dim,
        rounds,
        round_seconds: round_seconds / count,
        training_seconds: training_seconds / count,
        resident_megabytes: resident_megabytes(),
    })
}

/// What the kernel says this process holds.
fn resident_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
}
