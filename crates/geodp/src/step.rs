//! One private step: draw a batch, sum clipped gradients, divide by B, perturb. The only path.

use crate::Error;
use crate::engine::Engine;
use crate::plan::{Plan, Protection};
use crate::sampler::Sampler;
use crate::watch::{StepView, Watch};
use geodp_mechanism::{Clip, NoiseSource, Spread};
use geodp_nn::BatchOutcome;

/// Makes the private gradient of any step, reusing its buffers.
#[derive(Debug)]
pub(crate) struct PrivateStep {
    sampler: Sampler,
    batch: Vec<u32>,
    gradient: Vec<f32>,
    /// K̃ of importance sampling, once released.
    pub(crate) norm_total: Option<f64>,
}

/// A step's release, and what else is known of it.
pub(crate) struct Released<'a> {
    pub(crate) gradient: &'a [f32],
    /// Variance of the noise on each coordinate, where all have the same.
    pub(crate) noise_variance: f64,
    /// Private.
    pub(crate) outcome: BatchOutcome,
}

/// How the gradients of a batch are weighed: by a clipping rule, and by a coin where there is one.
pub(crate) struct Weighing {
    /// Bounds the contributions; its sensitivity scales the noise.
    pub(crate) clip: Clip,
    /// Public denominator.
    pub(crate) denominator: u64,
    /// Keeps the record at a place with a chance that depends on its norm.
    pub(crate) coins: Option<Coins>,
}

/// A rule whose weighted norm over C is the chance of a record to be kept, and a number in [0, 1)
/// for each place.
pub(crate) struct Coins {
    pub(crate) rule: Clip,
    pub(crate) tossed: Vec<f64>,
}

impl Weighing {
    /// The weight of the record at `place`, whose gradient has this norm.
    fn weight(&self, place: usize, norm: f64) -> f64 {
        let kept = self.coins.as_ref().is_none_or(|Coins { rule, tossed }| {
            tossed[place] < rule.weight(norm) * norm / rule.sensitivity().get()
        });
        if kept { self.clip.weight(norm) } else { 0.0 }
    }
}

impl PrivateStep {
    pub(crate) fn new(plan: &Plan) -> Self {
        // `check` has made sure that both fit.
        let (records, batch) = (plan.facts.records as u32, plan.batch as u32);
        Self {
            sampler: Sampler::new(plan.sampling, records, batch),
            batch: Vec::new(),
            gradient: vec![0.0; plan.facts.dim],
            norm_total: None,
        }
    }

    /// The private gradient of `step` at `weights`.
    ///
    /// # Guarantee
    /// For a plan with privacy: (Σ_{i in batch} w_i·g_i)/B with w_i·‖g_i‖ at most the sensitivity
    /// that scales the noise, B a public number, perturbed once with the noise of `step`. An empty
    /// batch gives a release of noise alone.
    pub(crate) fn gradient(
        &mut self,
        plan: &Plan,
        engine: &dyn Engine,
        weights: &[f32],
        noise: &NoiseSource,
        step: u64,
        watch: Option<&mut dyn Watch>,
    ) -> Result<Released<'_>, Error> {
        let weighing = self.draw(plan, engine, weights, noise, step)?;
        let denominator = weighing.as_ref().map_or(plan.batch, |weighing| weighing.denominator);
        let sensitivity = weighing.as_ref().map(|weighing| weighing.clip.sensitivity());
        let mechanism = match (&plan.protection, sensitivity) {
            (Protection::None { .. }, _) => None,
            (Protection::Private { noise, .. }, Some(sensitivity)) => {
                Some(noise.at(sensitivity, denominator)?)
            }
            (Protection::Private { .. }, None) => {
                return Err(Error::Plan(format!(
                    "step {step} has noise and nothing that scales it"
                )));
            }
        };
        let weight_of =
            |place, norm| weighing.as_ref().map_or(1.0, |weighing| weighing.weight(place, norm));
        let (batch, gradient) = (&self.batch[..], &mut self.gradient[..]);
        let outcome = match &weighing {
            Some(_) => engine.weighted_sum(weights, batch, &weight_of, gradient),
            None => engine.gradient_sum(weights, batch, gradient),
        }
        .map_err(|source| Error::Engine { step, source })?;
        gradient.iter_mut().for_each(|g| *g /= denominator as f32);
        if let Some(watch) = watch {
            watch.on_step(&StepView {
                step,
                plan,
                engine,
                weights,
                batch,
                mean: gradient,
                weight_of: &weight_of,
                sensitivity: sensitivity.map_or(0.0, |sensitivity| sensitivity.get()),
                denominator,
            })?;
        }
        let mut noise_variance = 0.0;
        if let Some(mechanism) = mechanism {
            mechanism.perturb_in_place(gradient, noise, step)?;
            if let Spread::Coordinates { std } = mechanism.spread(gradient.len()) {
                noise_variance = std.powi(2);
            }
        }
        Ok(Released { gradient, noise_variance, outcome })
    }

    /// Draws the batch of `step`; `None` where nothing is clipped.
    fn draw(
        &mut self,
        plan: &Plan,
        engine: &dyn Engine,
        weights: &[f32],
        noise: &NoiseSource,
        step: u64,
    ) -> Result<Option<Weighing>, Error> {
        if let (Some(importance), Some(clip)) =
            (&plan.strategies.importance, plan.protection.clip())
        {
            let total = match self.norm_total {
                Some(total) if !importance.is_due(step) => total,
                _ => {
                    let (sample, scratch) = (&mut self.batch, &mut self.gradient[..]);
                    importance.release(clip, engine, weights, noise, step, (sample, scratch))?
                }
            };
            self.norm_total = Some(total);
            return importance.draw(clip, total, noise, step, &mut self.batch).map(Some);
        }
        self.sampler.draw(noise, step, &mut self.batch)?;
        Ok(plan.protection.clip().map(|clip| Weighing {
            clip: clip.clone(),
            denominator: plan.batch,
            coins: None,
        }))
    }
}
