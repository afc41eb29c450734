//! Rounds for a server loop of one's own, which calls us: begin → add → finish.
//!
//! ```text
//! let mut server = Server::create(folder, federated::plan(&params, 1000, dim)?, start)?;
//! while let Some(mut round) = server.begin()? {       // drawn, and charged durably
//!     for client in round.cohort() { send(client, round.weights()) }
//!     while let Some((client, update)) = next_reply() { round.add(client, &update); }
//!     server.finish(round)?;                          // noise, optimiser, checkpoint
//! }
//! let done = server.conclude()?;                      // model, statement, report
//! ```
//!
//! The folder is a [`Run`]'s, of an engine whose sum is already there when the step asks for it. A server
//! that is killed is opened by [`Server::resume`]: the round it was in begins again, with the same cohort,
//! and is not charged again, because nobody has seen what it would have released.

use super::clients::about;
use super::gather::{Gathering, OnGrid, Reply};
use crate::Error;
use crate::engine::{About, Engine, EngineError, RowChoice, WeightOf};
use crate::plan::{Facts, Plan, refuse};
use crate::run::{Finished, Run};
use crate::sampler::Sampler;
use geodp_account::Claim;
use geodp_mechanism::Clip;
use geodp_nn::{BatchOutcome, Grid};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What a federation starts from. Public.
#[derive(Debug, Clone)]
pub struct Start {
    /// The weights the first cohort is sent.
    pub weights: Vec<f32>,
    /// What is trained, as a page's title says it; empty says only its size.
    pub model: String,
    /// Who the clients are, as a page says it; empty says only how many.
    pub clients: String,
}

/// A round that was begun: who is asked, for what, and the sum so far.
#[derive(Debug)]
pub struct Round {
    number: u64,
    choice: RowChoice,
    weights: Vec<f32>,
    cohort: Vec<u32>,
    clip: Clip,
    gathering: Gathering<OnGrid>,
}

impl Round {
    /// Which round, from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// 64 bits of the round, for clients that draw batches of their own.
    pub fn choice(&self) -> RowChoice {
        self.choice
    }

    /// Who is asked, in ascending order. Secret: who takes part is hidden from all but the server.
    pub fn cohort(&self) -> &[u32] {
        &self.cohort
    }

    /// What they are sent.
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Adds the update Δ = (weights after local training) − [`weights`](Self::weights) of `client`.
    ///
    /// # Guarantee
    /// A client moves the sum by at most C, whatever it sends and however often.
    pub fn add(&mut self, client: u32, update: &[f32]) -> Reply {
        match self.cohort.binary_search(&client) {
            Ok(place) => self.gathering.add(place, update, |norm| self.clip.weight(norm)),
            Err(_) => Reply::NotInCohort,
        }
    }

    /// How many updates were added. For the server's owner.
    pub fn replies(&self) -> usize {
        self.gathering.replies()
    }
}

/// A federation whose folder is held by this process.
pub struct Server {
    run: Run<Collected>,
    /// Set while something is written: if that failed, only the folder knows how far it came.
    unsettled: bool,
}

impl Server {
    /// A new federation, by a plan of [`plan`](super::plan).
    ///
    /// # Errors
    /// A plan without privacy, or not of clients; a folder that holds a run already; a failed write.
    pub fn create(folder: &Path, plan: Plan, start: Start) -> Result<Self, Error> {
        let engine = Collected::new(&plan, start)?;
        Ok(Self { run: Run::create_with(folder, plan, engine)?, unsettled: false })
    }

    /// Takes a federation up where it stopped, with the plan and the start it began with.
    ///
    /// # Errors
    /// As [`Run::resume_with`].
    pub fn resume(folder: &Path, plan: Plan, start: Start) -> Result<Self, Error> {
        let engine = Collected::new(&plan, start)?;
        Ok(Self { run: Run::resume_with(folder, plan, engine)?, unsettled: false })
    }

    /// The plan, calibrated.
    pub fn plan(&self) -> &Plan {
        self.run.plan()
    }

    /// Rounds done.
    pub fn rounds_done(&self) -> u64 {
        self.run.steps_done()
    }

    /// The weights after the rounds done.
    pub fn weights(&self) -> &[f32] {
        self.run.weights()
    }

    /// C of the next round. Public, also where it is adaptive.
    ///
    /// # Errors
    /// A checkpoint with a C that cannot be.
    pub fn clip_norm(&self) -> Result<Option<f64>, Error> {
        Ok(self.run.clip()?.map(|clip| clip.sensitivity().get()))
    }

    /// What everything charged so far amounts to.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn claim(&self) -> Result<Claim, Error> {
        self.run.claim()
    }

    /// Charges the next round, durably, and draws its cohort; `None` when the plan's rounds are done,
    /// which is before the limit would be passed. A round that was begun and not finished begins anew,
    /// with the same cohort, and is not charged again.
    ///
    /// # Errors
    /// A failed write: then nothing was drawn. After any failed write the server must be resumed.
    pub fn begin(&mut self) -> Result<Option<Round>, Error> {
        self.check_settled()?;
        let plan = self.run.plan();
        let (number, Facts { records, dim }) = (self.run.steps_done(), plan.facts());
        let (Some(clip), false) = (self.run.clip()?, number >= plan.steps()) else {
            return Ok(None);
        };
        // `check` has made sure that both fit.
        let mut sampler = Sampler::new(plan.sampling, records as u32, plan.batch() as u32);
        self.unsettled = true;
        self.run.charge_next()?;
        self.unsettled = false;
        let mut cohort = Vec::new();
        sampler.draw(self.run.noise(), number, &mut cohort)?;
        let total = OnGrid { grid: Grid::new(clip.sensitivity().get())?, sum: vec![0; dim] };
        let gathering = Gathering::new(total, cohort.len());
        let choice = RowChoice::of(self.run.noise(), number)?;
        let weights = self.run.weights().to_vec();
        Ok(Some(Round { number, choice, weights, cohort, clip, gathering }))
    }

    /// Releases the round: noise, the optimiser's step, a checkpoint. Then [`weights`](Self::weights) may
    /// be shown. A round with few replies, or none, is released as any other.
    ///
    /// # Errors
    /// A round that is not the one begun last, weights that are no longer finite, a failed write.
    pub fn finish(&mut self, round: Round) -> Result<(), Error> {
        if round.number != self.run.steps_done() {
            return refuse(format!(
                "round {} cannot be finished: {} rounds are done. Begin the next one",
                round.number,
                self.run.steps_done()
            ));
        }
        self.check_settled()?;
        self.run.engine().put(round);
        self.unsettled = true;
        self.run.one_block()?;
        self.unsettled = false;
        Ok(())
    }

    /// A round whose release failed may be in its checkpoint already. Made again in this process it would
    /// be another sum under the same noise.
    fn check_settled(&self) -> Result<(), Error> {
        match self.unsettled {
            true => {
                refuse("the last round could not be written; open the federation again by resume")
            }
            false => Ok(()),
        }
    }

    /// Writes model, statement and report of a federation whose rounds are done, and destroys the noise's
    /// key.
    ///
    /// # Errors
    /// Rounds that are left to do; a failed write.
    pub fn conclude(self) -> Result<Finished, Error> {
        let (done, all) = (self.rounds_done(), self.plan().steps());
        if done < all {
            return refuse(format!("{done} of {all} rounds are done: finish the others first"));
        }
        self.run.conclude()
    }
}

/// An engine whose sum is there before it is asked for.
struct Collected {
    facts: Facts,
    start: Start,
    round: Mutex<Option<Round>>,
}

impl Collected {
    fn new(plan: &Plan, start: Start) -> Result<Self, Error> {
        if plan.noise_multiplier().is_none() || plan.unit() != super::CLIENT {
            return refuse(
                "a server wants a private plan of clients, as `federated::plan` makes it",
            );
        }
        if start.weights.len() != plan.facts().dim || !start.weights.iter().all(|w| w.is_finite()) {
            return refuse(format!(
                "{} weights to start from, for {} parameters; all must be finite",
                start.weights.len(),
                plan.facts().dim
            ));
        }
        Ok(Self { facts: plan.facts(), start, round: Mutex::new(None) })
    }

    fn put(&self, round: Round) {
        *self.round.lock().unwrap_or_else(PoisonError::into_inner) = Some(round);
    }
}

impl Engine for Collected {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn weighted_sum(
        &self,
        _weights: &[f32],
        _batch: &[u32],
        _weight_of: WeightOf<'_>,
        _sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        Err("updates are summed in whole numbers only".into())
    }

    fn exact_sum(
        &self,
        _weights: &[f32],
        batch: &[u32],
        _weight_of: WeightOf<'_>,
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, EngineError> {
        let round = self.round.lock().unwrap_or_else(PoisonError::into_inner).take();
        match round {
            // The step draws its batch itself: what was gathered must be of it.
            Some(Round { cohort, gathering, .. })
                if cohort == batch && gathering.total.grid == grid =>
            {
                sum.copy_from_slice(&gathering.total.sum);
                Ok(gathering.outcome())
            }
            _ => Err("the sum that was gathered is not that of the step's cohort".into()),
        }
    }

    fn mean_loss(&self, _weights: &[f32], _batch: &[u32]) -> Result<f64, EngineError> {
        Err("clients are asked for updates only, not for losses".into())
    }

    fn about(&self) -> About {
        let plain = about(self.facts.records, self.facts.dim);
        let or = |said: &str, plain: String| if said.is_empty() { plain } else { said.to_owned() };
        About {
            model: or(&self.start.model, plain.model),
            data: or(&self.start.clients, plain.data),
            ..About::default()
        }
    }

    fn initial_weights(&self) -> Vec<f32> {
        self.start.weights.clone()
    }

    fn repeats(&self) -> bool {
        false
    }
}
