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
use geodp_data::{Dataset, Split, mnist};
use geodp_mechanism::perturb::PolarSummary;
use geodp_mechanism::{Mechanism, NoiseSource};
use geodp_nn::Network;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Passes of the training along which β* is measured.
const CROSSING_EPOCHS: u64 = 5;

/// Records and network of a model.
pub(crate) struct Task {
    model: Model,
    data: Split,
    network: Network,
}

/// How much noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    /// σ.
    Multiplier(f64),
    /// As much as this ε needs.
    Epsilon(f64),
}

/// A training to be done.
pub(crate) struct Training {
    pub(crate) mechanism: Mechanism,
    pub(crate) amount: Amount,
    pub(crate) batch: u64,
    pub(crate) epochs: u64,
    pub(crate) seed: u64,
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
    pub(crate) fn open(model: Model, divide: usize) -> Result<Self, Error> {
        let (network, data) = model.on(mnist::load(&mnist::standard_scaling())?, divide)?;
        Ok(Self { model, data, network })
    }

    /// What every training of a model has, for the record.
    pub(crate) fn recipe(model: Model) -> Value {
        json!({
            "model": model,
            "learning_rate": model.learning_rate(),
            "momentum": MOMENTUM,
            "decay": DECAY,
            "clip_norm": CLIP_NORM,
        })
    }

    /// β* along a training without noise and without momentum, whose steps are as long in the end.
    pub(crate) fn crossing_beta(
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
            optimizer: OptimizerKind::Sgd,
            schedule: Schedule::default(),
            seed: 0,
        };
        crossing::measure(&training, tick)
    }

    fn params(&self, training: &Training) -> PlanParams {
        let (noise_multiplier, epsilon) = match training.amount {
            Amount::Multiplier(sigma) => (Some(sigma), None),
            Amount::Epsilon(epsilon) => (None, Some(epsilon)),
        };
        PlanParams {
            privacy: PrivacyParams {
                mechanism: training.mechanism,
                noise_multiplier,
                epsilon,
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

    /// The model.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// The training records, as the model sees them.
    pub(crate) fn records(&self) -> &Dataset {
        &self.data.train
    }

    /// The engine of every training of this model.
    pub(crate) fn engine(&self) -> NetworkEngine<'_> {
        NetworkEngine::new(&self.network, &self.data.train, Some(&self.data.test))
    }

    /// A trainer at its first step.
    pub(crate) fn start<'e>(
        &self,
        training: &Training,
        engine: &'e NetworkEngine<'e>,
    ) -> Result<Trainer<'e>, Error> {
        let plan = self.params(training).check(engine.facts())?;
        let noise = NoiseSource::from_seed(training.seed);
        Ok(Trainer::new(plan, engine, self.network.init(training.seed), noise)?)
    }

    /// Trains to the end. `tick` hears the share done and may stop the training.
    pub(crate) fn train(
        &self,
        training: &Training,
        tick: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<Outcome, Error> {
        let engine = self.engine();
        let mut trainer = self.start(training, &engine)?;
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
