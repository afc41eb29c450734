//! The attacker of certified GeoDP: the likelihood ratio of the magnitude, and of the direction where
//! one is released. It sees m̃ and L themselves, not only the gradient made of them.
//!
//! With lengths in units of C: ln ratio = ((m̃ − b)² − (m̃ − a)²)/2σ² + L·⟨w, u − v⟩/σ².

use super::{Pair, Setting};
use crate::Error;
use crate::distinguish::World;
use geodp_account::Event;
use geodp_mechanism::{
    CertifiedPolar, Clip, Grid, NoiseSource, PolarParams, PolarSettings, PolarState,
};

/// Certified GeoDP on one pair of neighbours.
pub(super) struct PolarAttack {
    mechanism: CertifiedPolar,
    noise: NoiseSource,
    noise_multiplier: f64,
    /// B/C.
    scale: f64,
    with: Side,
    without: Side,
}

/// One neighbour: its sum in units of the grid, its length in units of C, its direction.
struct Side {
    sums: Vec<i64>,
    length: f64,
    direction: Vec<f64>,
}

/// δ₁ of one release that is told apart at δ, for an ε of at most 20.
fn miss(setting: &Setting) -> Result<f64, Error> {
    Ok(PolarSettings::default().miss(setting.delta, 1, 20.0)?)
}

/// What one release costs.
pub(super) fn event(setting: &Setting) -> Result<Event, Error> {
    Ok(Event::polar(Event::gaussian(setting.noise_multiplier), miss(setting)?))
}

impl PolarAttack {
    pub(super) fn new(setting: &Setting, pair: &Pair, noise: NoiseSource) -> Result<Self, Error> {
        let sensitivity = Clip::flat(setting.clip_norm)?.sensitivity();
        let settled = PolarSettings::default().params(miss(setting)?)?;
        // Polar steps only: an isotropic one is DP's, which has its own audit.
        let params = PolarParams { most_ratio: f64::INFINITY, ..settled };
        let (grid, scale) = (Grid::default(), setting.batch as f64 / setting.clip_norm);
        let side = |mean: &[f32]| {
            let in_c: Vec<f64> = mean.iter().map(|g| f64::from(*g) * scale).collect();
            let length = in_c.iter().map(|x| x * x).sum::<f64>().sqrt();
            Side {
                sums: in_c.iter().map(|x| (x * grid.most() as f64).round() as i64).collect(),
                direction: in_c.iter().map(|x| x / length).collect(),
                length,
            }
        };
        Ok(Self {
            mechanism: CertifiedPolar::new(
                sensitivity,
                setting.noise_multiplier,
                grid,
                setting.batch,
                setting.dim,
                params,
            )?,
            noise,
            noise_multiplier: setting.noise_multiplier,
            scale,
            with: side(&pair.with),
            without: side(&pair.without),
        })
    }

    /// 1/σ times the distance of the two sums, by the law of cosines: an upper end for this pair.
    pub(super) fn mu(&self) -> f64 {
        let chord: f64 = self.chord().map(|d| d * d).sum();
        let (a, b) = (self.with.length, self.without.length);
        ((a - b).powi(2) + a * b * chord).sqrt() / self.noise_multiplier
    }

    /// ln of the likelihood of one release of `world`, with the record over without.
    pub(super) fn ratio(&self, world: World, trial: u64) -> Result<f64, Error> {
        let (side, odd) = match world {
            World::With => (&self.with, 1),
            World::Without => (&self.without, 0),
        };
        let mut out = vec![0.0; side.sums.len()];
        let (step, mut state) = (2 * trial + odd, PolarState::default());
        let release =
            self.mechanism.perturb_sums(&side.sums, &self.noise, step, &mut state, &mut out)?;
        let Some(magnitude) = release.magnitude else { return Ok(0.0) };
        let variance = self.noise_multiplier * self.noise_multiplier;
        let (a, b) = (self.with.length, self.without.length);
        let of_magnitude = ((magnitude - b).powi(2) - (magnitude - a).powi(2)) / (2.0 * variance);
        let Some(radius) = release.radius else { return Ok(of_magnitude) };
        let dot: f64 = out.iter().zip(self.chord()).map(|(g, d)| f64::from(*g) * d).sum();
        let direction = dot * self.scale * radius / magnitude;
        Ok(of_magnitude + radius * direction / variance)
    }

    fn chord(&self) -> impl Iterator<Item = f64> {
        self.with.direction.iter().zip(&self.without.direction).map(|(u, v)| u - v)
    }
}
