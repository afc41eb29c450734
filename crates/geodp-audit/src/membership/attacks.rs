//! Scores of membership, higher where it is likelier, from the logits φ = ln(p/(1 − p)) of the right
//! class.
//!
//! | attack | score of record x | needs |
//! |---|---|---|
//! | loss ([Yeom et al. 2018](https://arxiv.org/abs/1709.01604)) | −loss of the target | nothing |
//! | LiRA online ([Carlini et al. 2022](https://arxiv.org/abs/2112.03570)) | ln N(φ; in) − ln N(φ; out) | shadows with and without x |
//! | LiRA offline | (φ − mean out)/std out, one-sided | shadows without x |
//! | RMIA ([Zarifzadeh et al. 2024](https://arxiv.org/abs/2312.03262)) | share of population z with ratio(x)/ratio(z) > 1 | shadows without x, population |
//!
//! Means are medians; below 32 shadows on a side, all records share one spread.

use crate::Error;
use crate::error::same_length;
use serde::{Deserialize, Serialize};

/// From this many shadows on each side, a record's own spread is better known than the common one.
const OWN_SPREAD_FROM: usize = 32;
/// RMIA's offline a: how much a model trained without x understates p(x).
const RMIA_A: f64 = 0.3;

/// What one shadow model says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shadow {
    /// Which of the audited records it was trained on.
    pub member: Vec<bool>,
    /// Its logits of them.
    pub logits: Vec<f64>,
    /// Its logits of the population, which no model was trained on.
    pub population: Vec<f64>,
}

/// What all models say of the audited records.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The target's logits of the audited records.
    pub target: Vec<f64>,
    /// The target's logits of the population.
    pub population: Vec<f64>,
    /// The shadow models.
    pub shadows: Vec<Shadow>,
}

impl Evidence {
    /// Refuses lists of the wrong length and records that lack a shadow on one side.
    ///
    /// # Errors
    /// Which list does not fit.
    pub fn check(&self) -> Result<(), Error> {
        for shadow in &self.shadows {
            same_length("a shadow's members", shadow.member.len(), self.target.len())?;
            same_length("a shadow's logits", shadow.logits.len(), self.target.len())?;
            same_length("a shadow's population", shadow.population.len(), self.population.len())?;
        }
        for record in 0..self.target.len() {
            for side in [true, false] {
                if !self.shadows.iter().any(|s| s.member[record] == side) {
                    let name = "number of shadow models on each side of a record";
                    return Err(Error::Parameter { name, range: "at least 1", found: 0.0 });
                }
            }
        }
        Ok(())
    }

    /// −loss = ln p.
    pub fn loss(&self) -> Vec<f64> {
        self.target.iter().map(|phi| -(-phi).exp().ln_1p()).collect()
    }

    /// LiRA, online.
    pub fn lira_online(&self) -> Vec<f64> {
        let (inside, outside) = (self.sides(true), self.sides(false));
        self.target
            .iter()
            .zip(inside.iter().zip(&outside))
            .map(|(phi, (inside, outside))| inside.ln_density(*phi) - outside.ln_density(*phi))
            .collect()
    }

    /// LiRA, offline: only shadows that do not know the record, one-sided.
    pub fn lira_offline(&self) -> Vec<f64> {
        let outside = self.sides(false);
        self.target.iter().zip(&outside).map(|(phi, out)| (phi - out.mean) / out.std).collect()
    }

    /// RMIA, offline.
    pub fn rmia(&self) -> Vec<f64> {
        let mean = |logits: &mut dyn Iterator<Item = f64>| {
            let (sum, count) =
                logits.fold((0.0, 0.0), |(sum, count), phi| (sum + probability(phi), count + 1.0));
            sum / f64::max(count, 1.0)
        };
        // p(x) over all models, estimated from those without x.
        let whole = |out: f64| 0.5 * ((1.0 + RMIA_A) * out + (1.0 - RMIA_A));
        let mut of_population: Vec<f64> = (0..self.population.len())
            .map(|z| {
                let out = mean(&mut self.shadows.iter().map(|s| s.population[z]));
                probability(self.population[z]) / whole(out)
            })
            .collect();
        of_population.sort_by(f64::total_cmp);
        let share_below = |ratio: f64| {
            of_population.partition_point(|z| *z < ratio) as f64
                / f64::max(of_population.len() as f64, 1.0)
        };
        (0..self.target.len())
            .map(|x| {
                let without = self.shadows.iter().filter(|s| !s.member[x]);
                let out = mean(&mut without.map(|s| s.logits[x]));
                share_below(probability(self.target[x]) / whole(out))
            })
            .collect()
    }

    /// For each record, where the shadows with it (or without it) lie.
    fn sides(&self, member: bool) -> Vec<Normal> {
        let of_record = |x: usize| -> Vec<f64> {
            self.shadows.iter().filter(|s| s.member[x] == member).map(|s| s.logits[x]).collect()
        };
        let sides: Vec<Vec<f64>> = (0..self.target.len()).map(of_record).collect();
        let means: Vec<f64> = sides.iter().map(|side| median(side)).collect();
        let squares =
            |side: &[f64], mean: f64| -> f64 { side.iter().map(|phi| (phi - mean).powi(2)).sum() };
        let count: usize = sides.iter().map(Vec::len).sum();
        let total: f64 = sides.iter().zip(&means).map(|(side, mean)| squares(side, *mean)).sum();
        let common = total / f64::max(count as f64, 1.0);
        sides
            .iter()
            .zip(means)
            .map(|(side, mean)| {
                let own = side.len() >= OWN_SPREAD_FROM;
                let variance = if own { squares(side, mean) / side.len() as f64 } else { common };
                Normal { mean, std: variance.sqrt().max(1e-6) }
            })
            .collect()
    }
}

/// 1/(1 + e^−φ).
fn probability(phi: f64) -> f64 {
    1.0 / (1.0 + (-phi).exp())
}

struct Normal {
    mean: f64,
    std: f64,
}

impl Normal {
    fn ln_density(&self, x: f64) -> f64 {
        -0.5 * ((x - self.mean) / self.std).powi(2) - self.std.ln()
    }
}

/// The middle value, or the mean of the two middle ones; 0 of nothing.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        even if even.is_multiple_of(2) => 0.5 * (sorted[middle - 1] + sorted[middle]),
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two shadows on each side of one record, by hand.
    #[test]
    fn scores_of_one_record_by_hand() {
        let shadow = |member: bool, phi: f64| Shadow {
            member: vec![member],
            logits: vec![phi],
            population: vec![0.0],
        };
        let evidence = Evidence {
            target: vec![3.0],
            population: vec![0.0],
            shadows: vec![
                shadow(true, 2.0),
                shadow(true, 4.0),
                shadow(false, -1.0),
                shadow(false, 1.0),
            ],
        };
        evidence.check().unwrap();
        // In: median 3, spread 1. Out: median 0, spread 1.
        assert!((evidence.lira_online()[0] - 4.5).abs() < 1e-12);
        assert!((evidence.lira_offline()[0] - 3.0).abs() < 1e-12);
        assert!((evidence.loss()[0] + (1.0 + (-3f64).exp()).ln()).abs() < 1e-12);
        // ratio(z) = 0.5/(0.65·0.5 + 0.35); ratio(x) is larger.
        assert_eq!(evidence.rmia(), [1.0]);
        let one_sided = Evidence { shadows: evidence.shadows[..2].to_vec(), ..evidence.clone() };
        assert!(one_sided.check().is_err());
        let short = Evidence { population: vec![], ..evidence };
        assert!(short.check().is_err());
    }

    #[test]
    fn extreme_logits_stay_finite() {
        let shadow = |member: bool| Shadow {
            member: vec![member; 2],
            logits: vec![80.0, -80.0],
            population: vec![-80.0],
        };
        let evidence = Evidence {
            target: vec![80.0, -80.0],
            population: vec![-80.0],
            shadows: vec![shadow(true), shadow(false)],
        };
        for scores in
            [evidence.loss(), evidence.lira_online(), evidence.lira_offline(), evidence.rmia()]
        {
            assert!(scores.iter().all(|s| s.is_finite()), "{scores:?}");
        }
    }
}
