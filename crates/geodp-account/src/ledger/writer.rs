//! Appending to a run's ledger: a charge is on the disk before `append` returns.

use super::chain::{Chain, ChainEnd};
use super::{Ledger, LedgerHeader, LedgerRecord};
use crate::{Account, Error, Event};
use std::fs::OpenOptions;
use std::path::Path;

/// The one who may write to a ledger, and who knows what it amounts to.
#[derive(Debug)]
pub struct LedgerWriter {
    end: ChainEnd,
    records: u64,
    account: Account,
}

impl LedgerWriter {
    /// Starts a new ledger, replacing whatever is at `path`; its header is durable on return.
    ///
    /// # Errors
    /// A failed write.
    pub fn create(path: &Path, header: &LedgerHeader) -> Result<Self, Error> {
        crate::error::check_delta(header.terms.delta)?;
        // A new file: what was there, and where a link there led, stays out of it.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        let mut end = ChainEnd::empty(file);
        end.append(header)?;
        end.file.sync_all()?;
        Ok(Self { end, records: 0, account: Account::new(header.terms) })
    }

    /// Continues a ledger after verifying it; a torn last line is removed.
    ///
    /// # Errors
    /// The line that does not fit; a failed write.
    pub fn open(path: &Path) -> Result<(Self, Ledger), Error> {
        let chain = Chain::parse(&std::fs::read(path)?)?;
        let end = ChainEnd::of(OpenOptions::new().append(true).open(path)?, &chain)?;
        let ledger = Ledger::of(chain)?;
        let writer = Self { end, records: ledger.records.len() as u64, account: ledger.account()? };
        Ok((writer, ledger))
    }

    /// Charges `event`, `count` times, which pays for the run's steps before `step`.
    ///
    /// # Guarantee
    /// On success the charge is durable. On error nothing was charged.
    ///
    /// # Errors
    /// An event out of its range; a failed write.
    pub fn append(&mut self, step: u64, event: &Event, count: u64) -> Result<(), Error> {
        let mut account = self.account.clone();
        account.charge(event, count)?;
        self.end.append(LedgerRecord { step, event: event.clone(), count })?;
        self.account = account;
        self.records += 1;
        Ok(())
    }

    /// Everything charged so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Charges so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Hash of the last line.
    pub fn head(&self) -> &str {
        &self.end.head
    }
}
