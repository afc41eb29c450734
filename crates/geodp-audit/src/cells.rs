//! Long audits in cells: what is done is kept, and the same command goes on from there.
//!
//! A folder holds `setup.json`, which says what the audit is about, and one file a finished cell
//! (a shadow model, a case). Each file is written beside itself and renamed, so a cell is whole or
//! absent. A folder of another setup is refused: cells of two audits never mix.

use crate::Error;
use geodp::run::write_atomically;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// The folder of an audit.
#[derive(Debug, Clone)]
pub struct Cells {
    folder: PathBuf,
}

impl Cells {
    /// Opens a folder for an audit of this setup, or goes on with one.
    ///
    /// # Errors
    /// A folder that holds another audit, or that cannot be written.
    pub fn open(folder: &Path, setup: &impl Serialize) -> Result<Self, Error> {
        std::fs::create_dir_all(folder)
            .map_err(|source| Error::Write { path: folder.to_owned(), source })?;
        let cells = Self { folder: folder.to_owned() };
        let path = cells.path("setup");
        let setup = to_json(&path, setup)?;
        if path.exists() {
            let found = std::fs::read_to_string(&path).map_err(|e| unreadable(&path, &e))?;
            if found != setup {
                let reason = "this folder holds an audit with other settings; choose another folder \
                              with --out, or give the settings it was begun with";
                return Err(Error::File { path, reason: reason.to_owned() });
            }
        } else {
            write_atomically(&path, setup.as_bytes())?;
        }
        Ok(cells)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The finished cell of this name, if there is one.
    ///
    /// # Errors
    /// A file that cannot be read as such a cell.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Error> {
        let path = self.path(name);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = std::fs::read(&path).map_err(|e| unreadable(&path, &e))?;
        serde_json::from_slice(&bytes).map(Some).map_err(|e| unreadable(&path, &e))
    }

    /// The finished cell of this name, or the result of `work`, kept.
    ///
    /// # Errors
    /// As [`read`](Self::read); whatever `work` gives; a failed write.
    pub fn cell<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(done) = self.read(name)? {
            return Ok(done);
        }
        let result = work()?;
        self.write(name, &result)?;
        Ok(result)
    }

    /// Writes `name.json`.
    ///
    /// # Errors
    /// A failed write.
    pub fn write(&self, name: &str, value: &impl Serialize) -> Result<PathBuf, Error> {
        let path = self.path(name);
        write_atomically(&path, to_json(&path, value)?.as_bytes())?;
        Ok(path)
    }

    /// Writes a page beside the cells.
    ///
    /// # Errors
    /// A failed write.
    pub fn write_page(&self, html: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join("report.html");
        write_atomically(&path, html.as_bytes())?;
        Ok(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }
}

fn to_json(path: &Path, value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value).map_err(|e| unreadable(path, &e))
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::File { path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_kept_and_audits_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let cells = Cells::open(&path, &("audit", 1)).unwrap();
        assert_eq!(cells.cell("a", || Ok(vec![0.1, 1e-300])).unwrap(), [0.1, 1e-300]);
        let again = Cells::open(&path, &("audit", 1)).unwrap();
        let kept = again.cell("a", || -> Result<Vec<f64>, Error> { Err(Error::Stopped) }).unwrap();
        assert_eq!(kept, [0.1, 1e-300]);
        assert!(again.cell("b", || -> Result<u8, Error> { Err(Error::Stopped) }).is_err());
        assert_eq!(again.read::<u8>("b").unwrap(), None, "a failed cell leaves nothing behind");
        assert!(Cells::open(&path, &("audit", 2)).is_err());
        std::fs::write(path.join("a.json"), "nonsense").unwrap();
        assert!(matches!(again.read::<Vec<f64>>("a"), Err(Error::File { .. })));
    }
}
