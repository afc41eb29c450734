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
        // What a crash left is removed; whatever else appears in its place is refused, not followed.
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = create(&partial, mode)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        sync_folder(path)
    };
    write().map_err(|source| {
        // Nothing half-written stays behind; if even this fails, the next write removes it.
        let _ = fs::remove_file(&partial);
        Error::Write { path: path.to_owned(), source }
    })
}

/// A new file; one that is there already, or a link, is an error and is not followed.
fn create(path: &Path, mode: Option<u32>) -> std::io::Result<File> {
    options(mode).write(true).create_new(true).open(path)
}

/// Options of a file with these permissions, where the system knows such.
fn options(mode: Option<u32>) -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    if let Some(mode) = mode {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(mode);
    }
    #[cfg(not(unix))]
    let _ = mode;
    options
}

/// Opens a file of the owner's for adding to its end, and makes it if it is not there.
pub(crate) fn append_secret(path: &Path) -> std::io::Result<File> {
    options(Some(0o600)).create(true).append(true).open(path)
}

/// Removes a file of secrets, durably, after writing zeros over it. Copies that the disk or a
/// snapshot keeps are beyond reach.
pub(crate) fn destroy(path: &Path) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    let destroy = || -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        let length = file.metadata()?.len();
        file.write_all(&vec![0; usize::try_from(length).unwrap_or(0)])?;
        file.sync_all()?;
        fs::remove_file(path)?;
        sync_folder(path)
    };
    destroy().map_err(|source| Error::Write { path: path.to_owned(), source })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A link planted where a file will be written is replaced, not followed.
    #[cfg(unix)]
    #[test]
    fn links_are_not_followed_and_secrets_are_the_owners() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("noise.key"), folder.path().join("other"));
        fs::write(&other, "precious").unwrap();
        symlink(&other, partial_name(&path)).unwrap();
        symlink(&other, &path).unwrap();
        write_secret(&path, b"secret").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        assert_eq!(fs::read(&path).unwrap(), b"secret");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    /// A link that appears between the removal and the creation is not followed either.
    #[cfg(unix)]
    #[test]
    fn files_are_created_exclusively() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("planted"), folder.path().join("other"));
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let error = create(&path, Some(0o600)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        assert!(!other.exists());
    }

    /// What a second name of the file still shows is zeros.
    #[test]
    fn destroyed_files_are_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("noise.key"), folder.path().join("link"));
        write_secret(&path, &[7; 32]).unwrap();
        fs::hard_link(&path, &other).unwrap();
        destroy(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(fs::read(&other).unwrap(), [0; 32]);
        destroy(&path).unwrap();
    }
}
