//! The one interface of all accountants.

use crate::{Adjacency, Bracket, Error, Event, PldAccountant, RdpAccountant};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Composes events, answers questions about all of them together.
///
/// # Guarantee
/// Composition is adaptive: each event may depend on the results of those
/// before. The order of composition does not matter. On error nothing was composed.
pub trait Accountant {
    /// The neighbouring relation of every answer.
    fn adjacency(&self) -> Adjacency;

    /// Adds `event`, `count` times.
    fn compose(&mut self, event: &Event, count: u64) -> Result<(), Error>;

    /// ε at `delta`, which lies strictly between 0 and 1.
    fn epsilon(&self, delta: f64) -> Result<Bracket, Error>;

    /// δ at `epsilon`, which is finite and not negative.
    fn delta(&self, epsilon: f64) -> Result<Bracket, Error>;
}

/// Which accountant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Privacy-loss distributions: tight, two-sided.
    #[default]
    Pld,
    /// Rényi differential privacy: cheap, one-sided.
    Rdp,
}

impl Method {
    /// A fresh accountant of this kind.
    pub fn accountant(self, adjacency: Adjacency) -> Box<dyn Accountant + Send + Sync> {
        match self {
            Method::Pld => Box::new(PldAccountant::new(adjacency)),
            Method::Rdp => Box::new(RdpAccountant::new(adjacency)),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Pld => "pld",
            Method::Rdp => "rdp",
        })
    }
}

impl std::str::FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "pld" => Ok(Method::Pld),
            "rdp" => Ok(Method::Rdp),
            _ => Err(Error::UnknownName {
                what: "accountant",
                found: text.to_owned(),
                known: "pld, rdp",
            }),
        }
    }
}
