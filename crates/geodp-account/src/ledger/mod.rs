//! The ledger of a run: an append-only record of events, one JSON object a line, each line chained to
//! the one before.
//!
//! Line 1 is the header: everything a claim needs besides the events. Every further line is
//! `{"step", "event", "count", "previous", "hash"}`. Changing, removing, adding or reordering a line
//! breaks the chain there, and the error names the line. Cutting whole lines off the end leaves a valid
//! chain: whoever keeps the head elsewhere (a checkpoint) finds that with [`Ledger::verify_against`].
//! The chain has no key: it finds accidents, not an owner who writes another one.

mod chain;
mod data_set;
mod writer;

pub use data_set::{DataLedger, DataLedgerHeader, DataLedgerRecord};
pub use writer::LedgerWriter;

use crate::{Account, Error, Event, Terms};
use chain::{Chain, broken};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What the whole ledger is about, written before the first release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LedgerHeader {
    /// Version of this layout.
    pub format: LedgerFormat,
    /// Adjacency, δ and arithmetic of its claims.
    pub terms: Terms,
    /// What ties it to its plan: any text; a run's is the SHA-256 of its config.
    pub plan: String,
    /// What a statement needs besides; absent in ledgers that are kept without a run folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<LedgerRun>,
}

/// The run that a ledger belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerRun {
    /// Random, and the same for as long as the run lives.
    pub id: String,
    /// What is protected: "record".
    pub unit: String,
    /// N, public.
    pub records: u64,
    /// How gradients are made private.
    pub mechanism: String,
    /// σ as it was settled; absent without privacy.
    pub noise_multiplier: Option<f64>,
    /// Seed of the noise, where it has one: then nothing is private against those who know it.
    pub seed: Option<u64>,
    /// Keyed hash of the records.
    pub data: String,
    /// Version of the program that began the run.
    pub version: String,
}

impl LedgerHeader {
    /// Of a ledger under these terms, tied to `plan`.
    pub fn new(terms: Terms, plan: &str, run: Option<LedgerRun>) -> Self {
        Self { format: LedgerFormat::V2, terms, plan: plan.to_owned(), run }
    }
}

/// Versions of the layout; the meaning of a version never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LedgerFormat {
    /// The layout described above.
    #[serde(rename = "geodp-ledger-2")]
    V2,
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

/// A ledger that was read and verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// What it is about.
    pub header: LedgerHeader,
    /// Every charge, in order.
    pub records: Vec<LedgerRecord>,
    /// Whether a torn last line was passed over.
    pub torn: bool,
    hashes: Vec<String>,
}

impl Ledger {
    /// Reads and verifies a ledger file.
    ///
    /// # Errors
    /// A file that cannot be read, or the line that does not fit.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&std::fs::read(path)?)
    }

    /// Verifies a ledger's bytes.
    ///
    /// # Errors
    /// The line that does not fit.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::of(Chain::parse(bytes)?)
    }

    fn of(chain: Chain<LedgerHeader, LedgerRecord>) -> Result<Self, Error> {
        let Chain { header, records, torn, hashes, .. } = chain;
        crate::error::check_delta(header.terms.delta).map_err(|e| broken(1, e.to_string()))?;
        let mut step = 0;
        for (at, record) in records.iter().enumerate() {
            record.event.check().map_err(|error| broken(at + 2, error.to_string()))?;
            if record.step < step {
                return Err(broken(at + 2, "goes back to an earlier step"));
            }
            step = record.step;
        }
        Ok(Self { header, records, torn, hashes })
    }

    /// Hash of the last line.
    pub fn head(&self) -> &str {
        self.hashes.last().map_or("", String::as_str)
    }

    /// Steps paid for.
    pub fn steps(&self) -> u64 {
        self.records.last().map_or(0, |record| record.step)
    }

    /// Steps paid for before the block that was charged last: what had to be done before it.
    pub fn steps_before_last_block(&self) -> u64 {
        let earlier = self.records.iter().map(|record| record.step);
        earlier.filter(|step| *step < self.steps()).max().unwrap_or(0)
    }

    /// Whether this ledger continues one that had `records` records and the hash `head`: what a
    /// checkpoint knows. A ledger that was cut off or rewritten does not.
    ///
    /// # Errors
    /// The line that is missing or different.
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

    /// Everything charged, to make claims of.
    ///
    /// # Errors
    /// An event out of its range.
    pub fn account(&self) -> Result<Account, Error> {
        let mut account = Account::new(self.header.terms);
        for record in &self.records {
            account.charge(&record.event, record.count)?;
        }
        Ok(account)
    }
}
