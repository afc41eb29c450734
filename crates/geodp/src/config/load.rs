//! From `[data]` to records: files read, test records set apart, and what reading changed reported.

use super::{DataConfig, PairFiles, RunConfig, Share, TestIs};
use crate::Error;
use geodp_data::images::{self, ImageOptions};
use geodp_data::table::{ImportReport, Schema};
use geodp_data::{
    Dataset, PairOptions, Records, Scaling, Shape, Split, Units, Viewed, cifar10, load_pair, mnist,
    table,
};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Seed of which records are held back; public and fixed.
pub(super) const HOLDOUT_SEED: u64 = 0;

/// Records as they were read.
pub struct Loaded {
    /// To train on, and to measure on.
    pub split: Split,
    /// What reading did to each table; empty for data that is not a table. Private.
    pub imported: Vec<Imported>,
    /// The schema of a table.
    pub schema: Option<Schema>,
    /// All views of both, where the config has some.
    pub views: Option<LoadedViews>,
    /// Where the training records stand among all of them, if they are a share.
    pub share: Option<Share>,
    /// Records as they are stored.
    pub stored: Stored,
}

/// What records are before views and features.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Shape of one.
    pub shape: Shape,
    /// a and b of p·a + b for each channel, where they are bytes.
    pub byte_scaling: Option<Vec<[f32; 2]>>,
}

impl Stored {
    pub(super) fn of(records: &Records) -> Self {
        let pairs = |pairs: &[(f32, f32)]| pairs.iter().map(|&(a, b)| [a, b]).collect();
        Self { shape: records.shape(), byte_scaling: records.byte_scaling().map(pairs) }
    }
}

/// Records in all their views, a unit each.
pub struct LoadedViews {
    /// To train on, and which rows are one record's.
    pub train: (Viewed, Units),
    /// To measure on: probabilities are averaged over a record's views.
    pub test: (Viewed, Units),
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

impl Imported {
    /// The table's name, without its folders.
    pub fn name(&self) -> String {
        self.file.file_name().unwrap_or(self.file.as_os_str()).to_string_lossy().into_owned()
    }
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.report)
    }
}

impl RunConfig {
    /// Loads training and test records, and computes their features where the config has some.
    /// `progress` is told how many of how many features are done, from any thread.
    ///
    /// # Errors
    /// [`Error::Data`] with the file and what is wrong with it.
    pub fn load(&self, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Loaded, Error> {
        self.prepared(self.data.load()?, progress)
    }

    /// As [`load`](Self::load), of a run in this folder: by its own copy of the schema, and with files
    /// that moved with the folder.
    ///
    /// # Errors
    /// [`Error::Data`] with the file and what is wrong with it.
    pub fn load_in(
        &self,
        folder: &Path,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Loaded, Error> {
        self.prepared(self.data.seen_from(folder).load()?, progress)
    }

    /// Makes views and features of records, where the config has some.
    pub(super) fn prepared(
        &self,
        mut loaded: Loaded,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Loaded, Error> {
        let split = &mut loaded.split;
        if let Some(spec) = &self.views {
            let viewed = |data: &Dataset| -> Result<(Viewed, Units), Error> {
                let mut viewed = Viewed::new(spec, data.clone())?;
                if let Some(features) = &self.features {
                    viewed = viewed.with_features(features, progress)?;
                }
                let units = viewed.units()?;
                Ok((viewed, units))
            };
            let (train, test) = (viewed(&split.train)?, viewed(&split.test)?);
            (split.train, split.test) = (train.0.originals()?, test.0.originals()?);
            loaded.views = Some(LoadedViews { train, test });
        } else if let Some(features) = &self.features {
            split.train = features.apply_to(&split.train, progress)?;
            split.test = features.apply_to(&split.test, progress)?;
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
        let (mut imported, mut declared) = (Vec::new(), None);
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
            Self::Arrays(files) => files.load()?,
            Self::Images { train, test, grey, holdout, .. } => {
                let mut read = |folder: &PathBuf, classes| -> Result<Dataset, Error> {
                    let (records, report) = images::load(folder, &image_options(*grey, classes))?;
                    imported.push(Imported { file: folder.clone(), report });
                    Ok(records)
                };
                let train = read(train, None)?;
                let classes = train.class_names().to_vec();
                let test = test.as_ref().map(|test| read(test, Some(classes))).transpose()?;
                split(train, test, *holdout)?
            }
            Self::Table { train, test, schema, holdout, .. } => {
                let schema = Schema::load(schema)?;
                let mut read = |file: &PathBuf| -> Result<Dataset, Error> {
                    let (records, report) = table::read(file, &schema)?;
                    imported.push(Imported { file: file.clone(), report });
                    Ok(records)
                };
                let train = read(train)?;
                let test = test.as_ref().map(read).transpose()?;
                declared = Some(schema);
                split(train, test, *holdout)?
            }
        };
        let stored = Stored::of(split.train.records());
        Ok(Loaded { split, imported, schema: declared, views: None, share: None, stored })
    }
}

/// How a run reads folders of images.
pub(crate) fn image_options(grey: bool, class_names: Option<Vec<String>>) -> ImageOptions {
    ImageOptions { grey, scaling: Scaling::Unit, class_names }
}

impl PairFiles {
    /// The four IDX files of a folder, named as those of MNIST and the sets made like it
    /// (`train-images-idx3-ubyte`, …), plain or with `.gz`.
    ///
    /// # Errors
    /// [`Error::Plan`] with the file that is missing.
    pub fn in_folder(folder: &Path, classes: u32, test_is: Option<TestIs>) -> Result<Self, Error> {
        let find = |name: &str| {
            let plain = folder.join(name);
            let packed = folder.join(format!("{name}.gz"));
            let found = [plain, packed].into_iter().find(|path| path.is_file());
            found.ok_or_else(|| {
                Error::Plan(format!(
                    "there is no {name} (nor {name}.gz) in {}: the four files of an MNIST-like set are \
                     train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and \
                     t10k-labels-idx1-ubyte",
                    folder.display()
                ))
            })
        };
        Ok(Self {
            train_inputs: find("train-images-idx3-ubyte")?,
            train_labels: find("train-labels-idx1-ubyte")?,
            test_inputs: Some(find("t10k-images-idx3-ubyte")?),
            test_labels: Some(find("t10k-labels-idx1-ubyte")?),
            classes,
            holdout: None,
            test_is,
        })
    }

    fn load(&self) -> Result<Split, Error> {
        let train = self.load_pair((&self.train_inputs, &self.train_labels))?;
        let test = self.test_files()?.map(|files| self.load_pair(files)).transpose()?;
        split(train, test, self.holdout)
    }

    pub(super) fn load_pair(&self, (inputs, labels): (&Path, &Path)) -> Result<Dataset, Error> {
        Ok(load_pair(inputs, labels, &PairOptions::numbered("data", self.classes))?)
    }

    /// The files of the test records, where those are of their own.
    pub(super) fn test_files(&self) -> Result<Option<(&Path, &Path)>, Error> {
        match (&self.test_inputs, &self.test_labels) {
            // Records held back take the place of a test set, as they do for the bundled data.
            _ if self.holdout.is_some() && self.test_is == Some(TestIs::Public) => Ok(None),
            (Some(inputs), Some(labels)) => Ok(Some((inputs, labels))),
            (None, None) => Ok(None),
            _ => {
                let reason = "test_inputs and test_labels belong together; give both or neither";
                Err(Error::Plan(reason.to_owned()))
            }
        }
    }
}

/// The test set gives way to held-back training records, if that is asked for.
fn hold_back(all: Split, holdout: Option<usize>) -> Result<Split, Error> {
    match holdout {
        None => Ok(all),
        Some(_) => split(all.train, None, holdout),
    }
}

/// Test records are of their own, or held back.
pub(super) fn check_test(has_test: bool, holdout: Option<usize>) -> Result<(), Error> {
    if has_test && holdout.is_some() {
        return Err(Error::Plan("a test file and holdout are both given; give one".to_owned()));
    }
    Ok(())
}

/// A tenth of the records (of units, where several are one) is held back where nothing else is said.
fn split(train: Dataset, test: Option<Dataset>, holdout: Option<usize>) -> Result<Split, Error> {
    check_test(test.is_some(), holdout)?;
    if let Some(test) = test {
        return Ok(Split { train, test });
    }
    let count = holdout.unwrap_or(train.unit_count() / 10);
    let (train, test) = train.split_off(count, HOLDOUT_SEED)?;
    Ok(Split { train, test })
}
