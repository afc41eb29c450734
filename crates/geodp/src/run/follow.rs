//! Measurements that live with a run: kept beside its checkpoints, shown on its page, private.
//!
//! A follower's state is written as `following-STEP.json` before the checkpoint of that step, and
//! older ones are removed after it. Whenever a run is killed, the state of its checkpoint's step is
//! there, so a resumed run has measured every step exactly once. The findings go to `measured.json`
//! and to a section of the page, both marked as the owner's; the statement for release stays as it
//! would be without them.

use super::files;
use crate::Error;
use crate::plan::Plan;
use crate::statement::Statement;
use crate::watch::Watch;
use geodp_report::Section;
use std::path::{Path, PathBuf};

/// A watcher that a run keeps with its checkpoints.
pub trait Follow: Watch + Send {
    /// Everything it knows, as text.
    ///
    /// # Errors
    /// If it cannot be written as text.
    fn state(&self) -> Result<String, Error>;

    /// Goes back to a state it gave.
    ///
    /// # Errors
    /// What is wrong with the text.
    fn restore(&mut self, state: &str) -> Result<(), Error>;

    /// What it found in a run that is done; `None` if there is nothing to say.
    ///
    /// # Errors
    /// If the findings cannot be computed.
    fn findings(&self, plan: &Plan, statement: &Statement) -> Result<Option<Findings>, Error>;
}

/// What a follower found. Private: for the data's owner.
#[derive(Debug, Clone)]
pub struct Findings {
    /// The text of `measured.json`.
    pub json: String,
    /// The section of the report page.
    pub section: Section,
}

/// The file of a run's findings.
pub(crate) fn findings_path(folder: &Path) -> PathBuf {
    folder.join("measured.json")
}

fn state_path(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("following-{step}.json"))
}

/// Takes the follower to where the run stands.
pub(crate) fn restore(folder: &Path, step: u64, follower: &mut dyn Follow) -> Result<(), Error> {
    let path = state_path(folder, step);
    if path.exists() {
        let bytes = files::read(&path)?;
        let damaged = |reason: String| Error::Damaged { path: path.clone(), reason };
        let text = String::from_utf8(bytes).map_err(|error| damaged(error.to_string()))?;
        return follower.restore(&text).map_err(|error| damaged(error.to_string()));
    }
    if step > 0 {
        let reason = format!("it measures its records, but {} is missing", path.display());
        return Err(Error::NotResumable { folder: folder.to_owned(), reason });
    }
    keep(folder, 0, follower)
}

/// Writes the follower's state for the checkpoint of `step`, which must be written next.
pub(crate) fn keep(folder: &Path, step: u64, follower: &dyn Follow) -> Result<(), Error> {
    files::write_secret(&state_path(folder, step), follower.state()?.as_bytes())
}

/// Removes all states but that of `step`, or all.
pub(crate) fn forget(folder: &Path, but: Option<u64>) -> Result<(), Error> {
    let wrong = |source| Error::Write { path: folder.to_owned(), source };
    let kept = but.map(|step| state_path(folder, step));
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("following-") && Some(&path) != kept.as_ref() {
            std::fs::remove_file(&path).map_err(wrong)?;
        }
    }
    Ok(())
}
