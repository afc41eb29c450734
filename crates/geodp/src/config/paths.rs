//! Where a run finds its files: from any folder, and after the run folder has moved.
//!
//! `run.toml` names data by absolute paths. The schema is copied into the run folder, and what is
//! in the run folder is found there wherever it goes. That it is still the run's own data is not assumed:
//! the keyed hash of the records decides.

use super::DataConfig;
use crate::Error;
use std::path::{Path, PathBuf};

/// The run folder's copy of its schema.
pub(crate) const SCHEMA_FILE: &str = "schema.toml";

impl DataConfig {
    fn paths(&mut self) -> Vec<&mut PathBuf> {
        match self {
            Self::Mnist { .. } => Vec::new(),
            Self::Cifar10 { folder, .. } => folder.iter_mut().collect(),
            Self::Arrays(files) => {
                let tests = files.test_inputs.iter_mut().chain(files.test_labels.iter_mut());
                [&mut files.train_inputs, &mut files.train_labels]
                    .into_iter()
                    .chain(tests)
                    .collect()
            }
            Self::Images { train, test, .. } => [train].into_iter().chain(test).collect(),
            Self::Table { train, test, schema, .. } => {
                [train, schema].into_iter().chain(test).collect()
            }
        }
    }

    /// The same files, named from the root.
    ///
    /// # Errors
    /// [`Error::Read`] where the current folder is unknown.
    pub(crate) fn absolute(mut self) -> Result<Self, Error> {
        for path in self.paths() {
            let full = std::path::absolute(&*path);
            *path = full.map_err(|source| Error::Read { path: path.clone(), source })?;
        }
        Ok(self)
    }

    /// The same data as seen from a run's folder: its own copy of the schema, and files that are not
    /// where they were but in the folder.
    pub(crate) fn seen_from(&self, folder: &Path) -> Self {
        let mut found = self.clone();
        if let Self::Table { schema, .. } = &mut found
            && folder.join(SCHEMA_FILE).exists()
        {
            *schema = folder.join(SCHEMA_FILE);
        }
        for path in found.paths() {
            let inside = path.file_name().map(|name| folder.join(name));
            if let Some(inside) = inside.filter(|inside| !path.exists() && inside.exists()) {
                *path = inside;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_own_copy_comes_first_and_moved_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataConfig::Table {
            train: "/nowhere/a.csv".into(),
            test: None,
            schema: "/nowhere/s.toml".into(),
            holdout: None,
            test_is: None,
        };
        assert_eq!(data.seen_from(folder.path()), data);
        std::fs::write(folder.path().join(SCHEMA_FILE), "").unwrap();
        std::fs::write(folder.path().join("a.csv"), "").unwrap();
        let DataConfig::Table { train, schema, .. } = data.seen_from(folder.path()) else {
            unreachable!("the kind stays")
        };
        assert_eq!(train, folder.path().join("a.csv"));
        assert_eq!(schema, folder.path().join(SCHEMA_FILE));
        let relative = DataConfig::Images {
            train: "pictures".into(),
            test: None,
            grey: false,
            holdout: None,
            test_is: None,
        };
        let DataConfig::Images { train, .. } = relative.absolute().unwrap() else {
            unreachable!("the kind stays")
        };
        assert!(train.is_absolute() && train.ends_with("pictures"));
    }
}
