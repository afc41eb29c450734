//! All tests of this crate as one program, which links once: a new file of tests wants its line here.

mod batches;
mod bytes;
mod common;
mod description;
mod exact;
mod golden;
mod gradients;
mod instruction_sets;
mod regression;
mod units;
