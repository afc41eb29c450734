//! Which mechanism makes a gradient private: the one type for it, from a config file to a table's row.
//!
//! β is inside the variant that needs it, so "GeoDP without β" and "DP with β" cannot be said in
//! Rust; [`Mechanism::named`] refuses them where they come as text. As data it is
//! `{ mechanism = "geodp", beta = 0.1 }`.

use crate::Error;
use crate::perturb::PolarSettings;
use serde::{Deserialize, Serialize};

/// How a clipped mean gradient is made private.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum Mechanism {
    /// No noise: not private.
    None,
    /// Gaussian noise on every coordinate (DP-SGD).
    #[default]
    Dp,
    /// Noise on magnitude and angles (GeoDP-SGD).
    Geodp {
        /// Bounding factor β, in (0, 1].
        beta: f64,
    },
    /// Noise on magnitude and direction, with the direction's sensitivity enforced.
    GeodpCertified(PolarSettings),
}

impl Mechanism {
    /// The names, as files and flags spell them.
    pub const NAMES: &'static [&'static str] = &["none", "dp", "geodp", "geodp-certified"];

    /// The mechanism of this name, with β where it has one.
    ///
    /// # Errors
    /// An unknown name; a β that is missing, or given to a mechanism without one. Its range is
    /// checked when the noise is scaled.
    pub fn named(name: &str, beta: Option<f64>) -> Result<Self, Error> {
        match (name, beta) {
            ("none", None) => Ok(Self::None),
            ("dp", None) => Ok(Self::Dp),
            ("geodp", Some(beta)) => Ok(Self::Geodp { beta }),
            ("geodp-certified", None) => Ok(Self::GeodpCertified(PolarSettings::default())),
            ("geodp", None) => Err(Error::BetaMissing),
            ("none", Some(beta)) => Err(Error::BetaUnused { mechanism: "no noise", beta }),
            ("dp", Some(beta)) => Err(Error::BetaUnused { mechanism: "DP", beta }),
            ("geodp-certified", Some(beta)) => {
                Err(Error::BetaUnused { mechanism: "certified GeoDP", beta })
            }
            (unknown, _) => Err(Error::UnknownMechanism(unknown.to_owned())),
        }
    }

    /// Its name, as files and flags spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Dp => "dp",
            Self::Geodp { .. } => "geodp",
            Self::GeodpCertified(_) => "geodp-certified",
        }
    }

    /// Its name, as people write it.
    pub fn title(&self) -> &'static str {
        match self {
            Self::None => "no noise",
            Self::Dp => "DP",
            Self::Geodp { .. } => "GeoDP",
            Self::GeodpCertified(_) => "certified GeoDP",
        }
    }

    /// β, where it has one.
    pub fn beta(&self) -> Option<f64> {
        match self {
            Self::None | Self::Dp | Self::GeodpCertified(_) => None,
            Self::Geodp { beta } => Some(*beta),
        }
    }

    /// Whether its steps are of several kinds, polar ones among them.
    pub fn is_polar(&self) -> bool {
        matches!(self, Self::GeodpCertified(_))
    }

    /// Whether it adds noise.
    pub fn is_private(&self) -> bool {
        *self != Self::None
    }
}

impl std::fmt::Display for Mechanism {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_beta_belong_together() {
        for name in Mechanism::NAMES {
            let beta = (*name == "geodp").then_some(0.1);
            let mechanism = Mechanism::named(name, beta).unwrap();
            assert_eq!((mechanism.name(), mechanism.beta()), (*name, beta));
            assert_eq!(mechanism.is_private(), *name != "none");
            let other = if beta.is_some() { None } else { Some(0.1) };
            assert!(Mechanism::named(name, other).unwrap_err().to_string().contains("beta"));
        }
        assert!(
            Mechanism::named("geo", None)
                .unwrap_err()
                .to_string()
                .contains("none, dp, geodp, geodp-certified")
        );
    }
}
