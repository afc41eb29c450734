//! One training of a table: a method, σ, β and η in; test accuracy and the privacy statement out.

use super::loss::Loss;
use super::rows::Method;
use crate::Error;
use geodp::engine::{Engine, NetworkEngine};
use geodp::importance::{ImportanceParams, Keep};
use geodp::optimizer::OptimizerKind;
use geodp::params::{PrivacyParams, TrainParams};
use geodp::schedule::Schedule;
use geodp::select::{SelectParams, Selection};
use geodp::trainer::Trainer;
use geodp::watch::Watch;
use geodp::{PlanParams, Statement};
use geodp_account::{Claim, Kind};
use geodp_audit::measure::Measure;
use geodp_data::Split;
use geodp_mechanism::perturb::PolarSummary;
use geodp_mechanism::{Mechanism, NoiseSource};
use geodp_nn::Network;
use geodp_report::csv;
use serde::{Deserialize, Serialize};

/// C of every training: the paper's.
pub const CLIP_NORM: f64 = 0.1;
/// δ of every statement.
pub const DELTA: f64 = 1e-5;

/// Records whose loss is measured: enough for a 99.9 % quantile.
const FOLLOWED: u64 = 1000;
/// Steps between measurements; the others count at the mean of those measured.
const MEASURE_EVERY: u64 = 2;

/// A training to be done.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    /// What is trained on what.
    pub network: &'a Network,
    /// Records to train on, and records to measure on.
    pub data: &'a Split,
    /// How.
    pub method: Method,
    /// σ.
    pub noise_multiplier: f64,
    /// Its mechanism, with β as a number.
    pub mechanism: Mechanism,
    /// η.
    pub learning_rate: f64,
    /// Scaled batch size.
    pub batch: u64,
    /// Passes over the records.
    pub epochs: u64,
    /// How weights are moved.
    pub optimizer: OptimizerKind,
    /// How η changes.
    pub schedule: Schedule,
    /// Decides first weights, batches and noise.
    pub seed: u64,
}

/// What a training gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Share of test records classified rightly; `None` if training diverged.
    pub accuracy: Option<f64>,
    /// Mean test loss; `None` if training diverged.
    pub loss: Option<f64>,
    /// Steps made.
    pub steps: u64,
    /// σ as it was used; 0 without noise.
    pub noise_multiplier: f64,
    /// β as it was used.
    pub beta: Option<f64>,
    /// η as it was used.
    pub learning_rate: f64,
    /// Steps that SUR kept and took back.
    pub selection: Option<Selection>,
    /// Steps of each kind; certified GeoDP only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polar: Option<PolarSummary>,
    /// Every ε with its kind.
    pub statement: Vec<Epsilon>,
    /// What the followed records paid; `None` without noise.
    pub measured: Option<Loss>,
}

/// The upper end of a claim, as the results keep it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Epsilon {
    /// Its kind.
    pub kind: Kind,
    /// Its upper bound; `None` for ∞.
    pub epsilon: Option<f64>,
    /// The δ it goes with.
    pub delta: f64,
    /// How large the δ′ beside it may be; 0 where there is none.
    pub delta_prime: f64,
    /// Whether it holds in real numbers only: so large that no δ covers what the machine's noise leaves
    /// over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_real_numbers: bool,
}

impl Outcome {
    /// The ε of a kind, empty where there is none.
    pub fn epsilon_csv(&self, kind: Kind) -> String {
        let found = self.statement.iter().find(|e| e.kind == kind);
        found.map_or(String::new(), |e| csv::number(e.epsilon.unwrap_or(f64::INFINITY)))
    }
}

impl Training<'_> {
    /// The plan's parameters: the one place where a row becomes a training.
    fn params(&self) -> PlanParams {
        let mechanism = self.mechanism;
        PlanParams {
            privacy: PrivacyParams {
                mechanism,
                noise_multiplier: mechanism.is_private().then_some(self.noise_multiplier),
                delta: mechanism.is_private().then_some(DELTA),
                clip: self.method.clip,
                clip_norm: Some(CLIP_NORM),
                importance: self.importance(),
                select: self.method.select.then(|| SelectParams {
                    // No more than the records of a small form.
                    batch: SelectParams::default().batch.min(self.batch),
                    ..SelectParams::default()
                }),
                ..PrivacyParams::default()
            },
            train: TrainParams {
                batch: Some(self.batch),
                epochs: Some(self.epochs),
                learning_rate: Some(self.learning_rate),
                optimizer: Some(self.optimizer),
                schedule: Some(self.schedule),
                seed: Some(self.seed),
                ..TrainParams::default()
            },
        }
    }

    fn importance(&self) -> Option<ImportanceParams> {
        let keep = match (self.method.importance, self.method.control) {
            (false, false) => return None,
            (_, true) => Keep::All,
            (true, false) => Keep::ByNorm,
        };
        Some(ImportanceParams { keep, ..ImportanceParams::default() })
    }

    /// The engine of the training.
    pub fn engine(&self) -> NetworkEngine<'_> {
        NetworkEngine::new(self.network, &self.data.train, Some(&self.data.test))
    }

    /// A trainer at its first step.
    ///
    /// # Errors
    /// Parameters that make no plan.
    pub fn start<'e>(&self, engine: &'e NetworkEngine<'e>) -> Result<Trainer<'e>, Error> {
        let plan = self.params().check(engine.facts())?;
        let weights = self.network.init(self.seed);
        Ok(Trainer::new(plan, engine, weights, NoiseSource::from_seed(self.seed))?)
    }

    /// Trains to the end. `tick` hears the share done and may stop the training.
    ///
    /// # Errors
    /// What `tick` gives, and failures other than divergence.
    pub fn run(&self, tick: &mut dyn FnMut(f64) -> Result<(), Error>) -> Result<Outcome, Error> {
        let engine = self.engine();
        let mut trainer = self.start(&engine)?;
        let records = self.data.train.len() as u64;
        let source = NoiseSource::from_seed(self.seed);
        let mut measure = Measure::new(records, FOLLOWED, MEASURE_EVERY, &source)?;
        let test = advance(&mut trainer, u64::MAX, &mut measure, tick)?;
        let steps = trainer.steps_done();
        Ok(Outcome {
            accuracy: test.map(|t| t.0),
            loss: test.map(|t| t.1),
            steps,
            noise_multiplier: trainer.plan().noise_multiplier().unwrap_or(0.0),
            beta: self.mechanism.beta(),
            learning_rate: self.learning_rate,
            selection: trainer.selection(),
            polar: trainer.polar(),
            statement: epsilons(&trainer)?,
            measured: measure.summary(trainer.plan())?.map(|s| Loss::new(s, measure.loss())),
        })
    }
}

/// Steps until `until` or the plan's end, then (accuracy, loss) on the held-out records; `None` if
/// training diverged.
///
/// # Errors
/// What `tick` gives, and failures other than divergence.
pub fn advance(
    trainer: &mut Trainer<'_>,
    until: u64,
    watch: &mut dyn Watch,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Option<(f64, f64)>, Error> {
    while !trainer.is_done() && trainer.steps_done() < until {
        match trainer.step(watch) {
            Ok(_) => {}
            Err(geodp::Error::Diverged { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        tick(trainer.steps_done() as f64 / trainer.plan().steps() as f64)?;
    }
    let test = trainer.evaluate()?;
    Ok(test.filter(|t| t.mean_loss.is_finite()).map(|t| (t.accuracy(), t.mean_loss)))
}

/// Every ε of the statement of a whole training.
///
/// # Errors
/// If the accountant refuses.
pub fn epsilons(trainer: &Trainer<'_>) -> Result<Vec<Epsilon>, Error> {
    let (plan, steps) = (trainer.plan(), trainer.plan().steps());
    let exact = Statement::new(plan, steps, trainer.selection())?.claims;
    let ideal = Statement::in_real_numbers(plan, steps, trainer.selection())?.claims;
    let finite = |claim: &Claim| Some(claim.upper()).filter(|upper| upper.is_finite());
    let of = |(exact, ideal): (&Claim, &Claim)| Epsilon {
        kind: exact.kind(),
        epsilon: finite(exact).or_else(|| finite(ideal)),
        delta: if exact.is_private() { exact.delta() } else { DELTA },
        delta_prime: exact.delta_prime_at_most().unwrap_or(0.0),
        in_real_numbers: finite(exact).is_none() && finite(ideal).is_some(),
    };
    Ok(exact.iter().zip(&ideal).map(of).collect())
}
