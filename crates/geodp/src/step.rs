//! One private step: draw a batch, sum clipped gradients, divide by B, perturb. The only path.
//!
//! In exact arithmetic (the default) the sum is an integer vector and the noise a Gaussian rounded to
//! the same grid, so that what is proved of the step is true of the bits it releases. Floating point
//! is there for comparison, and for training without privacy.

use crate::Error;
use crate::engine::{Constant, Engine, EngineError, Weigh, WeightRule};
use crate::importance::Scratch;
use crate::plan::{Plan, Scaled};
use crate::sampler::{Batches, Sampler};
use crate::watch::{StepView, Watch};
use geodp_mechanism::clip::{ClipNorm, ClipRule, Sensitivity};
use geodp_mechanism::perturb::mean_into;
use geodp_mechanism::{Clip, NoiseSource, PolarState, Spread};
use geodp_nn::{BatchOutcome, Grid};

/// Makes the private gradient of any step, reusing its buffers.
#[derive(Debug)]
pub(crate) struct PrivateStep {
    batches: Batches,
    batch: Vec<u32>,
    gradient: Vec<f32>,
    /// The exact sum, in units of the grid; empty where sums are in floating point.
    exact: Vec<i64>,
    /// K̃ of importance sampling, once released.
    pub(crate) norm_total: Option<f64>,
    /// Where C has moved to, where it is adaptive.
    pub(crate) clip_norm: Option<f64>,
    /// What earlier steps released, for certified GeoDP.
    pub(crate) history: PolarState,
}

/// A step's release, and what else is known of it.
pub(crate) struct Released<'a> {
    pub(crate) gradient: &'a [f32],
    /// Variance of the noise on each coordinate, where all have the same.
    pub(crate) noise_variance: f64,
    /// Private.
    pub(crate) outcome: BatchOutcome,
}

/// Where a step is made: the model over its records, the weights before it, and its randomness.
#[derive(Clone, Copy)]
pub(crate) struct StepContext<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) weights: &'a [f32],
    pub(crate) noise: &'a NoiseSource,
    pub(crate) step: u64,
}

impl StepContext<'_> {
    /// The engine's error, with the step.
    pub(crate) fn engine_error(&self, source: EngineError) -> Error {
        Error::Engine { step: self.step, source }
    }
}

/// How the gradients of a batch are weighed, and by which public number their sum is divided.
pub(crate) struct Weights {
    pub(crate) by: Weighing,
    pub(crate) denominator: u64,
}

/// By a clipping rule, and kept by chance where IS says so.
pub(crate) enum Weighing {
    /// By the plan's rule.
    Clipped(Clip),
    /// Kept by chance, and then of one length.
    Kept(Kept),
}

/// A record is kept with the probability w(n)·n/C of `rule`, which the uniform number in [0, 1) at its
/// place decides, and then contributes a vector as long as `length` says.
pub(crate) struct Kept {
    pub(crate) rule: Clip,
    pub(crate) length: Clip,
    pub(crate) uniforms: Vec<f64>,
}

impl Kept {
    /// With contributions of this length.
    pub(crate) fn new(rule: Clip, length: f64, uniforms: Vec<f64>) -> Result<Self, Error> {
        Ok(Self { rule, length: Clip::new(OfLength(ClipNorm::new(length)?)), uniforms })
    }
}

impl Weighing {
    /// Bounds the contributions; its sensitivity scales the noise.
    fn bound(&self) -> &Clip {
        match self {
            Self::Clipped(clip) => clip,
            Self::Kept(kept) => &kept.length,
        }
    }
}

impl Weigh for Weighing {
    fn weight(&self, place: usize, norm: f64) -> f64 {
        match self {
            Self::Clipped(clip) => clip.weight(norm),
            Self::Kept(Kept { rule, length, uniforms }) => {
                let kept = uniforms[place] < rule.weight(norm) * norm / rule.sensitivity().get();
                if kept { length.weight(norm) } else { 0.0 }
            }
        }
    }

    fn rule(&self) -> Option<WeightRule<'_>> {
        Some(match self {
            Self::Clipped(_) => WeightRule::Clipped,
            Self::Kept(Kept { length, uniforms, .. }) => {
                WeightRule::Kept { length: length.sensitivity().get(), uniforms }
            }
        })
    }
}

/// Every contribution has the length C.
#[derive(Debug)]
struct OfLength(ClipNorm);

impl ClipRule for OfLength {
    fn clip_norm(&self) -> ClipNorm {
        self.0
    }

    fn weight(&self, norm: f64) -> f64 {
        self.0.get() / norm
    }
}

impl PrivateStep {
    pub(crate) fn new(plan: &Plan, noise: &NoiseSource) -> Self {
        // `check` has made sure that both fit.
        let (records, batch) = (plan.facts.records as u32, plan.batch as u32);
        Self {
            batches: Batches::new(
                Sampler::new(plan.sampling, records, batch),
                noise.clone(),
                plan.steps,
            ),
            batch: Vec::new(),
            gradient: vec![0.0; plan.facts.dim],
            exact: Vec::new(),
            norm_total: None,
            clip_norm: None,
            history: PolarState::default(),
        }
    }

    /// The private gradient at `at`.
    ///
    /// # Guarantee
    /// For a plan with privacy: (Σ_{i in batch} w_i·g_i)/B with w_i·‖g_i‖ at most the sensitivity
    /// that scales the noise, B a public number, perturbed once with the noise of the step. An empty
    /// batch gives a release of noise alone.
    pub(crate) fn gradient(
        &mut self,
        plan: &Plan,
        at: StepContext<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Released<'_>, Error> {
        let weights = self.draw(plan, at)?;
        let denominator = weights.as_ref().map_or(plan.batch, |weights| weights.denominator);
        let sensitivity = weights.as_ref().map(|weights| weights.by.bound().sensitivity());
        let mechanism = self.scaled(plan, sensitivity, denominator, at.step)?;
        let weight_of: &dyn Weigh = match &weights {
            Some(weights) => &weights.by,
            None => &Constant(1.0),
        };
        let (batch, gradient) = (&self.batch[..], &mut self.gradient[..]);
        let outcome = match (&mechanism, sensitivity) {
            (Some(Scaled::Exact(_)), Some(sensitivity)) => {
                let grid = Grid::new(sensitivity.get())?;
                self.exact.resize(gradient.len(), 0);
                let outcome =
                    at.engine.exact_sum(at.weights, batch, weight_of, grid, &mut self.exact);
                mean_into(&self.exact, grid.step() / denominator as f64, gradient);
                outcome
            }
            (_, Some(_)) => at.engine.weighted_sum(at.weights, batch, weight_of, gradient),
            (_, None) => at.engine.gradient_sum(at.weights, batch, gradient),
        }
        .map_err(|source| at.engine_error(source))?;
        if !matches!(mechanism, Some(Scaled::Exact(_))) {
            gradient.iter_mut().for_each(|g| *g /= denominator as f32);
        }
        let spread = mechanism.as_ref().map(|mechanism| mechanism.spread(gradient.len()));
        watch.on_step(&StepView {
            step: at.step,
            plan,
            engine: at.engine,
            weights: at.weights,
            batch,
            mean: gradient,
            weight_of,
            sensitivity: sensitivity.map_or(0.0, Sensitivity::get),
            denominator,
            spread,
        })?;
        if let (Some(quantile), Some(sigma), Some(sensitivity)) =
            (&plan.strategies.quantile, plan.noise_multiplier(), sensitivity)
        {
            let moved = quantile.next(sigma, sensitivity.get(), &outcome.norms, at)?;
            self.clip_norm = Some(moved);
        }
        match &mechanism {
            None => {}
            Some(Scaled::Exact(noise)) => {
                noise.release_step(&self.exact, at.noise, at.step, &mut self.history, gradient)?;
            }
            Some(Scaled::Floating(noise)) => {
                noise.perturb_step(gradient, at.noise, at.step, &mut self.history)?;
            }
        }
        let noise_variance = match spread {
            Some(Spread::Coordinates { std }) => std.powi(2),
            Some(Spread::Polar { .. } | Spread::Mixed { .. }) | None => 0.0,
        };
        Ok(Released { gradient, noise_variance, outcome })
    }

    /// The plan's noise for sums of this sensitivity; `None` only where the plan has none.
    fn scaled(
        &self,
        plan: &Plan,
        sensitivity: Option<Sensitivity>,
        denominator: u64,
        step: u64,
    ) -> Result<Option<Scaled>, Error> {
        match (plan.sum_noise(), sensitivity) {
            (None, _) => Ok(None),
            (Some(noise), Some(sensitivity)) => {
                noise.at(sensitivity, denominator, plan.arithmetic).map(Some)
            }
            (Some(_), None) => {
                Err(Error::Plan(format!("step {step} has noise and nothing that scales it")))
            }
        }
    }

    /// Draws the batch of a step; `None` where nothing is clipped.
    fn draw(&mut self, plan: &Plan, at: StepContext<'_>) -> Result<Option<Weights>, Error> {
        if let (Some(importance), Some(clip)) =
            (&plan.strategies.importance, plan.protection.clip())
        {
            let total = match self.norm_total {
                Some(total) if !importance.is_due(at.step) => total,
                _ => {
                    let scratch = Scratch { sample: &mut self.batch, gradient: &mut self.gradient };
                    importance.release(clip, at, scratch)?
                }
            };
            self.norm_total = Some(total);
            return importance.draw(clip, total, at, &mut self.batch).map(Some);
        }
        self.batches.draw(at.step, &mut self.batch)?;
        let clip = plan.clip_at(self.clip_norm)?;
        Ok(clip.map(|clip| Weights { by: Weighing::Clipped(clip), denominator: plan.batch }))
    }
}
