//! The engine that a config describes: its records loaded, its network built.

use crate::Error;
use crate::config::{Imported, Loaded, RunConfig};
use crate::engine::{About, Engine, EngineError, NetworkEngine, WeightOf};
use crate::model_file::ModelFile;
use crate::plan::Facts;
use geodp_data::Split;
use geodp_nn::{BatchOutcome, Evaluation, Grid, Network};

/// Seed of the initial weights: public, and the same for all runs, so that mechanisms compare.
const INITIAL_WEIGHTS_SEED: u64 = 0;

/// A config made real.
pub struct Configured {
    pub(crate) config: RunConfig,
    pub(crate) split: Split,
    pub(crate) imported: Vec<Imported>,
    pub(crate) network: Network,
}

impl Configured {
    /// Loads the records and builds the network.
    ///
    /// # Errors
    /// A data file or a model that cannot be.
    pub fn load(config: RunConfig) -> Result<Self, Error> {
        let Loaded { split, imported } = config.load()?;
        let network = config.model.spec(&split.train).build()?;
        Ok(Self { config, split, imported, network })
    }

    fn engine(&self) -> NetworkEngine<'_> {
        NetworkEngine::new(&self.network, &self.split.train, Some(&self.split.test))
    }

    /// Share of the commonest class among the held-out records.
    fn chance_accuracy(&self) -> Option<f64> {
        let test = &self.split.test;
        let mut counts = vec![0_usize; test.classes()];
        for label in test.labels() {
            counts[*label as usize] += 1;
        }
        let commonest = *counts.iter().max()?;
        (!test.is_empty()).then(|| commonest as f64 / test.len() as f64)
    }
}

impl Engine for Configured {
    fn facts(&self) -> Facts {
        self.engine().facts()
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

    fn about(&self) -> About {
        About {
            model: self.config.model_text(),
            data: self.split.train.name().to_owned(),
            chance_accuracy: self.chance_accuracy(),
            test_is: self.config.data.test_is(),
        }
    }

    fn fingerprint(&self) -> String {
        self.split.train.fingerprint().to_string()
    }

    fn initial_weights(&self) -> Vec<f32> {
        self.network.init(INITIAL_WEIGHTS_SEED)
    }

    fn model_file(&self, weights: &[f32], statement: &str) -> Result<Vec<u8>, EngineError> {
        let model = ModelFile {
            spec: self.config.model.spec(&self.split.train),
            class_names: self.split.train.class_names().to_vec(),
            statement: statement.to_owned(),
            weights: weights.to_vec(),
        };
        Ok(model.to_bytes()?)
    }
}
