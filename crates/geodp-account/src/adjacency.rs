//! Which pairs of data sets count as neighbours: part of every result.
//!
//! Each record contributes a vector of norm at most C. Adding, removing or blanking
//! one moves the sum by at most C; replacing one moves it by at most 2C. The
//! same event therefore costs more under [`Adjacency::ReplaceOne`].
//!
//! Trainings state [`Adjacency::ZeroOut`]: N is public (it fixes q, the steps and σ), so a neighbour
//! must have the same N. A blank record is drawn like any other and contributes nothing, which is what
//! a record that is not there contributes: the mathematics is that of [`Adjacency::AddRemove`].

use serde::{Deserialize, Serialize};
use std::fmt;

/// The neighbouring relation a guarantee speaks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One record is added or removed.
    AddRemove,
    /// One record's content is replaced by a blank one, which contributes nothing; the number of
    /// records is public.
    ZeroOut,
    /// One record is replaced by another; the number of records is public.
    ReplaceOne,
}

impl fmt::Display for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Adjacency::AddRemove => "add-remove",
            Adjacency::ZeroOut => "zero-out",
            Adjacency::ReplaceOne => "replace-one",
        })
    }
}

impl std::str::FromStr for Adjacency {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "add-remove" => Ok(Adjacency::AddRemove),
            "zero-out" => Ok(Adjacency::ZeroOut),
            "replace-one" => Ok(Adjacency::ReplaceOne),
            _ => Err(crate::Error::UnknownName {
                what: "adjacency",
                found: text.to_owned(),
                known: "zero-out, add-remove, replace-one",
            }),
        }
    }
}
