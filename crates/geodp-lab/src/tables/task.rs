//! What a table trains: data, network, and how large the experiment is.

use super::protocol::Protocol;
use super::rows::SMALL_BATCH;
use crate::Error;
use crate::options::{Options, Size};
use geodp_data::{DataError, Dataset, Records, Shape, Split, cifar10, mnist};
use geodp_nn::{Network, NetworkSpec, ResnetSpec};

/// The size of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// Records and batch sizes are divided by this, so that rates q and steps stay the paper's.
    pub divide: u64,
    /// Passes over the records.
    pub epochs: u64,
    /// η: one public grid for every method.
    pub rates: Vec<f64>,
    /// How B is read.
    pub protocol: Protocol,
}

impl Scale {
    /// Length of the search's trainings at this (full) B. As stated: a quarter of the training at
    /// B = 8192, and as many steps at any other B; large steps need some forty before they pay. Otherwise an
    /// eighth of the training, whatever B is: there are steps enough.
    pub fn search_epochs(&self, batch: u64) -> u64 {
        match self.protocol {
            Protocol::AsStated => (self.epochs * batch).div_ceil(4 * SMALL_BATCH).max(1),
            Protocol::SmallSteps | Protocol::Trained => self.epochs.div_ceil(8),
        }
    }
}

/// Data and network of a table.
pub struct Task {
    /// Training and test records.
    pub data: Split,
    /// The search trains on the first part and measures on the second; both from the training set.
    pub search: Split,
    /// The model.
    pub network: Network,
}

/// Decides which training records the search of η holds back.
const SEARCH_SPLIT_SEED: u64 = 20_000_000;

/// Which of the paper's two trainings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// The CNN on MNIST.
    Mnist,
    /// The ResNet on CIFAR-10.
    Cifar10,
}

impl Which {
    /// The experiment's size under these options.
    pub fn scale(self, protocol: Protocol, options: &Options) -> Scale {
        // Clipped gradients are at most C = 0.1 long and there are 60 to 150 steps: rates are large.
        // The CNN on the held-back records at σ = 1, B = 16384, 20 epochs: DP 71 % with η = 4, 92.6 %
        // with 32, 91.6 % with 64; GeoDP at β = 0.1 94.4 % with 64.
        let rates = match (self, protocol) {
            (Self::Mnist, Protocol::AsStated) => vec![16.0, 32.0, 64.0, 128.0],
            (Self::Cifar10, Protocol::AsStated) => vec![8.0, 16.0, 32.0, 64.0],
            (_, Protocol::SmallSteps) => vec![1.0, 2.0, 4.0, 8.0],
            (_, Protocol::Trained) => vec![4.0, 8.0, 16.0, 32.0],
        };
        let (divide, epochs) = match (self, options.size) {
            (_, Size::Full) => (1, 20),
            (Self::Mnist, Size::Quick) => (16, 4),
            (Self::Cifar10, Size::Quick) => (32, 2),
            (_, Size::Tiny) => (128, 1),
        };
        let epochs = options.epochs.unwrap_or(epochs);
        Scale { divide, epochs, rates, protocol }
    }

    /// Training records of the full data set.
    pub fn records(self) -> u64 {
        match self {
            Self::Mnist => 60_000,
            Self::Cifar10 => 50_000,
        }
    }

    /// Samples a second that a private training handles on two cores, for the expected time.
    pub fn samples_per_second(self, protocol: Protocol) -> f64 {
        match (self, protocol) {
            (Self::Mnist, Protocol::AsStated) => 40_000.0,
            (Self::Mnist, Protocol::SmallSteps | Protocol::Trained) => 30_000.0,
            (Self::Cifar10, Protocol::AsStated) => 15_000.0,
            (Self::Cifar10, Protocol::SmallSteps | Protocol::Trained) => 12_000.0,
        }
    }

    /// In words, for captions.
    pub fn words(self) -> &'static str {
        match self {
            Self::Mnist => "the CNN with 21,840 parameters on MNIST",
            Self::Cifar10 => "the ResNet with three residual blocks on CIFAR-10",
        }
    }

    /// Loads the data and builds the network.
    ///
    /// # Errors
    /// CIFAR-10 that is not on this machine.
    pub fn open(self, options: &Options) -> Result<Task, Error> {
        let mut data = match self {
            Self::Mnist => mnist::load(&mnist::standard_scaling())?,
            // Tests need no download.
            Self::Cifar10 if options.size == Size::Tiny => stripes()?,
            Self::Cifar10 => cifar10::open(&options.data_dir, &cifar10::standard_scaling())?,
        };
        // The data is the same under every reading of B.
        let divide = self.scale(Protocol::AsStated, options).divide as usize;
        if divide > 1 && data.train.name() != STRIPES {
            let first = |count: usize| (0..count / divide).collect::<Vec<usize>>();
            data.train = data.train.subset(&first(data.train.len()))?;
            data.test = data.test.subset(&first(data.test.len()))?;
        }
        let held_back = data.train.len() / 6;
        let (train, test) = data.train.split_off(held_back, SEARCH_SPLIT_SEED)?;
        Ok(Task { data, search: Split { train, test }, network: self.network()? })
    }

    /// The model.
    ///
    /// # Errors
    /// None for these two.
    pub fn network(self) -> Result<Network, Error> {
        let spec = match self {
            Self::Mnist => NetworkSpec::cnn(),
            Self::Cifar10 => NetworkSpec::resnet(&ResnetSpec::default()),
        };
        Ok(spec.build()?)
    }
}

const STRIPES: &str = "stripes";

/// A few images of CIFAR-10's shape in ten classes that differ in the width of their stripes.
fn stripes() -> Result<Split, DataError> {
    let part = |count: usize| {
        let pixel = |at: usize| ((at % 3072) / (1 + at / 3072 % 10) % 2 * 255) as u8;
        let pixels = (0..count * 3072).map(pixel).collect::<Vec<u8>>();
        let shape = Shape::image(3, 32, 32);
        let records = Records::from_bytes(shape, pixels.into(), &cifar10::standard_scaling())?;
        let labels = (0..count as u32).map(|i| i % 10).collect();
        let names = cifar10::CLASS_NAMES.map(str::to_owned).to_vec();
        Dataset::new(STRIPES, records, labels, names)
    };
    Ok(Split { train: part(390)?, test: part(50)? })
}
