//! A table on standard input: `-` in the place of a file.
//!
//! Tables are read twice, the headings first, so what comes through a pipe is kept in a file that removes
//! itself. A training must find its records again, so only predictions and measurements take a pipe.

use crate::failure::bad_input;
use std::path::{Path, PathBuf};

/// A file, or standard input as one.
pub(crate) struct Spooled {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Spooled {
    /// The file itself, or what standard input holds if it is `-`.
    pub(crate) fn of(path: &Path) -> anyhow::Result<Self> {
        if path != Path::new("-") {
            return Ok(Self { path: path.to_owned(), _folder: None });
        }
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("stdin.csv");
        let copied =
            std::io::copy(&mut std::io::stdin().lock(), &mut std::fs::File::create(&path)?);
        copied.map_err(|e| bad_input(format!("cannot read standard input: {e}")))?;
        Ok(Self { path, _folder: Some(folder) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
