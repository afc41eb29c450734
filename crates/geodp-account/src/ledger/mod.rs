//! The ledger: an append-only record of events, one JSON object a line, each line chained to the
//! one before by SHA-256.
//!
//! Line 1 is the header (adjacency, δ, the plan's fingerprint); every further line is
//! `{"step", "event", "count", "previous", "hash"}` with hash = SHA-256(previous ‖ the line's
//! content). Changing, removing, adding or reordering a line breaks the chain there, and the error
//! names the line. Cutting whole lines off the end leaves a valid chain: whoever keeps the head
//! elsewhere (a checkpoint) finds that with [`Ledger::verify_against`]. A last line without its line
//! break was torn by a crash; it was never acknowledged, and is reported, not counted.

mod writer;

pub use writer::LedgerWriter;

use crate::{Adjacency, Bracket, Error, Event, Method};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::path::Path;

/// What the whole ledger is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerHeader {
    /// Version of this layout.
    pub format: LedgerFormat,
    /// Which change of the data its totals are about.
    pub adjacency: Adjacency,
    /// δ its totals are stated at.
    pub delta: f64,
    /// What ties it to its run: any text.
    pub plan: String,
}

/// Versions of the layout; the meaning of a version never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LedgerFormat {
    /// The layout described above.
    #[serde(rename = "geodp-ledger-1")]
    V1,
}

/// One charge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerRecord {
    /// Steps of the run that are paid for once this is charged.
    pub step: u64,
    /// What happened, or is about to.
    pub event: Event,
    /// How many times.
    pub count: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<T> {
    #[serde(flatten)]
    content: T,
    previous: String,
    hash: String,
}

/// A ledger that was read and found whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// What it is about.
    pub header: LedgerHeader,
    /// Every charge, in order.
    pub records: Vec<LedgerRecord>,
    /// Whether a torn last line was passed over.
    pub torn: bool,
    /// Hash of the header, then of each record.
    hashes: Vec<String>,
    /// Length of the whole lines, in bytes.
    whole_bytes: u64,
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

/// The text of a line, with its line break, and its hash.
fn line_of<T: Serialize>(previous: &str, content: T) -> Result<(String, String), Error> {
    let hash = chained(previous, &content)?;
    let line = Line { content, previous: previous.to_owned(), hash: hash.clone() };
    Ok((serde_json::to_string(&line).map_err(std::io::Error::from)? + "\n", hash))
}

fn broken(line: usize, problem: impl Into<String>) -> Error {
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

impl Ledger {
    /// Reads and verifies a ledger file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&std::fs::read(path)?)
    }

    /// Verifies a ledger's bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let whole_bytes = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = std::str::from_utf8(&bytes[..whole_bytes])
            .map_err(|_| broken(1, "the file is not text"))?;
        let mut lines = text.lines().enumerate();
        let Some((_, first)) = lines.next() else {
            return Err(broken(1, "the header is missing"));
        };
        let (header, hash) = checked::<LedgerHeader>(1, first, "")?;
        let (mut records, mut hashes) = (Vec::new(), vec![hash]);
        for (at, line) in lines {
            let (record, hash) = checked::<LedgerRecord>(at + 1, line, &hashes[hashes.len() - 1])?;
            record.event.check().map_err(|error| broken(at + 1, error.to_string()))?;
            if records.last().is_some_and(|last: &LedgerRecord| record.step < last.step) {
                return Err(broken(at + 1, "goes back to an earlier step"));
            }
            records.push(record);
            hashes.push(hash);
        }
        let torn = whole_bytes < bytes.len();
        Ok(Self { header, records, torn, hashes, whole_bytes: whole_bytes as u64 })
    }

    /// Hash of the last line.
    pub fn head(&self) -> &str {
        self.hashes.last().map_or("", String::as_str)
    }

    /// Steps paid for.
    pub fn steps(&self) -> u64 {
        self.records.last().map_or(0, |record| record.step)
    }

    /// Whether this ledger continues one that had `records` records and the hash `head`: what a
    /// checkpoint knows. A ledger that was cut off or rewritten does not.
    pub fn verify_against(&self, records: u64, head: &str) -> Result<(), Error> {
        let at = usize::try_from(records).unwrap_or(usize::MAX);
        match self.hashes.get(at) {
            Some(hash) if hash == head => Ok(()),
            Some(_) => Err(broken(
                at + 1,
                "is not the line that the checkpoint knows: the ledger was rewritten",
            )),
            None => Err(broken(
                self.hashes.len() + 1,
                format!(
                    "is missing: {} charges are here, the checkpoint knows {records}",
                    self.records.len()
                ),
            )),
        }
    }

    /// ε of the first `records` charges at the header's δ; all of them if there are fewer.
    pub fn epsilon_after(&self, records: usize, method: Method) -> Result<Bracket, Error> {
        let mut accountant = method.accountant(self.header.adjacency);
        for record in self.records.iter().take(records) {
            accountant.compose(&record.event, record.count)?;
        }
        accountant.epsilon(self.header.delta)
    }
}
