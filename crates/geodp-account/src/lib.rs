//! Differential-privacy accounting whose answers are brackets: the truth lies
//! between `lower` and `upper`, and `upper` is a bound, not an estimate.
//!
//! The flow: [`Event`]s say what was done, an [`Accountant`] ([`PldAccountant`],
//! [`RdpAccountant`]) composes them for an [`Adjacency`] and answers ε(δ) or
//! δ(ε) as a [`Bracket`]. [`calibrate`] turns the question
//! round, a [`Budget`] refuses what does not fit, a [`Ledger`] keeps the events of a
//! run and a [`DataLedger`] those of all runs on one data set, and an [`Account`] turns events into [`Claim`]s, which never print an ε without its kind.
//!
//! | symbol | name | meaning |
//! |---|---|---|
//! | ε, δ | `epsilon`, `delta` | privacy budget |
//! | σ | `noise_multiplier` | noise std / bound on one record's contribution |
//! | q | `sample_rate` | Poisson sampling probability |
//! | T | `count`, `steps` | number of compositions |
//! | α | `order` | Rényi order |
//! | λ | `tilt` | α − 1 |
//!
//! ```
//! use geodp_account::{Accountant, Adjacency, Event, PldAccountant};
//! let mut accountant = PldAccountant::new(Adjacency::AddRemove);
//! accountant.compose(&Event::sampled_gaussian(0.01, 1.0), 1000)?;
//! let epsilon = accountant.epsilon(1e-5)?;
//! assert!(epsilon.contains(1.8284) && epsilon.width() < 0.01 * epsilon.upper);
//! # Ok::<(), geodp_account::Error>(())
//! ```

mod account;
mod accountant;
mod adjacency;
mod bracket;
mod budget;
pub mod calibrate;
mod claim;
mod digits;
mod error;
mod event;
mod gaussian;
mod ledger;
mod measured;
mod misses;
mod normal;
mod pld;
mod rdp;

pub use account::Account;
pub use accountant::{Accountant, Method};
pub use adjacency::Adjacency;
pub use bracket::{Bracket, Reason};
pub use budget::Budget;
pub use claim::{Arithmetic, Claim, Counted, Denominator, Kind, Terms};
pub use digits::rounded_up;
pub use error::Error;
pub use event::{Event, MOST_STEPS};
pub use gaussian::analytic_gaussian_sigma;
pub use ledger::{
    DataLedger, DataLedgerHeader, DataLedgerRecord, Ledger, LedgerFormat, LedgerHeader,
    LedgerRecord, LedgerRun, LedgerWriter,
};
pub use measured::Measured;
pub use misses::delta_of_misses;
pub use pld::PldAccountant;
pub use rdp::{OptimalOrder, RdpAccountant, default_orders};
