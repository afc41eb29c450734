//! Appending to a ledger: a charge is on the disk before `append` returns.

use super::{Ledger, LedgerFormat, LedgerHeader, LedgerRecord, line_of};
use crate::{Adjacency, Error, Event};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// The one who may write to a ledger.
#[derive(Debug)]
pub struct LedgerWriter {
    file: File,
    records: u64,
    head: String,
    /// Length of what is known to be whole.
    whole_bytes: u64,
}

impl LedgerWriter {
    /// Starts a new ledger, replacing whatever is at `path`; its header is durable on return.
    pub fn create(
        path: &Path,
        adjacency: Adjacency,
        delta: f64,
        plan: &str,
    ) -> Result<Self, Error> {
        let header =
            LedgerHeader { format: LedgerFormat::V1, adjacency, delta, plan: plan.to_owned() };
        let (line, head) = line_of("", header)?;
        let mut file = File::create(path)?;
        file.write_all(line.as_bytes())?;
        file.sync_all()?;
        Ok(Self { file, records: 0, head, whole_bytes: line.len() as u64 })
    }

    /// Continues a ledger after verifying it; a torn last line is removed.
    pub fn open(path: &Path) -> Result<(Self, Ledger), Error> {
        let ledger = Ledger::read(path)?;
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(ledger.whole_bytes)?;
        file.sync_all()?;
        let writer = Self {
            file,
            records: ledger.records.len() as u64,
            head: ledger.head().to_owned(),
            whole_bytes: ledger.whole_bytes,
        };
        Ok((writer, ledger))
    }

    /// Charges `event`, `count` times, which pays for the run's steps before `step`.
    ///
    /// # Guarantee
    /// On success the charge is durable. On error nothing was charged, and what was written of it
    /// is taken back where the system allows; otherwise it is a torn line, which readers pass over.
    pub fn append(&mut self, step: u64, event: &Event, count: u64) -> Result<(), Error> {
        event.check()?;
        let record = LedgerRecord { step, event: event.clone(), count };
        let (line, head) = line_of(&self.head, record)?;
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            let _ = self.file.set_len(self.whole_bytes);
            return Err(error.into());
        }
        self.head = head;
        self.records += 1;
        self.whole_bytes += line.len() as u64;
        Ok(())
    }

    /// Charges so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Hash of the last line.
    pub fn head(&self) -> &str {
        &self.head
    }
}
