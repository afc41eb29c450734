//! Looking at a step before its noise: for measurements by the data's owner.
//!
//! Everything in a [`StepView`] is private. Nothing a [`Watch`] does can change the step.

use crate::Error;
use crate::engine::{Engine, WeightOf};
use crate::plan::Plan;

/// A step between its clipped sum and its noise. Private: computed on the records as they are.
#[non_exhaustive]
pub struct StepView<'a> {
    /// Number of the step, from 0.
    pub step: u64,
    /// The plan.
    pub plan: &'a Plan,
    /// The model over its records.
    pub engine: &'a dyn Engine,
    /// Weights before the step.
    pub weights: &'a [f32],
    /// The records whose gradients were summed.
    pub batch: &'a [u32],
    /// (Σ w_i·g_i)/B before the noise.
    pub mean: &'a [f32],
    /// w_i of the record at a place in `batch`, given its gradient's norm.
    pub weight_of: WeightOf<'a>,
    /// What bounds every w_i·‖g_i‖; 0 without clipping. The noise is scaled by it.
    pub sensitivity: f64,
    /// B of this step: the denominator of `mean` and of the noise.
    pub denominator: u64,
}

/// Something that looks at steps.
pub trait Watch {
    /// Called for every step, before its noise is added.
    ///
    /// # Errors
    /// Whatever stops the measurement; it stops the training as well.
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), Error>;
}
