//! The 60,000 training images of MNIST (Y. LeCun, C. Cortes, C. Burges), as gzip of the IDX file.
//!
//! Nothing else: registries take packages of up to 10 MB, and these are 9.7. Everything that reads them
//! stands in geodp-data.

/// `train-images-idx3-ubyte.gz`.
pub const TRAIN_IMAGES: &[u8] = include_bytes!("../assets/train-images-idx3-ubyte.gz");
