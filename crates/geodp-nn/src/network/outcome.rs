//! What a pass showed of a batch: each sample's norm and loss, or how well weights do on all of it.

/// What a pass over a batch showed of each sample.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BatchOutcome {
    /// Norm of each sample's gradient, in the order of the batch; not finite if the gradient was
    /// not, in which case it was left out. Empty for a plain gradient.
    pub norms: Vec<f32>,
    /// Loss of each sample, in the order of the batch.
    pub losses: Vec<f32>,
    /// How many labels were the most probable class.
    pub correct: usize,
    /// How many labels there were: one for each sample, several for a unit of several rows.
    pub rows: usize,
}

/// How well weights do on a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// Mean of the losses; 0 of an empty batch.
    pub mean_loss: f64,
    /// How many labels were the most probable class.
    pub correct: usize,
    /// How many samples there were.
    pub count: usize,
}

impl Evaluation {
    /// Of losses and hits.
    pub(crate) fn of((losses, correct): (Vec<f32>, usize)) -> Self {
        Self { mean_loss: mean_loss(&losses), correct, count: losses.len() }
    }

    /// Share of labels that were the most probable class; 0 of an empty batch.
    pub fn accuracy(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.correct as f64 / self.count as f64 }
    }
}

/// The mean of losses, added in their order; 0 of none.
pub fn mean_loss(losses: &[f32]) -> f64 {
    let total: f64 = losses.iter().map(|&loss| f64::from(loss)).sum();
    total / losses.len().max(1) as f64
}
