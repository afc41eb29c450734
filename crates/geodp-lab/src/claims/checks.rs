//! Three measurements that no figure of the paper has, for Claims 2, 3 and 4.
//!
//! All use clipped means of the gradient stream, like Figure 3.

use crate::Error;
use crate::direction::measure::{CLIP_NORM, clipped_mean};
use geodp_data::Dataset;
use geodp_mechanism::perturb::reference::perturb_spherical;
use geodp_mechanism::sphere::{
    squared_direction_error, to_rectangular, to_spherical, wrapped_difference,
};
use geodp_mechanism::{Clip, Gaussian, Geometric, NoiseSource, Perturb, Purpose, analysis};
use serde::{Deserialize, Serialize};

/// Claim 2: is the error of the angles zero on average?
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bias {
    /// (Σ t² − n)/√(2n) over the n angles, t = mean error over its standard error: a standard
    /// normal if no angle is biased.
    pub dp_score: f64,
    /// The same of GeoDP.
    pub geodp_score: f64,
    /// Share of DP's direction error that is squared bias.
    pub dp_bias_share: f64,
    /// The same of GeoDP.
    pub geodp_bias_share: f64,
    /// ⟨mean release, g⟩/‖g‖²: 1 if the released gradient is unbiased along g.
    pub dp_projection: f64,
    /// The same of GeoDP.
    pub geodp_projection: f64,
    /// Perturbations.
    pub repeats: u64,
}

/// Claim 3: DP's mean direction error as each knob is turned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knobs {
    /// (C, error), at B = 2048 and σ = 1.
    pub clip_norm: Vec<(f64, f64)>,
    /// (η, error of the step η·g*).
    pub learning_rate: Vec<(f64, f64)>,
    /// (B, error), at C = 0.1 and σ = 1.
    pub batch: Vec<(f64, f64)>,
}

/// Claim 4: Theorem 1 on random steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// Largest |ED − (η²A + 2ηB)| in units of the rounding of ME, 2⁻⁵²·‖w − w⋆‖².
    pub worst_gap_in_roundings: f64,
    /// (η, |2ηB| / (|η²A| + |2ηB|)): Item B's share, by falling η.
    pub item_b_share: Vec<(f64, f64)>,
    /// Steps tried.
    pub trials: u64,
}

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// d.
    pub dim: usize,
    /// Gradients in a mean.
    pub gradients: u64,
    /// Perturbations.
    pub repeats: u64,
}

/// Randomness of all three.
pub const SEED: u64 = 77;

/// Sums over repeats of each angle's error and its square.
struct Angles {
    errors: Vec<f64>,
    squares: Vec<f64>,
}

impl Angles {
    fn new(count: usize) -> Self {
        Self { errors: vec![0.0; count], squares: vec![0.0; count] }
    }

    fn add(&mut self, noisy: &[f64], clean: &[f64]) {
        for (z, (n, c)) in noisy.iter().zip(clean).enumerate() {
            let error = wrapped_difference(*n, *c);
            self.errors[z] += error;
            self.squares[z] += error * error;
        }
    }

    /// (score, share of the error that is squared bias).
    fn judge(&self, repeats: u64) -> (f64, f64) {
        let m = repeats as f64;
        let (mut t_squared, mut bias, mut total) = (0.0, 0.0, 0.0);
        for (sum, square) in self.errors.iter().zip(&self.squares) {
            let mean = sum / m;
            let variance = ((square - m * mean * mean) / (m - 1.0)).max(1e-300);
            // E[t²] of Student's t with m − 1 degrees is (m−1)/(m−3).
            t_squared += mean * mean / (variance / m) * (m - 3.0) / (m - 1.0);
            bias += mean * mean - variance / m;
            total += square / m;
        }
        let n = self.errors.len() as f64;
        ((t_squared - n) / (2.0 * n).sqrt(), (bias / total).max(0.0))
    }
}

/// Measures the bias of both mechanisms at σ = 8, B = 4096, β = 0.1.
///
/// # Errors
/// What `tick` gives; a stream that fails.
pub fn bias(
    effort: Effort,
    records: &Dataset,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Bias, Error> {
    let mean = clipped_mean(effort.dim, effort.gradients, CLIP_NORM, SEED, records)?;
    let sensitivity = Clip::flat(CLIP_NORM)?.sensitivity();
    let dp = Gaussian::new(sensitivity, 8.0, 4096)?;
    let geodp = Geometric::new(sensitivity, 8.0, 4096, 0.1)?;
    let noise = NoiseSource::from_seed(SEED);
    let clean = to_spherical(&mean)?.angles;
    let (mut dp_angles, mut geodp_angles) = (Angles::new(clean.len()), Angles::new(clean.len()));
    let square: f64 = mean.iter().map(|g| g * g).sum();
    let along = |g: &[f64]| g.iter().zip(&mean).map(|(a, b)| a * b).sum::<f64>() / square;
    let (mut dp_projection, mut geodp_projection) = (0.0, 0.0);
    for repeat in 0..effort.repeats {
        let release = dp.perturb(&mean, &noise, repeat)?;
        dp_angles.add(&to_spherical(&release)?.angles, &clean);
        dp_projection += along(&release);
        let release = perturb_spherical(&geodp, &mean, &noise, repeat)?;
        geodp_angles.add(&release.angles, &clean);
        geodp_projection += along(&to_rectangular(&release)?);
        tick(repeat as f64 / effort.repeats as f64)?;
    }
    let (dp_score, dp_bias_share) = dp_angles.judge(effort.repeats);
    let (geodp_score, geodp_bias_share) = geodp_angles.judge(effort.repeats);
    Ok(Bias {
        dp_score,
        geodp_score,
        dp_bias_share,
        geodp_bias_share,
        dp_projection: dp_projection / effort.repeats as f64,
        geodp_projection: geodp_projection / effort.repeats as f64,
        repeats: effort.repeats,
    })
}

/// Measures DP's direction error over C, η and B.
///
/// # Errors
/// What `tick` gives; a stream that fails.
pub fn knobs(
    effort: Effort,
    records: &Dataset,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Knobs, Error> {
    let noise = NoiseSource::from_seed(SEED);
    let mut error = |clip_norm: f64, batch: u64, rate: f64| {
        // B gradients in the mean, as many as the effort allows.
        let count = batch.min(effort.gradients);
        let mean = clipped_mean(effort.dim, count, clip_norm, SEED, records)?;
        let dp = Gaussian::new(Clip::flat(clip_norm)?.sensitivity(), 1.0, batch)?;
        let clean = to_spherical(&mean)?.angles;
        let mut total = 0.0;
        let repeats = effort.repeats.min(20);
        for repeat in 0..repeats {
            let mut step = dp.perturb(&mean, &noise, repeat)?;
            step.iter_mut().for_each(|g| *g *= rate);
            total += squared_direction_error(&to_spherical(&step)?.angles, &clean)?;
        }
        tick(0.5)?;
        Ok::<f64, Error>(total / repeats as f64)
    };
    let mut knobs = Knobs { clip_norm: vec![], learning_rate: vec![], batch: vec![] };
    for clip_norm in [0.01, 0.1, 1.0, 10.0] {
        knobs.clip_norm.push((clip_norm, error(clip_norm, 2048, 1.0)?));
    }
    for rate in [0.01, 0.1, 1.0, 10.0] {
        knobs.learning_rate.push((rate, error(CLIP_NORM, 2048, rate)?));
    }
    for batch in [512, 2048, 8192, 16384] {
        knobs.batch.push((batch as f64, error(CLIP_NORM, batch, 1.0)?));
    }
    Ok(knobs)
}

/// Checks Theorem 1 on steps from random weights with DP's noise on a real mean gradient.
///
/// # Errors
/// What `tick` gives; a stream that fails.
pub fn identity(
    effort: Effort,
    records: &Dataset,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Identity, Error> {
    let mean = clipped_mean(effort.dim, effort.gradients.min(512), CLIP_NORM, SEED, records)?;
    let dp = Gaussian::new(Clip::flat(CLIP_NORM)?.sensitivity(), 1.0, 512)?;
    let noise = NoiseSource::from_seed(SEED);
    let rates = [1.0, 0.1, 0.01, 0.001];
    let mut shares = [0.0; 4];
    let mut worst: f64 = 0.0;
    for trial in 0..effort.repeats {
        let mut stream = noise.stream(Purpose::Audit, trial, 0)?;
        let mut random = || {
            let mut values = vec![0.0; effort.dim];
            stream.fill_normals(&mut values);
            values
        };
        let (weights, optimum) = (random(), random());
        let private = dp.perturb(&mean, &noise, trial)?;
        for (rate, share) in rates.iter().zip(&mut shares) {
            let step = |gradient: &[f64]| -> Vec<f64> {
                weights.iter().zip(gradient).map(|(w, g)| w - rate * g).collect()
            };
            let direct = analysis::model_efficiency(&step(&private), &optimum)?
                - analysis::model_efficiency(&step(&mean), &optimum)?;
            let parts =
                analysis::efficiency_difference(*rate, &weights, &optimum, &mean, &private)?;
            let (a, b) = (rate * rate * parts.item_a.abs(), 2.0 * rate * parts.item_b.abs());
            // ED as a difference of two numbers of this size carries their rounding.
            let rounding = f64::EPSILON * analysis::model_efficiency(&weights, &optimum)?;
            worst = worst.max((direct - parts.total).abs() / rounding);
            *share += b / (a + b) / effort.repeats as f64;
        }
        tick(trial as f64 / effort.repeats as f64)?;
    }
    let item_b_share = rates.into_iter().zip(shares).collect();
    Ok(Identity { worst_gap_in_roundings: worst, item_b_share, trials: effort.repeats })
}
