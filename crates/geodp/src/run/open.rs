//! Starting a run in a new folder, and resuming one where it stopped.
//!
//! Resuming refuses what could make the ledger lie: another config, other data, a checkpoint that
//! does not fit the ledger (rewound, or from another run), a damaged file. Each with its reason.

use super::checkpoint::{Checkpoint, Position, Strategy};
use super::configured::Configured;
use super::files::{self, FolderLock};
use super::log::RunLog;
use super::{Run, finish, follow, metrics};
use crate::Error;
use crate::config::RunConfig;
use crate::engine::Engine;
use crate::optimizer::Optimizer;
use crate::params::{PrivacyParams, TrainParams};
use crate::plan::Plan;
use geodp_data::hex;
use geodp_mechanism::{NoiseSource, Origin};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

impl Run {
    /// Fills in what the config leaves open and checks everything, then makes the folder and writes
    /// the first checkpoint.
    ///
    /// # Errors
    /// A bad config or data file (nothing is written then), a folder that holds a run already, a
    /// failed write.
    pub fn create(folder: &Path, mut config: RunConfig) -> Result<Self, Error> {
        config.complete();
        let text = config.to_toml()?;
        let engine = Configured::load(config)?;
        let plan = engine.config.plan_params().check(engine.facts())?;
        Self::create_as(folder, text, plan, engine)
    }

    /// Takes a run up where it stopped.
    ///
    /// # Errors
    /// [`Error::NotResumable`] with the reason, [`Error::Damaged`] with the file, a folder in use.
    pub fn resume(folder: &Path) -> Result<Self, Error> {
        let lock = lock_run(folder)?;
        let config = RunConfig::read(&folder.join("run.toml"))?;
        let text = config.to_toml()?;
        let engine = Configured::load(config)?;
        let plan = engine.config.plan_params().check(engine.facts())?;
        Self::resume_as(folder, lock, text, plan, engine)
    }
}

impl<E: Engine> Run<E> {
    /// A run of an engine of one's own, by a plan that was checked for it: the same folder as any
    /// other run's. `run.toml` says what the plan says and which engine it is of; the engine itself,
    /// and a clip rule of one's own, stay in the program.
    ///
    /// # Errors
    /// A folder that holds a run already, a failed write.
    pub fn create_with(folder: &Path, plan: Plan, engine: E) -> Result<Self, Error> {
        let text = own_text(&plan, &engine)?;
        Self::create_as(folder, text, plan, engine)
    }

    /// Takes a run of one's own engine up where it stopped, with the plan and the engine it began
    /// with.
    ///
    /// # Errors
    /// As [`Run::resume`]; another plan, or an engine with another fingerprint.
    pub fn resume_with(folder: &Path, plan: Plan, engine: E) -> Result<Self, Error> {
        let lock = lock_run(folder)?;
        let text = own_text(&plan, &engine)?;
        Self::resume_as(folder, lock, text, plan, engine)
    }

    fn create_as(folder: &Path, text: String, plan: Plan, engine: E) -> Result<Self, Error> {
        if folder.join("run.toml").exists() {
            return Err(Error::FolderTaken(folder.to_owned()));
        }
        std::fs::create_dir_all(folder)
            .map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        let lock = FolderLock::take(folder)?;
        files::write_atomically(&folder.join("run.toml"), text.as_bytes())?;
        Self::begin(folder, lock, text, plan, engine)
    }

    fn resume_as(
        folder: &Path,
        lock: FolderLock,
        text: String,
        plan: Plan,
        engine: E,
    ) -> Result<Self, Error> {
        let refuse =
            |reason: &str| Error::NotResumable { folder: folder.to_owned(), reason: reason.into() };
        if folder.join("statement.json").exists() {
            // It may have been killed after its last word and before it deleted the key.
            finish::delete_key(folder)?;
            follow::forget(folder, None)?;
            return Err(refuse("the run is finished; its results are in the folder"));
        }
        if !folder.join("checkpoint").exists() {
            // Killed while it was being created. If nothing was charged, nothing was released.
            return match RunLog::read_ledger(folder)?.steps {
                0 => Self::begin(folder, lock, text, plan, engine),
                _ => Err(refuse("its checkpoint is missing, but its ledger has charges")),
            };
        }
        let checkpoint = Checkpoint::read(&folder.join("checkpoint"))?;
        let noise = match plan.seed {
            Some(seed) => NoiseSource::from_seed(seed),
            None => read_key(&key_path(folder))?,
        };
        let expected = beginning(&text, &engine, &noise);
        if checkpoint.position.config != expected.config {
            return Err(refuse(
                "run.toml was changed after the run began, or the plan given is another; undo the \
                 change",
            ));
        }
        if checkpoint.position.data != expected.data {
            return Err(refuse(
                "the data is not what the run began with (its fingerprint differs)",
            ));
        }
        if checkpoint.position.noise != expected.noise {
            return Err(refuse("noise.key is not the key the run began with"));
        }
        let mut log = RunLog::open(folder, plan, &checkpoint.position)?;
        log.metrics = metrics::read_until(&folder.join("metrics.jsonl"), checkpoint.position.step)?;
        metrics::rewrite(&folder.join("metrics.jsonl"), &log.metrics)?;
        Ok(Self { engine, noise, start: checkpoint, log, text, _lock: lock })
    }

    /// Writes key, ledger and first checkpoint of a run that has released nothing.
    fn begin(
        folder: &Path,
        lock: FolderLock,
        text: String,
        plan: Plan,
        engine: E,
    ) -> Result<Self, Error> {
        let noise = match plan.seed {
            Some(seed) => NoiseSource::from_seed(seed),
            None => {
                let noise = NoiseSource::from_os()?;
                files::write_secret(&key_path(folder), &noise.secret_key())?;
                noise
            }
        };
        let weights = engine.initial_weights();
        let optimizer = Optimizer::new(plan.optimizer, 0.0, weights.len());
        let log = RunLog::create(folder, plan, beginning(&text, &engine, &noise))?;
        let start = Checkpoint {
            position: log.position.clone(),
            weights,
            optimizer_state: optimizer.state().to_vec(),
        };
        start.write(&folder.join("checkpoint"))?;
        Ok(Self { engine, noise, start, log, text, _lock: lock })
    }
}

/// Holds the folder of a run that was begun.
fn lock_run(folder: &Path) -> Result<FolderLock, Error> {
    if !folder.join("run.toml").exists() {
        let reason = "there is no run.toml in it, so it is not a run folder".to_owned();
        return Err(Error::NotResumable { folder: folder.to_owned(), reason });
    }
    FolderLock::take(folder)
}

/// Where a run stands before its first step, tied to its config, data and key.
fn beginning(text: &str, engine: &dyn Engine, noise: &NoiseSource) -> Position {
    Position {
        step: 0,
        strategy: Strategy::default(),
        config: hex(&Sha256::digest(text)),
        data: engine.about().fingerprint,
        noise: hex(&Sha256::digest(noise.secret_key())),
        ledger_records: 0,
        ledger_head: String::new(),
    }
}

/// `run.toml` of a run whose engine no config describes.
#[derive(Serialize)]
struct OwnRun<'a> {
    engine: String,
    clip_rule: Option<String>,
    privacy: &'a PrivacyParams,
    train: &'a TrainParams,
}

fn own_text(plan: &Plan, engine: &dyn Engine) -> Result<String, Error> {
    let about = engine.about();
    let own = OwnRun {
        engine: format!("{} on {}", about.model, about.data),
        clip_rule: plan.protection.clip().map(|clip| format!("{clip:?}")),
        privacy: &plan.params.privacy,
        train: &plan.params.train,
    };
    toml::to_string_pretty(&own).map_err(|e| Error::Plan(format!("config: {e}")))
}

pub(super) fn key_path(folder: &Path) -> PathBuf {
    folder.join("noise.key")
}

fn read_key(path: &Path) -> Result<NoiseSource, Error> {
    let bytes = files::read(path)?;
    let key = <[u8; 32]>::try_from(bytes).map_err(|bytes| Error::Damaged {
        path: path.to_owned(),
        reason: format!("it has {} bytes instead of 32", bytes.len()),
    })?;
    Ok(NoiseSource::from_secret_key(key, Origin::OperatingSystem))
}
