//! One group of gradients: their clipped means, perturbed again and again.
//!
//! A group is 16,384 consecutive gradients of the stream (the largest B). Its first B gradients,
//! each cut down to the same d random dimensions and clipped at C = 0.1, give the clipped mean of
//! every (d, B) that a figure needs, in one pass over the stream. Each mean is then perturbed by DP
//! and by GeoDP a number of times, and ‖θ* − θ‖² (wrapped) and ‖g* − g‖² are kept.

use super::panels::Point;
use crate::Error;
use crate::stream::{GradientStream, StreamOptions};
use geodp_data::{Dataset, cifar10, mnist};
use geodp_mechanism::perturb::reference::perturb_spherical;
use geodp_mechanism::sphere::{
    Spherical, squared_direction_error, squared_gradient_error, to_rectangular, to_spherical,
};
use geodp_mechanism::{Clip, Gaussian, Geometric, NoiseSource, Perturb, analysis};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// C of the synthetic experiments.
pub const CLIP_NORM: f64 = 0.1;

/// What a group gave at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Errors {
    /// The point.
    pub point: Point,
    /// ‖θ* − θ‖² of each repeat under DP.
    pub dp_direction: Vec<f64>,
    /// ‖θ* − θ‖² of each repeat under GeoDP.
    pub geodp_direction: Vec<f64>,
    /// ‖g* − g‖² of each repeat under DP.
    pub dp_gradient: Vec<f64>,
    /// ‖g* − g‖² of each repeat under GeoDP.
    pub geodp_gradient: Vec<f64>,
    /// What the analysis expects of DP's direction error on this mean.
    pub dp_theory: f64,
    /// (d−1)(d+2)(βπσ/B)².
    pub geodp_theory: f64,
    /// β* in the paper's measure: where the two expected direction errors are equal.
    pub crossing_beta: f64,
}

/// A cell's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Which data the gradients came from.
    pub dataset: String,
    /// Dimensions of a whole gradient.
    pub whole_dim: usize,
    /// One entry per point.
    pub errors: Vec<Errors>,
}

/// How a group is measured.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Perturbations of each mean.
    pub repeats: u64,
    /// Batch sizes are divided by this when means are formed (never in the noise).
    pub divide: u64,
    /// Which group: decides weights, order and dimensions.
    pub seed: u64,
}

/// The records whose gradients are used: CIFAR-10 if the folder has it, else MNIST.
///
/// # Errors
/// Data that cannot be read.
pub fn records(data_dir: &Path) -> Result<Dataset, Error> {
    Ok(if cifar10::is_present(data_dir) {
        cifar10::open(data_dir, &cifar10::standard_scaling())?.train
    } else {
        mnist::load_train(&mnist::standard_scaling())?
    })
}

/// Measures all points on one group.
///
/// # Errors
/// What `tick` gives; a stream that fails.
pub fn measure(
    points: &[Point],
    effort: Effort,
    records: &Dataset,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Group, Error> {
    let (means, whole_dim) = means(points, effort, records, tick)?;
    let noise = NoiseSource::from_seed(effort.seed);
    let mut errors = Vec::with_capacity(points.len());
    for (at, point) in points.iter().enumerate() {
        let mean = &means[&(point.dim, point.batch)];
        errors.push(perturb(point, mean, effort.repeats, &noise)?);
        tick(0.7 + 0.3 * (at + 1) as f64 / points.len() as f64)?;
    }
    Ok(Group { dataset: records.name().to_owned(), whole_dim, errors })
}

/// The mean of the first `count` gradients of a stream, cut down to `dim` random dimensions and
/// clipped at `clip_norm`.
///
/// # Errors
/// A stream that fails.
pub fn clipped_mean(
    dim: usize,
    count: u64,
    clip_norm: f64,
    seed: u64,
    records: &Dataset,
) -> Result<Vec<f64>, Error> {
    let options = StreamOptions { seed, ..StreamOptions::default() };
    let mut stream = GradientStream::new(records.clone(), options)?;
    let dimensions = stream.random_dimensions(dim, seed)?;
    let clip = Clip::flat(clip_norm)?;
    let mut gradient = vec![0.0_f32; dim];
    let mut sum = vec![0.0; dim];
    for _ in 0..count {
        stream.next_into(&dimensions, &mut gradient)?;
        let squares: f64 = gradient.iter().map(|g| f64::from(*g).powi(2)).sum();
        let weight = clip.weight(squares.sqrt());
        for (s, g) in sum.iter_mut().zip(&gradient) {
            *s += weight * f64::from(*g) / count as f64;
        }
    }
    Ok(sum)
}

/// The clipped mean of every (d, B).
pub(super) type Means = BTreeMap<(usize, u64), Vec<f64>>;

/// The clipped mean of every (d, B) among the points, and the dimensions of a whole gradient.
pub(super) fn means(
    points: &[Point],
    effort: Effort,
    records: &Dataset,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<(Means, usize), Error> {
    let options = StreamOptions { seed: effort.seed, ..StreamOptions::default() };
    let mut stream = GradientStream::new(records.clone(), options)?;
    let clip = Clip::flat(CLIP_NORM)?;
    let mut wanted: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for point in points {
        let batches = wanted.entry(point.dim).or_default();
        if !batches.contains(&point.batch) {
            batches.push(point.batch);
        }
    }
    let mut sums: Vec<(usize, Vec<usize>, Vec<f64>)> = Vec::new();
    for &dim in wanted.keys() {
        sums.push((dim, stream.random_dimensions(dim, effort.seed)?, vec![0.0; dim]));
    }
    let shrunk = |batch: u64| (batch / effort.divide).max(1);
    let last = points.iter().map(|p| shrunk(p.batch)).max().unwrap_or(0);
    let mut means = Means::new();
    for made in 1..=last {
        let gradient = stream.next_gradient()?;
        for (dim, dimensions, sum) in &mut sums {
            let squares = dimensions.iter().map(|&i| f64::from(gradient[i]).powi(2));
            let weight = clip.weight(squares.sum::<f64>().sqrt());
            for (s, &i) in sum.iter_mut().zip(dimensions.iter()) {
                *s += weight * f64::from(gradient[i]);
            }
            for &batch in wanted[dim].iter().filter(|b| shrunk(**b) == made) {
                let mean = sum.iter().map(|s| s / made as f64).collect();
                means.insert((*dim, batch), mean);
            }
        }
        if made % 64 == 0 {
            tick(0.7 * made as f64 / last as f64)?;
        }
    }
    Ok((means, stream.dim()))
}

/// Perturbs one mean `repeats` times by both mechanisms.
fn perturb(
    point: &Point,
    mean: &[f64],
    repeats: u64,
    noise: &NoiseSource,
) -> Result<Errors, Error> {
    let sensitivity = Clip::flat(CLIP_NORM)?.sensitivity();
    let dp = Gaussian::new(sensitivity, point.sigma, point.batch)?;
    let geodp = Geometric::new(sensitivity, point.sigma, point.batch, point.beta)?;
    let original: Spherical = to_spherical(mean)?;
    let crossing = analysis::crossing_beta(mean, CLIP_NORM, point.sigma, point.batch)?;
    let mut errors = Errors {
        point: *point,
        dp_direction: Vec::new(),
        geodp_direction: Vec::new(),
        dp_gradient: Vec::new(),
        geodp_gradient: Vec::new(),
        dp_theory: analysis::dp_direction_mse(mean, dp.coordinate_std())?,
        geodp_theory: analysis::geodp_direction_mse(point.dim, geodp.angle_std(point.dim)),
        crossing_beta: crossing.by_angles,
    };
    for repeat in 0..repeats {
        let release = dp.perturb(mean, noise, repeat)?;
        let direction = to_spherical(&release)?.angles;
        errors.dp_direction.push(squared_direction_error(&direction, &original.angles)?);
        errors.dp_gradient.push(squared_gradient_error(&release, mean)?);
        let release = perturb_spherical(&geodp, mean, noise, repeat)?;
        errors.geodp_direction.push(squared_direction_error(&release.angles, &original.angles)?);
        errors.geodp_gradient.push(squared_gradient_error(&to_rectangular(&release)?, mean)?);
    }
    Ok(errors)
}
