//! Durable files: written whole or not at all, and one process a folder.
//!
//! [`write_atomically`] writes beside the target, syncs, renames, and syncs the folder: after a
//! crash the target holds the old bytes or the new ones. [`FolderLock`] holds an advisory lock
//! that the system drops with the process, so a killed run never leaves a folder locked.

use crate::Error;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Replaces `path` by `bytes`, durably. A full disk or a crash leaves the old file as it was.
///
/// # Errors
/// [`Error::Write`] with the path.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_with_mode(path, bytes, None)
}

/// As [`write_atomically`], readable by the owner only (where the system knows that).
pub(crate) fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    write_with_mode(path, bytes, Some(0o600))
}

fn write_with_mode(path: &Path, bytes: &[u8], mode: Option<u32>) -> Result<(), Error> {
    let partial = partial_name(path);
    let write = || -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        if let Some(mode) = mode {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(mode);
        }
        #[cfg(not(unix))]
        let _ = mode;
        let mut file = options.open(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        sync_folder(path)
    };
    write().map_err(|source| {
        // Nothing half-written stays behind; if even this fails, the next write truncates it.
        let _ = fs::remove_file(&partial);
        Error::Write { path: path.to_owned(), source }
    })
}

/// `name.partial` in the same folder, so that the rename cannot cross file systems.
fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Makes a rename or a removal in `path`'s folder durable.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        // Folders cannot be opened as files everywhere; there the rename alone must do.
        Some(folder) if cfg!(unix) => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Reads a whole file, with its path in the error.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// The right to use a run folder; given back when dropped, or when the process ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Takes the lock, or says that another process has it.
    pub(crate) fn take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("run.lock");
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|source| Error::Write { path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::FolderInUse(folder.to_owned())),
            Err(TryLockError::Error(source)) => Err(Error::Write { path, source }),
        }
    }
}
