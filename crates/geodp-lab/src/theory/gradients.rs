//! Means of the gradient stream over d, B and C.

use super::measure::{Looks, Setting, geometry};
use super::{Effort, Found, Job};
use crate::Error;
use crate::direction::measure::{CLIP_NORM, clipped_mean, records};
use crate::options::{Options, Size};
use geodp_mechanism::NoiseSource;

/// Decides weights, order, dimensions and noise.
pub(super) const SEED: u64 = 4_242;
/// σ.
const SIGMA: f64 = 1.0;

/// The settings of a job, in the order of what it varies.
pub(super) fn settings(job: Job, size: Size) -> Vec<Setting> {
    let small = |full: usize| if size == Size::Tiny { full / 100 } else { full };
    let of = |dim: usize, batch: u64, clip_norm: f64| Setting {
        dim: small(dim),
        batch,
        clip_norm,
        sigma: SIGMA,
    };
    match job {
        Job::Dimensions => {
            [500, 1_000, 2_000, 5_000, 10_000, 20_000].map(|d| of(d, 4096, CLIP_NORM)).to_vec()
        }
        Job::Batch => {
            [512, 1024, 2048, 4096, 8192, 16384].map(|b| of(5_000, b, CLIP_NORM)).to_vec()
        }
        Job::ClipNorm => [0.01, 0.1, 1.0, 10.0, 100.0].map(|c| of(5_000, 4096, c)).to_vec(),
        Job::Training(_) => Vec::new(),
    }
}

/// Measures every setting of a job. In small forms the mean is of fewer gradients; B in the noise is full.
pub(super) fn run(
    job: Job,
    effort: Effort,
    options: &Options,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Found, Error> {
    let records = records(&options.data_dir)?;
    let settings = settings(job, options.size);
    let noise = NoiseSource::from_seed(SEED);
    let mut points = Vec::new();
    for (at, setting) in settings.iter().enumerate() {
        let count = (setting.batch / effort.divide).max(1);
        let mean = clipped_mean(setting.dim, count, setting.clip_norm, SEED, &records)?;
        let looks = Looks { repeats: effort.repeats, noise: &noise, first_step: 0 };
        let varied = match job {
            Job::Batch => setting.batch as f64,
            Job::ClipNorm => setting.clip_norm,
            _ => setting.dim as f64,
        };
        points.push((varied, geometry(&mean, setting, &looks)?));
        tick((at + 1) as f64 / settings.len() as f64)?;
    }
    Ok(Found { dataset: records.name().to_owned(), points })
}
