//! What is measured on one mean gradient: noise along and across it, where GeoDP's direction error crosses
//! DP's, and what the certified mechanism's direction costs.
//!
//! A release r of the mean g = ‖g‖·u is taken apart along u: r = ρ·u + t, t ⟂ u. The direction has moved by
//! t/ρ, a vector of d − 1 tangent dimensions. For DP, ρ − ‖g‖ and every coordinate of t are normals with
//! standard deviation σC/B, so t/ρ has σC/(B‖g‖) per dimension.

use crate::{Error, stats};
use geodp_mechanism::{
    CertifiedPolar, Clip, Gaussian, Geometric, Grid, NoiseSource, Perturb, PolarParams, PolarState,
    analysis,
};
use serde::{Deserialize, Serialize};

/// t of the certified mechanism.
pub(super) const MARGIN: f64 = 6.5;
/// ‖t‖/ρ under DP where the crossing is measured: small, so that directions move along the sphere's tangent.
const SMALL_TURN: f64 = 0.05;

/// What a mean is perturbed with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// d.
    pub dim: usize,
    /// B, in the noise.
    pub batch: u64,
    /// C.
    pub clip_norm: f64,
    /// σ.
    pub sigma: f64,
}

/// Expected and measured, in the same unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// By the formula.
    pub expected: f64,
    /// Over the repeats.
    pub measured: f64,
}

/// What was found on one mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Geometry {
    /// What it was perturbed with.
    pub setting: Setting,
    /// ‖g‖/C.
    pub mean_norm_over_clip: f64,
    /// Standard deviation of DP's noise along g, over σC/B.
    pub radial: Pair,
    /// Standard deviation of the direction under DP, per tangent dimension, in radians.
    pub tangent: Pair,
    /// β*, where GeoDP turns the mean as far as DP does.
    pub crossing: Pair,
    /// Certified GeoDP's movement of the direction over DP's: a/L; `None` where the magnitude is too small
    /// for a direction.
    pub certified: Option<Pair>,
    /// Largest turn of the direction by leaving out one record, where records were at hand: in radians of
    /// rotation, and as the least β whose assumed sensitivity would have covered its angles.
    pub largest_turn: Option<Turn>,
}

impl Geometry {
    /// Whether DP's noise along g is short beside g, so that a direction is left to speak of.
    pub(super) fn is_first_order(&self) -> bool {
        self.tangent.expected < 0.1
    }
}

/// What the record that turns most does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Angle between the means with and without it.
    pub rotation: f64,
    /// ‖Δθ‖/(π√(d+2)/B).
    pub covering_beta: f64,
}

/// How often and with which noise a mean is looked at.
pub(super) struct Looks<'a> {
    pub(super) repeats: u64,
    pub(super) noise: &'a NoiseSource,
    /// Steps of the noise begin here.
    pub(super) first_step: u64,
}

/// A release taken apart along the mean.
#[derive(Debug, Clone, Copy)]
struct Parts {
    /// ρ − ‖g‖.
    radial: f64,
    /// ‖t‖/ρ.
    turn: f64,
}

fn take_apart(release: &[f64], mean: &[f64], norm: f64) -> Parts {
    let along = release.iter().zip(mean).map(|(r, g)| r * g).sum::<f64>() / norm;
    let across = release.iter().zip(mean).map(|(r, g)| (r - along * g / norm).powi(2)).sum::<f64>();
    Parts { radial: along - norm, turn: across.sqrt() / along }
}

/// Perturbs the mean again and again and takes the releases apart.
///
/// # Errors
/// A mean without a direction; a setting that makes no mechanism.
pub(super) fn geometry(
    mean: &[f64],
    setting: &Setting,
    looks: &Looks<'_>,
) -> Result<Geometry, Error> {
    let Setting { dim, batch, clip_norm, sigma } = *setting;
    let norm = mean.iter().map(|g| g * g).sum::<f64>().sqrt();
    let sensitivity = Clip::flat(clip_norm)?.sensitivity();
    let tangents = (dim - 1) as f64;
    let steps = || looks.first_step..looks.first_step + looks.repeats;
    let parts_of = |mechanism: &dyn Perturb<f64>| -> Result<Vec<Parts>, Error> {
        let one = |step: u64| {
            let mut release = mean.to_vec();
            mechanism.perturb_in_place(&mut release, looks.noise, step)?;
            Ok(take_apart(&release, mean, norm))
        };
        steps().map(one).collect()
    };
    let turned = |parts: &[Parts]| {
        (stats::mean(&parts.iter().map(|p| p.turn.powi(2)).collect::<Vec<_>>()) / tangents).sqrt()
    };
    let dp = Gaussian::new(sensitivity, sigma, batch)?;
    let parts = parts_of(&dp)?;
    let coordinate_std = dp.coordinate_std();
    let along: Vec<f64> = parts.iter().map(|p| p.radial.powi(2)).collect();
    let tangent = Pair { expected: coordinate_std / norm, measured: turned(&parts) };

    // Where DP and GeoDP turn equally far, at a σ so small that both move along the tangent space.
    let small_sigma = SMALL_TURN * norm * batch as f64 / (clip_norm * tangents.sqrt());
    let expected = analysis::crossing_beta(mean, clip_norm, small_sigma, batch)?.by_rotation;
    let beta = expected.min(1.0);
    let small_dp = turned(&parts_of(&Gaussian::new(sensitivity, small_sigma, batch)?)?);
    let small_geodp = turned(&parts_of(&Geometric::new(sensitivity, small_sigma, batch, beta)?)?);
    let crossing = Pair { expected, measured: beta * small_dp / small_geodp };

    let params = PolarParams { most_ratio: f64::INFINITY, ..PolarParams::with_margin(MARGIN) };
    let step = analysis::polar_step(mean, clip_norm, sigma, batch, &params)?;
    let polar = CertifiedPolar::new(sensitivity, sigma, Grid::default(), batch, dim, params)?;
    let mut certified = Vec::new();
    for step in steps() {
        let (mut release, mut state) = (mean.to_vec(), PolarState::default());
        polar.perturb_step(&mut release, looks.noise, step, &mut state)?;
        if state.counts.polar == 1 {
            certified.push(take_apart(&release, mean, norm));
        }
    }
    let whole = certified.len() as u64 == looks.repeats;
    let certified = step.filter(|_| whole).map(|step| Pair {
        expected: step.noise_ratio,
        measured: turned(&certified) / tangent.measured,
    });
    Ok(Geometry {
        setting: *setting,
        mean_norm_over_clip: norm / clip_norm,
        radial: Pair { expected: coordinate_std, measured: stats::mean(&along).sqrt() },
        tangent,
        crossing,
        certified,
        largest_turn: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a made-up mean all four formulas are met to the precision of the repeats.
    #[test]
    fn a_mean_behaves_as_the_formulas_say() {
        let dim = 2_000;
        let mean: Vec<f64> = (0..dim).map(|i| ((i * 37 % 101) as f64 - 50.0) * 1e-5).collect();
        let setting = Setting { dim, batch: 4096, clip_norm: 0.1, sigma: 1.0 };
        let noise = NoiseSource::from_seed(3);
        let looks = Looks { repeats: 60, noise: &noise, first_step: 0 };
        let found = geometry(&mean, &setting, &looks).unwrap();
        let near = |pair: Pair, share: f64| {
            let off = (pair.measured / pair.expected - 1.0).abs();
            assert!(off < share, "{pair:?}");
        };
        // The standard error of a standard deviation over 60 draws is 9 %; turns are averages over 2,000.
        near(found.radial, 0.4);
        near(found.tangent, 0.02);
        near(found.crossing, 0.03);
        near(found.certified.unwrap(), 0.03);
        assert!(found.certified.unwrap().expected > 1.01);
    }

    #[test]
    fn a_magnitude_too_small_for_a_direction_has_no_certified_one() {
        let mean = vec![1e-7; 50];
        let setting = Setting { dim: 50, batch: 64, clip_norm: 0.1, sigma: 1.0 };
        let noise = NoiseSource::from_seed(3);
        let looks = Looks { repeats: 4, noise: &noise, first_step: 0 };
        assert_eq!(geometry(&mean, &setting, &looks).unwrap().certified, None);
    }
}
