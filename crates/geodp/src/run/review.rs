//! Looking at a run without touching it: where it stands, what it was charged, its page anew.

use super::checkpoint::Checkpoint;
use super::configured::Configured;
use super::log::RunLog;
use super::metrics::{self, BlockMetrics};
use super::{files, follow};
use crate::Error;
use crate::config::RunConfig;
use crate::engine::Engine;
use crate::plan::Plan;
use crate::report::{self, ReportInputs};
use crate::statement::Statement;
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
    ledger: (u64, String),
}

impl Review {
    /// Reads a run folder; its ledger is verified.
    ///
    /// # Errors
    /// A folder without a run, or a damaged file.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let config_path = folder.join("run.toml");
        if !config_path.exists() {
            let reason = "there is no run.toml in it, so it is not a run folder".to_owned();
            return Err(Error::NotAModel { folder: folder.to_owned(), reason });
        }
        let config = RunConfig::read(&config_path)?;
        let engine = Configured::load(config)?;
        let plan = engine.config.plan_params().check(engine.facts())?;
        let position = Checkpoint::read(&folder.join("checkpoint"))?.position;
        let step = position.step;
        let selection = plan.strategies.select.as_ref().map(|_| position.state().selection);
        let charges = RunLog::read_ledger(folder)?;
        let statement = Statement::new(&plan, charges.steps, selection)?;
        Ok(Self {
            finished: folder.join("statement.json").exists(),
            step,
            plan,
            statement,
            folder: folder.to_owned(),
            engine,
            metrics: metrics::read_until(&folder.join("metrics.jsonl"), step)?,
            ledger: (charges.records, charges.head),
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
        let page = report::html(&ReportInputs {
            plan: &self.plan,
            statement: &self.statement,
            metrics: &self.metrics,
            data_name: &about.data,
            model_name: &about.model,
            config_toml: &self.engine.config.to_toml()?,
            ledger_records: self.ledger.0,
            ledger_head: &self.ledger.1,
            measured,
        });
        files::write_atomically(&path, page.as_bytes())?;
        Ok(path)
    }
}
