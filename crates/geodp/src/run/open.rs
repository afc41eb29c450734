//! Starting a run in a new folder, and resuming one where it stopped.
//!
//! Resuming refuses what could make the ledger lie: another config, other data, a checkpoint that
//! does not fit the ledger (rewound, or from another run), a damaged file. Each with its reason.

use super::books::Books;
use super::checkpoint::{Checkpoint, Position, Strategy};
use super::files::{self, FolderLock};
use super::{Run, finish, follow, metrics};
use crate::Error;
use crate::config::RunConfig;
use crate::optimizer::Optimizer;
use crate::plan::{Facts, Plan};
use geodp_data::Split;
use geodp_mechanism::{NoiseSource, Origin};
use geodp_nn::Network;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Seed of the initial weights: public, and the same for all runs, so that mechanisms compare.
const INITIAL_WEIGHTS_SEED: u64 = 0;

impl Run {
    /// Checks everything, then makes the folder and writes the first checkpoint.
    ///
    /// # Errors
    /// A bad config or data file (nothing is written then), a folder that holds a run already, a
    /// failed write.
    pub fn create(folder: &Path, config: RunConfig) -> Result<Self, Error> {
        let prepared = Prepared::new(&config)?;
        if folder.join("run.toml").exists() {
            return Err(Error::FolderTaken(folder.to_owned()));
        }
        std::fs::create_dir_all(folder)
            .map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        let lock = FolderLock::take(folder)?;
        files::write_atomically(&folder.join("run.toml"), config.to_toml()?.as_bytes())?;
        Self::begin(folder, config, prepared, lock)
    }

    /// Takes a run up where it stopped.
    ///
    /// # Errors
    /// [`Error::NotResumable`] with the reason, [`Error::Damaged`] with the file, a folder in use.
    pub fn resume(folder: &Path) -> Result<Self, Error> {
        let refuse =
            |reason: &str| Error::NotResumable { folder: folder.to_owned(), reason: reason.into() };
        if !folder.join("run.toml").exists() {
            return Err(refuse("there is no run.toml in it, so it is not a run folder"));
        }
        let lock = FolderLock::take(folder)?;
        let config = RunConfig::read(&folder.join("run.toml"))?;
        let prepared = Prepared::new(&config)?;
        if folder.join("statement.json").exists() {
            // It may have been killed after its last word and before it deleted the key.
            finish::delete_key(folder)?;
            follow::forget(folder, None)?;
            return Err(refuse("the run is finished; its results are in the folder"));
        }
        if !folder.join("checkpoint").exists() {
            // Killed while it was being created. If nothing was charged, nothing was released.
            return match Books::read_ledger(folder)?.steps {
                0 => Self::begin(folder, config, prepared, lock),
                _ => Err(refuse("its checkpoint is missing, but its ledger has charges")),
            };
        }
        let checkpoint = Checkpoint::read(&folder.join("checkpoint"))?;
        let noise = match config.train.seed {
            Some(seed) => NoiseSource::from_seed(seed),
            None => read_key(&key_path(folder))?,
        };
        let expected = prepared.position(&config, &noise)?;
        if checkpoint.position.config != expected.config {
            return Err(refuse("run.toml was changed after the run began; undo the change"));
        }
        if checkpoint.position.data != expected.data {
            return Err(refuse(
                "the data is not what the run began with (its fingerprint differs)",
            ));
        }
        if checkpoint.position.noise != expected.noise {
            return Err(refuse("noise.key is not the key the run began with"));
        }
        let mut books = Books::open(folder, prepared.plan, &checkpoint.position)?;
        books.metrics =
            metrics::read_until(&folder.join("metrics.jsonl"), checkpoint.position.step)?;
        metrics::rewrite(&folder.join("metrics.jsonl"), &books.metrics)?;
        let (split, network) = (prepared.split, prepared.network);
        Ok(Self { config, split, network, noise, start: checkpoint, books, _lock: lock })
    }

    /// Writes key, ledger and first checkpoint of a run that has released nothing.
    fn begin(
        folder: &Path,
        config: RunConfig,
        prepared: Prepared,
        lock: FolderLock,
    ) -> Result<Self, Error> {
        let noise = match config.train.seed {
            Some(seed) => NoiseSource::from_seed(seed),
            None => {
                let noise = NoiseSource::from_os()?;
                files::write_secret(&key_path(folder), &noise.secret_key())?;
                noise
            }
        };
        let position = prepared.position(&config, &noise)?;
        let weights = prepared.network.init(INITIAL_WEIGHTS_SEED);
        let optimizer = Optimizer::new(prepared.plan.optimizer, 0.0, weights.len());
        let books = Books::create(folder, prepared.plan, position)?;
        let start = Checkpoint {
            position: books.position.clone(),
            weights,
            optimizer_state: optimizer.state().to_vec(),
        };
        start.write(&folder.join("checkpoint"))?;
        let (split, network) = (prepared.split, prepared.network);
        Ok(Self { config, split, network, noise, start, books, _lock: lock })
    }
}

/// A config made real.
struct Prepared {
    split: Split,
    network: Network,
    plan: Plan,
}

impl Prepared {
    fn new(config: &RunConfig) -> Result<Self, Error> {
        let split = config.data.load()?;
        let network = config.model.spec(&split.train).build()?;
        let facts = Facts { records: split.train.len() as u64, dim: network.dim() };
        let plan = config.plan_params().check(facts)?;
        Ok(Self { split, network, plan })
    }

    fn position(&self, config: &RunConfig, noise: &NoiseSource) -> Result<Position, Error> {
        Ok(Position {
            step: 0,
            strategy: Strategy::default(),
            config: hex(&Sha256::digest(config.to_toml()?)),
            data: self.split.train.fingerprint().to_string(),
            noise: hex(&Sha256::digest(noise.secret_key())),
            ledger_records: 0,
            ledger_head: String::new(),
        })
    }
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

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
