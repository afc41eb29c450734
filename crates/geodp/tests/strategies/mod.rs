//! IS, SUR, the clipping rules and the optimisers, in every combination: against a plain second
//! implementation, by statistics, and in the books.
//!
//! Statistical bounds are 5.5 standard errors: a false alarm in 3e-8 for each.

mod accounting;
mod plain;
mod same_as_plain;
mod statistics;

use geodp::engine::{Engine, EngineError, WeightOf};
use geodp::importance::ImportanceParams;
use geodp::optimizer::{Moments, OptimizerKind};
use geodp::params::{ClipKind, Mechanism, PlanParams};
use geodp::plan::Facts;
use geodp::select::SelectParams;
use geodp_nn::BatchOutcome;

const STANDARD_ERRORS: f64 = 5.5;

/// Records x_i with loss ½‖w − x_i‖², so the gradient is w − x_i: small enough to do by hand.
struct Points(Vec<Vec<f32>>);

impl Points {
    /// Distances from the origin from 0.01 to 0.4, in all directions.
    fn spread(records: usize, dim: usize) -> Self {
        let point = |i: usize| {
            let angle = i as f32 * 2.399;
            let radius = 0.01 + 0.39 * i as f32 / records as f32;
            let wave = |z: usize| (angle + z as f32 * 1.3).sin();
            let norm = (0..dim).map(|z| wave(z).powi(2)).sum::<f32>().sqrt();
            (0..dim).map(|z| radius * wave(z) / norm).collect()
        };
        Self((0..records).map(point).collect())
    }

    fn gradient(&self, weights: &[f32], record: u32) -> Vec<f64> {
        let point = &self.0[record as usize];
        weights.iter().zip(point).map(|(w, x)| f64::from(*w) - f64::from(*x)).collect()
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

impl Engine for Points {
    fn facts(&self) -> Facts {
        Facts { records: self.0.len() as u64, dim: self.0[0].len() }
    }
    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        let mut outcome = BatchOutcome::default();
        let mut total = vec![0.0; sum.len()];
        for (place, record) in batch.iter().enumerate() {
            let gradient = self.gradient(weights, *record);
            let norm = norm(&gradient);
            let weight = weight_of.weight(place, norm);
            total.iter_mut().zip(&gradient).for_each(|(t, g)| *t += weight * g);
            outcome.norms.push(norm as f32);
            outcome.losses.push((norm * norm / 2.0) as f32);
        }
        sum.iter_mut().zip(total).for_each(|(s, t)| *s = t as f32);
        Ok(outcome)
    }
    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        let loss = |record: &u32| norm(&self.gradient(weights, *record)).powi(2) / 2.0;
        Ok(batch.iter().map(loss).sum::<f64>() / batch.len().max(1) as f64)
    }
}

/// C = 0.2, σ = 0.7, B = 10, η = 0.3.
fn params(mechanism: Mechanism, steps: u64) -> PlanParams {
    let mut params = PlanParams::default();
    params.privacy.mechanism = mechanism;
    params.privacy.noise_multiplier = Some(0.7);
    params.privacy.clip_norm = Some(0.2);
    params.train.batch = Some(10);
    params.train.steps = Some(steps);
    params.train.learning_rate = Some(0.3);
    params
}

/// Every combination that can be accounted.
fn combinations(steps: u64) -> Vec<(String, PlanParams)> {
    let moments = Moments { beta1: 0.9, beta2: 0.99, floor: 1e-6 };
    let optimizers = [
        OptimizerKind::Sgd,
        OptimizerKind::Momentum { momentum: 0.5 },
        OptimizerKind::Adam(moments),
        OptimizerKind::AdamBc(moments),
    ];
    let importance = ImportanceParams {
        candidate_rate: Some(0.6),
        noise_multiplier: Some(0.5),
        refresh: Some(4),
        ..ImportanceParams::default()
    };
    let select = SelectParams { batch: 15, loss_clip: 0.01, noise_multiplier: 0.5, threshold: 0.2 };
    let mut all = Vec::new();
    for mechanism in [Mechanism::Dp, Mechanism::Geodp { beta: 0.05 }] {
        for clip in [ClipKind::Flat, ClipKind::AutoS, ClipKind::Psac] {
            for (is, sur) in [(false, false), (true, false), (false, true), (true, true)] {
                for optimizer in optimizers {
                    if mechanism.beta().is_some() && matches!(optimizer, OptimizerKind::AdamBc(_)) {
                        continue;
                    }
                    let mut params = params(mechanism, steps);
                    params.privacy.clip = clip;
                    params.privacy.importance = is.then(|| importance.clone());
                    params.privacy.select = sur.then(|| select.clone());
                    params.train.optimizer = Some(optimizer);
                    let name = format!("{mechanism} {clip} IS {is} SUR {sur} {optimizer}");
                    all.push((name, params));
                }
            }
        }
    }
    all
}
