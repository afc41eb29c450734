//! Logistic regression of digits 0 and 1 (d = 785), by both protocols, 350 iterations from w = 0.
//!
//! **Released**, as the authors' code does it: the gradient of the whole training set, η = 0.1. DP
//! clips this mean gradient at C = 0.1 and adds N(0, (Cσ/B)²); GeoDP does not clip, adds its noise
//! to magnitude and angles, and clamps noisy angles to their ranges; the noise-free run does not
//! clip. B only scales the noise.
//!
//! **Fair**: DP, GeoDP and the noise-free run all clip per sample at C = 0.1 and draw Poisson
//! batches of expected size B. Clipped gradients are short, so η = 5, the same for all.

use super::curves::{Curve, Protocol};
use crate::Error;
use geodp::engine::{Engine, NetworkEngine};
use geodp::optimizer::OptimizerKind;
use geodp::params::{PrivacyParams, TrainParams};
use geodp::watch::Silent;
use geodp::{PlanParams, trainer::Trainer};
use geodp_data::{Dataset, Scaling, mnist};
use geodp_mechanism::perturb::reference::perturb_spherical;
use geodp_mechanism::sphere::to_rectangular;
use geodp_mechanism::{Clip, Gaussian, Geometric, Mechanism, NoiseSource, Perturb};
use geodp_nn::{Network, NetworkSpec};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// C of both protocols.
const CLIP_NORM: f64 = 0.1;
/// η of the released code.
const RELEASED_RATE: f64 = 0.1;
/// η of the fair protocol.
pub const FAIR_RATE: f64 = 5.0;
/// Points of a curve: the loss after every so many iterations.
const POINTS: u64 = 35;

/// A training's loss curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// Iterations done.
    pub iterations: Vec<u64>,
    /// Mean training loss then.
    pub losses: Vec<f64>,
}

impl Losses {
    /// The loss at the end.
    pub fn last(&self) -> f64 {
        self.losses.last().copied().unwrap_or(f64::NAN)
    }
}

/// Data and model.
pub struct Digits {
    data: Dataset,
    network: Network,
    iterations: u64,
}

impl Digits {
    /// Every `stride`-th record of digits 0 and 1, for trainings of `iterations`.
    ///
    /// # Errors
    /// Bundled data that cannot be read.
    pub fn open(stride: usize, iterations: u64) -> Result<Self, Error> {
        let data = mnist::load_train(&Scaling::Unit)?.only_labels(&[0, 1])?;
        let data = data.subset(&(0..data.len()).step_by(stride).collect::<Vec<_>>())?;
        let network = NetworkSpec::logistic(784, 2).build()?;
        Ok(Self { data, network, iterations })
    }

    /// Trains one curve.
    ///
    /// # Errors
    /// What `tick` gives, and failures of the training.
    pub fn train(
        &self,
        protocol: Protocol,
        curve: &Curve,
        seed: u64,
        tick: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<Losses, Error> {
        match protocol {
            Protocol::Released => self.released(curve, seed, tick),
            Protocol::Fair => self.fair(curve, seed, tick),
        }
    }

    fn every(&self) -> u64 {
        (self.iterations / POINTS).max(1)
    }

    fn released(
        &self,
        curve: &Curve,
        seed: u64,
        tick: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<Losses, Error> {
        let all: Vec<u32> = (0..self.data.len() as u32).collect();
        let noise = NoiseSource::from_seed(seed);
        let mut weights = vec![0.0_f32; self.network.dim()];
        let mut sum = vec![0.0_f32; self.network.dim()];
        let mut curve_so_far = Losses { iterations: Vec::new(), losses: Vec::new() };
        for step in 0..=self.iterations {
            let outcome = self.network.gradient_sum(&weights, &self.data, &all, &mut sum)?;
            if step % self.every() == 0 || step == self.iterations {
                let total: f64 = outcome.losses.iter().map(|l| f64::from(*l)).sum();
                curve_so_far.iterations.push(step);
                curve_so_far.losses.push(total / all.len() as f64);
            }
            let mean = sum.iter().map(|s| f64::from(*s) / all.len() as f64).collect();
            let gradient = released_gradient(curve, mean, &noise, step)?;
            for (w, g) in weights.iter_mut().zip(gradient) {
                *w -= (RELEASED_RATE * g) as f32;
            }
            tick(step as f64 / self.iterations as f64)?;
        }
        Ok(curve_so_far)
    }

    fn fair(
        &self,
        curve: &Curve,
        seed: u64,
        tick: &mut dyn FnMut(f64) -> Result<(), Error>,
    ) -> Result<Losses, Error> {
        let engine = NetworkEngine::new(&self.network, &self.data, Some(&self.data));
        let plan = self.fair_params(curve, seed).check(engine.facts())?;
        let weights = vec![0.0; self.network.dim()];
        let mut trainer = Trainer::new(plan, &engine, weights, NoiseSource::from_seed(seed))?;
        let mut curve_so_far = Losses { iterations: Vec::new(), losses: Vec::new() };
        loop {
            let step = trainer.steps_done();
            if step % self.every() == 0 || trainer.is_done() {
                curve_so_far.iterations.push(step);
                curve_so_far.losses.push(trainer.evaluate()?.map_or(f64::NAN, |e| e.mean_loss));
            }
            tick(step as f64 / self.iterations as f64)?;
            if trainer.step(&mut Silent)?.is_none() {
                return Ok(curve_so_far);
            }
        }
    }

    fn fair_params(&self, curve: &Curve, seed: u64) -> PlanParams {
        PlanParams {
            privacy: PrivacyParams {
                mechanism: curve.mechanism,
                noise_multiplier: curve.mechanism.is_private().then_some(curve.sigma),
                clip_norm: Some(CLIP_NORM),
                ..PrivacyParams::default()
            },
            train: TrainParams {
                // Small forms have fewer records than the paper's B.
                batch: Some(curve.batch.min(self.data.len() as u64)),
                steps: Some(self.iterations),
                learning_rate: Some(FAIR_RATE),
                optimizer: Some(OptimizerKind::Sgd),
                seed: Some(seed),
                ..TrainParams::default()
            },
        }
    }
}

/// What the released code makes of the full-batch gradient.
fn released_gradient(
    curve: &Curve,
    mean: Vec<f64>,
    noise: &NoiseSource,
    step: u64,
) -> Result<Vec<f64>, Error> {
    let clip = Clip::flat(CLIP_NORM)?;
    match curve.mechanism {
        Mechanism::None => Ok(mean),
        Mechanism::Dp => {
            let norm = mean.iter().map(|g| g * g).sum::<f64>().sqrt();
            let weight = clip.weight(norm);
            let clipped: Vec<f64> = mean.iter().map(|g| weight * g).collect();
            let dp = Gaussian::new(clip.sensitivity(), curve.sigma, curve.batch)?;
            Ok(dp.perturb(&clipped, noise, step)?)
        }
        Mechanism::Geodp { beta } => {
            let geodp = Geometric::new(clip.sensitivity(), curve.sigma, curve.batch, beta)?;
            let mut release = perturb_spherical(&geodp, &mean, noise, step)?;
            let last = release.angles.len() - 1;
            for (z, angle) in release.angles.iter_mut().enumerate() {
                *angle = if z < last { angle.clamp(0.0, PI) } else { angle.clamp(-PI, PI) };
            }
            Ok(to_rectangular(&release)?)
        }
        other => Err(Error::Argument(format!(
            "the released code has no {}; train it fairly",
            other.title()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise beyond all measure pushes the first angle to an end of its range, 0 or π: all of the
    /// magnitude goes to the first coordinate. Unclamped, it would go anywhere.
    #[test]
    fn released_code_clamps_noisy_angles() {
        let noise = NoiseSource::from_seed(1);
        let curve = Curve { mechanism: Mechanism::Geodp { beta: 1.0 }, batch: 1, sigma: 1e4 };
        for step in 0..8 {
            let release = released_gradient(&curve, vec![0.1; 30], &noise, step).unwrap();
            let norm = release.iter().map(|g| g * g).sum::<f64>().sqrt();
            assert!(release[0].abs() > (1.0 - 1e-9) * norm, "{} of {norm}", release[0]);
        }
    }
}
