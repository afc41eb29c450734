//! The tests of this crate as one program, which links once: a new file of tests wants its line here.
//! Those that count memory are programs of their own, with an allocator of their own.

mod common;
mod dataset;
mod features;
mod fuzz;
mod idx;
mod images;
mod mnist;
mod npy;
mod parquet;
mod samples;
mod shares;
mod table;
mod tables;
