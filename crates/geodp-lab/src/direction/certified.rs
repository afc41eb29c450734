//! Certified GeoDP on the means of Figures 1, 3 and 4: an addition to the paper's curves.
//!
//! Every step is polar here, t = 6.5 (a miss has probability 4·10⁻¹¹) and κ = 2, so that the curve shows
//! what the certified direction costs: DP's noise times a/L. It ends where the public radius
//! L = m̃ − C(tσ + 1) allows no direction. (A training takes DP's step instead where a/L is expected above
//! 1.2.) β has no part in it, so panels over β share one point.

use super::measure::{CLIP_NORM, Effort, means};
use super::panels::Point;
use crate::Error;
use geodp_data::Dataset;
use geodp_mechanism::analysis::{self, PolarStep};
use geodp_mechanism::sphere::{
    Spherical, squared_direction_error, squared_gradient_error, to_spherical,
};
use geodp_mechanism::{CertifiedPolar, Clip, Grid, NoiseSource, Perturb, PolarParams, PolarState};
use serde::{Deserialize, Serialize};

/// t.
pub const MARGIN: f64 = 6.5;

/// A point without β.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CertifiedPoint {
    /// d.
    pub dim: usize,
    /// B.
    pub batch: u64,
    /// σ.
    pub sigma: f64,
}

impl CertifiedPoint {
    /// Whether it is this point, whatever its β.
    pub fn is_at(&self, point: &Point) -> bool {
        *self == Self { dim: point.dim, batch: point.batch, sigma: point.sigma }
    }
}

/// What groups gave at one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertifiedErrors {
    /// The point.
    pub point: CertifiedPoint,
    /// ‖θ* − θ‖² of each repeat that released a direction.
    pub direction: Vec<f64>,
    /// ‖g* − g‖² of the same repeats.
    pub gradient: Vec<f64>,
    /// Repeats that released none.
    pub without_direction: u64,
    /// What the analysis expects of each mean that allows a direction.
    pub expected: Vec<PolarStep>,
}

impl CertifiedErrors {
    /// Whether every repeat released a direction, so that there is an error to show.
    pub fn is_whole(&self) -> bool {
        !self.direction.is_empty() && self.without_direction == 0
    }

    /// The mean of what the analysis expects, over the means; not a number of none.
    pub fn expected(&self, pick: fn(&PolarStep) -> f64) -> f64 {
        crate::stats::mean(&self.expected.iter().map(pick).collect::<Vec<f64>>())
    }
}

/// A cell's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CertifiedGroup {
    /// Which data the gradients came from.
    pub dataset: String,
    /// One entry per point.
    pub certified: Vec<CertifiedErrors>,
}

/// The points without β, each once.
pub fn points(all: &[Point]) -> Vec<CertifiedPoint> {
    let mut once: Vec<CertifiedPoint> = Vec::new();
    for &Point { dim, batch, sigma, .. } in all {
        let point = CertifiedPoint { dim, batch, sigma };
        if !once.contains(&point) {
            once.push(point);
        }
    }
    once
}

/// Measures all points on one group.
///
/// # Errors
/// What `tick` gives; a stream that fails.
pub fn measure(
    all: &[Point],
    effort: Effort,
    records: &Dataset,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<CertifiedGroup, Error> {
    let (means, _) = means(all, effort, records, tick)?;
    let noise = NoiseSource::from_seed(effort.seed);
    let (points, mut certified) = (points(all), Vec::new());
    for (at, point) in points.iter().enumerate() {
        let mean = &means[&(point.dim, point.batch)];
        certified.push(perturb(point, mean, effort.repeats, &noise)?);
        tick(0.7 + 0.3 * (at + 1) as f64 / points.len() as f64)?;
    }
    Ok(CertifiedGroup { dataset: records.name().to_owned(), certified })
}

/// Perturbs one mean `repeats` times.
fn perturb(
    point: &CertifiedPoint,
    mean: &[f64],
    repeats: u64,
    noise: &NoiseSource,
) -> Result<CertifiedErrors, Error> {
    let CertifiedPoint { dim, batch, sigma } = *point;
    let params = PolarParams { most_ratio: f64::INFINITY, ..PolarParams::with_margin(MARGIN) };
    let sensitivity = Clip::flat(CLIP_NORM)?.sensitivity();
    let polar = CertifiedPolar::new(sensitivity, sigma, Grid::default(), batch, dim, params)?;
    let original: Spherical = to_spherical(mean)?;
    let step = analysis::polar_step(mean, CLIP_NORM, sigma, batch, &params)?;
    let mut errors = CertifiedErrors {
        point: *point,
        direction: Vec::new(),
        gradient: Vec::new(),
        without_direction: 0,
        expected: step.into_iter().collect(),
    };
    for repeat in 0..repeats {
        let (mut release, mut state) = (mean.to_vec(), PolarState::default());
        polar.perturb_step(&mut release, noise, repeat, &mut state)?;
        if state.counts.directionless > 0 {
            errors.without_direction += 1;
            continue;
        }
        let direction = to_spherical(&release)?.angles;
        errors.direction.push(squared_direction_error(&direction, &original.angles)?);
        errors.gradient.push(squared_gradient_error(&release, mean)?);
    }
    Ok(errors)
}

/// The repeats of all groups together, point by point.
pub fn pooled<'a>(groups: impl IntoIterator<Item = &'a CertifiedGroup>) -> Vec<CertifiedErrors> {
    let mut all: Vec<CertifiedErrors> = Vec::new();
    for group in groups {
        if all.is_empty() {
            all.clone_from(&group.certified);
            continue;
        }
        for (all, more) in all.iter_mut().zip(&group.certified) {
            all.direction.extend(&more.direction);
            all.gradient.extend(&more.gradient);
            all.without_direction += more.without_direction;
            all.expected.extend(&more.expected);
        }
    }
    all
}
