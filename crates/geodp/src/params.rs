//! What a user may say about a private training: plain data, the same for TOML, flags and Rust.
//!
//! ```toml
//! [privacy]
//! mechanism = "geodp"        # "dp" (default), "geodp", "none"
//! beta = 0.1                 # geodp only
//! epsilon = 3.0              # or noise_multiplier = 1.1, not both
//! delta = 1e-5
//! clip = "flat"              # "flat" (default), "auto-s", "psac"
//! clip_norm = 0.1
//!
//! [privacy.importance]       # IS, if this table is there; see crate::importance
//! keep = "by-norm"           # "all" is the control: DP-SGD with as many gradients
//!
//! [privacy.select]           # SUR, if this table is there; see crate::select
//! batch = 256
//!
//! [train]
//! batch = 1024               # expected batch size: the only denominator
//! epochs = 20                # or steps = 1000
//! learning_rate = 2.0
//! optimizer = { name = "momentum", momentum = 0.9 }   # "sgd", "adam", "adam-bc"
//! ```
//! Nothing here is checked but the spelling; [`PlanParams::check`](crate::Plan) makes it a plan.

mod file;

pub use geodp_mechanism::Mechanism;

use crate::importance::ImportanceParams;
use crate::optimizer::OptimizerKind;
use crate::quantile::QuantileParams;
use crate::sampler::Sampling;
use crate::schedule::Schedule;
use crate::select::SelectParams;
use geodp_account::Arithmetic;
use geodp_mechanism::Clip;
use geodp_mechanism::clip::{AutoS, Psac};
use serde::{Deserialize, Serialize};

/// Parameters of a private training, unchecked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanParams {
    /// Mechanism, clipping and budget.
    pub privacy: PrivacyParams,
    /// Batches, length and optimiser.
    pub train: TrainParams,
}

/// Which rule weighs per-sample gradients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClipKind {
    /// min(1, C/n).
    #[default]
    Flat,
    /// C/(n + 0.01).
    AutoS,
    /// C/(n + r/(n + r)), r = 0.1.
    Psac,
}

impl ClipKind {
    /// The names, as files and flags spell them.
    pub const NAMES: &'static [&'static str] = &["flat", "auto-s", "psac"];

    /// The rule with this C, and its authors' constants.
    pub(crate) fn at(self, clip_norm: f64) -> Result<Clip, geodp_mechanism::Error> {
        match self {
            Self::Flat => Clip::flat(clip_norm),
            Self::AutoS => Clip::auto_s(clip_norm, AutoS::GAMMA),
            Self::Psac => Clip::psac(clip_norm, Psac::R),
        }
    }
}

impl std::fmt::Display for ClipKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flat => "flat",
            Self::AutoS => "auto-s",
            Self::Psac => "psac",
        })
    }
}

/// Mechanism, clipping and budget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "file::PrivacyFile")]
pub struct PrivacyParams {
    /// How a gradient is made private. In a file: `mechanism`, and `beta` beside it.
    #[serde(flatten)]
    pub mechanism: Mechanism,
    /// σ. Not together with `epsilon`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// Target ε: σ is calibrated to it. For GeoDP the target is of the conditional kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// Stop before the step that would exceed this ε.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_limit: Option<f64>,
    /// δ; 1e-5 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// ε of a noisy accuracy on private held-out records, released and charged at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_accuracy: Option<f64>,
    /// Which rule weighs per-sample gradients.
    pub clip: ClipKind,
    /// C; 0.1 (the paper's) if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip_norm: Option<f64>,
    /// C follows a quantile of the norms, starting at `clip_norm`; fixed if absent. For clients only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quantile: Option<QuantileParams>,
    /// How sums and noise are computed; exactly if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic: Option<Arithmetic>,
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Importance sampling (IS); off if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<ImportanceParams>,
    /// Selective update and release (SUR); off if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select: Option<SelectParams>,
}

/// Batches, length and optimiser.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainParams {
    /// B: expected batch size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Passes over the data. Not together with `steps`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epochs: Option<u64>,
    /// Number of steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// η.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Which optimiser.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub optimizer: Option<OptimizerKind>,
    /// How η changes over the training; constant if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Decay of the average of the weights that is evaluated and released; the last weights if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<f64>,
    /// Makes the run repeatable, and not private against anyone who knows the seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Steps between checkpoints; about six an epoch if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u64>,
    /// Follow so many records, drawn at random, and measure what each pays: for the data's owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measure: Option<u64>,
}
