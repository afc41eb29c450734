//! Reading the batch files out of a folder or an archive, each checked as it is read.
//!
//! An archive is never unpacked: only the six named members are read, each up to its known length,
//! so nothing in it can choose where or how much is written.

use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::FOLDER;
use crate::DataError;
use crate::digest::check_sha256;
use crate::files::shown;

/// One published file.
#[derive(Clone, Copy)]
pub(super) struct BatchFile<'a> {
    pub(super) name: &'a str,
    pub(super) bytes: u64,
    pub(super) sha256: &'a str,
}

/// The published files.
pub(super) struct Manifest<'a> {
    pub(super) train: &'a [BatchFile<'a>],
    pub(super) test: BatchFile<'a>,
}

impl Manifest<'_> {
    /// All files, the test file last.
    pub(super) fn files(&self) -> impl Iterator<Item = BatchFile<'_>> {
        self.train.iter().copied().chain([self.test])
    }

    /// Contents of all files, in order, checked.
    pub(super) fn read(&self, source: &Path) -> Result<Vec<Vec<u8>>, DataError> {
        let metadata = fs::metadata(source).map_err(DataError::io("read", source))?;
        if metadata.is_dir() { self.read_folder(source) } else { self.read_archive(source) }
    }

    fn read_folder(&self, folder: &Path) -> Result<Vec<Vec<u8>>, DataError> {
        let nested = folder.join(FOLDER);
        let folder = if nested.is_dir() { nested.as_path() } else { folder };
        let read = |file: BatchFile<'_>| {
            let path = folder.join(file.name);
            let opened = File::open(&path).map_err(DataError::io("read", &path))?;
            read_checked(&path, file, opened)
        };
        self.files().map(read).collect()
    }

    fn read_archive(&self, path: &Path) -> Result<Vec<Vec<u8>>, DataError> {
        let broken = |error: std::io::Error| DataError::Unsupported {
            file: shown(path),
            problem: format!("not a complete tar or tar.gz archive ({error}); download it again"),
        };
        let mut file = File::open(path).map_err(DataError::io("read", path))?;
        let mut magic = [0; 2];
        let gzip = file.read_exact(&mut magic).is_ok() && magic == [0x1f, 0x8b];
        file.seek(SeekFrom::Start(0)).map_err(DataError::io("read", path))?;
        let file = BufReader::with_capacity(1 << 16, file);
        let stream: Box<dyn Read> =
            if gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };

        let wanted: Vec<BatchFile<'_>> = self.files().collect();
        let mut contents: Vec<Option<Vec<u8>>> = vec![None; wanted.len()];
        for entry in tar::Archive::new(stream).entries().map_err(broken)? {
            let entry = entry.map_err(broken)?;
            let name = entry.path().map_err(broken)?.into_owned();
            let found = wanted.iter().position(|file| name.file_name() == Some(file.name.as_ref()));
            let Some(index) = found.filter(|_| entry.header().entry_type().is_file()) else {
                continue;
            };
            contents[index] = Some(read_checked(&path.join(&name), wanted[index], entry)?);
        }
        let complete = contents.into_iter().zip(&wanted).map(|(content, file)| {
            content.ok_or_else(|| DataError::Unsupported {
                file: shown(path),
                problem: format!(
                    "an archive without {}; the binary version of CIFAR-10 is needed",
                    file.name
                ),
            })
        });
        complete.collect()
    }
}

/// Reads one file up to its known length and one byte more, and compares length and digest.
fn read_checked(path: &Path, file: BatchFile<'_>, from: impl Read) -> Result<Vec<u8>, DataError> {
    let mut bytes = Vec::new();
    from.take(file.bytes + 1).read_to_end(&mut bytes).map_err(DataError::io("read", path))?;
    let shown_path = shown(path);
    if bytes.is_empty() {
        return Err(DataError::Empty { file: shown_path });
    }
    DataError::check_length(&shown_path, file.bytes, bytes.len() as u64)?;
    check_sha256(&shown_path, &bytes, file.sha256)?;
    Ok(bytes)
}
