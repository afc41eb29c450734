//! The flags that describe a run: a config file, data, model, privacy and training.
//!
//! Flags win over the file, the file over the defaults. Defaults depend on data and model only;
//! they were chosen on a part of the training set, never on the test set.

use crate::failure::{bad_input, classify};
use geodp::config::{DataConfig, ModelConfig, RunConfig};
use geodp::importance::Keep;
use geodp::optimizer::{Moments, OptimizerKind};
use geodp::params::{ClipKind, PrivacyParams, TrainParams};
use geodp::sampler::Sampling;
use geodp_mechanism::Mechanism;
use std::path::PathBuf;

/// Flags of a run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Settings {
    /// A config file (see run.toml of any run); flags override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// mnist (bundled), cifar10, or a .csv file (with --schema).
    #[arg(long, value_name = "DATA")]
    data: Option<String>,
    /// Schema of a .csv file: label, columns, declared ranges and values.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// A .csv file to measure on; a tenth of the records is held back if absent.
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,
    /// Measure on N training records, held back, instead of a test set: for choosing parameters.
    #[arg(long, value_name = "N")]
    holdout: Option<usize>,
    /// logistic, mlp, cnn, resnet, or a .toml file that describes a network.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Widths of the mlp's hidden layers.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    hidden: Option<Vec<usize>>,
    /// dp (certified), geodp (conditional), none.
    #[arg(long, value_name = "KIND")]
    mechanism: Option<String>,
    /// GeoDP's bounding factor β, in (0, 1].
    #[arg(long, value_name = "BETA")]
    beta: Option<f64>,
    /// Target ε: the noise is calibrated to it. 3 if neither this nor --noise-multiplier is given.
    #[arg(long, value_name = "E")]
    epsilon: Option<f64>,
    /// Noise multiplier σ, instead of a target ε.
    #[arg(long, value_name = "S")]
    noise_multiplier: Option<f64>,
    /// Stop before the step that would exceed this ε.
    #[arg(long, value_name = "E")]
    epsilon_limit: Option<f64>,
    /// δ (1e-5 if absent).
    #[arg(long, value_name = "D")]
    delta: Option<f64>,
    /// flat, auto-s, psac.
    #[arg(long, value_name = "RULE")]
    clip: Option<String>,
    /// Clipping threshold C.
    #[arg(long, value_name = "C")]
    clip_norm: Option<f64>,
    /// poisson (amplified), shuffle (accounted as what it is).
    #[arg(long, value_name = "KIND")]
    sampling: Option<String>,
    /// Importance sampling of records by their gradients' norms; =control keeps every candidate.
    #[arg(long, value_name = "KEEP", num_args = 0..=1, require_equals = true,
          default_missing_value = "by-norm")]
    importance: Option<String>,
    /// Test every step and take back those that do not lower the loss: sur.
    #[arg(long, value_name = "STRATEGY")]
    select: Option<String>,
    /// Expected batch size B.
    #[arg(long, value_name = "B")]
    batch: Option<u64>,
    /// Passes over the data.
    #[arg(long, value_name = "K")]
    epochs: Option<u64>,
    /// Number of steps, instead of epochs.
    #[arg(long, value_name = "T")]
    steps: Option<u64>,
    /// Learning rate η.
    #[arg(long, value_name = "ETA")]
    learning_rate: Option<f64>,
    /// sgd, momentum, adam, adam-bc (corrected for the noise; with dp only).
    #[arg(long, value_name = "NAME")]
    optimizer: Option<String>,
    /// Momentum μ (0.9 if absent).
    #[arg(long, value_name = "MU")]
    momentum: Option<f64>,
    /// Repeatable noise, for experiments: not private against anyone who knows the seed.
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Steps between checkpoints.
    #[arg(long, value_name = "N")]
    checkpoint_every: Option<u64>,
}

/// Reads a name as TOML and the config do, so that the spellings are the same everywhere.
fn named<T: serde::de::DeserializeOwned>(flag: &str, name: &str) -> anyhow::Result<T> {
    serde_json::from_value(serde_json::Value::String(name.to_owned()))
        .map_err(|error| bad_input(format!("--{flag}: {error}")))
}

impl Settings {
    /// Refuses any flag of a run, for commands that take a run as it is.
    pub(crate) fn refuse_all(&self, reason: &str) -> anyhow::Result<()> {
        let given = format!("{self:?}");
        if given == format!("{:?}", Self::default()) {
            return Ok(());
        }
        Err(bad_input(format!("{reason}; give no other flags, or start a new run")))
    }

    /// The config these flags describe, completed by defaults.
    pub(crate) fn config(&self) -> anyhow::Result<RunConfig> {
        let mut config = match &self.config {
            Some(path) => RunConfig::read(path).map_err(classify)?,
            None => RunConfig {
                data: DataConfig::Mnist { labels: None, unit_scaling: false, holdout: None },
                model: ModelConfig::Cnn,
                privacy: PrivacyParams::default(),
                train: TrainParams::default(),
            },
        };
        self.set_data(&mut config)?;
        self.set_model(&mut config)?;
        self.set_privacy(&mut config.privacy)?;
        self.set_train(&mut config.train)?;
        config.complete();
        Ok(config)
    }

    fn set_data(&self, config: &mut RunConfig) -> anyhow::Result<()> {
        let csv = |train: &str| -> anyhow::Result<DataConfig> {
            let schema = self.schema.clone().ok_or_else(|| {
                bad_input(format!("{train} needs --schema: the columns, declared in a TOML file"))
            })?;
            Ok(DataConfig::Csv {
                train: train.into(),
                test: self.test.clone(),
                schema,
                holdout: None,
            })
        };
        match self.data.as_deref() {
            Some("mnist") => {
                config.data = DataConfig::Mnist { labels: None, unit_scaling: false, holdout: None }
            }
            Some("cifar10") => config.data = DataConfig::Cifar10 { folder: None, holdout: None },
            Some(path) if path.ends_with(".csv") => config.data = csv(path)?,
            Some(other) => {
                return Err(bad_input(format!(
                    "--data {other}: use mnist, cifar10 or a .csv file; IDX and NPY files are \
                     named in a config file"
                )));
            }
            None if self.schema.is_some() || self.test.is_some() => {
                return Err(bad_input("--schema and --test go with --data FILE.csv"));
            }
            None => {}
        }
        if let Some(count) = self.holdout {
            match &mut config.data {
                DataConfig::Mnist { holdout, .. }
                | DataConfig::Cifar10 { holdout, .. }
                | DataConfig::Csv { holdout, .. } => *holdout = Some(count),
                DataConfig::Idx(files) | DataConfig::Npy(files) => files.holdout = Some(count),
            }
        }
        if self.data.is_some() && self.model.is_none() && self.config.is_none() {
            config.model = match config.data {
                DataConfig::Cifar10 { .. } => ModelConfig::Resnet,
                DataConfig::Csv { .. } => ModelConfig::Logistic,
                _ => ModelConfig::Cnn,
            };
        }
        Ok(())
    }

    fn set_model(&self, config: &mut RunConfig) -> anyhow::Result<()> {
        match (self.model.as_deref(), &self.hidden) {
            (Some("mlp"), hidden) => {
                config.model =
                    ModelConfig::Mlp { hidden: hidden.clone().unwrap_or_else(|| vec![64]) };
            }
            (None, None) => {}
            (_, Some(_)) => return Err(bad_input("--hidden goes with --model mlp")),
            (Some("logistic"), None) => config.model = ModelConfig::Logistic,
            (Some("cnn"), None) => config.model = ModelConfig::Cnn,
            (Some("resnet"), None) => config.model = ModelConfig::Resnet,
            (Some(path), None) if path.ends_with(".toml") => {
                config.model = ModelConfig::read_network(path.as_ref()).map_err(classify)?;
            }
            (Some(other), None) => {
                return Err(bad_input(format!(
                    "--model {other}: use logistic, mlp, cnn, resnet or a .toml file"
                )));
            }
        }
        Ok(())
    }

    fn set_privacy(&self, privacy: &mut PrivacyParams) -> anyhow::Result<()> {
        if self.mechanism.is_some() || self.beta.is_some() {
            let name = self.mechanism.as_deref().unwrap_or(privacy.mechanism.name());
            // The file's β goes with the file's mechanism.
            let beta =
                self.beta.or(privacy.mechanism.beta().filter(|_| name == privacy.mechanism.name()));
            privacy.mechanism = Mechanism::named(name, beta).map_err(bad_input)?;
        }
        if let Some(name) = &self.clip {
            privacy.clip = named::<ClipKind>("clip", name)?;
        }
        if let Some(name) = &self.sampling {
            privacy.sampling = named::<Sampling>("sampling", name)?;
        }
        let keep = match self.importance.as_deref() {
            None => None,
            Some("by-norm") => Some(Keep::ByNorm),
            Some("control" | "all") => Some(Keep::All),
            Some(other) => {
                return Err(bad_input(format!(
                    "--importance={other}: use --importance, or --importance=control"
                )));
            }
        };
        if let Some(keep) = keep {
            privacy.importance.get_or_insert_default().keep = keep;
        }
        match self.select.as_deref() {
            None => {}
            Some("sur") => drop(privacy.select.get_or_insert_default()),
            Some(other) => return Err(bad_input(format!("--select {other}: use sur"))),
        }
        // A flag for one of the two replaces the file's other one; both flags are refused later.
        if self.epsilon.is_some() != self.noise_multiplier.is_some() {
            privacy.epsilon = None;
            privacy.noise_multiplier = None;
        }
        privacy.epsilon = self.epsilon.or(privacy.epsilon);
        privacy.noise_multiplier = self.noise_multiplier.or(privacy.noise_multiplier);
        privacy.epsilon_limit = self.epsilon_limit.or(privacy.epsilon_limit);
        privacy.delta = self.delta.or(privacy.delta);
        privacy.clip_norm = self.clip_norm.or(privacy.clip_norm);
        Ok(())
    }

    fn set_train(&self, train: &mut TrainParams) -> anyhow::Result<()> {
        if self.epochs.is_some() != self.steps.is_some() {
            train.epochs = None;
            train.steps = None;
        }
        train.batch = self.batch.or(train.batch);
        train.epochs = self.epochs.or(train.epochs);
        train.steps = self.steps.or(train.steps);
        train.learning_rate = self.learning_rate.or(train.learning_rate);
        train.seed = self.seed.or(train.seed);
        train.checkpoint_every = self.checkpoint_every.or(train.checkpoint_every);
        let momentum = self.momentum.unwrap_or(0.9);
        match self.optimizer.as_deref() {
            Some("momentum") => train.optimizer = Some(OptimizerKind::Momentum { momentum }),
            Some("sgd" | "adam" | "adam-bc") if self.momentum.is_some() => {
                return Err(bad_input("--momentum goes with --optimizer momentum"));
            }
            Some("sgd") => train.optimizer = Some(OptimizerKind::Sgd),
            Some("adam") => train.optimizer = Some(OptimizerKind::Adam(Moments::default())),
            Some("adam-bc") => train.optimizer = Some(OptimizerKind::AdamBc(Moments::default())),
            Some(other) => {
                return Err(bad_input(format!(
                    "--optimizer {other}: use sgd, momentum, adam or adam-bc"
                )));
            }
            None if self.momentum.is_some() => {
                train.optimizer = Some(OptimizerKind::Momentum { momentum });
            }
            None => {}
        }
        Ok(())
    }
}
