//! All tests of this crate as one program, which links once: a new file of tests wants its line here.

mod calibrate;
mod contour;
mod data_ledger;
mod extremes;
mod golden;
mod integration;
mod ledger;
mod polar;
mod properties;
mod table;
