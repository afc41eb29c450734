//! The flags that say where the records come from: a name, a table with its schema, or a pair of
//! files (inputs and labels) with the number of classes.

use super::choices::NamedOrFile;
use crate::failure::{bad_input, classify};
use geodp::config::{DataConfig, PairFiles, TestIs};
use geodp_data::Kind;
use std::path::{Path, PathBuf};

/// Flags of the data.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub(crate) struct DataFlags {
    /// Bundled or downloaded data, or your own: a table in CSV, TSV or Parquet (with --schema), an NPY
    /// or IDX file (with --labels and --classes), a folder of PNG or JPEG images by class.
    /// fashion-mnist is four IDX files in the folder fashion-mnist of geodp's data folder; any other
    /// folder with such files goes with --classes.
    #[arg(long, value_name = "DATA",
          value_parser = NamedOrFile { names: &["mnist", "fashion-mnist", "cifar10"], endings: &[] })]
    data: Option<String>,
    /// Schema of a table: label, columns, declared ranges and values (docs/schema.md).
    #[arg(long, value_name = "FILE", requires = "data")]
    schema: Option<PathBuf>,
    /// Labels of the records of an .npy or IDX file.
    #[arg(long, value_name = "FILE", requires_all = ["data", "classes"])]
    labels: Option<PathBuf>,
    /// Number of classes of an .npy or IDX file, declared.
    #[arg(long, value_name = "K", requires = "data")]
    classes: Option<u32>,
    /// A file like --data to measure on; a tenth of the records is held back if absent.
    #[arg(long, value_name = "FILE", requires = "data")]
    test: Option<PathBuf>,
    /// Labels of --test, for .npy and IDX files.
    #[arg(long, value_name = "FILE", requires_all = ["test", "labels"])]
    test_labels: Option<PathBuf>,
    /// Whose the records of --test are; accuracies on private ones are for you alone.
    #[arg(long, value_name = "WHOSE", requires = "test", value_parser = ["public", "private"])]
    test_is: Option<String>,
    /// Read a folder of images as grey instead of red, green and blue.
    #[arg(long, requires = "data")]
    grey: bool,
    /// Measure on N training records, held back, instead of a test set: for choosing parameters.
    #[arg(long, value_name = "N")]
    holdout: Option<usize>,
}

impl DataFlags {
    /// The file's data, replaced or changed by the flags; `None` if neither says anything.
    pub(super) fn apply(&self, file: Option<DataConfig>) -> anyhow::Result<Option<DataConfig>> {
        let mut data = match &self.data {
            None => file,
            Some(name) => Some(self.named(name)?),
        };
        if let Some(count) = self.holdout {
            match data.get_or_insert_default() {
                DataConfig::Mnist { holdout, .. }
                | DataConfig::Cifar10 { holdout, .. }
                | DataConfig::Images { holdout, .. }
                | DataConfig::Table { holdout, .. } => *holdout = Some(count),
                DataConfig::Arrays(files) => files.holdout = Some(count),
            }
        }
        Ok(data)
    }

    fn named(&self, name: &str) -> anyhow::Result<DataConfig> {
        let named = match name {
            "mnist" => Some(DataConfig::default()),
            "cifar10" => Some(DataConfig::Cifar10 { folder: None, holdout: None }),
            "fashion-mnist" => {
                let folder = geodp_data::default_data_dir().map_err(bad_input)?.join(name);
                let files = PairFiles::in_folder(&folder, 10, Some(TestIs::Public));
                Some(DataConfig::Arrays(files.map_err(classify)?))
            }
            _ => None,
        };
        let file_flags = [
            ("--schema", self.schema.is_some()),
            ("--labels", self.labels.is_some()),
            ("--test", self.test.is_some()),
            ("--grey", self.grey),
        ];
        let given = file_flags.into_iter().find(|(_, given)| *given);
        match (named, given) {
            (Some(_), Some((flag, _))) => {
                Err(bad_input(format!("{flag} goes with --data FILE, not with --data {name}")))
            }
            (Some(named), None) => Ok(named),
            (None, None) if self.classes.is_some() && Path::new(name).is_dir() => {
                let classes = self.classes.unwrap_or_default();
                let files = PairFiles::in_folder(Path::new(name), classes, Some(TestIs::Public));
                Ok(DataConfig::Arrays(files.map_err(classify)?))
            }
            (None, _) => match Kind::of(Path::new(name)) {
                Some(Kind::Table) => self.table(name),
                Some(Kind::Images) => self.images(name),
                Some(Kind::Array) | None => self.pair(name),
            },
        }
    }

    fn test_is(&self) -> Option<TestIs> {
        let public = self.test_is.as_deref()? == "public";
        Some(if public { TestIs::Public } else { TestIs::Private })
    }

    fn table(&self, name: &str) -> anyhow::Result<DataConfig> {
        if self.labels.is_some() {
            return Err(bad_input(
                "--labels goes with NPY and IDX files: a table's schema names its label",
            ));
        }
        let schema = self.schema.clone().ok_or_else(|| {
            bad_input(format!("{name} needs --schema: the columns, declared in a TOML file"))
        })?;
        Ok(DataConfig::Table {
            train: name.into(),
            test: self.test.clone(),
            schema,
            holdout: None,
            test_is: self.test_is(),
        })
    }

    fn images(&self, name: &str) -> anyhow::Result<DataConfig> {
        for (flag, given) in
            [("--schema", self.schema.is_some()), ("--labels", self.labels.is_some())]
        {
            if given {
                return Err(bad_input(format!(
                    "{flag} does not go with {name}, a folder of images: its folders are the classes"
                )));
            }
        }
        Ok(DataConfig::Images {
            train: name.into(),
            test: self.test.clone(),
            grey: self.grey,
            holdout: None,
            test_is: self.test_is(),
        })
    }

    fn pair(&self, name: &str) -> anyhow::Result<DataConfig> {
        if self.schema.is_some() {
            return Err(bad_input(format!(
                "--schema goes with tables, {}; {name} is none",
                Kind::Table.formats()
            )));
        }
        let (Some(labels), Some(classes)) = (&self.labels, self.classes) else {
            return Err(bad_input(format!(
                "{name} needs --labels FILE and --classes K (a table, .csv, .tsv or .parquet, needs --schema)"
            )));
        };
        if self.test.is_some() != self.test_labels.is_some() {
            return Err(bad_input(
                "--test and --test-labels belong together; give both or neither",
            ));
        }
        let files = PairFiles {
            train_inputs: name.into(),
            train_labels: labels.clone(),
            test_inputs: self.test.clone(),
            test_labels: self.test_labels.clone(),
            classes,
            holdout: None,
            test_is: self.test_is(),
        };
        Ok(DataConfig::Arrays(files))
    }
}
