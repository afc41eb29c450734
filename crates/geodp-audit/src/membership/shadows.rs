//! Shadow models: the target's plan, trained on sets that hold a random half of the audited records.
//!
//! A shadow's training set is the target's without the audited members, plus half of the audited
//! records (members and non-members alike). Models come in pairs: the second of a pair gets the half
//! that the first did not, so every record is in exactly half of the models. Models are independent
//! and train side by side.

use super::attacks::Shadow;
use super::logits;
use crate::cells::Cells;
use crate::procedure::{Hooks, INITIAL_WEIGHTS_SEED, train};
use crate::{AuditStream, Error};
use geodp::engine::NetworkEngine;
use geodp::params::PlanParams;
use geodp::plan::{Facts, Plan};
use geodp_mechanism::NoiseSource;
use geodp_nn::{Network, Samples};
use std::sync::atomic::{AtomicU64, Ordering};

/// Records of two sets, as one numbering: the training set first, the test set behind it.
pub struct Pool<'a> {
    /// The target's training set.
    pub train: &'a dyn Samples,
    /// Records the target never saw.
    pub test: &'a dyn Samples,
}

impl Samples for Pool<'_> {
    fn len(&self) -> usize {
        self.train.len() + self.test.len()
    }
    fn input_len(&self) -> usize {
        self.train.input_len()
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        match index.checked_sub(self.train.len()) {
            Some(index) => self.test.read_input(index, out),
            None => self.train.read_input(index, out),
        }
    }
    fn label(&self, index: usize) -> u32 {
        match index.checked_sub(self.train.len()) {
            Some(index) => self.test.label(index),
            None => self.train.label(index),
        }
    }
    fn target(&self, index: usize) -> f32 {
        match index.checked_sub(self.train.len()) {
            Some(index) => self.test.target(index),
            None => self.train.target(index),
        }
    }
}

/// Some records of a pool.
struct View<'a> {
    pool: &'a Pool<'a>,
    rows: Vec<u32>,
}

impl Samples for View<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }
    fn input_len(&self) -> usize {
        self.pool.input_len()
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        self.pool.read_input(self.rows[index] as usize, out);
    }
    fn label(&self, index: usize) -> u32 {
        self.pool.label(self.rows[index] as usize)
    }
    fn target(&self, index: usize) -> f32 {
        self.pool.target(self.rows[index] as usize)
    }
}

/// The shadow models of an audit.
pub struct Shadows<'a> {
    network: &'a Network,
    pool: &'a Pool<'a>,
    /// Of the first and of the second of a pair; they differ only if an odd number is audited.
    plans: [Plan; 2],
    /// Audited records, members first, numbered as in the pool.
    audited: Vec<u32>,
    population: Vec<u32>,
    /// Training records that are not audited: in every shadow.
    rest: Vec<u32>,
    source: NoiseSource,
}

impl<'a> Shadows<'a> {
    /// For members (rows of the training set), non-members and population (rows of the test set).
    ///
    /// # Errors
    /// Rows beyond their set, or a plan that is refused for the shadows' number of records.
    pub fn new(
        network: &'a Network,
        pool: &'a Pool<'a>,
        params: &PlanParams,
        members: &[u32],
        non_members: &[u32],
        population: &[u32],
        source: NoiseSource,
    ) -> Result<Self, Error> {
        let (train, test) = (pool.train.len(), pool.test.len());
        let behind = |rows: &[u32]| rows.iter().map(|row| row + train as u32).collect::<Vec<_>>();
        for (rows, limit, range) in [
            (members, train, "below the number of training records"),
            (non_members, test, "below the number of test records"),
            (population, test, "below the number of test records"),
        ] {
            if let Some(row) = rows.iter().find(|row| **row as usize >= limit) {
                return Err(Error::Parameter { name: "row", range, found: f64::from(*row) });
            }
        }
        let mut audited_member = vec![false; train];
        members.iter().for_each(|row| audited_member[*row as usize] = true);
        let rest: Vec<u32> =
            (0..train as u32).filter(|row| !audited_member[*row as usize]).collect();
        let mut audited = members.to_vec();
        audited.extend(behind(non_members));
        let half = audited.len() / 2;
        let plan = |more: usize| {
            let records = (rest.len() + more) as u64;
            params.check(Facts { records, dim: network.dim() })
        };
        let plans = [plan(half)?, plan(audited.len() - half)?];
        let population = behind(population);
        Ok(Self { network, pool, plans, audited, population, rest, source })
    }

    /// The plan of the first shadow.
    pub fn plan(&self) -> &Plan {
        &self.plans[0]
    }

    /// What a model with these weights says of the audited records and of the population.
    ///
    /// # Errors
    /// Weights that do not fit the network.
    pub fn ask(&self, weights: &[f32]) -> Result<(Vec<f64>, Vec<f64>), Error> {
        Ok((
            logits(self.network, weights, self.pool, &self.audited)?,
            logits(self.network, weights, self.pool, &self.population)?,
        ))
    }

    /// Which audited records model `number` is trained on: half of them, its pair's other half.
    ///
    /// # Errors
    /// If the source refuses the address.
    pub fn membership(&self, number: u64) -> Result<Vec<bool>, Error> {
        let mut order: Vec<usize> = (0..self.audited.len()).collect();
        AuditStream::Halves.open(&self.source, number / 2)?.shuffle(&mut order);
        let half = order.len() / 2;
        let mut member = vec![false; order.len()];
        let chosen = if number.is_multiple_of(2) { &order[..half] } else { &order[half..] };
        chosen.iter().for_each(|at| member[*at] = true);
        Ok(member)
    }

    /// Trains `models` models, as many side by side as the thread pool has threads, and keeps each
    /// in `cells` as soon as it is done; those kept already are not trained again. Model k's noise
    /// comes from the k-th source derived from this one's, so that it shares no stream with the halves.
    ///
    /// # Errors
    /// As [`shadow`](Self::shadow); a failed write.
    pub fn train_all(
        &self,
        models: u64,
        cells: &Cells,
        hooks: &Hooks<'_>,
    ) -> Result<Vec<Shadow>, Error> {
        let next = AtomicU64::new(0);
        // Each worker trains whole models on one thread of its own: nothing waits for anything.
        let work = || -> Result<Vec<(u64, Shadow)>, Error> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
            let pool = pool.map_err(|error| geodp::Error::Plan(error.to_string()))?;
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= models {
                    return Ok(done);
                }
                let name = format!("shadow-{number:03}");
                let noise = self.source.derive(number)?;
                let train = || pool.install(|| self.shadow(number, noise, hooks));
                done.push((number, cells.cell(&name, train)?));
            }
        };
        let workers = (rayon::current_num_threads() as u64).min(models);
        let results: Vec<_> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            handles.into_iter().map(join).collect()
        });
        let mut all = Vec::new();
        for result in results {
            all.extend(result?);
        }
        all.sort_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, shadow)| shadow).collect())
    }

    /// Trains model `number` and asks it.
    ///
    /// # Errors
    /// A failing training; [`Error::Stopped`].
    pub fn shadow(
        &self,
        number: u64,
        noise: NoiseSource,
        hooks: &Hooks<'_>,
    ) -> Result<Shadow, Error> {
        let member = self.membership(number)?;
        let mut rows = self.rest.clone();
        rows.extend(self.audited.iter().zip(&member).filter(|(_, m)| **m).map(|(row, _)| *row));
        let view = View { pool: self.pool, rows };
        let engine = NetworkEngine::new(self.network, &view, None);
        let start = self.network.init(INITIAL_WEIGHTS_SEED);
        let weights =
            train(self.plans[(number % 2) as usize].clone(), &engine, start, noise, hooks, None)?;
        let (logits, population) = self.ask(&weights)?;
        Ok(Shadow { member, logits, population })
    }
}
