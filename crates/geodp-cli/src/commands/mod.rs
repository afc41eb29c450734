//! The commands of `geodp`, one file each: an `Args` struct for clap, and `run`.

pub(crate) mod account;
pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod data;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod export;
pub(crate) mod lab;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod report;
pub(crate) mod settings;
pub(crate) mod train;
