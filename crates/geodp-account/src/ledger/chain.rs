//! A file of JSON lines, each chained to the one before by SHA-256: what every ledger is written in.
//!
//! A line is `{…content…, "previous", "hash"}` with hash = SHA-256(previous ‖ content). The chain has no
//! key: it finds accidents, not an owner who writes a new chain.

use crate::Error;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Write;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<T> {
    #[serde(flatten)]
    content: T,
    previous: String,
    hash: String,
}

/// Hash of a line's content after the hash before it.
fn chained<T: Serialize>(previous: &str, content: &T) -> Result<String, Error> {
    let content = serde_json::to_string(content).map_err(std::io::Error::from)?;
    let mut hasher = Sha256::new();
    hasher.update(previous.as_bytes());
    hasher.update(b"\n");
    hasher.update(content.as_bytes());
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

pub(super) fn broken(line: usize, problem: impl Into<String>) -> Error {
    Error::Ledger { line, problem: problem.into() }
}

/// Reads a line and checks its place in the chain.
fn checked<T: Serialize + for<'a> Deserialize<'a>>(
    number: usize,
    text: &str,
    previous: &str,
) -> Result<(T, String), Error> {
    let line: Line<T> = serde_json::from_str(text)
        .map_err(|error| broken(number, format!("cannot be read: {error}")))?;
    if line.previous != previous {
        return Err(broken(
            number,
            "does not follow the line before it: lines were removed, added or moved",
        ));
    }
    if chained(previous, &line.content)? != line.hash {
        return Err(broken(number, "was altered: its hash does not fit its content"));
    }
    Ok((line.content, line.hash))
}

/// A verified chain: its header, its records, and the hash after each.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chain<H, R> {
    pub(super) header: H,
    pub(super) records: Vec<R>,
    /// Hash of the header, then of each record.
    pub(super) hashes: Vec<String>,
    /// Whether a torn last line was passed over.
    pub(super) torn: bool,
    /// Length of the whole lines, in bytes.
    pub(super) whole_bytes: u64,
}

impl<H, R> Chain<H, R>
where
    H: Serialize + for<'a> Deserialize<'a>,
    R: Serialize + for<'a> Deserialize<'a>,
{
    /// Verifies a file's bytes. A last line without its line break was torn by a crash and never
    /// acknowledged: it is reported, not read.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let whole_bytes = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = std::str::from_utf8(&bytes[..whole_bytes])
            .map_err(|_| broken(1, "the file is not text"))?;
        let mut lines = text.lines().enumerate();
        let Some((_, first)) = lines.next() else {
            return Err(broken(1, "the header is missing"));
        };
        let (header, hash) = checked::<H>(1, first, "")?;
        let (mut records, mut hashes) = (Vec::new(), vec![hash]);
        for (at, line) in lines {
            let (record, hash) = checked::<R>(at + 1, line, &hashes[hashes.len() - 1])?;
            records.push(record);
            hashes.push(hash);
        }
        let torn = whole_bytes < bytes.len();
        Ok(Self { header, records, hashes, torn, whole_bytes: whole_bytes as u64 })
    }

    /// Hash of the last line.
    pub(super) fn head(&self) -> &str {
        self.hashes.last().map_or("", String::as_str)
    }
}

/// The end of a chain, where lines are added.
#[derive(Debug)]
pub(super) struct ChainEnd {
    pub(super) file: File,
    pub(super) head: String,
    /// Length of what is known to be whole.
    pub(super) whole_bytes: u64,
}

impl ChainEnd {
    /// The end of an empty file.
    pub(super) fn empty(file: File) -> Self {
        Self { file, head: String::new(), whole_bytes: 0 }
    }

    /// The end of a verified chain in `file`, which is open for appending; a torn line is removed.
    pub(super) fn of<H, R>(file: File, chain: &Chain<H, R>) -> Result<Self, Error>
    where
        H: Serialize + for<'a> Deserialize<'a>,
        R: Serialize + for<'a> Deserialize<'a>,
    {
        file.set_len(chain.whole_bytes)?;
        file.sync_all()?;
        Ok(Self { file, head: chain.head().to_owned(), whole_bytes: chain.whole_bytes })
    }

    /// Adds a line.
    ///
    /// # Guarantee
    /// On success the line is durable. On error nothing was added, and what was written of it is
    /// taken back where the system allows; otherwise it is a torn line, which readers pass over.
    pub(super) fn append<T: Serialize>(&mut self, content: T) -> Result<(), Error> {
        let hash = chained(&self.head, &content)?;
        let line = Line { content, previous: self.head.clone(), hash: hash.clone() };
        let line = serde_json::to_string(&line).map_err(std::io::Error::from)? + "\n";
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            let _ = self.file.set_len(self.whole_bytes);
            return Err(error.into());
        }
        self.head = hash;
        self.whole_bytes += line.len() as u64;
        Ok(())
    }
}
