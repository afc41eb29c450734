//! All tests of this crate as one program, which links once: a new file of tests wants its line here.

mod accounting;
mod audit;
mod choices;
mod commands;
mod common;
mod export;
mod guide;
mod lab;
mod own_data;
mod same_bits;
mod survival;
mod truth;
