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
        let beta = self.mechanism.beta().map_or(String::new(), |beta| beta.to_string());
        let key = format!("{}{beta}-b{}", self.mechanism.name(), self.batch);
        if self.mechanism.is_private() { format!("{key}-sigma{}", self.sigma) } else { key }
    }

    /// What its cells say was run. These words are in every cell on disk: they must not change.
    pub fn config(&self) -> Value {
        let name = self.mechanism.name();
        let whole = json!(self.mechanism);
        let perturbation = match self.mechanism.beta() {
            Some(beta) => json!({ name: beta }),
            // A mechanism without parameters is its name.
            None if whole.as_object().is_some_and(|fields| fields.len() == 1) => json!(name),
            None => whole,
        };
        json!({ "perturbation": perturbation, "batch": self.batch, "sigma": self.sigma })
    }

    /// Name in legends; `vary` is what the panel varies.
    pub fn label(&self, vary: &str) -> String {
        let value = match vary {
            "B" => format!("B = {}", self.batch),
            _ => format!("σ = {}", self.sigma),
        };
        let title = self.mechanism.title();
        match (self.mechanism.is_private(), vary, self.mechanism.beta()) {
            (false, _, _) | (true, "β", None) => title.to_owned(),
            (true, "β", Some(beta)) => format!("{title}, β = {beta}"),
            (true, _, _) => format!("{title}, {value}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys and configs are in every cell on disk.
    #[test]
    fn keys_configs_and_labels_stay_as_they_are() {
        let config = |perturbation: Value, batch: u64, sigma: f64| json!({ "perturbation": perturbation, "batch": batch, "sigma": sigma });
        let cases = [
            (none(256), "none-b256", json!("none"), ["no noise", "no noise"]),
            (dp(256, 0.01), "dp-b256-sigma0.01", json!("dp"), ["DP", "DP, σ = 0.01"]),
            (
                geodp(0.5, 2048, 10.0),
                "geodp0.5-b2048-sigma10",
                json!({ "geodp": 0.5 }),
                ["GeoDP, β = 0.5", "GeoDP, σ = 10"],
            ),
        ];
        for (curve, key, perturbation, [by_beta, by_sigma]) in cases {
            assert_eq!(curve.key(), key);
            assert_eq!(curve.config(), config(perturbation, curve.batch, curve.sigma));
            assert_eq!((curve.label("β"), curve.label("σ")), (by_beta.into(), by_sigma.into()));
        }
    }
}
