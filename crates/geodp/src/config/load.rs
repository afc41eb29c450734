//! From `[data]` to records: files read, test records set apart, and what reading changed reported.

use super::{DataConfig, PairFiles, RunConfig};
use crate::Error;
use geodp_data::table::ImportReport;
use geodp_data::{Dataset, PairOptions, Scaling, Split, cifar10, idx, mnist, npy, table};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Seed of which records are held back; public and fixed.
const HOLDOUT_SEED: u64 = 0;

/// Records as they were read.
pub struct Loaded {
    /// To train on, and to measure on.
    pub split: Split,
    /// What reading did to each table; empty for data that is not a table. Private.
    pub imported: Vec<Imported>,
}

/// What reading a table did to cells outside its schema. Private: counts of the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The table.
    pub file: PathBuf,
    /// Values clamped, values that went to "other", columns not used.
    #[serde(flatten)]
    pub report: ImportReport,
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.report)
    }
}

impl RunConfig {
    /// Loads training and test records, and computes their features where the config has some.
    ///
    /// # Errors
    /// [`Error::Data`] with the file and what is wrong with it.
    pub fn load(&self) -> Result<Loaded, Error> {
        let mut loaded = self.data.load()?;
        if let Some(features) = &self.features {
            let silent = |_, _| ();
            let split = &mut loaded.split;
            split.train = features.apply_to(&split.train, &silent)?;
            split.test = features.apply_to(&split.test, &silent)?;
        }
        Ok(loaded)
    }
}

impl DataConfig {
    /// Loads training and test records.
    ///
    /// # Errors
    /// [`Error::Data`] with the file and what is wrong with it.
    pub fn load(&self) -> Result<Loaded, Error> {
        let mut imported = Vec::new();
        let split = match self {
            Self::Mnist { labels, unit_scaling, holdout } => {
                let scaling = if *unit_scaling { Scaling::Unit } else { mnist::standard_scaling() };
                let mut split = mnist::load(&scaling)?;
                if let Some(labels) = labels {
                    split.train = split.train.only_labels(labels)?;
                    split.test = split.test.only_labels(labels)?;
                }
                hold_back(split, *holdout)?
            }
            Self::Cifar10 { folder, holdout } => {
                let folder = match folder {
                    Some(folder) => folder.clone(),
                    None => geodp_data::default_data_dir()?,
                };
                let split = cifar10::open(&folder, &cifar10::standard_scaling())?;
                hold_back(split, *holdout)?
            }
            Self::Idx(files) => files.load(idx::load_pair)?,
            Self::Npy(files) => files.load(npy::load_pair)?,
            Self::Csv { train, test, schema, holdout, .. } => {
                let schema = table::Schema::load(schema)?;
                let mut read = |file: &PathBuf| -> Result<Dataset, Error> {
                    let (records, report) = table::read(file, &schema)?;
                    imported.push(Imported { file: file.clone(), report });
                    Ok(records)
                };
                let train = read(train)?;
                let test = test.as_ref().map(read).transpose()?;
                split(train, test, *holdout)?
            }
        };
        Ok(Loaded { split, imported })
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
