//! A training as a procedure: from a plan and an engine to weights, stoppable at every step.

use crate::Error;
use geodp::engine::Engine;
use geodp::plan::Plan;
use geodp::trainer::Trainer;
use geodp_mechanism::NoiseSource;
use std::sync::atomic::{AtomicBool, Ordering};

/// Seed of the first weights: the one every run uses, so that shadows start where targets do.
pub(crate) const INITIAL_WEIGHTS_SEED: u64 = 0;

/// What a long audit tells, and asks: `on_step` hears of every training step, `stop` ends it.
pub struct Hooks<'a> {
    /// Called after every step; possibly from several threads.
    pub on_step: &'a (dyn Fn() + Sync),
    /// Ends the audit at the next step with [`Error::Stopped`].
    pub stop: &'a AtomicBool,
}

/// Trains to the end of the plan.
pub(crate) fn train(
    plan: Plan,
    engine: &dyn Engine,
    start: Vec<f32>,
    noise: NoiseSource,
    hooks: &Hooks<'_>,
) -> Result<Vec<f32>, Error> {
    let mut trainer = Trainer::new(plan, engine, start, noise)?;
    while trainer.step()?.is_some() {
        (hooks.on_step)();
        if hooks.stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
    }
    Ok(trainer.weights().to_vec())
}
