//! What the records of one data set showed: for its owner only, never a guarantee.

use crate::rounded_up;
use serde::Serialize;
use std::fmt;

/// What the records of one data set showed. Depends on the data: not for release.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// Largest per-record ε.
    pub epsilon_largest: f64,
    /// Median per-record ε.
    pub epsilon_median: f64,
    /// δ of both.
    pub delta: f64,
    /// Share of records that moved no further than assumed.
    pub share_inside: f64,
    /// Smallest β at which every record measured is inside; GeoDP only.
    pub beta_safe: Option<f64>,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "measured on this data, for its owner only: per-record ε up to {} (median {}) at δ = {:e}; \
             {:.2} % of records within what the noise was scaled for",
            rounded_up(self.epsilon_largest),
            rounded_up(self.epsilon_median),
            self.delta,
            100.0 * self.share_inside
        )?;
        match self.beta_safe {
            Some(beta) => write!(f, ", all of them at β = {beta:.4}"),
            None => Ok(()),
        }
    }
}
