//! The engine that a config describes: its records loaded, its network built.

use crate::Error;
use crate::config::{Imported, Loaded, LoadedViews, RunConfig, Share, Stored};
use crate::engine::{About, Baseline, Engine, EngineError, NetworkEngine, RowChoice, WeightOf};
use crate::model_file::{ModelFile, ModelNote};
use crate::plan::Facts;
use crate::run::identity;
use crate::scores::{Errors, Scores};
use crate::team::{self, Found, Joined, Leader, SentClip};
use geodp_account::Arithmetic;
use geodp_data::table::Schema;
use geodp_data::{Fingerprint, FingerprintPart, Split};
use geodp_nn::{BatchOutcome, Evaluation, Grid, Network};
use std::path::Path;
use std::sync::Arc;

/// Seed of the initial weights: public, and the same for all runs, so that mechanisms compare.
const INITIAL_WEIGHTS_SEED: u64 = 0;

/// Held-out records that a curve is made of: they tell an accuracy to one per cent (its standard error), and to half
/// of that where it is beyond 93 %. On all 10,000 of MNIST the points of a curve took a twentieth of the training.
const GLANCE_RECORDS: usize = 2500;

/// A config made real.
pub struct Configured {
    pub(crate) config: RunConfig,
    pub(crate) split: Split,
    pub(crate) imported: Vec<Imported>,
    pub(crate) schema: Option<Schema>,
    views: Option<LoadedViews>,
    stored: Stored,
    pub(crate) network: Network,
    share: Option<Share>,
    /// Of all training records, where this process holds a share and knows that of the others.
    whole: Option<Fingerprint>,
    /// The other processes, where this is the first of several.
    leader: Option<Arc<Leader>>,
}

impl Configured {
    /// Loads the records and builds the network; `progress` as in [`RunConfig::load`].
    ///
    /// # Errors
    /// A data file or a model that cannot be.
    pub fn load(
        config: RunConfig,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, Error> {
        let loaded = config.load(progress)?;
        Self::of(config, loaded)
    }

    /// As [`load`](Self::load), of a run in this folder.
    ///
    /// # Errors
    /// A data file or a model that cannot be.
    pub fn load_in(
        folder: &Path,
        config: RunConfig,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, Error> {
        let loaded = config.load_in(folder, progress)?;
        Self::of(config, loaded)
    }

    /// The share of one process of several; `seat` is its rank and their number.
    pub(crate) fn load_share(
        folder: Option<&Path>,
        config: RunConfig,
        progress: &(dyn Fn(usize, usize) + Sync),
        seat: (usize, usize),
    ) -> Result<Self, Error> {
        let loaded = config.load_share(folder, progress, seat)?;
        Self::of(config, loaded)
    }

    /// The same as [`load`](Self::load) or, with a folder, [`load_in`](Self::load_in), together with the
    /// other processes of `leader`, each of which loads its share.
    pub(crate) fn load_with(
        leader: Arc<Leader>,
        folder: Option<&Path>,
        config: RunConfig,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Self, Error> {
        team::check(&config)?;
        let seen = folder.map(|folder| folder.to_string_lossy().into_owned());
        leader.begin(&config.to_toml()?, seen.as_deref())?;
        let own = Self::load_share(folder, config, progress, (0, leader.size()));
        let found = own.as_ref().ok().and_then(Self::found);
        let others = leader.agree(found.as_ref())?;
        let mut own = own?;
        own.whole = own.share.as_ref().map(|Share { part, .. }| {
            let parts = std::iter::once(part).chain(others.iter().map(|found| &found.part));
            own.config.fingerprint_of(FingerprintPart::join(part.head, parts))
        });
        if let Some(training) = own.imported.first_mut() {
            let reports = others.iter().filter_map(|found| found.report.as_ref());
            reports.for_each(|report| training.report.add(report));
        }
        Ok(Self { leader: Some(leader), ..own })
    }

    /// What a share and its process are, for the others.
    pub(crate) fn found(&self) -> Option<Found> {
        let share = self.share.as_ref()?;
        Some(Found {
            source: share.source,
            units: share.of as u64,
            dim: self.network.dim() as u64,
            machine: identity::machine(Arithmetic::Exact),
            part: share.part.clone(),
            report: self.imported.first().map(|imported| imported.report.clone()),
        })
    }

    fn of(config: RunConfig, loaded: Loaded) -> Result<Self, Error> {
        let Loaded { split, imported, schema, views, share, stored } = loaded;
        let network = config.model.spec(&split.train).build()?;
        let fits = |what: &str, model: usize, data: usize| {
            if model == data {
                return Ok(());
            }
            Err(Error::Plan(format!(
                "{} is for {model} {what}, but the records of {} have {data}; choose logistic or mlp, \
                 which fit any records, or describe a network of your own",
                config.model_text(&split.train),
                split.train.name()
            )))
        };
        fits("input values", network.input_len(), split.train.input_len())?;
        let loss = config.model.spec(&split.train).loss;
        match (loss.is_regression(), split.train.targets()) {
            (false, None) => fits("classes", network.classes(), split.train.classes())?,
            (true, Some(_)) => {}
            _ => {
                return Err(Error::Plan(format!(
                    "{}'s loss {loss:?} does not fit the label: classes need cross-entropy, a number \
                     needs squared or huber",
                    config.model_text(&split.train)
                )));
            }
        }
        let (whole, leader) = (None, None);
        Ok(Self { config, split, imported, schema, views, stored, network, share, whole, leader })
    }

    /// Fills in what the config leaves to the records.
    pub(crate) fn complete_config(&mut self) {
        let units = self.share.as_ref().map_or(self.split.train.unit_count(), |share| share.of);
        self.config.complete_for(units as u64, &self.split.train);
    }

    /// The text of the table's schema.
    pub(crate) fn schema_text(&self) -> Option<&str> {
        self.schema.as_ref().map(Schema::text)
    }

    /// The records, as the model sees them.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// The engine of all records, wherever they are.
    fn engine(&self) -> Box<dyn Engine + '_> {
        let (local, choice) = (self.local(), RowChoice::default());
        let (Some(leader), Some(share)) = (&self.leader, &self.share) else {
            return Box::new(local);
        };
        Box::new(self.joined(local, leader, share, choice))
    }

    fn joined<'a>(
        &self,
        local: NetworkEngine<'a>,
        leader: &'a Leader,
        share: &Share,
        choice: RowChoice,
    ) -> Joined<'a> {
        let privacy = &self.config.privacy;
        let clip = privacy.clip_norm.map(|clip_norm| SentClip { kind: privacy.clip, clip_norm });
        Joined { local, leader, clip, units: share.of, choice }
    }

    /// The engine of this process's records.
    pub(crate) fn local(&self) -> NetworkEngine<'_> {
        let first = self.share.as_ref().map_or(0, |share| share.first) as u32;
        let engine = match &self.views {
            None => {
                let train = &self.split.train;
                let rows = NetworkEngine::new(&self.network, train, Some(&self.split.test));
                train.units().map_or(rows, |column| rows.with_units(column.units()))
            }
            Some(LoadedViews { train: (train, units), test: (test, test_units) }) => {
                NetworkEngine::new(&self.network, train, Some(test))
                    .with_units(units)
                    .averaging(test_units)
            }
        };
        engine.numbered_from(first)
    }

    /// What one pass over held-out records shows, where there are some and they have classes.
    fn judged(&self, weights: &[f32]) -> Result<Option<(Evaluation, Scores)>, EngineError> {
        let test = &self.split.test;
        if test.is_empty() || test.targets().is_some() {
            return Ok(None);
        }
        let classes = self.network.classes();
        let mut probabilities = vec![0.0; test.len() * classes];
        let evaluation = match &self.views {
            None => {
                let all: Vec<u32> = (0..test.len() as u32).collect();
                self.network.predict(weights, test, &all, &mut probabilities)?
            }
            Some(LoadedViews { test: (rows, units), .. }) => {
                let units: Vec<&[u32]> = (0..units.len() as u32).map(|u| units.rows(u)).collect();
                self.network.predict_units(weights, rows, &units, &mut probabilities)?
            }
        };
        Ok(Some((evaluation, Scores::of(&probabilities, test.labels(), classes))))
    }
}

impl Engine for Configured {
    fn facts(&self) -> Facts {
        self.engine().facts()
    }

    fn at_step(&self, choice: RowChoice) -> Option<Box<dyn Engine + '_>> {
        let local = self.local().at(choice)?;
        let (Some(leader), Some(share)) = (&self.leader, &self.share) else {
            return Some(Box::new(local));
        };
        Some(Box::new(self.joined(local, leader, share, choice)))
    }

    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        self.engine().weighted_sum(weights, batch, weight_of, sum)
    }

    fn exact_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, EngineError> {
        self.engine().exact_sum(weights, batch, weight_of, grid, sum)
    }

    fn gradient_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        self.engine().gradient_sum(weights, batch, sum)
    }

    fn sample_gradients(
        &self,
        weights: &[f32],
        batch: &[u32],
        gradients: &mut [f32],
    ) -> Result<(), EngineError> {
        self.engine().sample_gradients(weights, batch, gradients)
    }

    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        self.engine().mean_loss(weights, batch)
    }

    fn evaluate(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        self.engine().evaluate(weights)
    }

    fn glance(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        let test = &self.split.test;
        // Of numbers there are errors beside the loss, which are of all records.
        let all = if test.targets().is_some() { 1 } else { test.len() };
        self.local().evaluate_every(all.div_ceil(GLANCE_RECORDS).max(1), weights)
    }

    fn errors(&self, weights: &[f32]) -> Result<Option<Errors>, EngineError> {
        let test = &self.split.test;
        let (Some(targets), Some(range)) = (test.targets(), test.target_range()) else {
            return Ok(None);
        };
        let all: Vec<u32> = (0..test.len() as u32).collect();
        let mut outputs = vec![0.0; all.len()];
        self.network.predict(weights, test, &all, &mut outputs)?;
        Ok((!all.is_empty()).then(|| Errors::of(&outputs, targets, range)))
    }

    fn scores(&self, weights: &[f32]) -> Result<Option<Scores>, EngineError> {
        Ok(self.judged(weights)?.map(|(_, scores)| scores))
    }

    fn evaluate_and_score(
        &self,
        weights: &[f32],
    ) -> Result<(Option<Evaluation>, Option<Scores>), EngineError> {
        match self.judged(weights)? {
            Some((evaluation, scores)) => Ok((Some(evaluation), Some(scores))),
            None => Ok((self.evaluate(weights)?, None)),
        }
    }

    fn about(&self) -> About {
        About {
            model: self.config.model_text(&self.split.train),
            data: self.split.train.name().to_owned(),
            baseline: match self.split.test.targets() {
                Some(_) => None,
                None => Baseline::of(self.split.test.labels(), self.split.test.classes()),
            },
            test_is: self.config.data.test_is(),
            classes: self.split.train.class_names().to_vec(),
            imported: self.imported.clone(),
            looked: self.schema.as_ref().is_some_and(Schema::looked),
        }
    }

    fn fingerprint(&self) -> String {
        self.whole.unwrap_or_else(|| self.split.train.fingerprint()).to_string()
    }

    fn initial_weights(&self) -> Vec<f32> {
        if self.config.is_linear_table() {
            return vec![0.0; self.network.dim()];
        }
        self.network.init(INITIAL_WEIGHTS_SEED)
    }

    fn model_file(&self, weights: &[f32], note: &ModelNote) -> Result<Vec<u8>, EngineError> {
        let model = ModelFile {
            spec: self.config.model.spec(&self.split.train),
            class_names: self.split.train.class_names().to_vec(),
            statement: note.statement.clone(),
            schema: self.schema_text().map(str::to_owned),
            features: self.config.features.clone(),
            views: self.config.views.clone(),
            data: Some(note.data.clone()),
            shape: Some(self.stored.shape),
            byte_scaling: self.stored.byte_scaling.clone(),
            weights: weights.to_vec(),
        };
        Ok(model.to_bytes()?)
    }
}
