//! Where each choice of an audit lies among the streams of [`Purpose::Audit`]. One list, so that no two
//! choices ever share a stream of one source.

use crate::Error;
use geodp_mechanism::{NoiseSource, Purpose, Stream};

/// What a stream of an audit decides. The numbers are addresses: they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum AuditStream {
    /// Which records of a training are followed.
    Followed = 0,
    /// The coins of canaries.
    Coins = 1,
    /// Inputs and labels of canaries.
    Canaries = 2,
    /// Which half of the audited records a pair of shadow models gets.
    Halves = 3,
    /// The mean of the other records in a mechanism audit.
    Others = 10,
    /// The record that is there or not in a mechanism audit.
    Record = 11,
    /// Members to attack.
    Members = 20,
    /// Non-members to attack.
    NonMembers = 21,
}

impl AuditStream {
    /// The stream; `chunk` tells repeated uses apart.
    ///
    /// # Errors
    /// A chunk beyond the largest address.
    pub fn open(self, source: &NoiseSource, chunk: u64) -> Result<Stream, Error> {
        Ok(source.stream(Purpose::Audit, self as u64, chunk)?)
    }
}
