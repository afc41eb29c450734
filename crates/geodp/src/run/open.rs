//! Starting a run in a new folder, and resuming one where it stopped.
//!
//! Resuming refuses what could make the ledger lie: another config, other data, a checkpoint that
//! does not fit the ledger (rewound, or from another run), a damaged file. Each with its reason.

use super::checkpoint::{Checkpoint, Position, Strategy};
use super::configured::Configured;
use super::files::{self, FolderLock};
use super::identity::{self, DataKey};
use super::log::RunLog;
use super::{Run, data_ledger, follow, key, metrics};
use crate::Error;
use crate::config::{RunConfig, SCHEMA_FILE, TestIs};
use crate::engine::Engine;
use crate::optimizer::Optimizer;
use crate::params::{PrivacyParams, TrainParams};
use crate::plan::Plan;
use crate::team::Leader;
use geodp_account::Ledger;
use geodp_mechanism::NoiseSource;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

impl Run {
    /// Fills in what the config leaves open and checks everything, then makes the folder and writes
    /// the first checkpoint.
    ///
    /// # Errors
    /// A bad config or data file (nothing is written then), a folder that holds a run already, a
    /// failed write.
    pub fn create(folder: &Path, config: RunConfig) -> Result<Self, Error> {
        Self::create_among(None, folder, config, &|_, _| ())
    }

    /// The same; `progress` is told how many of how many features are computed, from any thread. With a
    /// `leader`, this is the first of several processes that train together ([`crate::team`]).
    ///
    /// # Errors
    /// As [`create`](Self::create); a process that fails or has other data; what several processes
    /// cannot do.
    pub fn create_among(
        leader: Option<Arc<Leader>>,
        folder: &Path,
        mut config: RunConfig,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, Error> {
        config.complete();
        config.data = config.data.absolute()?;
        let mut engine = match leader {
            None => Configured::load(config, progress)?,
            Some(leader) => Configured::load_with(leader, None, config, progress)?,
        };
        engine.complete_config();
        let text = engine.config.to_toml()?;
        let plan = plan_of(&engine)?;
        let schema = engine.schema_text().map(str::to_owned);
        Self::create_as(folder, text, plan, engine, schema.as_deref())
    }

    /// Takes a run up where it stopped.
    ///
    /// # Errors
    /// [`Error::NotResumable`] with the reason, [`Error::Damaged`] with the file, a folder in use.
    pub fn resume(folder: &Path) -> Result<Self, Error> {
        Self::resume_among(None, folder, &|_, _| ())
    }

    /// The same, with `progress` and `leader` as in [`create_among`](Self::create_among). It need not be
    /// as many processes as before.
    ///
    /// # Errors
    /// As [`resume`](Self::resume); a process that fails or has other data.
    pub fn resume_among(
        leader: Option<Arc<Leader>>,
        folder: &Path,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, Error> {
        let lock = lock_run(folder)?;
        let config = RunConfig::read(&folder.join("run.toml"))?;
        let text = config.to_toml()?;
        if folder.join("checkpoint").exists() {
            // Before anything is made of a config that may have been changed.
            let position = Checkpoint::read(&folder.join("checkpoint"))?.position;
            let ledger = Ledger::read(&folder.join("ledger.jsonl"))?;
            identity::check_folder(folder, &text, &ledger, &position)?;
        }
        let engine = match leader {
            None => Configured::load_in(folder, config, progress)?,
            Some(leader) => Configured::load_with(leader, Some(folder), config, progress)?,
        };
        let plan = plan_of(&engine)?;
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
        Self::create_as(folder, text, plan, engine, None)
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

    fn create_as(
        folder: &Path,
        text: String,
        plan: Plan,
        engine: E,
        schema: Option<&str>,
    ) -> Result<Self, Error> {
        check_repeats(&plan, &engine)?;
        if folder.join("run.toml").exists() {
            return Err(Error::FolderTaken(folder.to_owned()));
        }
        data_ledger::check(&plan)?;
        std::fs::create_dir_all(folder)
            .map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        let lock = FolderLock::take(folder)?;
        if let Some(schema) = schema {
            files::write_atomically(&folder.join(SCHEMA_FILE), schema.as_bytes())?;
        }
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
        check_repeats(&plan, &engine)?;
        let refuse =
            |reason: &str| Error::NotResumable { folder: folder.to_owned(), reason: reason.into() };
        if folder.join("statement.json").exists() {
            // It may have been killed after its last word and before it deleted the key.
            key::destroy(folder)?;
            follow::forget(folder, None)?;
            return Err(refuse("the run is finished; its results are in the folder"));
        }
        let path = folder.join("ledger.jsonl");
        if !folder.join("checkpoint").exists() {
            // Killed while it was being created. If nothing was charged, nothing was released.
            if path.exists() && !Ledger::read(&path)?.records.is_empty() {
                return Err(refuse("its checkpoint is missing, but its ledger has charges"));
            }
            let results = ["metrics.jsonl", "model.safetensors", "report.html"];
            if let Some(name) = results.into_iter().find(|name| folder.join(name).exists()) {
                return Err(refuse(&format!("its checkpoint is missing, but it has a {name}")));
            }
            return Self::begin(folder, lock, text, plan, engine);
        }
        let checkpoint = Checkpoint::read(&folder.join("checkpoint"))?;
        let ledger = Ledger::read(&path)?;
        identity::check_folder(folder, &text, &ledger, &checkpoint.position)?;
        identity::check_data(folder, &checkpoint.position.data, &engine.fingerprint())?;
        let hash = &checkpoint.position.noise;
        let noise = match plan.seed {
            Some(seed) => {
                Some(NoiseSource::from_seed(seed)).filter(|n| identity::noise_hash(n) == *hash)
            }
            None => key::read(folder, hash)?,
        };
        let Some(noise) = noise else {
            return Err(refuse("noise.key is not the key the run began with"));
        };
        data_ledger::check_known(&plan, &checkpoint.position.run, folder)?;
        let settled = ledger.header.run.and_then(|run| run.noise_multiplier);
        let mut log = RunLog::open(folder, plan.settled_as(settled), &checkpoint.position)?;
        log.test_is = engine.about().test_is;
        log.metrics = metrics::read_until(&folder.join("metrics.jsonl"), checkpoint.position.step)?;
        metrics::rewrite(&folder.join("metrics.jsonl"), &log.metrics)?;
        let run = Self { engine, noise, start: checkpoint, log, text, _lock: lock };
        run.on_this_machine()
    }

    /// Where program, arithmetic or processor are others than before, the steps since the checkpoint
    /// will have other bits: the old noise on other gradients would tell the difference. So they get
    /// noise from a new key, and are paid for again: first paid for, then the key, then the checkpoint
    /// that names it ([`key`]).
    fn on_this_machine(mut self) -> Result<Self, Error> {
        let machine = identity::machine(self.log.plan.protection.terms().arithmetic);
        if self.start.position.machine == machine {
            return Ok(self);
        }
        self.log.charge_again()?;
        if self.log.plan.seed.is_none() {
            self.noise = NoiseSource::from_os()?;
            key::write_next(&self.log.folder, &self.noise)?;
        }
        self.start.position = Position {
            machine,
            noise: identity::noise_hash(&self.noise),
            ledger_records: self.log.ledger.records(),
            ledger_head: self.log.ledger.head().to_owned(),
            ..self.start.position
        };
        self.log.position = self.start.position.clone();
        self.start.write(&self.log.folder.join("checkpoint"))?;
        key::promote(&self.log.folder)?;
        Ok(self)
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
                key::write(folder, &noise)?;
                noise
            }
        };
        let data_key = DataKey::of(&noise);
        data_key.write(folder)?;
        let position = Position {
            step: 0,
            strategy: Strategy::default(),
            run: run_id(folder)?,
            config: identity::config_hash(&text),
            data: data_key.hash(&engine.fingerprint()),
            machine: identity::machine(plan.protection.terms().arithmetic),
            noise: identity::noise_hash(&noise),
            ledger_records: 0,
            ledger_head: String::new(),
        };
        let weights = engine.initial_weights();
        let mut state = Optimizer::new(plan.optimizer, 0.0, weights.len()).state().to_vec();
        state.extend(plan.average.map(|_| weights.clone()));
        let mut log = RunLog::create(folder, plan, position)?;
        log.test_is = engine.about().test_is;
        data_ledger::charge(&log.plan, &log.position.run)?;
        let start = Checkpoint { position: log.position.clone(), weights, optimizer_state: state };
        start.write(&folder.join("checkpoint"))?;
        Ok(Self { engine, noise, start, log, text, _lock: lock })
    }
}

/// The plan that a config describes.
pub(super) fn plan_of(engine: &Configured) -> Result<Plan, Error> {
    let config = &engine.config;
    if config.privacy.release_accuracy.is_some() && config.data.test_is() == TestIs::Public {
        let reason = "release_accuracy adds noise to the accuracy on private records; these test \
                      records are public, and accuracies on them are released as they are";
        return Err(Error::Plan(reason.to_owned()));
    }
    if config.privacy.release_accuracy.is_some() && engine.split.train.targets().is_some() {
        let reason = "release_accuracy is for classes; this label is a number";
        return Err(Error::Plan(reason.to_owned()));
    }
    let plan = config.plan_params().check(engine.facts())?;
    let plan = match engine.split.train.units() {
        Some(_) if config.privacy.release_accuracy.is_some() => {
            let reason = "release_accuracy counts rows, of which one unit may have many: its noise \
                          would not hide a unit. Remove it, or measure on public records";
            return Err(Error::Plan(reason.to_owned()));
        }
        Some(column) => plan.with_unit(column.name()),
        None => plan,
    };
    Ok(plan.with_data_ledger(config.ledger.clone()))
}

/// Steps since a checkpoint are repeated with the same noise, so they must be the same steps.
fn check_repeats(plan: &Plan, engine: &dyn Engine) -> Result<(), Error> {
    if plan.block > 1 && !engine.repeats() {
        let reason = format!(
            "the engine's steps cannot be repeated bit by bit, so each needs its checkpoint: set \
             checkpoint_every = 1 (it is {})",
            plan.block
        );
        return Err(Error::Plan(reason));
    }
    Ok(())
}

/// Holds the folder of a run that was begun.
fn lock_run(folder: &Path) -> Result<FolderLock, Error> {
    if !folder.join("run.toml").exists() {
        let reason = "there is no run.toml in it, so it is not a run folder".to_owned();
        return Err(Error::NotResumable { folder: folder.to_owned(), reason });
    }
    FolderLock::take(folder)
}

/// A random name for a new run; one that was killed while it was being created keeps its own.
fn run_id(folder: &Path) -> Result<String, Error> {
    let begun = Ledger::read(&folder.join("ledger.jsonl")).ok().and_then(|l| l.header.run);
    match begun {
        Some(run) => Ok(run.id),
        None => Ok(geodp_data::hex(&NoiseSource::from_os()?.secret_key()[..16])),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelConfig;
    use crate::watch::{Observer, Progress, Silent};
    use std::sync::atomic::{AtomicBool, Ordering};

    struct StopAfter<'a>(u64, &'a AtomicBool);

    impl Observer for StopAfter<'_> {
        fn on_step(&mut self, progress: &Progress) {
            self.1.store(progress.step >= self.0, Ordering::Relaxed);
        }
    }

    /// A run on MNIST's test half of zeros and ones that stopped after step 3 of its block of 4.
    fn stopped(folder: &Path, seed: Option<u64>) {
        let mut config = RunConfig::mnist().model(ModelConfig::Logistic);
        config.privacy.noise_multiplier = Some(1.0);
        config.train.batch = Some(64);
        config.train.steps = Some(8);
        config.train.checkpoint_every = Some(4);
        config.train.seed = seed;
        config.complete();
        let stop = AtomicBool::new(false);
        let run = Run::create(folder, config).unwrap();
        run.execute(&mut Silent, &mut StopAfter(3, &stop), &stop).unwrap();
    }

    fn as_if_elsewhere(folder: &Path) {
        let path = folder.join("checkpoint");
        let mut checkpoint = Checkpoint::read(&path).unwrap();
        checkpoint.position.machine = "geodp 0.0.1, floating point on an abacus".to_owned();
        checkpoint.write(&path).unwrap();
    }

    /// Other bits under the same noise would show the gradients' difference: a new key, paid for.
    #[test]
    fn on_another_machine_a_new_key_is_drawn_and_the_replay_is_charged() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        stopped(&folder, None);
        let (key, ledger) = (folder.join("noise.key"), folder.join("ledger.jsonl"));
        let (before, charged) = (std::fs::read(&key).unwrap(), Ledger::read(&ledger).unwrap());
        drop(Run::resume(&folder).unwrap());
        assert_eq!(std::fs::read(&key).unwrap(), before, "the same machine keeps its key");
        assert_eq!(Ledger::read(&ledger).unwrap(), charged);
        as_if_elsewhere(&folder);
        drop(Run::resume(&folder).unwrap());
        assert_ne!(std::fs::read(&key).unwrap(), before);
        let after = Ledger::read(&ledger).unwrap();
        assert_eq!((after.steps(), after.records.len()), (4, charged.records.len() + 1));
        let again = &after.records[after.records.len() - 1];
        assert_eq!((&again.event, again.count), (&charged.records[0].event, 1), "step 3 again");
        let epsilon = |ledger: &Ledger| ledger.account().unwrap().claim().unwrap().upper();
        assert!(epsilon(&after) > epsilon(&charged));
        // From here on this is its machine: nothing is charged again.
        let run = Run::resume(&folder).unwrap();
        assert_eq!(Ledger::read(&ledger).unwrap(), after);
        run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false)).unwrap();
        assert!(!key.exists());
    }

    /// The name in the checkpoint is the one by which a data ledger knows the run.
    #[test]
    fn a_checkpoint_that_names_another_run_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        stopped(&folder, Some(7));
        let path = folder.join("checkpoint");
        let mut checkpoint = Checkpoint::read(&path).unwrap();
        checkpoint.position.run = "0123456789abcdef0123456789abcdef".to_owned();
        checkpoint.write(&path).unwrap();
        let refusal = Run::resume(&folder).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refusal.contains("belongs to another run"), "{refusal}");
    }

    /// Wherever the exchange of keys is cut off, the run resumes, what was paid stays paid, and no
    /// noise is made with a key that another step's noise was made with.
    #[test]
    fn a_crash_while_the_key_is_exchanged_leaves_a_run_that_resumes() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        stopped(&folder, None);
        as_if_elsewhere(&folder);
        let names = ["checkpoint", "ledger.jsonl", "noise.key"];
        let look = || names.map(|name| std::fs::read(folder.join(name)).unwrap());
        let [old_checkpoint, _, old_key] = look();
        drop(Run::resume(&folder).unwrap());
        let [new_checkpoint, new_ledger, new_key] = look();
        let next = || folder.join("noise.key.next");
        assert!(!next().exists() && new_key != old_key);
        // Which checkpoint, ledger, key and next key a crash leaves, in the order of writing.
        let crashes = [
            (&old_checkpoint, &new_ledger, Some(&old_key), None),
            (&old_checkpoint, &new_ledger, Some(&old_key), Some(&new_key)),
            (&new_checkpoint, &new_ledger, Some(&old_key), Some(&new_key)),
            (&new_checkpoint, &new_ledger, None, Some(&new_key)),
        ];
        for (at, (checkpoint, ledger, key, next_key)) in crashes.into_iter().enumerate() {
            std::fs::write(folder.join("checkpoint"), checkpoint).unwrap();
            std::fs::write(folder.join("ledger.jsonl"), ledger).unwrap();
            for (path, bytes) in [(folder.join("noise.key"), key), (next(), next_key)] {
                let _ = std::fs::remove_file(&path);
                if let Some(bytes) = bytes {
                    std::fs::write(path, bytes).unwrap();
                }
            }
            drop(Run::resume(&folder).unwrap_or_else(|error| panic!("crash {at}: {error}")));
            let [_, resumed_ledger, resumed_key] = look();
            assert!(!next().exists(), "crash {at}");
            assert_ne!(resumed_key, old_key, "crash {at}: old noise on other bits");
            if at < 2 {
                // No checkpoint named the next key: another is drawn, and the replay is paid again.
                assert_ne!(resumed_key, new_key, "crash {at}");
                assert!(resumed_ledger.len() > new_ledger.len(), "crash {at}");
            } else {
                assert_eq!((resumed_key, resumed_ledger), (new_key.clone(), new_ledger.clone()));
            }
        }
        // Without either key the run is refused, as ever.
        std::fs::write(folder.join("noise.key"), [7; 32]).unwrap();
        std::fs::write(next(), [8; 32]).unwrap();
        let refused = Run::resume(&folder).map(drop).unwrap_err().to_string();
        assert!(refused.contains("noise.key"), "{refused}");
        std::fs::write(folder.join("noise.key"), &new_key).unwrap();
        let run = Run::resume(&folder).unwrap();
        run.execute(&mut Silent, &mut Silent, &AtomicBool::new(false)).unwrap();
        assert!(!folder.join("noise.key").exists() && !next().exists());
    }

    /// σ is what the ledger says, whatever this version would calibrate.
    #[test]
    fn a_resumed_run_keeps_its_sigma() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("run");
        let mut config = RunConfig::mnist().model(ModelConfig::Logistic).epsilon(2.0);
        config.train.steps = Some(8);
        config.complete();
        let run = Run::create(&folder, config).unwrap();
        let sigma = run.plan().noise_multiplier().unwrap();
        drop(run);
        // As another version would have settled it: a header with another σ, and its checkpoint.
        let mut header = Ledger::read(&folder.join("ledger.jsonl")).unwrap().header;
        header.run.as_mut().unwrap().noise_multiplier = Some(sigma + 0.25);
        let writer =
            geodp_account::LedgerWriter::create(&folder.join("ledger.jsonl"), &header).unwrap();
        let mut checkpoint = Checkpoint::read(&folder.join("checkpoint")).unwrap();
        checkpoint.position.ledger_head = writer.head().to_owned();
        checkpoint.write(&folder.join("checkpoint")).unwrap();
        assert_eq!(Run::resume(&folder).unwrap().plan().noise_multiplier(), Some(sigma + 0.25));
    }
}
