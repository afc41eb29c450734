//! One federated training of the comparison, and what is looked at in it: accuracy and ε along the
//! rounds, how far the release turns from the mean of the clients' updates, what single clients pay.

use super::{CLIP_NORM, DELTA, Model, Set, Split, Training};
use crate::Error;
use crate::options::{Options, Size};
use geodp::PlanParams;
use geodp::config::{PairFiles, TestIs};
use geodp::engine::Engine;
use geodp::federated::{self, ClientEngine, Clients, Shards, Simulated};
use geodp::params::{PrivacyParams, TrainParams};
use geodp::trainer::Trainer;
use geodp::watch::{StepView, Watch};
use geodp_account::Claim;
use geodp_audit::measure::Measure;
use geodp_audit::record_loss::RecordLossSummary;
use geodp_data::{Dataset, mnist};
use geodp_mechanism::perturb::PolarSummary;
use geodp_mechanism::{Mechanism, NoiseSource, analysis};
use geodp_nn::Network;
use serde::{Deserialize, Serialize};

/// Points of a curve.
const POINTS: u64 = 20;
/// Clients whose loss is measured.
const FOLLOWED: u64 = 200;
/// Rounds between measurements of it.
const MEASURED_EVERY: u64 = 5;

/// Records and network, as one model sees one data set.
pub(super) struct Task {
    network: Network,
    train: Dataset,
    test: Dataset,
    /// Training records that settings are chosen on, and the others.
    held_back: Dataset,
    kept: Dataset,
}

/// Where a training stood.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Rounds done.
    pub round: u64,
    /// What they cost; absent without privacy.
    pub claim: Option<Claim>,
    /// Share of right answers on the records that are measured on.
    pub accuracy: f64,
    /// Mean loss there.
    pub loss: f64,
}

/// What a training gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Along the rounds; ends early if training diverged.
    pub curve: Vec<Point>,
    /// Rounds of the plan.
    pub rounds: u64,
    /// σ; absent without privacy.
    pub noise_multiplier: Option<f64>,
    /// β as it was used.
    pub beta: Option<f64>,
    /// Mean angle between the mean of clipped updates and what was released, in degrees.
    pub direction_error: Option<f64>,
    /// The median over rounds of β at which GeoDP's direction error is DP's.
    pub crossing_beta: Option<f64>,
    /// What single clients paid: for the data's owner.
    pub measured: Option<RecordLossSummary>,
    /// Steps of each kind; certified GeoDP only.
    pub polar: Option<PolarSummary>,
}

impl Outcome {
    /// The last point, if training came to its end.
    pub fn last(&self) -> Option<&Point> {
        self.curve.last().filter(|point| point.round == self.rounds)
    }
}

impl Task {
    pub(super) fn open(set: Set, model: Model, options: &Options) -> Result<Self, Error> {
        let data = match set {
            Set::Mnist => mnist::load(&mnist::standard_scaling())?,
            Set::FashionMnist => {
                let folder = options.data_dir.join("fashion-mnist");
                let files = PairFiles::in_folder(&folder, 10, Some(TestIs::Public))?;
                geodp::DataConfig::Arrays(files).load()?.split
            }
        };
        let divide = if options.size == Size::Tiny { 60 } else { 1 };
        let (network, data) = model.on(data, divide)?;
        let (kept, held_back) = data.train.split_off(data.train.len() / 6, 0)?;
        let (train, test) = (data.train, data.test);
        Ok(Self { network, train, test, held_back, kept })
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    pub(super) fn train_set(&self) -> &Dataset {
        &self.train
    }

    /// Trains to the end: on all training records and measured on the test set, or, to choose settings,
    /// without the held-back records and measured on those.
    pub(super) fn run(
        &self,
        training: &Training,
        to_choose: bool,
        tick: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<Outcome, Error> {
        let (train, test) =
            if to_choose { (&self.kept, &self.held_back) } else { (&self.train, &self.test) };
        let clients = training.clients as usize;
        let shards = match training.split {
            Split::Iid => Shards::iid(train.len(), clients, training.seed),
            Split::Dirichlet => {
                Shards::dirichlet(train.labels(), train.classes(), clients, 0.3, training.seed)
            }
        };
        let local = training.local;
        let simulated = Simulated {
            network: &self.network,
            train,
            test: Some(test),
            shards: &shards,
            local,
            name: train.name(),
        };
        simulate(&simulated, training, tick)
    }
}

fn params(training: &Training) -> PlanParams {
    let private = training.mechanism.is_private();
    PlanParams {
        privacy: PrivacyParams {
            mechanism: training.mechanism,
            epsilon: private.then_some(training.epsilon),
            delta: private.then_some(DELTA),
            // Without privacy updates are clipped all the same: what differs is the noise.
            clip_norm: Some(CLIP_NORM),
            ..PrivacyParams::default()
        },
        train: TrainParams {
            batch: Some(training.cohort),
            steps: Some(training.rounds),
            learning_rate: Some(training.server_rate),
            seed: Some(training.seed),
            ..TrainParams::default()
        },
    }
}

fn simulate(
    clients: &Simulated<'_>,
    training: &Training,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Outcome, Error> {
    let plan = federated::plan(&params(training), clients.population(), clients.dim())?;
    let engine = ClientEngine::new(clients as &dyn Clients);
    let noise = NoiseSource::from_seed(training.seed);
    let mut look = Look {
        measure: Measure::new(engine.facts().records, FOLLOWED, MEASURED_EVERY, &noise)?,
        mean: Vec::new(),
        crossing: Vec::new(),
    };
    let start = clients.network.init(training.seed);
    let mut trainer = Trainer::new(plan, &engine, start, noise)?;
    let rounds = trainer.plan().steps();
    let mut outcome = Outcome {
        curve: Vec::new(),
        rounds,
        noise_multiplier: trainer.plan().noise_multiplier(),
        beta: trainer.plan().mechanism().beta(),
        direction_error: None,
        crossing_beta: None,
        measured: None,
        polar: None,
    };
    let mut angles = Vec::new();
    while !trainer.is_done() {
        let before = trainer.weights().to_vec();
        match trainer.step(&mut look) {
            Ok(_) => {}
            Err(geodp::Error::Diverged { .. }) => break,
            Err(error) => return Err(error.into()),
        }
        // SGD without momentum: what was released is what moved the weights.
        angles.extend(angle(&look.mean, before.iter().zip(trainer.weights()).map(|(b, a)| b - a)));
        let round = trainer.steps_done();
        tick(round as f64 / rounds as f64)?;
        if round.is_multiple_of((rounds / POINTS).max(1)) || trainer.is_done() {
            let Some(found) = trainer.evaluate()? else { break };
            let claim = trainer.plan().protection().claim_after(round)?;
            let (accuracy, loss) = (found.accuracy(), found.mean_loss);
            if !loss.is_finite() {
                break;
            }
            outcome.curve.push(Point { round, claim, accuracy, loss });
        }
    }
    outcome.direction_error = (!angles.is_empty()).then(|| crate::stats::mean(&angles));
    outcome.crossing_beta =
        (!look.crossing.is_empty()).then(|| crate::stats::median(&look.crossing));
    outcome.measured = look.measure.summary(trainer.plan())?;
    outcome.polar = trainer.polar();
    Ok(outcome)
}

/// Keeps the mean of a round before its noise, and measures what clients pay.
struct Look {
    measure: Measure,
    mean: Vec<f32>,
    /// β* of each round, at σ = 1.
    crossing: Vec<f64>,
}

impl Watch for Look {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), geodp::Error> {
        self.mean = view.mean.to_vec();
        let beta = analysis::crossing_beta(view.mean, view.sensitivity, 1.0, view.denominator);
        self.crossing.extend(beta.ok().map(|beta| beta.by_rotation.min(1.0)));
        match view.plan.mechanism() {
            Mechanism::None => Ok(()),
            _ => self.measure.on_step(view),
        }
    }
}

/// The angle between two vectors in degrees; `None` where one is zero.
fn angle(a: &[f32], b: impl Iterator<Item = f32>) -> Option<f64> {
    let (mut dot, mut of_a, mut of_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (f64::from(*a), f64::from(b));
        (dot, of_a, of_b) = (dot + a * b, of_a + a * a, of_b + b * b);
    }
    let cosine = dot / (of_a * of_b).sqrt();
    cosine.is_finite().then(|| cosine.clamp(-1.0, 1.0).acos().to_degrees())
}
