//! A finished run's model: measured on held-out records, or asked about new ones.

use crate::Error;
use crate::config::{DataConfig, Imported, RunConfig};
use crate::model_file::ModelFile;
use crate::run::checkpoint::{Checkpoint, Position};
use crate::run::identity;
use geodp_account::{Claim, Ledger};
use geodp_data::{Dataset, Records, Scaling, Unlabelled, idx, mnist, npy, table};
use geodp_nn::{Evaluation, Network};
use serde::Serialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A model with its config and its statement.
pub struct Trained {
    folder: PathBuf,
    config: RunConfig,
    network: Network,
    model: ModelFile,
    paid: Option<Paid>,
}

/// What the ledger beside a model amounts to.
struct Paid {
    claims: Vec<Claim>,
    seed: Option<u64>,
    position: Position,
}

/// Reads the ledger of the folder, checks that config and checkpoint are those it paid for, and gives the
/// checkpoint's weights too; `None` without a ledger.
fn paid_for(folder: &Path, config: &RunConfig) -> Result<Option<(Paid, Vec<f32>)>, Error> {
    let path = folder.join("ledger.jsonl");
    if !path.exists() {
        return Ok(None);
    }
    let ledger = Ledger::read(&path)?;
    let Checkpoint { position, weights, mut optimizer_state } =
        Checkpoint::read(&folder.join("checkpoint"))?;
    identity::check_folder(folder, &config.to_toml()?, &ledger, &position)?;
    // Where weights are averaged, the average is what was released, and it stands last.
    let average = config.train.average.and_then(|_| optimizer_state.pop());
    let claims = ledger.account()?.claims()?;
    let seed = ledger.header.run.and_then(|run| run.seed);
    Ok(Some((Paid { claims, seed, position }, average.unwrap_or(weights))))
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
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
        let (paid, last) = match paid_for(folder, &config)? {
            Some((paid, last)) => (Some(paid), Some(last)),
            None => (None, None),
        };
        let (model, network) = ModelFile::read(&folder.join("model.safetensors"))?;
        if last.is_some_and(|last| !same_bits(&last, &model.weights)) {
            let reason = "model.safetensors does not hold the weights that its ledger paid for";
            return Err(identity::mismatch(folder, reason));
        }
        Ok(Self { folder: folder.to_owned(), config, network, model, paid })
    }

    /// What the run's ledger says was paid for these weights; `None` where the folder has no ledger.
    pub fn claims(&self) -> Option<&[Claim]> {
        self.paid.as_ref().map(|paid| paid.claims.as_slice())
    }

    /// Whether the noise came from a seed, and nothing is private against those who know it.
    pub fn seed(&self) -> Option<u64> {
        self.paid.as_ref().and_then(|paid| paid.seed)
    }

    /// Refuses records other than those the run was trained on.
    ///
    /// # Errors
    /// [`Error::Mismatch`]; a missing key of the data's hash.
    pub fn check_data(&self, train: &Dataset) -> Result<(), Error> {
        let Some(paid) = &self.paid else { return Ok(()) };
        identity::check_data(&self.folder, &paid.position, &train.fingerprint().to_string())
    }

    /// The run's config.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// What the model file says of its own privacy: anybody can write that, so it is a claim of the
    /// file and no more. Control characters are escaped.
    pub fn claimed_by_the_file(&self) -> String {
        self.model.statement.escape_debug().to_string()
    }

    /// Records as the model sees them: with the run's features, where it has some.
    fn with_features<'r>(&self, records: &'r Records) -> Result<Cow<'r, Records>, Error> {
        Ok(match &self.config.features {
            None => Cow::Borrowed(records),
            Some(features) => Cow::Owned(features.apply(records, &|_, _| ())?),
        })
    }

    /// Loss and accuracy on labelled records: those of [`RunConfig::load`], which have their features.
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
        let records = self.with_features(records)?;
        let samples = Unlabelled(&records);
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
