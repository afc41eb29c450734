//! An engine with given gradients, and what its records contribute.

use geodp::engine::{Engine, EngineError, WeightOf};
use geodp::plan::Facts;
use geodp_nn::BatchOutcome;

/// A model whose per-record gradients are given and constant.
pub(crate) struct Given {
    /// One a record.
    pub(crate) gradients: Vec<Vec<f32>>,
}

impl Given {
    /// Some gradients, no two alike, most of them longer than 1.
    pub(crate) fn waves(records: usize, dim: usize) -> Self {
        let wave = |record: usize| {
            (0..dim).map(move |z| ((record * 131 + z * z * 7 + z) as f32).sin()).collect()
        };
        Self { gradients: (0..records).map(wave).collect() }
    }

    fn sum(
        &self,
        batch: &[u32],
        weight: impl Fn(usize, f64) -> f64,
        sum: &mut [f32],
    ) -> BatchOutcome {
        let mut total = vec![0.0; sum.len()];
        let mut outcome = BatchOutcome::default();
        for (place, index) in batch.iter().enumerate() {
            let gradient = &self.gradients[*index as usize];
            let norm = norm(gradient);
            if norm.is_finite() {
                let weight = weight(place, norm);
                total.iter_mut().zip(gradient).for_each(|(s, g)| *s += weight * f64::from(*g));
            }
            outcome.norms.push(norm as f32);
            outcome.losses.push(1.0);
        }
        sum.iter_mut().zip(total).for_each(|(s, t)| *s = t as f32);
        outcome
    }
}

/// ‖g‖ in f64.
pub(crate) fn norm(gradient: &[f32]) -> f64 {
    gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt()
}

/// Clipped flat at `clip_norm`.
pub(crate) fn clip(gradient: &[f32], clip_norm: f64) -> Vec<f64> {
    let weight = (clip_norm / norm(gradient)).min(1.0);
    gradient.iter().map(|g| weight * f64::from(*g)).collect()
}

impl Engine for Given {
    fn facts(&self) -> Facts {
        Facts { records: self.gradients.len() as u64, dim: self.gradients[0].len() }
    }
    fn weighted_sum(
        &self,
        _weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        Ok(self.sum(batch, |place, norm| weight_of.weight(place, norm), sum))
    }
    fn sample_gradients(
        &self,
        _weights: &[f32],
        batch: &[u32],
        gradients: &mut [f32],
    ) -> Result<(), EngineError> {
        for (index, row) in batch.iter().zip(gradients.chunks_mut(self.facts().dim)) {
            row.copy_from_slice(&self.gradients[*index as usize]);
        }
        Ok(())
    }
    fn mean_loss(&self, _weights: &[f32], _batch: &[u32]) -> Result<f64, EngineError> {
        Ok(0.0)
    }
}
