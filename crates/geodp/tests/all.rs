//! All tests of this crate as one program, which links once: a new file of tests wants its line here.

mod blocks;
mod canary;
mod certified;
mod exact;
mod federated;
mod follow;
mod own;
mod page;
mod plan;
mod quantile;
mod strategies;
mod table_units;
mod tampering;
mod team;
mod units;
mod views;
