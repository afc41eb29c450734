//! Results on disk: one JSON file per cell, `OUT/cells/EXPERIMENT/KEY.json`.
//!
//! The folder of an experiment is a [`Cells`]: an interruption loses at most the cell that was
//! running, and several processes may work on one folder, each on cells of its own. `settings.json` beside
//! the cells says how the experiment was run; cells of other settings are never mixed in, and a cell
//! whose config is not the job's own (made by another version) does not count as that job's.

use crate::experiment::{Cell, Experiment, Finished};
use crate::options::{Options, Size};
use crate::{Error, experiment};
use geodp_audit::cells::{Cells, Reservation};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A finished cell: what was run, and what came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record<R = Value> {
    /// Which experiment.
    pub experiment: String,
    /// Which cell of it.
    pub key: String,
    /// What was run.
    pub config: Value,
    /// What its randomness came from.
    pub seed: u64,
    /// What came out.
    pub result: R,
    /// How long it took.
    pub seconds: f64,
    /// Of this program.
    pub version: String,
}

/// What all cells of an experiment in a folder have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// How large the experiment is.
    pub size: Size,
    /// Length of trainings where it was given.
    pub epochs: Option<u64>,
    /// Seeds asked for; may grow.
    pub seeds: u64,
    /// When, on what and how it was run.
    pub provenance: String,
}

impl Settings {
    fn words(&self) -> String {
        let epochs =
            self.epochs.map_or("the default epochs".to_owned(), |e| format!("--epochs {e}"));
        format!("size {} and {epochs}", self.size)
    }
}

/// The name of the file of settings, without its ending. No cell has this name.
const SETTINGS: &str = "settings";

/// A folder of results.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// Results under `folder`, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn cells(&self, experiment: &str) -> Cells {
        Cells::at(self.folder.join("cells").join(experiment))
    }

    /// How the experiment was run here, if it was.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn settings(&self, experiment: &str) -> Result<Option<Settings>, Error> {
        Ok(self.cells(experiment).read(SETTINGS)?)
    }

    /// Makes the folder ready for cells with these settings.
    ///
    /// # Errors
    /// Cells that are there although `resume` is false, or that have other settings.
    pub fn begin(
        &self,
        experiment: &'static str,
        wanted: &Settings,
        resume: bool,
    ) -> Result<(), Error> {
        let mut settings = wanted.clone();
        if let Some(stored) = self.settings(experiment)? {
            let folder = self.folder.clone();
            if !resume {
                return Err(Error::AlreadyThere { experiment, folder });
            }
            if (stored.size, stored.epochs) != (wanted.size, wanted.epochs) {
                let (stored, wanted) = (stored.words(), wanted.words());
                return Err(Error::OtherSettings { experiment, folder, stored, wanted });
            }
            settings.seeds = settings.seeds.max(stored.seeds);
        }
        self.cells(experiment).write(SETTINGS, &settings)?;
        Ok(())
    }

    /// The file of a cell as it is, whatever config it was made with.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(&self, experiment: &str, key: &str) -> Result<Option<Record>, Error> {
        Ok(self.cells(experiment).read(key)?)
    }

    /// The record of a cell, if it is finished. A file of another config is of a version that measured something
    /// else, and not this cell.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn record_of(&self, experiment: &str, cell: &Cell) -> Result<Option<Record>, Error> {
        Ok(self.read(experiment, &cell.key)?.filter(|record| record.config == cell.config))
    }

    /// Keeps a finished cell.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write<R: Serialize>(&self, record: &Record<R>) -> Result<(), Error> {
        self.cells(&record.experiment).write(&record.key, record)?;
        Ok(())
    }

    /// The sole right to run a cell; `None` while another process runs it.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn reserve(&self, experiment: &str, key: &str) -> Result<Option<Reservation>, Error> {
        Ok(self.cells(experiment).reserve(key)?)
    }

    /// The result of a job under these options, if it is finished.
    ///
    /// # Errors
    /// A file that cannot be read or holds something else.
    pub fn result<E: Experiment>(
        &self,
        experiment: &E,
        job: &E::Job,
        options: &Options,
    ) -> Result<Option<E::Result>, Error> {
        let wanted = experiment.cell(job, options);
        let Some(record) = self.record_of(experiment.id(), &wanted)? else { return Ok(None) };
        let damaged = |error: serde_json::Error| Error::DamagedCell {
            path: self.cells(experiment.id()).path(&wanted.key),
            reason: error.to_string(),
        };
        serde_json::from_value(record.result).map(Some).map_err(damaged)
    }

    /// Every finished job of an experiment with its result, in the experiment's order; `None` if the
    /// experiment was never begun here.
    ///
    /// # Errors
    /// A file that cannot be read or holds something else.
    pub fn finished<E: Experiment>(
        &self,
        experiment: &E,
    ) -> Result<Option<experiment::FinishedOf<E>>, Error> {
        let Some(settings) = self.settings(experiment.id())? else { return Ok(None) };
        let options = Options::of(&settings);
        let jobs = experiment.jobs(&options);
        let wanted = jobs.len();
        let mut pairs = Vec::with_capacity(wanted);
        for job in jobs {
            if let Some(result) = self.result(experiment, &job, &options)? {
                pairs.push((job, result));
            }
        }
        Ok(Some(Finished { settings: Some(settings), pairs, wanted }))
    }

    /// Writes a figure, a table or the page.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_text(&self, file_name: &str, text: &str) -> Result<(), Error> {
        Cells::at(&self.folder).write_text(file_name, text)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(quick: bool, epochs: Option<u64>, seeds: u64) -> Settings {
        let size = if quick { Size::Quick } else { Size::Full };
        Settings { size, epochs, seeds, provenance: "here".into() }
    }

    #[test]
    fn cells_read_back_and_settings_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        assert_eq!(store.read("fig6", "a").unwrap(), None);
        store.begin("fig6", &settings(false, None, 1), false).unwrap();
        let record = Record {
            experiment: "fig6".into(),
            key: "a".into(),
            config: serde_json::json!({ "d": 3 }),
            seed: 4,
            result: serde_json::json!(1.5),
            seconds: 0.1,
            version: "1".into(),
        };
        store.write(&record).unwrap();
        assert_eq!(store.read("fig6", "a").unwrap(), Some(record));

        let again = store.begin("fig6", &settings(false, None, 1), false);
        assert!(matches!(again, Err(Error::AlreadyThere { .. })));
        for other in [settings(true, None, 1), settings(false, Some(3), 1)] {
            let mixed = store.begin("fig6", &other, true);
            assert!(matches!(mixed, Err(Error::OtherSettings { .. })));
        }
        store.begin("fig6", &settings(false, None, 3), true).unwrap();
        store.begin("fig6", &settings(false, None, 2), true).unwrap();
        assert_eq!(store.settings("fig6").unwrap().unwrap().seeds, 3);
        store.begin("fig4", &settings(true, None, 1), false).unwrap();
    }

    #[test]
    fn a_damaged_cell_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        store.begin("fig6", &settings(false, None, 1), false).unwrap();
        std::fs::write(folder.path().join("cells/fig6/a.json"), "{").unwrap();
        let error = store.read("fig6", "a").unwrap_err().to_string();
        assert!(error.contains("a.json") && error.contains("delete"), "{error}");
    }

    /// A result of another shape under the right config is an error with the file's name, not a
    /// default.
    #[test]
    fn a_result_of_another_shape_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let runtime = crate::runtime::Runtime;
        let data_dir = PathBuf::new();
        let options = Options { size: Size::Full, seeds: 1, epochs: None, data_dir };
        let job = runtime.jobs(&options).remove(0);
        let cell = runtime.cell(&job, &options);
        let record = Record {
            experiment: "fig6".into(),
            key: cell.key.clone(),
            config: cell.config,
            seed: 4,
            result: serde_json::json!({ "dim": 1250 }),
            seconds: 0.1,
            version: "1".into(),
        };
        store.write(&record).unwrap();
        let error = store.result(&runtime, &job, &options).unwrap_err().to_string();
        assert!(error.contains(&cell.key) && error.contains("batch"), "{error}");
        let other = Record { config: serde_json::json!({}), ..record };
        store.write(&other).unwrap();
        assert_eq!(store.result(&runtime, &job, &options).unwrap(), None);
    }
}
