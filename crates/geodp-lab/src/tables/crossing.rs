//! β* of a training: where GeoDP's direction error equals DP's.
//!
//! β* depends on the length of the clipped mean gradient, which changes as training goes on. Here a
//! training without noise runs for the search's epochs; at every step, or at 64 of them where there are more,
//! the clipped mean gradient of a fixed sample of training records gives β* by rotation
//! ([`geodp_mechanism::analysis::crossing_beta`]), and the median over those moments is taken. The sample has as
//! many records as a step, because a mean of few is longer than one of many, and β* falls with its length. β* does
//! not depend on σ and on the B of the noise.

use super::rows::{Method, Noise};
use super::train::{CLIP_NORM, Training};
use crate::Error;
use geodp::watch::Silent;
use geodp_mechanism::{Clip, Mechanism, analysis};
use serde::{Deserialize, Serialize};

/// β* along a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossingBeta {
    /// Median of β* over the steps.
    pub beta: f64,
    /// Smallest and largest.
    pub range: (f64, f64),
    /// Median of ‖mean‖/C.
    pub mean_norm_over_clip: f64,
}

/// Records of the largest sample whose mean gradient is looked at: a mean of more is as long.
const MOST_SAMPLE: u64 = 4096;
/// Moments looked at: a median needs no more.
const MOST_MOMENTS: u64 = 64;

/// Records of the sample for steps of this many.
pub fn sample(batch: u64) -> u64 {
    batch.min(MOST_SAMPLE)
}

/// Measures β* along a training without noise.
///
/// # Errors
/// What `tick` gives, and failures of the training.
pub fn measure(
    training: &Training<'_>,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<CrossingBeta, Error> {
    let plain = Training {
        method: Method::plain(Noise::None, training.method.batch),
        mechanism: Mechanism::None,
        ..*training
    };
    let engine = plain.engine();
    let mut trainer = plain.start(&engine)?;
    let clip = Clip::flat(CLIP_NORM)?;
    let records = plain.data.train.len();
    let count = records.min(sample(plain.batch) as usize);
    let sample: Vec<u32> = (0..count).map(|i| (i * records / count) as u32).collect();
    let mut mean = vec![0.0_f32; plain.network.dim()];
    let (mut betas, mut norms) = (Vec::new(), Vec::new());
    let every = trainer.plan().steps().div_ceil(MOST_MOMENTS).max(1);
    loop {
        let at = trainer.steps_done();
        tick(at as f64 / trainer.plan().steps() as f64)?;
        if at % every == 0 {
            let (data, weight) = (&plain.data.train, |norm: f64| clip.weight(norm));
            plain.network.clipped_sum(trainer.weights(), data, &sample, &weight, &mut mean)?;
            mean.iter_mut().for_each(|g| *g /= count as f32);
            let norm = mean.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            if norm > 0.0 {
                let crossing = analysis::crossing_beta(&mean, CLIP_NORM, 1.0, count as u64)?;
                betas.push(crossing.by_rotation);
                norms.push(norm / CLIP_NORM);
            }
        }
        if trainer.step(&mut Silent)?.is_none() {
            break;
        }
    }
    if betas.is_empty() {
        return Err(Error::Argument("every mean gradient was zero: there is no β*".into()));
    }
    betas.sort_by(f64::total_cmp);
    norms.sort_by(f64::total_cmp);
    let (first, last) = (betas[0], betas[betas.len() - 1]);
    Ok(CrossingBeta {
        beta: betas[betas.len() / 2].min(1.0),
        range: (first, last),
        mean_norm_over_clip: norms[norms.len() / 2],
    })
}
