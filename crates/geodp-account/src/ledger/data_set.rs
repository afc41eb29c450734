//! The ledger of a data set: every run on it is charged here in full before it starts, and none starts
//! that would take the total beyond what the owner allows.
//!
//! A run's ε is of that run alone; what several runs on the same records reveal together is the
//! composition of all their events, which is what stands here. A charge is never taken back: a run that
//! stops early has had the chance to look. The file is locked while it is open, so that two processes
//! cannot both find room for themselves.

use super::chain::{Chain, ChainEnd, broken};
use crate::{Account, Adjacency, Arithmetic, Claim, Denominator, Error, Event, Terms, rounded_up};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;

/// What the whole file is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataLedgerHeader {
    /// Version of this layout.
    format: Format,
    /// δ its total is stated at; its neighbours are zero-out.
    pub delta: f64,
    /// What all runs together may spend; absent where there is no limit.
    pub total_epsilon: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Format {
    #[serde(rename = "geodp-data-ledger-1")]
    V1,
}

/// The whole planned cost of a run, or what it must pay again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataLedgerRecord {
    /// Which run, as its own ledger's header says.
    pub run: String,
    /// What it protects: "record", or the name of a unit of several rows.
    #[serde(default = "a_record")]
    pub unit: String,
    /// In which arithmetic it computes.
    pub arithmetic: Arithmetic,
    /// Draws of noise it makes, at most.
    pub noise_draws: u64,
    /// What it costs.
    pub event: Event,
    /// How many times.
    pub count: u64,
}

/// What was protected before ledgers said it.
fn a_record() -> String {
    "record".to_owned()
}

/// A data set's ledger, held by this process until it is dropped.
#[derive(Debug)]
pub struct DataLedger {
    end: ChainEnd,
    header: DataLedgerHeader,
    records: Vec<DataLedgerRecord>,
}

impl DataLedger {
    /// Opens the file and waits for whoever holds it; a new one is made for `delta` and the total.
    ///
    /// # Errors
    /// A file that is no ledger of a data set; a total that differs from the file's.
    pub fn open(path: &Path, delta: f64, total_epsilon: Option<f64>) -> Result<Self, Error> {
        crate::error::check_delta(delta)?;
        if let Some(total) = total_epsilon {
            crate::error::positive("total epsilon", total)?;
        }
        let mut file = private_file(path)?;
        file.lock()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if !bytes.contains(&b'\n') {
            // Nothing, or a header that was torn before anything could be charged.
            file.set_len(0)?;
            let header = DataLedgerHeader { format: Format::V1, delta, total_epsilon };
            let mut end = ChainEnd::empty(file);
            end.append(&header)?;
            end.file.sync_all()?;
            sync_folder(path)?;
            return Ok(Self { end, header, records: Vec::new() });
        }
        let chain: Chain<DataLedgerHeader, DataLedgerRecord> = Chain::parse(&bytes)?;
        crate::error::check_delta(chain.header.delta).map_err(|e| broken(1, e.to_string()))?;
        for (at, record) in chain.records.iter().enumerate() {
            record.event.check().map_err(|error| broken(at + 2, error.to_string()))?;
        }
        let end = ChainEnd::of(file, &chain)?;
        let found = chain.header.total_epsilon;
        if let Some(given) = total_epsilon
            && found != Some(given)
        {
            return Err(Error::OtherTotal { given, found });
        }
        Ok(Self { end, header: chain.header, records: chain.records })
    }

    /// What the file is about.
    pub fn header(&self) -> &DataLedgerHeader {
        &self.header
    }

    /// Whether this run was charged.
    pub fn knows(&self, run: &str) -> bool {
        self.records.iter().any(|record| record.run == run)
    }

    /// Runs charged.
    pub fn runs(&self) -> usize {
        let mut runs: Vec<&str> = self.records.iter().map(|record| record.run.as_str()).collect();
        runs.sort_unstable();
        runs.dedup();
        runs.len()
    }

    /// Whether the total allows a run.
    ///
    /// # Errors
    /// [`Error::TotalExceeded`]; [`Error::OtherUnit`]; an event out of its range.
    pub fn fits(&self, record: &DataLedgerRecord) -> Result<(), Error> {
        record.event.check()?;
        // An ε for a row and one for a person do not add up to anything.
        if let Some(other) = self.records.iter().find(|other| other.unit != record.unit) {
            return Err(Error::OtherUnit { found: other.unit.clone(), given: record.unit.clone() });
        }
        let Some(total) = self.header.total_epsilon else { return Ok(()) };
        let after = self.account_with(Some(record))?.claim()?;
        if after.upper() <= total {
            return Ok(());
        }
        Err(Error::TotalExceeded {
            total,
            after: after.short(),
            spent: rounded_up(self.claim()?.upper()),
            runs: self.runs(),
        })
    }

    /// Charges a run, durably, if the total allows it.
    ///
    /// # Guarantee
    /// On error nothing was charged.
    ///
    /// # Errors
    /// [`Error::TotalExceeded`]; an event out of its range; a failed write.
    pub fn charge(&mut self, record: DataLedgerRecord) -> Result<(), Error> {
        self.fits(&record)?;
        self.end.append(&record)?;
        self.records.push(record);
        Ok(())
    }

    /// What all runs together cost.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn claim(&self) -> Result<Claim, Error> {
        self.account_with(None)?.claim()
    }

    fn account_with(&self, next: Option<&DataLedgerRecord>) -> Result<Account, Error> {
        let all = || self.records.iter().chain(next);
        let exact = all().all(|record| record.arithmetic == Arithmetic::Exact);
        let mut account = Account::new(Terms {
            adjacency: Adjacency::ZeroOut,
            delta: self.header.delta,
            arithmetic: if exact { Arithmetic::Exact } else { Arithmetic::FloatingPoint },
            denominator: Denominator::ExpectedBatch,
            noise_draws: all().fold(0, |sum, record| sum.saturating_add(record.noise_draws)),
        });
        for record in all() {
            account.charge(&record.event, record.count)?;
        }
        Ok(account)
    }
}

/// Opens or makes a file that its owner alone can read.
fn private_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Makes the name of a new file durable.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent() {
        Some(folder) if cfg!(unix) && !folder.as_os_str().is_empty() => {
            File::open(folder)?.sync_all()
        }
        _ if cfg!(unix) => File::open(".")?.sync_all(),
        _ => Ok(()),
    }
}
