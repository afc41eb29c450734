//! What a plan buys: σ settled, the ledger's event, ε so far, and where a limit stops.
//!
//! | mechanism, sampling | one unit | its cost | kind |
//! |---|---|---|---|
//! | DP, Poisson | a step | sampled Gaussian(q, σ), add/remove | certified |
//! | DP, shuffle | an epoch | Gaussian(σ), replace-one (sensitivity 2C) | certified |
//! | GeoDP | the same | the same with σ/√2, if the assumption holds | conditional |
//! | with IS | a step, and a release of K | at the candidate rate; its own sampled Gaussian | |
//! | with SUR | a step with its test | both, whether the step is kept or not | |
//! | none | | none: ε = ∞ | |
//!
//! GeoDP's σ/√2: magnitude and direction are two Gaussian releases of the same records.

mod accounting;
mod settle;

pub use accounting::Accounting;
pub(crate) use settle::{Settled, settle};

use serde::{Deserialize, Serialize};
use std::fmt;

/// Which kind an ε is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A theorem without assumptions about the data.
    Certified,
    /// A theorem under an assumption that nothing enforces.
    Conditional,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certified => "certified",
            Self::Conditional => "conditional",
        })
    }
}

/// An ε that says which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpsilonSoFar {
    /// Its kind.
    pub kind: Kind,
    /// The upper end of its bracket; `None` if nothing certifies a finite number.
    pub epsilon: Option<f64>,
    /// The δ it goes with.
    pub delta: f64,
}

impl fmt::Display for EpsilonSoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epsilon {
            Some(epsilon) => write!(f, "{} ε {epsilon:.3}", self.kind),
            None => write!(f, "{} ε ∞", self.kind),
        }
    }
}
