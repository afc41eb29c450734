//! Private training that cannot be done wrong, and that survives anything.
//!
//! The flow: [`params`] (what a user says) → [`plan`] (checked once; sampler, clipping, noise and
//! accounting built together) → [`trainer`] (one private step after another) → [`run`] (a folder with
//! ledger, checkpoints and results) → [`statement`] (which ε of which kind was bought).
//!
//! ```
//! use geodp::config::{DataConfig, ModelConfig, RunConfig};
//! use geodp::run::{Ended, Run};
//! use geodp::watch::Silent;
//!
//! let mut config = RunConfig {
//!     data: DataConfig::Mnist { labels: Some(vec![0, 1]), unit_scaling: true, holdout: None },
//!     model: ModelConfig::Logistic,
//!     privacy: Default::default(),
//!     train: Default::default(),
//! };
//! config.privacy.epsilon = Some(1.0);
//! config.train.epochs = Some(1);
//! config.complete();
//!
//! let folder = tempfile::tempdir()?;
//! let run = Run::create(&folder.path().join("run"), config)?;
//! let Ended::Finished(finished) = run.execute(&mut Silent, &mut Silent, &false.into())? else { panic!() };
//! assert!(finished.test().unwrap().accuracy > 0.9);
//! println!("{}", finished.statement.headline()); // certified ε = 0.99… at δ = 1e-5
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod budget;
pub mod config;
mod defaults;
pub mod engine;
mod error;
pub mod importance;
mod model_file;
mod nearest;
pub mod optimizer;
pub mod params;
pub mod plan;
mod report;
pub mod run;
pub mod sampler;
pub mod select;
pub mod statement;
mod step;
pub mod trained;
pub mod trainer;
pub mod watch;

pub use error::Error;
pub use model_file::ModelFile;
pub use params::PlanParams;
pub use plan::Plan;
pub use statement::Statement;
