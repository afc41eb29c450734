//! Tables 2 and 3: every row trained fairly, cell by cell.
//!
//! Fair means: gradients clipped per sample at C = 0.1, Poisson batches, plain SGD, η from one
//! public grid searched for each perturbation, clipping rule, σ and B on a split of the training
//! set ([`rate`]). The paper does not say which η it used.
//!
//! Cells: `rate-…` (a search), `beta-star`, and one training a row, σ and seed. The rows without
//! add-ons come first, then the add-ons, then further seeds.

mod draw;
pub mod equal;
pub mod loss;
pub mod rate;
pub mod rows;
mod sheet;
pub mod star;
pub mod summary;
pub mod task;
pub mod train;

use crate::Error;
use crate::experiment::{Cell, Desk, Drawn, Experiment};
use crate::options::Options;
use crate::store::Store;
use geodp_mechanism::Mechanism;
use rate::Search;
use rows::{Beta, Method, Noise, Row};
use serde_json::{Value, json};
use star::Star;
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
    draw: fn(&Table, &Store) -> Result<Option<Drawn>, Error>,
    task: OnceCell<Task>,
}

/// One piece of work of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Job {
    Star,
    Rate(Method, f64),
    Train(Method, f64, u64),
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
            draw: draw::draw,
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
            draw: draw::draw,
            task: OnceCell::new(),
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
            draw: equal::draw,
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

    /// Everything to do, the most wanted first, each search before the first training it serves.
    fn jobs(&self, seeds: u64) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        for seed in 0..seeds {
            for add_ons in [false, true] {
                for row in self.rows.iter().filter(|r| r.method.has_add_on() == add_ons) {
                    for sigma in self.columns(&row.method) {
                        let needed = [
                            (row.method.noise == CROSSING).then_some(Job::Star),
                            Some(Job::Rate(row.method.rate_owner(), sigma)),
                            Some(Job::Train(row.method, sigma, seed)),
                        ];
                        for job in needed.into_iter().flatten() {
                            if !jobs.contains(&job) {
                                jobs.push(job);
                            }
                        }
                    }
                }
            }
        }
        jobs
    }

    fn cell(&self, job: &Job, options: &Options) -> Cell {
        let scale = self.which.scale(options);
        let records = (self.which.records() / scale.divide) as f64;
        let searched = records * 5.0 / 6.0;
        let (method, sigma) = job.method();
        let search = searched * scale.search_epochs(method.batch) as f64;
        let (samples, seed) = match job {
            Job::Star => (search * 2.0, 0),
            Job::Rate(..) => (search * scale.rates.len() as f64, 0),
            Job::Train(_, _, seed) => (records * scale.epochs as f64, *seed),
        };
        Cell {
            key: job.key(),
            config: json!({
                "training": self.which.words(),
                "method": method,
                "noise_multiplier": sigma,
                "records": records as u64,
                "batch": method.batch / scale.divide,
                "epochs": scale.epochs,
                "rates": scale.rates,
                "search_epochs": scale.search_epochs(method.batch),
                "clip_norm": train::CLIP_NORM,
            }),
            seed,
            expected_seconds: samples / self.which.samples_per_second(),
        }
    }

    /// A method's mechanism; β* comes from the cell that measured it.
    fn mechanism(&self, method: &Method, store: &Store) -> Result<Mechanism, Error> {
        Ok(match method.noise {
            Noise::None => Mechanism::None,
            Noise::Dp => Mechanism::Dp,
            Noise::Geodp { beta: Beta::Fixed(beta) } => Mechanism::Geodp { beta },
            Noise::Geodp { beta: Beta::Crossing } => {
                let star: Star = needed(store, self.id(), STAR_KEY)?;
                Mechanism::Geodp { beta: star.beta }
            }
        })
    }

    /// The same cell of Table 2, if it was run with the same settings.
    fn borrowed(&self, cell: &Cell, desk: &Desk<'_>) -> Result<Option<Value>, Error> {
        if self.id == LENDER {
            return Ok(None);
        }
        let same = |lent: &crate::store::Record| lent.config == cell.config;
        let lent = desk.store.read(LENDER, &cell.key)?.filter(same);
        Ok(lent.map(|lent| lent.result))
    }

    fn work(&self, job: &Job, desk: &mut Desk<'_>) -> Result<Value, Error> {
        let task = self.task(desk.options)?;
        let scale = self.which.scale(desk.options);
        let (method, sigma) = job.method();
        let mut training = Training {
            network: &task.network,
            data: &task.search,
            method,
            noise_multiplier: sigma,
            mechanism: self.mechanism(&method, desk.store)?,
            learning_rate: scale.rates[scale.rates.len() / 2],
            batch: method.batch / scale.divide,
            epochs: scale.search_epochs(method.batch),
            seed: 0,
        };
        let store = desk.store;
        let mut tick = |share: f64| desk.tick(share);
        let result = match *job {
            Job::Star => serde_json::to_value(star::measure(&training, &mut tick)?),
            Job::Rate(..) => {
                serde_json::to_value(rate::search(&training, &scale.rates, &mut tick)?)
            }
            Job::Train(method, sigma, seed) => {
                let key = Job::Rate(method.rate_owner(), sigma).key();
                let search: Search = needed(store, self.id(), &key)?;
                training.data = &task.data;
                training.learning_rate = search.chosen;
                training.epochs = scale.epochs;
                training.seed = seed;
                serde_json::to_value(training.run(&mut tick)?)
            }
        };
        Ok(result.unwrap_or_default())
    }
}

/// The table whose trainings the comparison at equal privacy shares.
const LENDER: &str = "table2";

const STAR_KEY: &str = "beta-star";

const CROSSING: Noise = Noise::Geodp { beta: Beta::Crossing };

/// A result that an earlier cell must have left.
fn needed<R: serde::de::DeserializeOwned>(
    store: &Store,
    experiment: &str,
    key: &str,
) -> Result<R, Error> {
    store.result(experiment, key)?.ok_or_else(|| {
        Error::Argument(format!("cell {key} of {experiment} is missing; run again with --resume"))
    })
}

impl Job {
    /// What is trained, at which σ.
    fn method(&self) -> (Method, f64) {
        match *self {
            Job::Star => (Method::plain(Noise::None, rows::LARGE_BATCH), 0.0),
            Job::Rate(method, sigma) | Job::Train(method, sigma, _) => (method, sigma),
        }
    }

    fn key(&self) -> String {
        match self {
            Job::Star => STAR_KEY.to_owned(),
            Job::Rate(method, sigma) => format!("rate-{}-sigma{sigma}", method.key()),
            Job::Train(method, sigma, seed) => format!("{}-sigma{sigma}-seed{seed}", method.key()),
        }
    }
}

impl Experiment for Table {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn cells(&self, options: &Options) -> Vec<Cell> {
        self.jobs(options.seeds).iter().map(|job| self.cell(job, options)).collect()
    }

    fn run(&self, cell: &Cell, desk: &mut Desk<'_>) -> Result<Value, Error> {
        let jobs = self.jobs(desk.options.seeds);
        let job = jobs.iter().find(|job| job.key() == cell.key);
        let job = job.ok_or_else(|| Error::Argument(format!("no cell {}", cell.key)))?;
        match self.borrowed(cell, desk)? {
            Some(result) => Ok(result),
            None => self.work(job, desk),
        }
    }

    fn draw(&self, store: &Store) -> Result<Option<Drawn>, Error> {
        (self.draw)(self, store)
    }
}
