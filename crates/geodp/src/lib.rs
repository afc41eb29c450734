//! Private training that cannot be done wrong, and that survives anything.
//!
//! ```
//! # let parent = tempfile::tempdir()?;
//! # let folder = parent.path().join("mnist");
//! use geodp::{ModelConfig, RunConfig};
//!
//! let config = RunConfig::mnist().model(ModelConfig::Logistic).epsilon(3.0).epochs(1);
//! let done = geodp::train(config, &folder)?;
//! println!("{}", done.statement); // Certified ε = 2.99… at δ = 1e-5. Whoever sees the weights …
//! # assert!(done.test().is_some_and(|test| test.accuracy > 0.5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The way of a training
//!
//! 1. [`config`]: what a user says, in Rust or in a file: data, model, privacy, training. Whatever is
//!    left out has a default.
//! 2. [`params`] → [`plan`]: everything is checked once, and clipping, noise, sampling and accounting
//!    are built together. What protects the records is one thing, [`plan::Protection`].
//! 3. [`engine`] gives sums of clipped gradients; [`trainer`] makes one private step after another.
//! 4. [`run`]: a folder with a ledger that is charged before each step is seen, checkpoints, and
//!    results. Kill it at any time and resume it.
//! 5. [`statement`]: which ε of which kind was bought. [`trained`]: the model, to measure and to ask.
//!
//! Clients instead of records, and a server's rounds instead of steps: [`federated`].
//!
//! Every step of the way is open: an [`Engine`](engine::Engine) of one's own goes into a
//! [`Trainer`](trainer::Trainer) or a [`Run`] ([`Run::create_with`]), a clipping rule of one's own into
//! a [`Plan`] ([`PlanParams::check_with_clip`]), and [`watch`] looks at a training while it runs. The
//! folder `examples` of the crate has one of each.

mod average;
pub mod budget;
pub mod config;
mod defaults;
pub mod engine;
mod error;
mod export;
pub mod federated;
pub mod importance;
mod model_file;
mod nearest;
pub mod optimizer;
pub mod params;
pub mod plan;
pub mod quantile;
mod report;
pub mod run;
pub mod sampler;
pub mod schedule;
pub mod scores;
pub mod select;
pub mod statement;
mod step;
pub mod team;
pub mod trained;
pub mod trainer;
pub mod watch;

pub use config::{DataConfig, ModelConfig, RunConfig};
pub use error::Error;
pub use model_file::{ModelFile, ModelNote};
pub use params::{Mechanism, PlanParams};
pub use plan::Plan;
pub use run::{Finished, Run};
pub use statement::Statement;

use run::Ended;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Trains from beginning to end, into a folder of its own: model, statement, report and ledger.
///
/// A training that was killed stands in its folder: [`Run::resume`] takes it up. For progress, or to
/// stop on request, call [`Run::execute`].
///
/// # Errors
/// A bad config or data file, a folder that holds a run already, a failed write, a training that
/// diverges.
pub fn train(config: RunConfig, folder: impl AsRef<Path>) -> Result<Finished, Error> {
    let run = Run::create(folder.as_ref(), config)?;
    let never = AtomicBool::new(false);
    // As one of the pool's threads: from outside, every parallel part of a step wakes another.
    let execute = || run.execute(&mut watch::Silent, &mut watch::Silent, &never);
    match rayon::scope(|_| execute())? {
        Ended::Finished(finished) => Ok(*finished),
        Ended::Interrupted { step } => Err(Error::Plan(format!(
            "the training stopped after step {step} although nobody asked for it"
        ))),
    }
}
