//! A run one block at a time, for an engine whose sums come from outside: charge the next block, make it,
//! and in the end write the results. The same blocks as [`Run::execute`] makes.

use super::{Finished, Run, end, trainer_at};
use crate::Error;
use crate::engine::Engine;
use crate::watch::Silent;
use geodp_account::Claim;
use geodp_mechanism::{Clip, NoiseSource};
use std::sync::atomic::AtomicBool;

impl<E: Engine> Run<E> {
    pub(crate) fn engine(&self) -> &E {
        &self.engine
    }

    pub(crate) fn noise(&self) -> &NoiseSource {
        &self.noise
    }

    /// The weights after the steps done.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.start.weights
    }

    /// C of the next step, where something is clipped, and how it is clipped there.
    pub(crate) fn clip(&self) -> Result<Option<Clip>, Error> {
        self.log.plan.clip_at(self.start.position.state().clip_norm)
    }

    /// What everything charged so far amounts to.
    pub(crate) fn claim(&self) -> Result<Claim, Error> {
        Ok(self.log.ledger.account().claim()?)
    }

    /// Charges the next step, durably, unless it was charged before.
    pub(crate) fn charge_next(&mut self) -> Result<(), Error> {
        self.log.charge_until(self.steps_done() + 1)
    }

    /// Makes the next block, and goes to its checkpoint.
    pub(crate) fn one_block(&mut self) -> Result<(), Error> {
        let mut trainer = trainer_at(&self.log, &self.engine, self.start.clone(), &self.noise)?;
        // A block may be left early, where time passed before its first step.
        while trainer.steps_done() == self.steps_done() {
            self.log.run_block(&mut trainer, &mut Silent, &mut Silent, &AtomicBool::new(false))?;
        }
        self.start = self.log.checkpoint(&trainer);
        Ok(())
    }

    /// Writes the results of a run whose steps are done.
    pub(crate) fn conclude(self) -> Result<Finished, Error> {
        let Self { engine, noise, start, log, text, _lock } = self;
        let trainer = trainer_at(&log, &engine, start, &noise)?;
        end(log, &engine, &text, &trainer, &noise, &Silent, &mut Silent)
    }
}
