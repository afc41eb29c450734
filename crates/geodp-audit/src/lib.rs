//! Measures the privacy that was really bought.
//!
//! | audit | asks | answers with |
//! |---|---|---|
//! | [`record_loss`], [`measure`] | how far does each record move what is released? | per-record ε, β that would be safe |
//! | [`one_run`], [`canaries`] | can the coins of m canaries be guessed after one training? | ε is at least … |
//! | [`mechanism`] | can two neighbouring gradients be told apart by their releases? | ε is at least … |
//! | [`membership`] | do members look different from non-members? | ROC, AUC, TPR at low FPR |
//!
//! A lower bound refutes claims below it; it never proves one. What is measured on records depends
//! on them: for the data's owner, not for release. An audit takes a *procedure* (a closure), so that
//! faulty ones can be audited as well as this project's own.

mod binomial;
pub mod canaries;
pub mod cells;
mod claim;
pub mod distinguish;
mod error;
pub mod follow;
pub mod measure;
pub mod mechanism;
pub mod membership;
pub mod one_run;
mod procedure;
pub mod record_loss;
pub mod report;
mod streams;

pub use claim::claims_of;
pub use error::Error;
pub use procedure::Hooks;
pub use streams::AuditStream;
