//! Results on disk: one JSON file a cell, `OUT/cells/EXPERIMENT/KEY.json`.
//!
//! A cell is the smallest piece of work that is kept. Its file is written beside its place and
//! renamed, so an interruption loses at most the cell that was running, and two processes may work
//! on different experiments of one folder. `settings.json` beside the cells says how the experiment
//! was run; cells of other settings are never mixed in.

use crate::Error;
use crate::options::Size;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Which experiment.
    pub experiment: String,
    /// Which cell of it.
    pub key: String,
    /// What was run.
    pub config: Value,
    /// What its randomness came from.
    pub seed: u64,
    /// What came out.
    pub result: Value,
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

    fn cells(&self, experiment: &str) -> PathBuf {
        self.folder.join("cells").join(experiment)
    }

    /// How the experiment was run here, if it was.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn settings(&self, experiment: &str) -> Result<Option<Settings>, Error> {
        read_json(&self.cells(experiment).join("settings.json"))
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
        write_json(&self.cells(experiment).join("settings.json"), &settings)
    }

    /// A finished cell, if it is there.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(&self, experiment: &str, key: &str) -> Result<Option<Record>, Error> {
        read_json(&self.cells(experiment).join(format!("{key}.json")))
    }

    /// The result of a finished cell, if it is there.
    ///
    /// # Errors
    /// A file that cannot be read or holds something else.
    pub fn result<R: DeserializeOwned>(
        &self,
        experiment: &str,
        key: &str,
    ) -> Result<Option<R>, Error> {
        let Some(record) = self.read(experiment, key)? else { return Ok(None) };
        let path = self.cells(experiment).join(format!("{key}.json"));
        let damaged = |source| Error::DamagedCell { path, source };
        serde_json::from_value(record.result).map(Some).map_err(damaged)
    }

    /// Keeps a finished cell.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, record: &Record) -> Result<(), Error> {
        write_json(&self.cells(&record.experiment).join(format!("{}.json", record.key)), record)
    }

    /// Writes a figure, a table or the page.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write_text(&self, name: &str, text: &str) -> Result<(), Error> {
        write_file(&self.folder.join(name), text.as_bytes())
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", path)(error)),
    };
    let damaged = |source| Error::DamagedCell { path: path.to_owned(), source };
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let damaged = |source| Error::DamagedCell { path: path.to_owned(), source };
    let mut text = serde_json::to_vec_pretty(value).map_err(damaged)?;
    text.push(b'\n');
    write_file(path, &text)
}

/// The whole file or nothing of it.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let mut file =
        tempfile::NamedTempFile::new_in(folder).map_err(Error::io("create a file in", folder))?;
    file.write_all(bytes).map_err(Error::io("write", path))?;
    file.as_file().sync_all().map_err(Error::io("write", path))?;
    #[cfg(unix)]
    {
        // Temporary files are for their owner alone; results are for readers.
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(file.path(), mode).map_err(Error::io("write", path))?;
    }
    file.persist(path).map_err(|error| Error::io("write", path)(error.error))?;
    Ok(())
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
        assert_eq!(store.result::<f64>("fig6", "a").unwrap(), Some(1.5));
        assert!(store.result::<String>("fig6", "a").is_err());

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
        store.write_text("cells/fig6/a.json", "{").unwrap();
        let error = store.read("fig6", "a").unwrap_err().to_string();
        assert!(error.contains("a.json") && error.contains("delete"), "{error}");
    }
}
