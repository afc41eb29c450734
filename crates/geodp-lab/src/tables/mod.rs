//! Tables 2 and 3: every row trained fairly, cell by cell.
//!
//! Fair means: gradients clipped per sample at C = 0.1, Poisson batches, plain SGD, η from one
//! public grid searched for each perturbation, clipping rule, σ and B on a split of the training
//! set ([`rate`]). The paper does not say which η it used.
//!
//! Each table is run under several readings of its B ([`protocol`]).

pub mod crossing;
mod draw;
pub mod equal;
pub mod jobs;
pub mod loss;
pub mod protocol;
pub mod rate;
mod readings;
pub mod rows;
mod sheet;
pub mod summary;
pub mod task;
pub mod train;

use crate::Error;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::options::Options;
use geodp_mechanism::{Mechanism, PolarSettings};
pub use jobs::{Found, Job};
use protocol::Protocol;
use rows::{Beta, Method, Noise, Row};
use serde_json::json;
use std::cell::OnceCell;
use task::{Task, Which};
use train::Training;

/// Table 2, Table 3, or the comparison at equal measured privacy: methods times σ.
pub struct Table {
    id: &'static str,
    title: &'static str,
    which: Which,
    rows: Vec<Row>,
    sigmas: Vec<f64>,
    protocol: Protocol,
    draw: fn(&Table, &FinishedOf<Table>, &PageContext<'_>) -> Result<Drawn, Error>,
    /// A table whose finished cells it takes over where they are the same.
    lender: Option<fn() -> Table>,
    task: OnceCell<Task>,
}

impl Table {
    /// Table 2: the CNN on MNIST.
    pub fn two() -> Self {
        Self {
            id: "table2",
            title: "Table 2: test accuracy of the CNN on MNIST",
            which: Which::Mnist,
            rows: rows::table2(),
            sigmas: rows::TABLE2_SIGMAS.to_vec(),
            protocol: Protocol::AsStated,
            draw: draw::draw,
            lender: None,
            task: OnceCell::new(),
        }
    }

    /// Table 3: the ResNet on CIFAR-10.
    pub fn three() -> Self {
        Self {
            id: "table3",
            title: "Table 3: test accuracy of the ResNet on CIFAR-10",
            which: Which::Cifar10,
            rows: rows::table3(),
            sigmas: rows::TABLE3_SIGMAS.to_vec(),
            protocol: Protocol::AsStated,
            draw: draw::draw,
            lender: None,
            task: OnceCell::new(),
        }
    }

    /// Table 2 in steps of 128 records.
    pub fn two_in_small_steps() -> Self {
        Self {
            id: "table2-small-steps",
            title: "Table 2 in small steps: the CNN on MNIST",
            protocol: Protocol::SmallSteps,
            ..Self::two()
        }
    }

    /// Table 3 in steps of 128 records.
    pub fn three_in_small_steps() -> Self {
        Self {
            id: "table3-small-steps",
            title: "Table 3 in small steps: the ResNet on CIFAR-10",
            protocol: Protocol::SmallSteps,
            ..Self::three()
        }
    }

    /// Table 3 in as many steps of B = 16384 as training needs: the rows that carry its claim.
    pub fn three_trained() -> Self {
        Self {
            id: "table3-trained",
            title: "Table 3, trained: the ResNet on CIFAR-10",
            rows: rows::table3_claim(),
            protocol: Protocol::Trained,
            ..Self::three()
        }
    }

    /// The tables run under a protocol.
    pub fn under(protocol: Protocol) -> Vec<Self> {
        match protocol {
            Protocol::AsStated => vec![Self::two(), Self::three()],
            Protocol::SmallSteps => vec![Self::two_in_small_steps(), Self::three_in_small_steps()],
            Protocol::Trained => vec![Self::three_trained()],
        }
    }

    /// The same table as stated.
    fn as_stated(&self) -> Self {
        match self.which {
            Which::Mnist => Self::two(),
            Which::Cifar10 => Self::three(),
        }
    }

    /// `Table 2`: what readers of the paper know it by.
    fn label(&self) -> &'static str {
        match (self.which, self.protocol) {
            (Which::Mnist, Protocol::AsStated) => "Table 2",
            (Which::Mnist, Protocol::SmallSteps) => "Table 2 in small steps",
            (Which::Cifar10, Protocol::AsStated) => "Table 3",
            (Which::Cifar10, Protocol::SmallSteps) => "Table 3 in small steps",
            (_, Protocol::Trained) => "Table 3, trained",
        }
    }

    /// The CNN on MNIST over more σ: accuracy against measured privacy.
    pub fn equal_privacy() -> Self {
        Self {
            id: "privacy",
            title: "Accuracy at equal measured privacy",
            which: Which::Mnist,
            rows: rows::equal_privacy(),
            sigmas: rows::PRIVACY_SIGMAS.to_vec(),
            protocol: Protocol::AsStated,
            draw: equal::draw,
            lender: Some(Table::two),
            task: OnceCell::new(),
        }
    }

    fn task(&self, options: &Options) -> Result<&Task, Error> {
        if let Some(task) = self.task.get() {
            return Ok(task);
        }
        let task = self.which.open(options)?;
        Ok(self.task.get_or_init(|| task))
    }

    /// σ of a row's two columns; a row without noise has one cell for both.
    fn columns(&self, method: &Method) -> Vec<f64> {
        if method.noise == Noise::None { vec![0.0] } else { self.sigmas.clone() }
    }

    /// A method's mechanism; β* is what an earlier job found.
    fn mechanism(&self, method: &Method, context: &CellContext<'_>) -> Result<Mechanism, Error> {
        Ok(match method.noise {
            Noise::None => Mechanism::None,
            Noise::Dp => Mechanism::Dp,
            Noise::GeodpCertified => Mechanism::GeodpCertified(PolarSettings::default()),
            Noise::Geodp { beta: Beta::Fixed(beta) } => Mechanism::Geodp { beta },
            Noise::Geodp { beta: Beta::Crossing } => {
                let found = self.needed(&Job::CrossingBeta, context)?;
                let crossing = found.crossing_beta();
                let beta = crossing.ok_or_else(|| self.lacks(&Job::CrossingBeta))?.beta;
                Mechanism::Geodp { beta }
            }
        })
    }

    /// η of a method at a σ: what an earlier job found.
    fn rate(&self, method: &Method, sigma: f64, context: &CellContext<'_>) -> Result<f64, Error> {
        let job = Job::Rate(method.rate_owner(), sigma);
        let found = self.needed(&job, context)?;
        found.search().map(|search| search.chosen).ok_or_else(|| self.lacks(&job))
    }

    /// What an earlier job must have found.
    fn needed(&self, job: &Job, context: &CellContext<'_>) -> Result<Found, Error> {
        let found = context.store.result(self, job, context.options)?;
        found.ok_or_else(|| self.lacks(job))
    }

    fn lacks(&self, job: &Job) -> Error {
        Error::Missing { experiment: self.id, key: job.key() }
    }

    /// What the lender found in the same job, run with the same settings.
    fn borrowed(&self, job: &Job, context: &CellContext<'_>) -> Result<Option<Found>, Error> {
        match self.lender {
            Some(lender) => context.store.result(&lender(), job, context.options),
            None => Ok(None),
        }
    }

    fn work(&self, job: &Job, context: &mut CellContext<'_>) -> Result<Found, Error> {
        let task = self.task(context.options)?;
        let scale = self.which.scale(self.protocol, context.options);
        let (method, sigma) = job.method();
        let mut training = Training {
            network: &task.network,
            data: &task.search,
            method,
            noise_multiplier: self.protocol.step_noise_multiplier(
                sigma,
                method.batch,
                scale.divide,
            ),
            mechanism: self.mechanism(&method, context)?,
            learning_rate: scale.rates[scale.rates.len() / 2],
            batch: self.protocol.step_batch(method.batch, scale.divide),
            epochs: scale.search_epochs(method.batch),
            optimizer: self.protocol.optimizer(),
            schedule: self.protocol.schedule(),
            seed: 0,
        };
        if let Job::Train(method, sigma, seed) = *job {
            training.data = &task.data;
            training.learning_rate = self.rate(&method, sigma, context)?;
            training.epochs = scale.epochs;
            training.seed = seed;
        }
        let mut tick = |share: f64| context.tick(share);
        Ok(match job {
            Job::CrossingBeta => Found::CrossingBeta(crossing::measure(&training, &mut tick)?),
            Job::Rate(..) => Found::Search(rate::search(&training, &scale.rates, &mut tick)?),
            Job::Train(..) => Found::Outcome(Box::new(training.run(&mut tick)?)),
        })
    }
}

impl Experiment for Table {
    type Job = Job;
    type Result = Found;

    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn jobs(&self, options: &Options) -> Vec<Job> {
        self.list_jobs(options)
    }

    fn cell(&self, job: &Job, options: &Options) -> Cell {
        let scale = self.which.scale(self.protocol, options);
        let records = (self.which.records() / scale.divide) as f64;
        let searched = records * 5.0 / 6.0;
        let (method, sigma) = job.method();
        let search = searched * scale.search_epochs(method.batch) as f64;
        let (samples, seed) = match job {
            Job::CrossingBeta => (search * 2.0, 0),
            Job::Rate(..) => (search * scale.rates.len() as f64, 0),
            Job::Train(_, _, seed) => (records * scale.epochs as f64, *seed),
        };
        let mut config = json!({
            "training": self.which.words(),
            "method": method,
            "noise_multiplier": sigma,
            "records": records as u64,
            "batch": self.protocol.step_batch(method.batch, scale.divide),
            "epochs": scale.epochs,
            "rates": scale.rates,
            "search_epochs": scale.search_epochs(method.batch),
            "clip_norm": train::CLIP_NORM,
        });
        // Cells made before there were two protocols do not name theirs.
        if self.protocol != Protocol::AsStated {
            config["protocol"] = json!(self.protocol);
            config["optimizer"] = json!(self.protocol.optimizer());
            config["schedule"] = json!(self.protocol.schedule());
            if *job == Job::CrossingBeta || method.noise == jobs::CROSSING {
                let batch = self.protocol.step_batch(method.batch, scale.divide);
                config["crossing_sample"] = json!(crossing::sample(batch));
            }
        }
        let expected_seconds = samples / self.which.samples_per_second(self.protocol);
        Cell { key: job.key(), config, seed, expected_seconds }
    }

    fn run(&self, job: &Job, context: &mut CellContext<'_>) -> Result<Found, Error> {
        match self.borrowed(job, context)? {
            Some(found) => Ok(found),
            None => self.work(job, context),
        }
    }

    fn draw(&self, finished: &FinishedOf<Self>, page: &PageContext<'_>) -> Result<Drawn, Error> {
        (self.draw)(self, finished, page)
    }
}
