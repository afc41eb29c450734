//! Long work in cells: what is done is kept, and the same command goes on from there.
//!
//! A folder holds one JSON file per finished cell (a shadow model, a training of a table). Each file
//! is written beside its place and renamed, so a cell is whole or absent. Audits open a folder with
//! their setup, kept as `setup.json`: a folder of another setup is refused, so that cells of two
//! audits never mix. The lab keeps a folder like this for each of its experiments.

use crate::Error;
use geodp::run::write_atomically;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// A folder of finished cells.
#[derive(Debug, Clone)]
pub struct Cells {
    folder: PathBuf,
}

impl Cells {
    /// The cells in `folder`, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Opens a folder for an audit of this setup, or goes on with one.
    ///
    /// # Errors
    /// A folder that holds another audit, or that cannot be written.
    pub fn open(folder: &Path, setup: &impl Serialize) -> Result<Self, Error> {
        let cells = Self::at(folder);
        let path = cells.path("setup");
        let wanted = serde_json::to_value(setup).map_err(|error| damaged(&path, &error))?;
        match cells.read::<Value>("setup")? {
            None => cells.write("setup", &wanted).map(|_| cells),
            Some(found) if found == wanted => Ok(cells),
            Some(_) => {
                let reason = "this folder holds an audit with other settings; choose another folder \
                              with --out, or give the settings it was begun with";
                Err(Error::File { path, reason: reason.to_owned() })
            }
        }
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
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::File { path, reason: error.to_string() }),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| damaged(&path, &error))
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
        let mut text =
            serde_json::to_string_pretty(value).map_err(|error| damaged(&path, &error))?;
        text.push('\n');
        self.write_text(&format!("{name}.json"), &text)
    }

    /// Writes a page, a picture or a table beside the cells.
    ///
    /// # Errors
    /// A failed write.
    pub fn write_text(&self, file_name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.folder.join(file_name);
        std::fs::create_dir_all(&self.folder)
            .map_err(|source| Error::Write { path: self.folder.clone(), source })?;
        // Two processes may fill one folder and draw its page at the same time.
        let _one_writer = lock_folder(&self.folder)?;
        write_atomically(&path, text.as_bytes())?;
        Ok(path)
    }

    /// The sole right to work on a cell, until it is dropped or this process ends; `None` while another
    /// process has it.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn reserve(&self, name: &str) -> Result<Option<Reservation>, Error> {
        let path = self.folder.join(format!("{name}.running"));
        std::fs::create_dir_all(&self.folder)
            .map_err(|source| Error::Write { path: self.folder.clone(), source })?;
        // Between opening the file and locking it nobody may remove it, or two could hold files of one name.
        let _nobody_else = lock_folder(&self.folder)?;
        let lock = || {
            let file = File::create(&path)?;
            match file.try_lock() {
                Ok(()) => Ok(Some(file)),
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        };
        let file = lock().map_err(|source| Error::Write { path: path.clone(), source })?;
        Ok(file.map(|file| Reservation { folder: self.folder.clone(), path, file: Some(file) }))
    }

    /// Where the cell of this name is, or would be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.json"))
    }
}

/// The sole right to work on a cell: a locked file beside it. The system lets go of the lock when a process ends,
/// however it ends, so nothing has to be cleaned up after a crash.
#[derive(Debug)]
pub struct Reservation {
    folder: PathBuf,
    path: PathBuf,
    file: Option<File>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let _nobody_else = lock_folder(&self.folder);
        // A file that stays is empty and locked by nobody: it keeps no one from the cell.
        let _ = std::fs::remove_file(&self.path);
        drop(self.file.take());
    }
}

/// Waits until no other process writes into the folder; given back when dropped. Elsewhere than on Unix,
/// where folders cannot be opened as files, the last writer wins or fails.
fn lock_folder(folder: &Path) -> Result<Option<File>, Error> {
    if !cfg!(unix) {
        return Ok(None);
    }
    let lock = || File::open(folder).and_then(|file| file.lock().map(|()| Some(file)));
    lock().map_err(|source| Error::Write { path: folder.to_owned(), source })
}

/// The error of a file that does not hold what it should.
fn damaged(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::DamagedCell { path: path.to_owned(), reason: error.to_string() }
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
        // However the setup's text is laid out, it is the same setup.
        std::fs::write(path.join("setup.json"), "[\"audit\",1]").unwrap();
        assert!(Cells::open(&path, &("audit", 1)).is_ok());
        std::fs::write(path.join("a.json"), "nonsense").unwrap();
        assert!(matches!(again.read::<Vec<f64>>("a"), Err(Error::DamagedCell { .. })));
    }

    #[test]
    fn one_at_a_time_works_on_a_cell() {
        let folder = tempfile::tempdir().unwrap();
        let cells = Cells::at(folder.path().join("new"));
        let first = cells.reserve("a").unwrap();
        assert!(first.is_some());
        assert!(cells.reserve("a").unwrap().is_none());
        assert!(cells.reserve("b").unwrap().is_some());
        drop(first);
        assert_eq!(std::fs::read_dir(cells.folder()).unwrap().count(), 0, "nothing is left behind");
        assert!(cells.reserve("a").unwrap().is_some());
    }

    /// Many take and leave the same few cells: no cell is ever held twice.
    #[cfg(unix)]
    #[test]
    fn a_cell_is_never_held_twice() {
        use std::sync::atomic::{AtomicU8, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let cells = Cells::at(folder.path());
        let holders = [const { AtomicU8::new(0) }; 2];
        let take = || {
            for round in 0..2000 {
                let place = round % holders.len();
                if let Some(reserved) = cells.reserve(&format!("cell{place}")).unwrap() {
                    assert_eq!(holders[place].fetch_add(1, Ordering::SeqCst), 0);
                    holders[place].fetch_sub(1, Ordering::SeqCst);
                    drop(reserved);
                }
            }
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| {
                scope.spawn(take);
            });
        });
    }

    /// Each writer has the folder open on its own, as processes have.
    #[cfg(unix)]
    #[test]
    fn writers_of_one_page_wait_for_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let cells = Cells::at(folder.path());
        let write = || {
            (0..100).for_each(|_| {
                cells.write_text("page.html", "whole").unwrap();
            });
        };
        std::thread::scope(|scope| {
            (0..4).for_each(|_| {
                scope.spawn(write);
            });
        });
    }
}
