//! All tests of this crate as one program, which links once: a new file of tests wants its line here.

mod common;
mod data;
mod faults;
mod federated;
mod measure;
mod membership;
mod one_run;
mod units;
