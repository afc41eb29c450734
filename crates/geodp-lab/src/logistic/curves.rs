//! The curves of Figure 5: which panel shows which trainings.

use geodp_mechanism::Mechanism;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Two ways to run the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// As the released code does: see [`super::train`].
    Released,
    /// Per-sample clipping and Poisson batches for all: see [`super::train`].
    Fair,
}

impl Protocol {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Released, Self::Fair];

    /// Its name in keys and titles.
    pub fn name(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Fair => "fair",
        }
    }
}

/// One training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve {
    /// How its gradients are perturbed.
    pub mechanism: Mechanism,
    /// B.
    pub batch: u64,
    /// σ; 0 without noise.
    pub sigma: f64,
}

impl Curve {
    /// Name in keys: ASCII letters, digits, dots and dashes.
    pub fn key(&self) -> String {
        match self.mechanism {
            Mechanism::None => format!("none-b{}", self.batch),
            Mechanism::Dp => format!("dp-b{}-sigma{}", self.batch, self.sigma),
            Mechanism::Geodp { beta } => {
                format!("geodp{beta}-b{}-sigma{}", self.batch, self.sigma)
            }
            Mechanism::GeodpCertified(_) => {
                format!("geodp-certified-b{}-sigma{}", self.batch, self.sigma)
            }
        }
    }

    /// What its cells say was run. These words are in every cell on disk: they must not change.
    pub fn config(&self) -> Value {
        let perturbation = match self.mechanism {
            Mechanism::None => json!("none"),
            Mechanism::Dp => json!("dp"),
            Mechanism::Geodp { beta } => json!({ "geodp": beta }),
            Mechanism::GeodpCertified(_) => json!(self.mechanism),
        };
        json!({ "perturbation": perturbation, "batch": self.batch, "sigma": self.sigma })
    }

    /// Name in legends; `vary` is what the panel varies.
    pub fn label(&self, vary: &str) -> String {
        let value = match vary {
            "B" => format!("B = {}", self.batch),
            _ => format!("σ = {}", self.sigma),
        };
        match (self.mechanism, vary) {
            (Mechanism::None, _) => "no noise".to_owned(),
            (Mechanism::Dp, "β") => "DP".to_owned(),
            (Mechanism::Dp, _) => format!("DP, {value}"),
            (Mechanism::Geodp { beta }, "β") => format!("GeoDP, β = {beta}"),
            (Mechanism::Geodp { .. }, _) => format!("GeoDP, {value}"),
            (Mechanism::GeodpCertified(_), "β") => "certified GeoDP".to_owned(),
            (Mechanism::GeodpCertified(_), _) => format!("certified GeoDP, {value}"),
        }
    }
}

/// One plot of the figure.
#[derive(Debug, Clone)]
pub struct Panel {
    /// a, b or c.
    pub letter: char,
    /// What is fixed, for the title.
    pub fixed: &'static str,
    /// What is varied: B, β or σ.
    pub vary: &'static str,
    /// Its curves.
    pub curves: Vec<Curve>,
}

fn none(batch: u64) -> Curve {
    Curve { mechanism: Mechanism::None, batch, sigma: 0.0 }
}

fn dp(batch: u64, sigma: f64) -> Curve {
    Curve { mechanism: Mechanism::Dp, batch, sigma }
}

fn geodp(beta: f64, batch: u64, sigma: f64) -> Curve {
    Curve { mechanism: Mechanism::Geodp { beta }, batch, sigma }
}

/// The three panels. GeoDP at β = 0.1 in panel b is not in the paper’s figure.
pub fn panels() -> [Panel; 3] {
    [
        Panel {
            letter: 'a',
            fixed: "σ = 1, β = 1",
            vary: "B",
            curves: vec![
                none(4096),
                dp(2048, 1.0),
                dp(4096, 1.0),
                geodp(1.0, 2048, 1.0),
                geodp(1.0, 4096, 1.0),
            ],
        },
        Panel {
            letter: 'b',
            fixed: "σ = 10, B = 2048",
            vary: "β",
            curves: vec![
                none(2048),
                dp(2048, 10.0),
                geodp(1.0, 2048, 10.0),
                geodp(0.5, 2048, 10.0),
                geodp(0.1, 2048, 10.0),
            ],
        },
        Panel {
            letter: 'c',
            fixed: "β = 1, B = 256",
            vary: "σ",
            curves: vec![
                none(256),
                dp(256, 0.01),
                dp(256, 0.1),
                geodp(1.0, 256, 0.01),
                geodp(1.0, 256, 0.1),
            ],
        },
    ]
}
