//! What a plan buys: σ settled, the ledger's event, ε so far, and where a limit stops.
//!
//! | mechanism, sampling | one unit | its cost | kind |
//! |---|---|---|---|
//! | DP, Poisson | a step | sampled Gaussian(q, σ), zero-out | certified |
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
