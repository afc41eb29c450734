//! A watch's state and findings in the run's folder, private.
//!
//! The state is written as `following-STEP.json` before the checkpoint of that step, and older ones
//! are removed after it. Whenever a run is killed, the state of its checkpoint's step is there, so a
//! resumed run has shown its watch every step exactly once. The findings go to `measured.json` and to
//! a section of the page, both marked as the owner's; the statement for release stays as it would be
//! without them.

use super::files;
use crate::Error;
use crate::watch::Watch;
use std::path::{Path, PathBuf};

/// The file of a run's findings.
pub(crate) fn findings_path(folder: &Path) -> PathBuf {
    folder.join("measured.json")
}

fn state_path(folder: &Path, step: u64) -> PathBuf {
    folder.join(format!("following-{step}.json"))
}

/// Takes a watch that keeps a state to where the run stands; at its beginning that is `state`, which
/// is kept.
pub(crate) fn restore(
    folder: &Path,
    step: u64,
    watch: &mut dyn Watch,
    state: &str,
) -> Result<(), Error> {
    let path = state_path(folder, step);
    if path.exists() {
        let bytes = files::read(&path)?;
        let damaged = |reason: String| Error::Damaged { path: path.clone(), reason };
        let text = String::from_utf8(bytes).map_err(|error| damaged(error.to_string()))?;
        return watch.restore(&text).map_err(|error| damaged(error.to_string()));
    }
    if step > 0 {
        let reason = format!("it measures its records, but {} is missing", path.display());
        return Err(Error::NotResumable { folder: folder.to_owned(), reason });
    }
    files::write_secret(&path, state.as_bytes())
}

/// Writes the watch's state, if it has one, for the checkpoint of `step`, which must be written next.
pub(crate) fn keep(folder: &Path, step: u64, watch: &dyn Watch) -> Result<(), Error> {
    match watch.save()? {
        Some(state) => files::write_secret(&state_path(folder, step), state.as_bytes()),
        None => Ok(()),
    }
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
