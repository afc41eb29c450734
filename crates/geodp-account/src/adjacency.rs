//! Which pairs of data sets count as neighbours: part of every result.
//!
//! Each record contributes a vector of norm at most C. Adding or removing one
//! record moves the sum by at most C; replacing one moves it by at most 2C. The
//! same event therefore costs more under [`Adjacency::ReplaceOne`].

use serde::{Deserialize, Serialize};
use std::fmt;

/// The neighbouring relation a guarantee speaks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Adjacency {
    /// One record is added or removed.
    AddRemove,
    /// One record is replaced by another; the number of records is public.
    ReplaceOne,
}

impl fmt::Display for Adjacency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Adjacency::AddRemove => "add-remove",
            Adjacency::ReplaceOne => "replace-one",
        })
    }
}

impl std::str::FromStr for Adjacency {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "add-remove" => Ok(Adjacency::AddRemove),
            "replace-one" => Ok(Adjacency::ReplaceOne),
            _ => Err(crate::Error::UnknownName {
                what: "adjacency",
                found: text.to_owned(),
                known: "add-remove, replace-one",
            }),
        }
    }
}
