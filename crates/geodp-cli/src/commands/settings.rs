//! The flags that describe a run: a config file, data, model, privacy and training.
//!
//! Flags win over the file, the file over the defaults. Defaults depend on data and model only;
//! they were chosen on a part of the training set, never on the test set.

mod choices;
mod data;

use crate::failure::{bad_input, classify};
use choices::{NamedOrFile, named};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use data::DataFlags;
use geodp::config::{ConfigFile, ModelConfig, RunConfig};
use geodp::importance::Keep;
use geodp::optimizer::{DEFAULT_MOMENTUM, Moments, OptimizerKind};
use geodp::params::{ClipKind, Mechanism, PrivacyParams, TrainParams};
use geodp::sampler::Sampling;
use geodp::schedule::Decay;
use geodp_account::Arithmetic;
use geodp_data::{FeatureSpec, ViewSpec};
use std::path::PathBuf;

/// Flags of a run.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub(crate) struct Settings {
    /// A config file (see run.toml of any run); flags override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    data: DataFlags,
    /// What is trained: a name, or a .toml file that describes a network.
    #[arg(long, value_name = "MODEL", value_parser = NamedOrFile {
        names: &["logistic", "mlp", "cnn", "tanh-cnn", "resnet"],
        endings: &[".toml"],
    })]
    model: Option<String>,
    /// Transform images before the model sees them, into features kept in half precision; without --model, images
    /// get scattering and a linear model.
    #[arg(long, value_name = "KIND", value_parser = ["scattering"])]
    features: Option<String>,
    /// Train on so many views of each image in a step: mirrored ones, or those of --flip and --shift.
    /// An image with its views is one record, so they cost no ε.
    #[arg(long, value_name = "K")]
    views: Option<usize>,
    /// Views are mirrored left to right.
    #[arg(long)]
    flip: bool,
    /// Views are moved by so many pixels to each side.
    #[arg(long, value_name = "PIXELS")]
    shift: Option<usize>,
    /// Widths of the mlp's hidden layers.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    hidden: Option<Vec<usize>>,
    /// How gradients are made private: dp's and geodp-certified's ε is certified, geodp's conditional.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(Mechanism::NAMES))]
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
    /// Clipping rule.
    #[arg(long, value_name = "RULE", value_parser = named::<ClipKind>(ClipKind::NAMES))]
    clip: Option<ClipKind>,
    /// Clipping threshold C.
    #[arg(long, value_name = "C")]
    clip_norm: Option<f64>,
    /// How batches are drawn: poisson is amplified, shuffle accounted as what it is.
    #[arg(long, value_name = "KIND", value_parser = named::<Sampling>(Sampling::NAMES))]
    sampling: Option<Sampling>,
    /// How private steps are computed: exact (the theorem is about the bits released) or
    /// floating-point, for comparison.
    #[arg(long, value_name = "KIND", value_parser = named::<Arithmetic>(Arithmetic::NAMES))]
    arithmetic: Option<Arithmetic>,
    /// Importance sampling of records by their gradients' norms; =all keeps every candidate, for
    /// comparison.
    #[arg(long, value_name = "KEEP", num_args = 0..=1, require_equals = true,
          default_missing_value = "by-norm", value_parser = keep())]
    importance: Option<Keep>,
    /// Test every step and take back those that do not lower the loss.
    #[arg(long, value_name = "STRATEGY", value_parser = ["sur"])]
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
    /// How the learning rate falls over the training.
    #[arg(long, value_name = "DECAY", value_parser = named::<Decay>(Decay::NAMES))]
    schedule: Option<Decay>,
    /// Share of the steps over which the learning rate first grows, in [0, 1).
    #[arg(long, value_name = "SHARE")]
    warmup: Option<f64>,
    /// Release the average of the weights over the training, with this decay (0.9999, say).
    #[arg(long, value_name = "DECAY")]
    average: Option<f64>,
    /// How weights are moved; adam-bc is corrected for the noise, with dp only.
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(OptimizerKind::NAMES))]
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
    /// Release a noisy accuracy on private held-back records for this ε of its own.
    #[arg(long, value_name = "E")]
    release_accuracy: Option<f64>,
    /// The ledger of the data set: every run is charged there in full before it starts.
    #[arg(long, value_name = "FILE")]
    data_ledger: Option<PathBuf>,
    /// What all runs in the data set's ledger may spend; fixed by the first.
    #[arg(long, value_name = "E", requires = "data_ledger")]
    total_epsilon: Option<f64>,
}

/// Which candidates are kept; "control" is another name for all.
fn keep() -> impl TypedValueParser<Value = Keep> {
    let names = [PossibleValue::new("by-norm"), PossibleValue::new("all").alias("control")];
    PossibleValuesParser::new(names)
        .map(|name| if name == "by-norm" { Keep::ByNorm } else { Keep::All })
}

impl Settings {
    /// Refuses any flag of a run, for commands that take a run as it is.
    pub(crate) fn refuse_all(&self, reason: &str) -> anyhow::Result<()> {
        if *self == Self::default() {
            return Ok(());
        }
        Err(bad_input(format!("{reason}; give no other flags, or start a new run")))
    }

    /// The config these flags describe, completed by defaults.
    pub(crate) fn config(&self) -> anyhow::Result<RunConfig> {
        let mut file = match &self.config {
            Some(path) => ConfigFile::read(path).map_err(classify)?,
            None => ConfigFile::default(),
        };
        file.data = self.data.apply(file.data)?;
        file.model = self.model()?.or(file.model);
        // There is one kind: a file that has features has these, with its own settings.
        file.features = file.features.or(self.features.as_ref().map(|_| FeatureSpec::scattering()));
        file.views = self.views(file.views);
        self.set_privacy(&mut file.privacy)?;
        self.set_train(&mut file.train)?;
        file.ledger.file = self.data_ledger.clone().or(file.ledger.file);
        file.ledger.total_epsilon = self.total_epsilon.or(file.ledger.total_epsilon);
        let mut config = RunConfig::from(file);
        config.complete();
        Ok(config)
    }

    /// The file's views, changed by the flags. Mirrored ones where nothing says which.
    fn views(&self, file: Option<ViewSpec>) -> Option<ViewSpec> {
        if self.views.is_none() && !self.flip && self.shift.is_none() {
            return file;
        }
        let mut views = file.unwrap_or_default();
        views.shift = self.shift.unwrap_or(views.shift);
        views.flip |= self.flip || views.shift == 0;
        views.each_step = self.views.or(views.each_step);
        Some(views)
    }

    /// The model that flags name.
    fn model(&self) -> anyhow::Result<Option<ModelConfig>> {
        Ok(Some(match (self.model.as_deref(), &self.hidden) {
            (Some("mlp"), hidden) => {
                let hidden = hidden.clone().unwrap_or_else(ModelConfig::default_hidden);
                ModelConfig::Mlp { hidden }
            }
            (None, None) => return Ok(None),
            (_, Some(_)) => return Err(bad_input("--hidden goes with --model mlp")),
            (Some("logistic"), None) => ModelConfig::Logistic,
            (Some("cnn"), None) => ModelConfig::Cnn,
            (Some("tanh-cnn"), None) => ModelConfig::TanhCnn,
            (Some("resnet"), None) => ModelConfig::Resnet,
            (Some(path), None) => ModelConfig::read_network(path.as_ref()).map_err(classify)?,
        }))
    }

    fn set_privacy(&self, privacy: &mut PrivacyParams) -> anyhow::Result<()> {
        if self.mechanism.is_some() || self.beta.is_some() {
            let name = self.mechanism.as_deref().unwrap_or(privacy.mechanism.name());
            // The file's β goes with the file's mechanism.
            let beta =
                self.beta.or(privacy.mechanism.beta().filter(|_| name == privacy.mechanism.name()));
            privacy.mechanism = Mechanism::named(name, beta).map_err(bad_input)?;
        }
        privacy.clip = self.clip.unwrap_or(privacy.clip);
        privacy.sampling = self.sampling.unwrap_or(privacy.sampling);
        privacy.arithmetic = self.arithmetic.or(privacy.arithmetic);
        if let Some(keep) = self.importance {
            privacy.importance.get_or_insert_default().keep = keep;
        }
        if self.select.is_some() {
            privacy.select.get_or_insert_default();
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
        privacy.release_accuracy = self.release_accuracy.or(privacy.release_accuracy);
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
        if self.schedule.is_some() || self.warmup.is_some() {
            let schedule = train.schedule.get_or_insert_default();
            schedule.decay = self.schedule.unwrap_or(schedule.decay);
            schedule.warmup = self.warmup.unwrap_or(schedule.warmup);
        }
        train.average = self.average.or(train.average);
        train.seed = self.seed.or(train.seed);
        train.checkpoint_every = self.checkpoint_every.or(train.checkpoint_every);
        match (self.optimizer.as_deref(), self.momentum) {
            (None, None) => {}
            (None | Some("momentum"), momentum) => {
                let momentum = momentum.unwrap_or(DEFAULT_MOMENTUM);
                train.optimizer = Some(OptimizerKind::Momentum { momentum });
            }
            (Some(_), Some(_)) => {
                return Err(bad_input("--momentum goes with --optimizer momentum"));
            }
            (Some("adam"), None) => {
                train.optimizer = Some(OptimizerKind::Adam(Moments::default()));
            }
            (Some("adam-bc"), None) => {
                train.optimizer = Some(OptimizerKind::AdamBc(Moments::default()));
            }
            // clap lets no other name through.
            (Some(_), None) => train.optimizer = Some(OptimizerKind::Sgd),
        }
        Ok(())
    }
}
