//! A finished run's model: measured on held-out records, or asked about new ones.

use crate::Error;
use crate::config::{DataConfig, Imported, RunConfig};
use crate::model_file::ModelFile;
use geodp_data::{Dataset, Records, Scaling, Unlabelled, idx, mnist, npy, table};
use geodp_nn::{Evaluation, Network};
use serde::Serialize;
use std::path::Path;

/// A model with its config and its statement.
pub struct Trained {
    config: RunConfig,
    network: Network,
    model: ModelFile,
}

/// What the model says of some records.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Predictions {
    /// Class names, in the order of the probabilities.
    pub classes: Vec<String>,
    /// One a record.
    pub rows: Vec<Prediction>,
}

/// What the model says of one record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The most probable class.
    pub class: String,
    /// Probability of each class.
    pub probabilities: Vec<f32>,
}

impl Trained {
    /// Opens the folder of a finished run.
    ///
    /// # Errors
    /// A folder without a finished run; a damaged file.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        if !folder.join("model.safetensors").exists() {
            let reason = "it holds no finished run (no model.safetensors)".to_owned();
            return Err(Error::NotAModel { folder: folder.to_owned(), reason });
        }
        let config = RunConfig::read(&folder.join("run.toml"))?;
        let (model, network) = ModelFile::read(&folder.join("model.safetensors"))?;
        Ok(Self { config, network, model })
    }

    /// The run's config.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// The privacy statement in one line.
    pub fn statement_line(&self) -> &str {
        &self.model.statement
    }

    /// Loss and accuracy on labelled records.
    ///
    /// # Errors
    /// Records of another shape.
    pub fn evaluate(&self, records: &Dataset) -> Result<Evaluation, Error> {
        let all: Vec<u32> = (0..records.len() as u32).collect();
        Ok(self.network.evaluate(&self.model.weights, records, &all)?)
    }

    /// Classes and probabilities of records.
    ///
    /// # Errors
    /// Records of another shape.
    pub fn predict(&self, records: &Records) -> Result<Predictions, Error> {
        let samples = Unlabelled(records);
        let all: Vec<u32> = (0..records.len() as u32).collect();
        let classes = self.network.classes();
        let mut probabilities = vec![0.0; all.len() * classes];
        self.network.predict(&self.model.weights, &samples, &all, &mut probabilities)?;
        let rows = probabilities
            .chunks(classes)
            .map(|row| {
                let best = (0..classes).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap_or(0);
                let class =
                    self.model.class_names.get(best).cloned().unwrap_or_else(|| best.to_string());
                Prediction { class, probabilities: row.to_vec() }
            })
            .collect();
        Ok(Predictions { classes: self.model.class_names.clone(), rows })
    }

    /// Reads records to predict, as the run's own data was read, and says what reading did to a table.
    ///
    /// # Errors
    /// A bad file, or one of another kind than the run's.
    pub fn read_unlabelled(&self, path: &Path) -> Result<(Records, Option<Imported>), Error> {
        let scaling = match &self.config.data {
            DataConfig::Csv { schema, .. } => {
                let schema = table::Schema::load(schema)?;
                let (records, report) = table::read_unlabelled(path, &schema)?;
                return Ok((records, Some(Imported { file: path.to_owned(), report })));
            }
            DataConfig::Mnist { unit_scaling: false, .. } => mnist::standard_scaling(),
            DataConfig::Cifar10 { .. } => geodp_data::cifar10::standard_scaling(),
            _ => Scaling::Unit,
        };
        if path.extension().is_some_and(|e| e == "npy") {
            Ok((npy::load_inputs(path, &scaling)?, None))
        } else {
            Ok((idx::load_inputs(path, &scaling)?, None))
        }
    }

    /// Reads labelled records of a run on tables, and says what reading did to them.
    ///
    /// # Errors
    /// A bad file, or a run on other data than tables.
    pub fn read_labelled(&self, path: &Path) -> Result<(Dataset, Imported), Error> {
        match &self.config.data {
            DataConfig::Csv { schema, .. } => {
                let (records, report) = table::read(path, &table::Schema::load(schema)?)?;
                Ok((records, Imported { file: path.to_owned(), report }))
            }
            _ => Err(Error::Plan("only runs on .csv data can be measured on another file".into())),
        }
    }
}

impl Predictions {
    /// `row,class,p_<name>,…` with a header line; names are quoted where needed.
    pub fn to_csv(&self) -> String {
        let header = ["row".to_owned(), "class".to_owned()].into_iter();
        let header = header.chain(self.classes.iter().map(|name| format!("p_{name}")));
        let rows = self.rows.iter().enumerate().map(|(number, row)| {
            let first = [(number + 1).to_string(), row.class.clone()].into_iter();
            first.chain(row.probabilities.iter().map(|p| format!("{p:.7}")))
        });
        geodp_report::csv::to_csv(header, rows)
    }
}
