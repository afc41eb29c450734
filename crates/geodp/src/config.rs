//! A whole run as one file: data, model, privacy and training. `run.toml` of every run folder.
//!
//! ```toml
//! [data]
//! source = "csv"                  # "mnist", "cifar10", "idx", "npy", "csv"
//! train = "patients.csv"
//! schema = "schema.toml"
//! holdout = 500                   # no test file: hold back 500 training records
//!
//! [model]
//! name = "mlp"                    # "logistic", "mlp", "cnn", "resnet", "network"
//! hidden = [64]
//! ```
//! followed by the `[privacy]` and `[train]` of [`PlanParams`].

use crate::Error;
use crate::params::{PlanParams, PrivacyParams, TrainParams};
use geodp_data::{Dataset, PairOptions, Scaling, Split, cifar10, idx, mnist, npy, table};
use geodp_nn::{NetworkSpec, ResnetSpec};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything a run is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunConfig {
    /// Where the records come from.
    pub data: DataConfig,
    /// What is trained.
    pub model: ModelConfig,
    /// Mechanism, clipping and budget.
    #[serde(default)]
    pub privacy: PrivacyParams,
    /// Batches, length and optimiser.
    #[serde(default)]
    pub train: TrainParams,
}

/// Where the records come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case", deny_unknown_fields)]
pub enum DataConfig {
    /// The digits inside the binary.
    Mnist {
        /// Only these digits, relabelled from 0 in this order.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        labels: Option<Vec<u32>>,
        /// Pixels as p/255 (as logistic regression in the paper) instead of standardised.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unit_scaling: bool,
        /// Measure on so many training records, held back, instead of the test set: for choosing
        /// parameters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holdout: Option<usize>,
    },
    /// CIFAR-10 as `geodp data get` or `geodp data import` left it.
    Cifar10 {
        /// The folder that holds it; geodp's data folder if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        folder: Option<PathBuf>,
        /// Measure on so many training records, held back, instead of the test set: for choosing
        /// parameters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holdout: Option<usize>,
    },
    /// Two IDX files for training and two for testing.
    Idx(PairFiles),
    /// Two NPY files for training and two for testing.
    Npy(PairFiles),
    /// A CSV file, its schema, and maybe a test file.
    Csv {
        /// Records to train on.
        train: PathBuf,
        /// Records to measure on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test: Option<PathBuf>,
        /// The declared columns.
        schema: PathBuf,
        /// Without a test file: how many training records to hold back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holdout: Option<usize>,
    },
}

/// Inputs and labels in files of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairFiles {
    /// Inputs to train on.
    pub train_inputs: PathBuf,
    /// Their labels.
    pub train_labels: PathBuf,
    /// Inputs to measure on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_inputs: Option<PathBuf>,
    /// Their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_labels: Option<PathBuf>,
    /// Number of classes, declared.
    pub classes: u32,
    /// Without test files: how many training records to hold back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holdout: Option<usize>,
}

/// What is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModelConfig {
    /// Logistic regression.
    Logistic,
    /// Linear layers with ReLU between.
    Mlp {
        /// Widths of the hidden layers.
        hidden: Vec<usize>,
    },
    /// The paper's CNN with 21,840 parameters, for 28×28 images.
    Cnn,
    /// The ResNet with three residual blocks.
    Resnet,
    /// Any network, described layer by layer.
    Network(NetworkSpec),
}

impl std::fmt::Display for ModelConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Logistic => f.write_str("Logistic regression"),
            Self::Mlp { hidden } => write!(f, "MLP with hidden layers {hidden:?}"),
            Self::Cnn => f.write_str("CNN"),
            Self::Resnet => f.write_str("ResNet"),
            Self::Network(_) => f.write_str("Network"),
        }
    }
}

/// Seed of which records are held back; public and fixed.
const HOLDOUT_SEED: u64 = 0;

impl RunConfig {
    /// The part that [`PlanParams::check`] checks.
    pub fn plan_params(&self) -> PlanParams {
        PlanParams { privacy: self.privacy.clone(), train: self.train.clone() }
    }

    /// Reads a config file; an unknown key is refused with the nearest known one.
    ///
    /// # Errors
    /// [`Error::Read`], or [`Error::Config`] with line and column.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        Self::parse(&text).map_err(|reason| Error::Config { path: path.to_owned(), reason })
    }

    /// Parses TOML; the error is a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| crate::nearest::explain(&error.to_string()))
    }

    /// As TOML that [`read`](Self::read) reads back to the same config.
    ///
    /// # Errors
    /// [`Error::Plan`] if a value cannot be written as TOML (a number beyond its range).
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self).map_err(|e| Error::Plan(format!("config: {e}")))
    }
}

impl DataConfig {
    /// Loads training and test records.
    ///
    /// # Errors
    /// [`Error::Data`] with the file and what is wrong with it.
    pub fn load(&self) -> Result<Split, Error> {
        match self {
            Self::Mnist { labels, unit_scaling, holdout } => {
                let scaling = if *unit_scaling { Scaling::Unit } else { mnist::standard_scaling() };
                let mut split = mnist::load(&scaling)?;
                if let Some(labels) = labels {
                    split.train = split.train.only_labels(labels)?;
                    split.test = split.test.only_labels(labels)?;
                }
                hold_back(split, *holdout)
            }
            Self::Cifar10 { folder, holdout } => {
                let folder = match folder {
                    Some(folder) => folder.clone(),
                    None => geodp_data::default_data_dir()?,
                };
                let split = cifar10::open(&folder, &cifar10::standard_scaling())?;
                hold_back(split, *holdout)
            }
            Self::Idx(files) => files.load(idx::load_pair),
            Self::Npy(files) => files.load(npy::load_pair),
            Self::Csv { train, test, schema, holdout } => {
                let schema = table::Schema::load(schema)?;
                let train = table::read(train, &schema)?.0;
                let test = test.as_ref().map(|test| table::read(test, &schema)).transpose()?;
                split(train, test.map(|(test, _)| test), *holdout)
            }
        }
    }
}

impl PairFiles {
    fn load(
        &self,
        load: impl Fn(&Path, &Path, &PairOptions) -> Result<Dataset, geodp_data::DataError>,
    ) -> Result<Split, Error> {
        let options = PairOptions::numbered("data", self.classes);
        let train = load(&self.train_inputs, &self.train_labels, &options)?;
        let test = match (&self.test_inputs, &self.test_labels) {
            (Some(inputs), Some(labels)) => Some(load(inputs, labels, &options)?),
            (None, None) => None,
            _ => {
                let reason = "test_inputs and test_labels belong together; give both or neither";
                return Err(Error::Plan(reason.to_owned()));
            }
        };
        split(train, test, self.holdout)
    }
}

/// The test set gives way to held-back training records, if that is asked for.
fn hold_back(all: Split, holdout: Option<usize>) -> Result<Split, Error> {
    match holdout {
        None => Ok(all),
        Some(_) => split(all.train, None, holdout),
    }
}

/// A tenth of the records is held back where nothing else is said.
fn split(train: Dataset, test: Option<Dataset>, holdout: Option<usize>) -> Result<Split, Error> {
    match (test, holdout) {
        (Some(_), Some(_)) => {
            Err(Error::Plan("a test file and holdout are both given; give one".to_owned()))
        }
        (Some(test), None) => Ok(Split { train, test }),
        (None, holdout) => {
            let count = holdout.unwrap_or(train.len() / 10);
            let (train, test) = train.split_off(count, HOLDOUT_SEED)?;
            Ok(Split { train, test })
        }
    }
}

impl ModelConfig {
    /// A network described by a TOML file of its own.
    ///
    /// # Errors
    /// [`Error::Read`], or [`Error::Config`] with line and column.
    pub fn read_network(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::Read { path: path.to_owned(), source })?;
        toml::from_str(&text).map(Self::Network).map_err(|error| Error::Config {
            path: path.to_owned(),
            reason: crate::nearest::explain(&error.to_string()),
        })
    }

    /// The network for records of this dataset's shape and classes.
    pub fn spec(&self, data: &Dataset) -> NetworkSpec {
        match self {
            Self::Logistic => NetworkSpec::logistic(data.input_len(), data.classes()),
            Self::Mlp { hidden } => NetworkSpec::mlp(data.input_len(), hidden, data.classes()),
            Self::Cnn => NetworkSpec::cnn(),
            Self::Resnet => {
                let shape = data.shape();
                let input = [shape.channels, shape.height, shape.width];
                let classes = data.classes();
                NetworkSpec::resnet(&ResnetSpec { input, classes, ..ResnetSpec::default() })
            }
            Self::Network(spec) => spec.clone(),
        }
    }
}
