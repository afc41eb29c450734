//! A training as a procedure: from a plan and an engine to weights, stoppable at every step.

use crate::Error;
use geodp::engine::Engine;
use geodp::plan::Plan;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_mechanism::NoiseSource;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Seed of the first weights: the one every run uses, so that shadows start where targets do.
pub(crate) const INITIAL_WEIGHTS_SEED: u64 = 0;

/// The tag of an audit's checkpoint; which audit it is, its folder says.
const TAG: &str = "audit";

/// What a long audit tells, and asks: `on_step` hears of every training step, `stop` ends it.
pub struct Hooks<'a> {
    /// Called after every step; possibly from several threads.
    pub on_step: &'a (dyn Fn() + Sync),
    /// Ends the audit at the next step with [`Error::Stopped`].
    pub stop: &'a AtomicBool,
}

/// Trains to the end of the plan. With a `checkpoint`, goes on from that file if it is there, and
/// writes it about six times an epoch and when it is stopped.
pub(crate) fn train(
    plan: Plan,
    engine: &dyn Engine,
    start: Vec<f32>,
    noise: NoiseSource,
    hooks: &Hooks<'_>,
    checkpoint: Option<&Path>,
) -> Result<Vec<f32>, Error> {
    let block = plan.steps_per_epoch().div_ceil(6).max(1);
    let mut trainer = Trainer::new(plan, engine, start, noise)?;
    if let Some(path) = checkpoint.filter(|path| path.exists()) {
        trainer.load(path, TAG)?;
        (0..trainer.steps_done()).for_each(|_| (hooks.on_step)());
    }
    while trainer.step(&mut Silent)?.is_some() {
        (hooks.on_step)();
        let stopped = hooks.stop.load(Ordering::Relaxed);
        if let Some(path) = checkpoint
            && (stopped || trainer.steps_done().is_multiple_of(block))
        {
            trainer.save(path, TAG)?;
        }
        if stopped {
            return Err(Error::Stopped);
        }
    }
    Ok(trainer.weights().to_vec())
}
