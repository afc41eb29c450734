//! `[privacy]` as a file has it: the mechanism's name and its β are two keys beside the others.

use super::{ClipKind, PrivacyParams};
use crate::importance::ImportanceParams;
use crate::quantile::QuantileParams;
use crate::sampler::Sampling;
use crate::select::SelectParams;
use geodp_account::Arithmetic;
use geodp_mechanism::{Error, Mechanism};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PrivacyFile {
    mechanism: Name,
    beta: Option<f64>,
    delta_share: Option<f64>,
    least_radius: Option<f64>,
    normalised: Option<bool>,
    most_ratio: Option<f64>,
    noise_multiplier: Option<f64>,
    epsilon: Option<f64>,
    epsilon_limit: Option<f64>,
    delta: Option<f64>,
    release_accuracy: Option<f64>,
    clip: ClipKind,
    clip_norm: Option<f64>,
    quantile: Option<QuantileParams>,
    arithmetic: Option<Arithmetic>,
    sampling: Sampling,
    importance: Option<ImportanceParams>,
    select: Option<SelectParams>,
}

impl TryFrom<PrivacyFile> for PrivacyParams {
    type Error = Error;

    fn try_from(file: PrivacyFile) -> Result<Self, Error> {
        Ok(Self {
            mechanism: file.mechanism()?,
            noise_multiplier: file.noise_multiplier,
            epsilon: file.epsilon,
            epsilon_limit: file.epsilon_limit,
            delta: file.delta,
            release_accuracy: file.release_accuracy,
            clip: file.clip,
            clip_norm: file.clip_norm,
            quantile: file.quantile,
            arithmetic: file.arithmetic,
            sampling: file.sampling,
            importance: file.importance,
            select: file.select,
        })
    }
}

impl PrivacyFile {
    /// The mechanism, with the keys that belong to it.
    fn mechanism(&self) -> Result<Mechanism, Error> {
        let mut mechanism = Mechanism::named(self.mechanism.0, self.beta)?;
        match &mut mechanism {
            Mechanism::GeodpCertified(polar) => {
                polar.delta_share = self.delta_share.unwrap_or(polar.delta_share);
                polar.least_radius = self.least_radius.unwrap_or(polar.least_radius);
                polar.normalised = self.normalised.unwrap_or(polar.normalised);
                polar.most_ratio = self.most_ratio.unwrap_or(polar.most_ratio);
            }
            _ => {
                let given = [
                    ("delta_share", self.delta_share.is_some()),
                    ("least_radius", self.least_radius.is_some()),
                    ("normalised", self.normalised.is_some()),
                    ("most_ratio", self.most_ratio.is_some()),
                ];
                if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
                    return Err(Error::PolarUnused { name, mechanism: mechanism.title() });
                }
            }
        }
        Ok(mechanism)
    }
}

/// A mechanism's name.
struct Name(&'static str);

impl Default for Name {
    fn default() -> Self {
        Self(Mechanism::default().name())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let known = Mechanism::NAMES.iter().find(|known| **known == name);
        known
            .map(|name| Self(name))
            .ok_or_else(|| D::Error::unknown_variant(&name, Mechanism::NAMES))
    }
}
