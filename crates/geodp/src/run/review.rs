//! Looking at a run without touching it: where it stands, what it was charged, its page anew.

use super::checkpoint::Checkpoint;
use super::configured::Configured;
use super::metrics::{self, BlockMetrics};
use super::{files, follow, identity};
use crate::Error;
use crate::config::RunConfig;
use crate::engine::Engine;
use crate::plan::Plan;
use crate::report::{self, ReportInputs};
use crate::statement::{ReleasedAccuracy, Statement};
use geodp_account::Ledger;
use geodp_report::Section;
use std::path::{Path, PathBuf};

/// A run as its folder shows it.
pub struct Review {
    /// Whether it is finished.
    pub finished: bool,
    /// Steps done.
    pub step: u64,
    /// The plan.
    pub plan: Plan,
    /// What the ledger's charges amount to.
    pub statement: Statement,
    folder: PathBuf,
    engine: Configured,
    metrics: Vec<BlockMetrics>,
    weights: Vec<f32>,
    ledger: (u64, String),
}

impl Review {
    /// Reads a run folder, and checks that its ledger, config, data and checkpoint belong together.
    ///
    /// # Errors
    /// A folder without a run, a damaged file, or [`Error::Mismatch`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let config_path = folder.join("run.toml");
        if !config_path.exists() {
            let reason = "there is no run.toml in it, so it is not a run folder".to_owned();
            return Err(Error::NotAModel { folder: folder.to_owned(), reason });
        }
        let config = RunConfig::read(&config_path)?;
        let (position, weights) =
            Checkpoint::read(&folder.join("checkpoint"))?.released(config.train.average.is_some());
        let ledger = Ledger::read(&folder.join("ledger.jsonl"))?;
        identity::check_folder(folder, &config.to_toml()?, &ledger, &position)?;
        let engine = Configured::load_in(folder, config, &|_, _| ())?;
        identity::check_data(folder, &position.data, &engine.fingerprint())?;
        let settled = ledger.header.run.as_ref().and_then(|run| run.noise_multiplier);
        let plan = super::open::plan_of(&engine)?.settled_as(settled);
        let step = position.step;
        let state = position.state();
        let selection = plan.strategies.select.as_ref().map(|_| state.selection);
        let mut statement = Statement::of(&plan, &ledger.account()?, ledger.steps(), selection)?;
        statement.polar = plan.mechanism().is_polar().then(|| state.history.summary());
        statement.accuracy = released(folder).filter(|_| plan.protection.accuracy().is_some());
        statement.looked = engine.about().looked;
        if plan.ledger.file.as_ref().is_some_and(|file| file.exists()) {
            statement.data_set = super::data_ledger::total(&plan)?;
        }
        Ok(Self {
            finished: folder.join("statement.json").exists(),
            step,
            plan,
            statement,
            folder: folder.to_owned(),
            engine,
            metrics: metrics::read_until(&folder.join("metrics.jsonl"), step)?,
            weights,
            ledger: (ledger.records.len() as u64, ledger.head().to_owned()),
        })
    }

    /// The text of `measured.json`, if the run measured its records. Private.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn findings(&self) -> Result<Option<String>, Error> {
        let path = follow::findings_path(&self.folder);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = files::read(&path)?;
        let damaged =
            |e: std::string::FromUtf8Error| Error::Damaged { path, reason: e.to_string() };
        String::from_utf8(bytes).map(Some).map_err(damaged)
    }

    /// Writes `report.html` anew, with the section of what was measured, and returns its path.
    ///
    /// # Errors
    /// A failed write.
    pub fn write_report(&self, measured: Option<Section>) -> Result<PathBuf, Error> {
        let path = self.folder.join("report.html");
        let about = self.engine.about();
        let scores = self
            .engine
            .scores(&self.weights)
            .map_err(|source| Error::Engine { step: self.step, source })?;
        let page = report::html(&ReportInputs {
            plan: &self.plan,
            statement: &self.statement,
            metrics: &self.metrics,
            data_name: &about.data,
            model_name: &about.model,
            config_toml: &self.engine.config.to_toml()?,
            ledger_records: self.ledger.0,
            ledger_head: &self.ledger.1,
            scores: scores.as_ref(),
            classes: &about.classes,
            imported: &about.imported,
            measured,
        });
        files::write_secret(&path, page.as_bytes())?;
        Ok(path)
    }
}

/// The noisy accuracy as the run's statement has it: the noise's key is gone, so it cannot be made
/// again.
fn released(folder: &Path) -> Option<ReleasedAccuracy> {
    #[derive(serde::Deserialize)]
    struct Kept {
        accuracy: Option<ReleasedAccuracy>,
    }
    let bytes = std::fs::read(folder.join("statement.json")).ok()?;
    serde_json::from_slice::<Kept>(&bytes).ok()?.accuracy
}
