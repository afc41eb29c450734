//! `noise.key`: the key of a run's noise, and how another takes its place.
//!
//! The checkpoint names its key by a hash. A new key is first written beside the old one
//! (`noise.key.next`), then the checkpoint that names it is written, then it takes the old one's place.
//! So whenever a crash comes, one of the two files holds the key that the checkpoint names, and a key
//! that no checkpoint names has made no noise. At the end of the run both are destroyed.

use super::{files, identity};
use crate::Error;
use geodp_mechanism::{NoiseSource, Origin};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

fn path(folder: &Path) -> PathBuf {
    folder.join("noise.key")
}

fn next_path(folder: &Path) -> PathBuf {
    folder.join("noise.key.next")
}

/// Writes the first key of a run.
pub(super) fn write(folder: &Path, noise: &NoiseSource) -> Result<(), Error> {
    files::write_secret(&path(folder), &*Zeroizing::new(noise.secret_key()))
}

/// Writes the key that the next checkpoint will name.
pub(super) fn write_next(folder: &Path, noise: &NoiseSource) -> Result<(), Error> {
    files::write_secret(&next_path(folder), &*Zeroizing::new(noise.secret_key()))
}

/// Puts the next key, if there is one, in the place of the old one, which is destroyed. Only after the
/// checkpoint that names it is written.
pub(super) fn promote(folder: &Path) -> Result<(), Error> {
    let (path, next) = (path(folder), next_path(folder));
    if !next.exists() {
        return Ok(());
    }
    files::destroy(&path)?;
    let rename = || {
        std::fs::rename(&next, &path)?;
        files::sync_folder(&path)
    };
    rename().map_err(|source| Error::Write { path: path.clone(), source })
}

/// The key with this hash, wherever a crash left it; `None` if neither file holds it.
pub(super) fn read(folder: &Path, hash: &str) -> Result<Option<NoiseSource>, Error> {
    let (path, next) = (path(folder), next_path(folder));
    if path.exists() || !next.exists() {
        let noise = read_file(&path)?;
        if identity::noise_hash(&noise) == hash {
            // A next key beside it was never named, so it has made no noise.
            files::destroy(&next)?;
            return Ok(Some(noise));
        }
    }
    if next.exists() {
        let noise = read_file(&next)?;
        if identity::noise_hash(&noise) == hash {
            promote(folder)?;
            return Ok(Some(noise));
        }
    }
    Ok(None)
}

/// Whoever has no key cannot subtract the noise.
pub(super) fn destroy(folder: &Path) -> Result<(), Error> {
    files::destroy(&path(folder))?;
    files::destroy(&next_path(folder))
}

fn read_file(path: &Path) -> Result<NoiseSource, Error> {
    let key = identity::read_32_bytes(path)?;
    Ok(NoiseSource::from_secret_key(*key, Origin::OperatingSystem))
}
