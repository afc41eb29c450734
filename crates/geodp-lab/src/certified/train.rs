//! One training of the comparison: what is trained on what, and what came out.

use super::{CLIP_NORM, DECAY, MOMENTUM, Model};
use crate::Error;
use crate::tables::crossing::{self, CrossingBeta};
use crate::tables::rows::{Method, Noise};
use crate::tables::train::{self as tables, DELTA, Epsilon};
use geodp::PlanParams;
use geodp::engine::{Engine, NetworkEngine};
use geodp::optimizer::OptimizerKind;
use geodp::params::{PrivacyParams, TrainParams};
use geodp::schedule::Schedule;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_data::{Split, mnist};
use geodp_mechanism::perturb::PolarSummary;
use geodp_mechanism::{Mechanism, NoiseSource};
use geodp_nn::Network;
use serde::{Deserialize, Serialize};

/// Passes of the training along which β* is measured.
const CROSSING_EPOCHS: u64 = 5;

/// Records and network of a model.
pub(super) struct Task {
    model: Model,
    data: Split,
    network: Network,
}

/// A training to be done.
pub(super) struct Training {
    pub(super) mechanism: Mechanism,
    pub(super) noise_multiplier: f64,
    pub(super) batch: u64,
    pub(super) epochs: u64,
    pub(super) seed: u64,
}

/// What a training gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Share of test records classified rightly; `None` if training diverged.
    pub accuracy: Option<f64>,
    /// Steps made.
    pub steps: u64,
    /// β as it was used.
    pub beta: Option<f64>,
    /// Steps of each kind; certified GeoDP only.
    pub polar: Option<PolarSummary>,
    /// Every ε with its kind.
    pub statement: Vec<Epsilon>,
}

impl Task {
    /// MNIST, one record in `divide` of it, as the model sees it.
    pub(super) fn open(model: Model, divide: usize) -> Result<Self, Error> {
        let (network, data) = model.on(mnist::load(&mnist::standard_scaling())?, divide)?;
        Ok(Self { model, data, network })
    }

    /// β* along a training without noise and without momentum, whose steps are as long in the end.
    pub(super) fn crossing_beta(
        &self,
        batch: u64,
        tick: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<CrossingBeta, Error> {
        let training = tables::Training {
            network: &self.network,
            data: &self.data,
            method: Method::plain(Noise::None, batch),
            noise_multiplier: 0.0,
            mechanism: Mechanism::None,
            learning_rate: self.model.learning_rate() / (1.0 - MOMENTUM),
            batch,
            epochs: CROSSING_EPOCHS,
            seed: 0,
        };
        crossing::measure(&training, tick)
    }

    fn params(&self, training: &Training) -> PlanParams {
        PlanParams {
            privacy: PrivacyParams {
                mechanism: training.mechanism,
                noise_multiplier: Some(training.noise_multiplier),
                delta: Some(DELTA),
                clip_norm: Some(CLIP_NORM),
                ..PrivacyParams::default()
            },
            train: TrainParams {
                batch: Some(training.batch),
                epochs: Some(training.epochs),
                learning_rate: Some(self.model.learning_rate()),
                optimizer: Some(OptimizerKind::Momentum { momentum: MOMENTUM }),
                schedule: Some(Schedule { decay: DECAY, ..Schedule::default() }),
                seed: Some(training.seed),
                ..TrainParams::default()
            },
        }
    }

    /// Trains to the end. `tick` hears the share done and may stop the training.
    pub(super) fn train(
        &self,
        training: &Training,
        tick: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<Outcome, Error> {
        let Self { data, network, .. } = self;
        let engine = NetworkEngine::new(network, &data.train, Some(&data.test));
        let plan = self.params(training).check(engine.facts())?;
        let (weights, noise) = (network.init(training.seed), NoiseSource::from_seed(training.seed));
        let mut trainer = Trainer::new(plan, &engine, weights, noise)?;
        let test = tables::advance(&mut trainer, u64::MAX, &mut Silent, tick)?;
        Ok(Outcome {
            accuracy: test.map(|(accuracy, _)| accuracy),
            steps: trainer.steps_done(),
            beta: training.mechanism.beta(),
            polar: trainer.polar(),
            statement: tables::epsilons(&trainer)?,
        })
    }
}
