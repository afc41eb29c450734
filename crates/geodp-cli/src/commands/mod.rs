//! The commands of `geodp`, one file each: an `Args` struct for clap, and `run`.

pub(crate) mod demo;
