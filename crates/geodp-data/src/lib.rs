//! Datasets for private training.
//!
//! | data | from | how |
//! |---|---|---|
//! | MNIST | inside the binary | [`mnist::load`] |
//! | CIFAR-10 | its official site, a folder or an archive | [`cifar10::download`], [`cifar10::import`], [`cifar10::open`] |
//! | IDX (Fashion-MNIST, …), NPY | two files, plain or gzip | [`load_pair`], [`load_inputs`] |
//! | CSV, TSV (plain or gzip), Parquet | a file and a schema file | [`table::read`], [`table::read_with`] |
//! | images by class | a folder of PNG and JPEG | [`images::load`] |
//!
//! Everything becomes a [`Dataset`]: inputs of one shape, a label each, a number of classes. What is
//! done to inputs is declared by the caller and never learnt from the records ([`Scaling`],
//! [`FeatureSpec`], [`ViewSpec`]). Where several rows are one person's, [`Units`] says which. A bad
//! file is a [`DataError`] that says what to do, and leaves nothing behind.
//!
//! ```
//! use geodp_data::{Scaling, mnist};
//!
//! let digits = mnist::load_test(&mnist::standard_scaling())?;
//! assert_eq!((digits.len(), digits.input_len(), digits.classes()), (10_000, 784, 10));
//! let zero_or_one = digits.only_labels(&[0, 1])?.rescaled(&Scaling::Unit)?;
//! assert_eq!(zero_or_one.len(), 2115);
//! # Ok::<(), geodp_data::DataError>(())
//! ```

mod array;
pub mod cifar10;
mod dataset;
mod digest;
mod download;
mod error;
mod features;
mod files;
mod fingerprint;
mod format;
pub mod idx;
pub mod images;
pub mod mnist;
pub mod npy;
mod records;
mod samples;
mod scaling;
mod source;
pub mod table;
mod unit_column;
mod units;
mod views;

pub use array::{Array, PairOptions, PairPart, Values, load_inputs, load_pair};
pub use dataset::{Dataset, Split, held_back};
pub use digest::{Fingerprint, hex};
pub use error::{DataError, Place};
pub use features::{FeatureSpec, Storage};
pub use files::default_data_dir;
pub use fingerprint::{FingerprintPart, share};
pub use format::Kind;
pub use records::Records;
pub use samples::Unlabelled;
pub use scaling::{Scaling, Shape};
pub use source::Source;
pub use unit_column::UnitColumn;
pub use units::Units;
pub use views::{View, ViewSpec, Viewed};
