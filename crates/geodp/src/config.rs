//! A whole run as one file: data, model, privacy and training. `run.toml` of every run folder.
//!
//! ```toml
//! [data]
//! source = "table"                # "mnist", "cifar10", "table", "arrays", "images"
//! train = "patients.csv"          # or .tsv, .parquet, …
//! schema = "schema.toml"
//! holdout = 500                   # no test file: hold back 500 training records
//!                                 # with test = "…": test_is = "public" or "private"
//!
//! [model]
//! name = "mlp"                    # "logistic", "mlp", "cnn", "tanh-cnn", "resnet", "network"
//! hidden = [64]
//!
//! [ledger]                        # of the data set: all runs on it together
//! file = "patients.ledger"
//! total_epsilon = 4.0             # no run starts that would exceed it
//! ```
//! preceded by `[features]` with `kind = "scattering"` and `storage = "half"` where images are transformed first
//! ([`FeatureSpec`]; without `storage` the features are kept as f32) and `[views]` where
//! several views of an image are trained on ([`ViewSpec`]), and followed by the `[privacy]` and `[train]` of [`PlanParams`]. Whatever is left out has a default: an empty file trains
//! a linear model on scattering features of MNIST. In Rust:
//!
//! ```
//! use geodp::{Mechanism, RunConfig};
//!
//! let config = RunConfig::table("patients.csv", "schema.toml")
//!     .mechanism(Mechanism::Geodp { beta: 0.1 })
//!     .batch(128);
//! assert_eq!(config.model.to_string(), "Logistic regression");
//! ```

mod load;
mod paths;
mod share;

pub(crate) use load::image_options;
pub use load::{Imported, Loaded, LoadedViews, Stored};
pub(crate) use paths::SCHEMA_FILE;
pub use share::Share;

use crate::Error;
use crate::params::{PlanParams, PrivacyParams, TrainParams};
use geodp_data::{Dataset, FeatureSpec, ViewSpec};
use geodp_nn::{NetworkSpec, ResnetSpec};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Everything a run is made of. What a file leaves out has a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "ConfigFile")]
pub struct RunConfig {
    /// Where the records come from.
    pub data: DataConfig,
    /// What stands between the records and the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<FeatureSpec>,
    /// Views of images that a record's gradient is the mean over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub views: Option<ViewSpec>,
    /// What is trained.
    pub model: ModelConfig,
    /// Mechanism, clipping and budget.
    pub privacy: PrivacyParams,
    /// Batches, length and optimiser.
    pub train: TrainParams,
    /// The ledger of the data set, where it has one.
    #[serde(skip_serializing_if = "LedgerConfig::is_absent")]
    pub ledger: LedgerConfig,
}

/// The ledger of a data set: all runs that name it are composed, and none starts beyond its total.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LedgerConfig {
    /// The file; it is made by the first run that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// What all runs together may spend; fixed when the file is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_epsilon: Option<f64>,
}

impl LedgerConfig {
    fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

/// Whose the records are that a model is measured on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestIs {
    /// Anybody's: accuracies on them may be published.
    Public,
    /// Somebody's: accuracies on them are for the data's owner, unless they are released with noise.
    #[default]
    Private,
}

/// A config as a file has it: any part may be left out.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConfigFile {
    /// Where the records come from; the bundled MNIST if absent.
    pub data: Option<DataConfig>,
    /// What stands between the records and the model: nothing if absent and a model is given.
    pub features: Option<FeatureSpec>,
    /// Views of images that a record's gradient is the mean over; the image alone if absent.
    pub views: Option<ViewSpec>,
    /// What is trained; linear on scattering features of images, logistic regression on anything else
    /// if absent.
    pub model: Option<ModelConfig>,
    /// Mechanism, clipping and budget.
    pub privacy: PrivacyParams,
    /// Batches, length and optimiser.
    pub train: TrainParams,
    /// The ledger of the data set.
    pub ledger: LedgerConfig,
}

impl From<ConfigFile> for RunConfig {
    fn from(file: ConfigFile) -> Self {
        let data = file.data.unwrap_or_default();
        let features = match file.model {
            None => file.features.or_else(|| DataConfig::default_features(&data)),
            Some(_) => file.features,
        };
        let model = file.model.unwrap_or(ModelConfig::Logistic);
        Self {
            data,
            features,
            views: file.views,
            model,
            privacy: file.privacy,
            train: file.train,
            ledger: file.ledger,
        }
    }
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
    /// Two files (NPY, IDX) for training and two for testing.
    #[serde(alias = "idx", alias = "npy")]
    Arrays(PairFiles),
    /// A folder of images by class (PNG, JPEG), and maybe another to measure on.
    Images {
        /// Records to train on: a folder for each class.
        train: PathBuf,
        /// Records to measure on, with the same classes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test: Option<PathBuf>,
        /// Read as one channel of grey instead of red, green and blue.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        grey: bool,
        /// Without a test folder: how many training records to hold back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holdout: Option<usize>,
        /// Whose the test folder's records are; private if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test_is: Option<TestIs>,
    },
    /// A table (CSV, TSV, Parquet), its schema, and maybe a test file.
    #[serde(alias = "csv")]
    Table {
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
        /// Whose the test file's records are; private if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        test_is: Option<TestIs>,
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
    /// Whose the test files' records are; private if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_is: Option<TestIs>,
}

impl PairFiles {
    /// Whether the inputs are NumPy's, which people use for tables as well as for images: they get the
    /// defaults of tables.
    pub(crate) fn are_numpys(&self) -> bool {
        let name = self.train_inputs.to_string_lossy().to_lowercase();
        name.trim_end_matches(".gz").ends_with(".npy")
    }
}

impl DataConfig {
    /// Whose the records are that are measured on: held-back ones are as private as the rest, the
    /// bundled test sets are everybody's, and a test file is what its owner says.
    pub fn test_is(&self) -> TestIs {
        let declared = match self {
            Self::Mnist { holdout, .. } | Self::Cifar10 { holdout, .. } => {
                holdout.is_none().then_some(TestIs::Public)
            }
            Self::Arrays(files) if files.holdout.is_some() => None,
            Self::Arrays(files) => files.test_inputs.as_ref().and(files.test_is),
            Self::Images { test, test_is, .. } | Self::Table { test, test_is, .. } => {
                test.as_ref().and(*test_is)
            }
        };
        declared.unwrap_or_default()
    }
}

/// What is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModelConfig {
    /// Logistic regression.
    Logistic,
    /// Linear layers with ReLU between.
    Mlp {
        /// Widths of the hidden layers; one of 64 if absent.
        #[serde(default = "ModelConfig::default_hidden")]
        hidden: Vec<usize>,
    },
    /// The paper's CNN with 21,840 parameters, for 28×28 images.
    Cnn,
    /// Papernot's CNN with tanh, for images of one channel.
    TanhCnn,
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
            Self::TanhCnn => f.write_str("CNN with tanh"),
            Self::Resnet => f.write_str("ResNet"),
            Self::Network(_) => f.write_str("Network"),
        }
    }
}

impl RunConfig {
    /// What is trained on these records, with its features, as a page's title says it.
    pub fn model_text(&self, data: &Dataset) -> String {
        let model = match (&self.model, data.targets()) {
            (ModelConfig::Logistic, Some(_)) => "Linear regression".to_owned(),
            (model, _) => model.to_string(),
        };
        match &self.features {
            None => model,
            Some(FeatureSpec::Scattering { .. }) => format!("{model} on scattering features"),
        }
    }

    /// The part that [`PlanParams::check`] checks.
    pub fn plan_params(&self) -> PlanParams {
        PlanParams { privacy: self.privacy.clone(), train: self.train.clone() }
    }

    /// Reads a config file; an unknown key is refused with the nearest known one.
    ///
    /// # Errors
    /// [`Error::Read`], or [`Error::Config`] with line and column.
    pub fn read(path: &Path) -> Result<Self, Error> {
        ConfigFile::read(path).map(Self::from)
    }

    /// Reads a config from text; `source` is where it came from, for errors.
    pub(crate) fn from_toml(text: &str, source: &Path) -> Result<Self, Error> {
        parse_toml::<ConfigFile>(text, source).map(Self::from)
    }

    /// As TOML that [`read`](Self::read) reads back to the same config.
    ///
    /// # Errors
    /// [`Error::Plan`] if a value cannot be written as TOML (a number beyond its range).
    pub fn to_toml(&self) -> Result<String, Error> {
        toml::to_string_pretty(self).map_err(|e| Error::Plan(format!("config: {e}")))
    }
}

impl ConfigFile {
    /// Reads a config file, with what it leaves out left out.
    ///
    /// # Errors
    /// [`Error::Read`], or [`Error::Config`] with line and column.
    pub fn read(path: &Path) -> Result<Self, Error> {
        read_toml(path)
    }
}

/// Reads TOML; what is wrong with it is said with line, column and the nearest known name.
fn read_toml<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::Read { path: path.to_owned(), source })?;
    parse_toml(&text, path)
}

fn parse_toml<T: serde::de::DeserializeOwned>(text: &str, path: &Path) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| Error::Config {
        path: path.to_owned(),
        reason: crate::nearest::explain(&error.to_string()),
    })
}

impl ModelConfig {
    /// A network described by a TOML file of its own.
    ///
    /// # Errors
    /// [`Error::Read`], or [`Error::Config`] with line and column.
    pub fn read_network(path: &Path) -> Result<Self, Error> {
        read_toml(path).map(Self::Network)
    }

    /// The network for records of this dataset's shape and classes.
    pub fn spec(&self, data: &Dataset) -> NetworkSpec {
        if let Some(loss) = data.target_loss() {
            match self {
                Self::Logistic => return NetworkSpec::regression(data.input_len(), &[], loss),
                Self::Mlp { hidden } => {
                    return NetworkSpec::regression(data.input_len(), hidden, loss);
                }
                _ => {}
            }
        }
        match self {
            Self::Logistic => NetworkSpec::logistic(data.input_len(), data.classes()),
            Self::Mlp { hidden } => NetworkSpec::mlp(data.input_len(), hidden, data.classes()),
            Self::Cnn => NetworkSpec::cnn(),
            Self::TanhCnn => {
                let shape = data.shape();
                NetworkSpec::tanh_cnn(shape.height, shape.width, data.classes())
            }
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
