//! One private step: draw a batch, sum clipped gradients, divide by B, perturb. The only path.

use crate::Error;
use crate::engine::Engine;
use crate::plan::{Mechanism, Plan};
use crate::sampler::Sampler;
use crate::watch::{StepView, Watch};
use geodp_mechanism::{NoiseSource, Perturb};
use geodp_nn::BatchOutcome;

/// Makes the private gradient of any step, reusing its buffers.
#[derive(Debug)]
pub(crate) struct PrivateStep {
    sampler: Sampler,
    batch: Vec<u32>,
    gradient: Vec<f32>,
}

impl PrivateStep {
    pub(crate) fn new(plan: &Plan) -> Self {
        // `check` has made sure that both fit.
        let (records, batch) = (plan.facts.records as u32, plan.batch as u32);
        Self {
            sampler: Sampler::new(plan.sampling, records, batch),
            batch: Vec::new(),
            gradient: vec![0.0; plan.facts.dim],
        }
    }

    /// The private gradient of `step` at `weights`.
    ///
    /// # Guarantee
    /// For a plan with privacy: (Σ_{i in batch} w(‖g_i‖)·g_i)/B with w(n)·n ≤ C, B the plan's
    /// public batch size, perturbed once with the noise of `step`. An empty batch gives a release
    /// of noise alone.
    pub(crate) fn gradient(
        &mut self,
        plan: &Plan,
        engine: &dyn Engine,
        weights: &[f32],
        noise: &NoiseSource,
        step: u64,
        watch: Option<&mut dyn Watch>,
    ) -> Result<(&[f32], BatchOutcome), Error> {
        self.sampler.draw(noise, step, &mut self.batch)?;
        let weight_of = |_, norm| plan.clip.as_ref().map_or(1.0, |clip| clip.weight(norm));
        let outcome = match &plan.clip {
            Some(_) => engine.weighted_sum(weights, &self.batch, &weight_of, &mut self.gradient),
            None => engine.gradient_sum(weights, &self.batch, &mut self.gradient),
        }
        .map_err(|source| Error::Engine { step, source })?;
        let batch = plan.batch as f32;
        self.gradient.iter_mut().for_each(|g| *g /= batch);
        if let Some(watch) = watch {
            watch.on_step(&StepView {
                step,
                plan,
                engine,
                weights,
                batch: &self.batch,
                mean: &self.gradient,
                weight_of: &weight_of,
                sensitivity: plan.clip_norm().unwrap_or(0.0),
                denominator: plan.batch,
            })?;
        }
        match &plan.mechanism {
            Mechanism::None => Ok(()),
            Mechanism::Dp(dp) => dp.perturb_in_place(&mut self.gradient, noise, step),
            Mechanism::Geodp(geodp) => geodp.perturb_in_place(&mut self.gradient, noise, step),
        }?;
        Ok((&self.gradient, outcome))
    }
}
