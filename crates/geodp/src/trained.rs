//! A finished run's model: measured on held-out records, or asked about new ones.

use crate::Error;
use crate::config::{DataConfig, Imported, RunConfig, SCHEMA_FILE, image_options};
use crate::model_file::ModelFile;
use crate::run::checkpoint::{Checkpoint, Position};
use crate::run::identity;
use crate::scores::{Errors, Scores, in_range, most_probable};
use geodp_account::{Claim, Ledger};
use geodp_data::table::{Label, ReadOptions, Schema};
use geodp_data::{
    Dataset, Records, Scaling, Split, Unlabelled, ViewSpec, Viewed, images, load_inputs, mnist,
    table,
};
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
    let checkpoint = Checkpoint::read(&folder.join("checkpoint"))?;
    let (position, weights) = checkpoint.released(config.train.average.is_some());
    identity::check_folder(folder, &config.to_toml()?, &ledger, &position)?;
    let claims = ledger.account()?.claims()?;
    let seed = ledger.header.run.and_then(|run| run.seed);
    Ok(Some((Paid { claims, seed, position }, weights)))
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// What the model says of some records.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Predictions {
    /// Class names, in the order of the probabilities.
    pub classes: Vec<String>,
    /// Headings of the columns that were passed through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identifiers: Vec<String>,
    /// What the number that is learnt is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// One a record.
    pub rows: Vec<Prediction>,
}

/// Records to be predicted, and which ones they are.
pub struct Inputs {
    /// The records.
    pub records: Records,
    /// Number of each record's row in its file, from 1.
    pub rows: Vec<u64>,
    /// Columns that are passed through: a heading, and a content for each record.
    pub identifiers: Vec<(String, Vec<String>)>,
    /// What reading did to a table.
    pub imported: Option<Imported>,
}

impl Inputs {
    fn numbered(records: Records) -> Self {
        let rows = (1..=records.len() as u64).collect();
        Self { records, rows, identifiers: Vec::new(), imported: None }
    }
}

/// What the model says of one record.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// Number of its row, from 1.
    pub row: u64,
    /// Contents of the columns that were passed through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub identifiers: Vec<String>,
    /// The most probable class; empty where a number is learnt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Probability of each class; empty where a number is learnt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probabilities: Vec<f32>,
    /// The number, within its declared range, where one is learnt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
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
        let copy = folder.join(SCHEMA_FILE);
        if let (Some(schema), true) = (&model.schema, copy.exists())
            && crate::run::files::read(&copy)? != schema.as_bytes()
        {
            let reason = "schema.toml is not the schema the model was trained with";
            return Err(identity::mismatch(folder, reason));
        }
        if last.is_some_and(|last| !same_bits(&last, &model.weights)) {
            let reason = "model.safetensors does not hold the weights that its ledger paid for";
            return Err(identity::mismatch(folder, reason));
        }
        if let (Some(paid), Some(data)) = (&paid, &model.data)
            && paid.position.data != *data
        {
            let reason = "model.safetensors was trained on other records than its ledger paid for";
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

    /// The run's own records, as they are stored: without features or views. Refuses others than those
    /// it was trained on.
    ///
    /// # Errors
    /// A file that cannot be read; [`Error::Mismatch`]; a missing key of the data's hash.
    pub fn own_records(&self) -> Result<(Split, Vec<Imported>), Error> {
        let loaded = self.config.data.seen_from(&self.folder).load()?;
        // Without a ledger, the model file itself says which records they were.
        let paid = self.paid.as_ref().map(|paid| &paid.position.data);
        if let Some(hash) = paid.or(self.model.data.as_ref()) {
            let train = &loaded.split.train;
            let fingerprint = match &self.config.features {
                None => train.fingerprint(),
                Some(features) => features.fingerprint_of(train.fingerprint()),
            };
            identity::check_data(&self.folder, hash, &fingerprint.to_string())?;
        }
        Ok((loaded.split, loaded.imported))
    }

    /// The model as an ONNX file.
    ///
    /// # Errors
    /// [`Error::Export`] with what ONNX cannot express.
    pub fn to_onnx(&self, after_features: bool) -> Result<Vec<u8>, Error> {
        self.model.to_onnx(after_features)
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

    /// Class probabilities averaged over views, with the loss and the hits of these means.
    fn averaged(
        &self,
        spec: &ViewSpec,
        records: &Dataset,
    ) -> Result<(Vec<f32>, Evaluation), Error> {
        let mut rows = Viewed::new(spec, records.clone())?;
        if let Some(features) = &self.config.features {
            rows = rows.with_features(features, &|_, _| ())?;
        }
        let units = rows.units()?;
        let views: Vec<&[u32]> = (0..units.len() as u32).map(|unit| units.rows(unit)).collect();
        let mut probabilities = vec![0.0; views.len() * self.network.classes()];
        let weights = &self.model.weights;
        let found = self.network.predict_units(weights, &rows, &views, &mut probabilities)?;
        Ok((probabilities, found))
    }

    /// Loss and accuracy on labelled records as they are stored; features and views are the run's.
    ///
    /// # Errors
    /// Records of another shape.
    pub fn evaluate(&self, records: &Dataset) -> Result<Evaluation, Error> {
        if let Some(spec) = &self.config.views {
            return Ok(self.averaged(spec, records)?.1);
        }
        let made = match &self.config.features {
            None => Cow::Borrowed(records),
            Some(features) => Cow::Owned(features.apply_to(records, &|_, _| ())?),
        };
        let all: Vec<u32> = (0..records.len() as u32).collect();
        Ok(self.network.evaluate(&self.model.weights, &*made, &all)?)
    }

    /// Confusion matrix, AUC, recall and calibration on the same records. For the owner of private ones.
    ///
    /// # Errors
    /// Records of another shape or other classes.
    pub fn scores(&self, records: &Dataset) -> Result<Scores, Error> {
        if records.class_names() != self.model.class_names {
            let reason = "the records' classes are not the model's, or in another order";
            return Err(identity::mismatch(&self.folder, reason));
        }
        let probabilities = self.probabilities(records.records())?;
        Ok(Scores::of(&probabilities, records.labels(), self.network.classes()))
    }

    /// A row of probabilities for each record as it is stored; features and views are the run's.
    fn probabilities(&self, records: &Records) -> Result<Vec<f32>, Error> {
        let classes = self.network.classes();
        if let Some(spec) = &self.config.views {
            // Nobody asks for labels here: probabilities mean something, loss and hits do not.
            let names = (0..classes).map(|class| class.to_string()).collect();
            let unknown = Dataset::new("", records.clone(), vec![0; records.len()], names)?;
            return Ok(self.averaged(spec, &unknown)?.0);
        }
        let records = self.with_features(records)?;
        let all: Vec<u32> = (0..records.len() as u32).collect();
        let mut probabilities = vec![0.0; all.len() * classes];
        let samples = Unlabelled(&records);
        self.network.predict(&self.model.weights, &samples, &all, &mut probabilities)?;
        Ok(probabilities)
    }

    /// Classes and probabilities of records.
    ///
    /// # Errors
    /// Records of another shape.
    pub fn predict(&self, records: &Records) -> Result<Predictions, Error> {
        let probabilities = self.probabilities(records)?;
        let classes = &self.model.class_names;
        if let Some((label, range)) = self.number()? {
            let row = |(row, &output): (u64, &f32)| Prediction {
                row,
                value: Some(in_range(output, range)),
                ..Prediction::default()
            };
            let rows = (1..).zip(&probabilities).map(row).collect();
            return Ok(Predictions { label: Some(label), rows, ..Predictions::default() });
        }
        let row = |(number, row): (u64, &[f32])| {
            let best = most_probable(row);
            let class = classes.get(best).cloned().unwrap_or_else(|| best.to_string());
            let probabilities = row.to_vec();
            Prediction { row: number, class, probabilities, ..Prediction::default() }
        };
        let rows = (1..).zip(probabilities.chunks(self.network.classes())).map(row).collect();
        Ok(Predictions { classes: classes.clone(), rows, ..Predictions::default() })
    }

    /// As [`predict`](Self::predict), with row numbers and the columns that are passed through.
    ///
    /// # Errors
    /// Records of another shape.
    pub fn predict_inputs(&self, inputs: &Inputs) -> Result<Predictions, Error> {
        let mut predictions = self.predict(&inputs.records)?;
        predictions.identifiers = inputs.identifiers.iter().map(|(name, _)| name.clone()).collect();
        for (at, (row, number)) in predictions.rows.iter_mut().zip(&inputs.rows).enumerate() {
            row.row = *number;
            row.identifiers =
                inputs.identifiers.iter().map(|(_, column)| column[at].clone()).collect();
        }
        Ok(predictions)
    }

    /// How far off predicted numbers are on labelled records, where numbers are learnt.
    ///
    /// # Errors
    /// Records of another shape.
    pub fn errors(&self, records: &Dataset) -> Result<Option<Errors>, Error> {
        let (Some(targets), Some(range)) = (records.targets(), records.target_range()) else {
            return Ok(None);
        };
        let outputs = self.probabilities(records.records())?;
        Ok(Some(Errors::of(&outputs, targets, range)))
    }

    /// Name and range of the number that is learnt.
    fn number(&self) -> Result<Option<(String, [f64; 2])>, Error> {
        if !self.model.spec.loss.is_regression() {
            return Ok(None);
        }
        Ok(match self.schema()? {
            Some(schema) => match schema.label_kind() {
                Label::Range { range, .. } => Some((schema.label().to_owned(), *range)),
                _ => None,
            },
            None => None,
        })
    }

    /// The schema the model was trained with; `None` for data that is not a table.
    fn schema(&self) -> Result<Option<Schema>, Error> {
        let DataConfig::Table { .. } = &self.config.data else { return Ok(None) };
        let text = self.model.schema.as_deref().ok_or_else(|| Error::NotAModel {
            folder: self.folder.clone(),
            reason: "model.safetensors holds no schema: it was written by an older version"
                .to_owned(),
        })?;
        Ok(Some(Schema::parse(SCHEMA_FILE, text)?))
    }

    /// Reads records to predict, as the run's own data was read. Rows that cannot be read are left out
    /// and reported; identifiers and the columns in `keep` are passed through.
    ///
    /// # Errors
    /// A bad file, or one of another kind than the run's.
    pub fn read_inputs(&self, path: &Path, keep: &[String]) -> Result<Inputs, Error> {
        if let Some(schema) = self.schema()? {
            let options = ReadOptions {
                skip_bad_rows: true,
                keep: keep.to_vec(),
                keep_identifiers: true,
                keep_places: true,
                ..ReadOptions::default()
            };
            let table = table::read_with(path, &schema, &options)?;
            return Ok(Inputs {
                records: table.records,
                rows: table.places,
                identifiers: table.kept_names.into_iter().zip(table.kept).collect(),
                imported: Some(Imported { file: path.to_owned(), report: table.report }),
            });
        }
        let scaling = match &self.config.data {
            DataConfig::Images { grey, .. } => {
                let (records, files) = images::load_unlabelled(path, &image_options(*grey, None))?;
                let files = files.iter().map(|file| file.display().to_string()).collect();
                let identifiers = vec![("file".to_owned(), files)];
                return Ok(Inputs { identifiers, ..Inputs::numbered(records) });
            }
            DataConfig::Mnist { unit_scaling: false, .. } => mnist::standard_scaling(),
            DataConfig::Cifar10 { .. } => geodp_data::cifar10::standard_scaling(),
            _ => Scaling::Unit,
        };
        Ok(Inputs::numbered(load_inputs(path, &scaling)?))
    }

    /// Reads labelled records of a run on tables, and says what reading did to them.
    ///
    /// # Errors
    /// A bad file, or a run on other data than tables.
    pub fn read_labelled(&self, path: &Path) -> Result<(Dataset, Imported), Error> {
        match self.schema()? {
            Some(schema) => {
                let (records, report) = table::read(path, &schema)?;
                Ok((records, Imported { file: path.to_owned(), report }))
            }
            None => Err(Error::Plan("only runs on tables can be measured on another file".into())),
        }
    }
}

impl Predictions {
    /// `row,…,class,p_<name>,…` with a header line: the row's number, what was passed through, the
    /// answer. Names are quoted where needed.
    pub fn to_csv(&self) -> String {
        let header = ["row".to_owned()].into_iter().chain(self.identifiers.iter().cloned());
        if let Some(label) = &self.label {
            let header = header.chain([format!("predicted_{label}")]);
            let rows = self.rows.iter().map(|row| {
                let first =
                    [row.row.to_string()].into_iter().chain(row.identifiers.iter().cloned());
                first.chain(row.value.map(|value| value.to_string()))
            });
            return geodp_report::csv::to_csv(header, rows);
        }
        let header = header.chain(["class".to_owned()]);
        let header = header.chain(self.classes.iter().map(|name| format!("p_{name}")));
        let rows = self.rows.iter().map(|row| {
            let first = [row.row.to_string()].into_iter().chain(row.identifiers.iter().cloned());
            let answer = first.chain([row.class.clone()]);
            answer.chain(row.probabilities.iter().map(|p| format!("{p:.7}")))
        });
        geodp_report::csv::to_csv(header, rows)
    }
}
