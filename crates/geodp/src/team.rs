//! One training in several processes, with the bits of one: each holds a share of the records.
//!
//! The first process (rank 0) holds the noise's key, the sampler, the ledger, the optimiser and the run
//! folder, and its own share. For a step it sends the weights to all, and to each the places of the batch
//! that are its records; each adds up its clipped gradients as integers, and the integers are added to
//! one sum. Integers have the same sum in any order, so the number of processes changes no bit of what is
//! released, and nothing about privacy: the others see weights and clean sums, never the key. They must
//! be of one trust domain.
//!
//! | message | what |
//! |---|---|
//! | load | the config; the answer says which data were found, by which program |
//! | sum | Σ n_i over the receiver's part of a batch, norms and losses |
//! | norms, losses | of the receiver's part of a batch |
//! | stop | the end |
//!
//! How bytes travel is a [`Link`]: MPI in geodp-mpi, channels between threads in tests. A process that
//! fails says why and the training ends; a process that dies ends the job. Both are resumed like any run,
//! by any number of processes.

pub mod cost;
mod joined;
mod wire;
mod worker;

pub(crate) use joined::Joined;
pub use worker::{Worker, serve};

use crate::Error;
use crate::config::RunConfig;
use crate::params::ClipKind;
use geodp_account::Arithmetic;
use geodp_data::table::ImportReport;
use geodp_data::{Fingerprint, FingerprintPart};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::{Request, Wire};

/// How processes speak with each other. Every call is made by one thread at a time.
pub trait Link: Send + Sync {
    /// Which process this is, from 0.
    fn rank(&self) -> usize;
    /// How many there are.
    fn size(&self) -> usize;
    /// Sends bytes to a process.
    ///
    /// # Errors
    /// If the other process cannot be reached.
    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), LinkError>;
    /// Receives what a process sent.
    ///
    /// # Errors
    /// If the other process cannot be reached.
    fn receive(&self, from: usize) -> Result<Vec<u8>, LinkError>;
    /// Overwrites `values` by those of rank 0, in all processes.
    ///
    /// # Errors
    /// If a process cannot be reached.
    fn broadcast(&self, values: &mut [f32]) -> Result<(), LinkError>;
    /// Overwrites `values` of rank 0 by the sums over all processes.
    ///
    /// # Errors
    /// If a process cannot be reached.
    fn sum_to_first(&self, values: &mut [i64]) -> Result<(), LinkError>;
}

/// A process that cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "another process of this training cannot be reached: {0}. Resume the run when all can start"
)]
pub struct LinkError(pub String);

/// Refuses what several processes cannot do with the bits of one.
pub(crate) fn check(config: &RunConfig) -> Result<(), Error> {
    let reason = if !config.privacy.mechanism.is_private() {
        "training without privacy adds up in floating point, where the order of records decides the \
         bits: train it in one process"
    } else if config.privacy.arithmetic == Some(Arithmetic::FloatingPoint) {
        "sums in floating point depend on the order of records: leave arithmetic at exact, or train in \
         one process"
    } else if config.train.measure.is_some() {
        "measuring follows single gradients, which stay in the process that holds the record: measure \
         in one process"
    } else {
        return Ok(());
    };
    Err(Error::Plan(reason.to_owned()))
}

/// What a process found before the first step; all must agree on it, but for what is their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Of everything that training records are read from.
    pub(crate) source: Fingerprint,
    /// Units of the whole.
    pub(crate) units: u64,
    /// Parameters of the model.
    pub(crate) dim: u64,
    /// Program, arithmetic and processor, as far as bits depend on them.
    pub(crate) machine: String,
    /// The process's part of the records' fingerprint: its own.
    pub(crate) part: FingerprintPart,
    /// What reading did to its records, where that is counted: its own.
    pub(crate) report: Option<ImportReport>,
}

/// Tells all processes to stop when it goes, so that none waits for ever.
pub struct Leader {
    link: Arc<dyn Link>,
    traffic: Traffic,
}

/// What one process of several sent and received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TeamTraffic {
    /// How many processes there are.
    pub processes: usize,
    /// Messages, broadcasts and reductions of rank 0.
    pub messages: u64,
    /// Their bytes; a broadcast or a reduction counted once, however it travels.
    pub bytes: u64,
}

/// What went through the link since all processes agreed.
#[derive(Debug, Default)]
struct Traffic {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    fn add(&self, messages: usize, bytes: usize) {
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn forget(&self) {
        self.messages.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }
}

impl Leader {
    /// Of a link whose rank 0 is this process.
    pub fn new(link: Arc<dyn Link>) -> Arc<Self> {
        Arc::new(Self { link, traffic: Traffic::default() })
    }

    /// How many processes there are.
    pub fn size(&self) -> usize {
        self.link.size()
    }

    /// How the others are reached.
    pub fn link(&self) -> &dyn Link {
        &*self.link
    }

    /// What went through the link since all processes agreed.
    pub fn traffic(&self) -> TeamTraffic {
        let Traffic { messages, bytes } = &self.traffic;
        TeamTraffic {
            processes: self.size(),
            messages: messages.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
        }
    }

    fn send(&self, to: usize, request: &Request) -> Result<(), LinkError> {
        let bytes = request.bytes();
        self.traffic.add(1, bytes.len());
        self.link.send(to, &bytes)
    }

    /// The answer of a process, or the reason why it has none.
    fn answer<T: Wire>(&self, from: usize) -> Result<T, Error> {
        let bytes = self.link.receive(from)?;
        self.traffic.add(1, bytes.len());
        match Result::<T, String>::read(&bytes) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(reason)) => Err(Error::Process { rank: from, reason }),
            None => {
                let reason = "its answer cannot be understood; start the same program everywhere";
                Err(Error::Process { rank: from, reason: reason.to_owned() })
            }
        }
    }

    /// Tells the others what to load.
    pub(crate) fn begin(&self, config: &str, folder: Option<&str>) -> Result<(), Error> {
        let folder = folder.unwrap_or_default().to_owned();
        for rank in 1..self.size() {
            self.send(rank, &Request::Load { config: config.to_owned(), folder: folder.clone() })?;
        }
        Ok(())
    }

    /// Holds what the others found against what this process found, if it found anything.
    pub(crate) fn agree(&self, own: Option<&Found>) -> Result<Vec<Found>, Error> {
        // All are heard before any is refused: a message left unread would be taken for another.
        let found: Vec<Result<Found, Error>> =
            (1..self.size()).map(|rank| self.answer(rank)).collect();
        self.traffic.forget();
        let Some(own) = own else { return Ok(Vec::new()) };
        let check = |(at, found): (usize, Result<Found, Error>)| {
            let found = found?;
            let differs = [
                ("another program or processor", found.machine != own.machine),
                ("other training data", found.source != own.source),
                ("another number of units", found.units != own.units),
                ("other classes, scaling or targets", found.part.head != own.part.head),
                ("a model of another size", found.dim != own.dim),
            ];
            match differs.into_iter().find(|(_, differs)| *differs) {
                None => Ok(found),
                Some((what, _)) => {
                    let reason = format!(
                        "it has {what}: {found}, where the first process has {own}. Nothing was trained"
                    );
                    Err(Error::Process { rank: at + 1, reason })
                }
            }
        };
        found.into_iter().enumerate().map(check).collect()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, units, dim, machine, .. } = self;
        write!(f, "{units} units of data {source}, {dim} parameters, {machine}")
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        for rank in 1..self.size() {
            // One that is gone needs no word.
            let _ = self.send(rank, &Request::Stop);
        }
    }
}

/// A config's clipping rule, which every process can make.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SentClip {
    pub(crate) kind: ClipKind,
    pub(crate) clip_norm: f64,
}
