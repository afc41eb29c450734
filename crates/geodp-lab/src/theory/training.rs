//! The mean gradient along a DP training on MNIST: the same training as DP's in `certified` at B = 4096.
//!
//! At each moment the clipped mean over a fixed sample of B records is taken at the weights of that moment,
//! and each of some records of the sample is left out of it in turn.

use super::measure::{Looks, Setting, Turn, geometry};
use super::{Effort, Found};
use crate::Error;
use crate::certified::CLIP_NORM;
use crate::certified::train::{Amount, Task, Training};
use crate::model::Model;
use geodp::watch::Silent;
use geodp_data::Dataset;
use geodp_mechanism::perturb::assumed_turn;
use geodp_mechanism::{Clip, Direction, Mechanism, NoiseSource};
use geodp_nn::Network;

/// B.
pub(super) const BATCH: u64 = 4096;
/// σ: DP has ε = 2.99 after 20 epochs.
pub(super) const SIGMA: f64 = 1.85;
/// Decides first weights, batches and noise.
pub(super) const SEED: u64 = 0;
/// Noise of the looks: other than the training's own.
const LOOK_SEED: u64 = 5_151;

/// Trains and looks.
pub(super) fn run(
    model: Model,
    effort: Effort,
    tick: &mut dyn FnMut(f64) -> Result<(), Error>,
) -> Result<Found, Error> {
    let task = Task::open(model, effort.divide as usize)?;
    let batch = BATCH / effort.divide;
    let training = Training {
        mechanism: Mechanism::Dp,
        amount: Amount::Multiplier(SIGMA),
        batch,
        epochs: effort.epochs,
        seed: SEED,
    };
    let engine = task.engine();
    let mut trainer = task.start(&training, &engine)?;
    let (network, data) = (task.network(), task.records());
    let setting = Setting { dim: network.dim(), batch, clip_norm: CLIP_NORM, sigma: SIGMA };
    let sample: Vec<u32> = every_nth(data.len(), batch as usize);
    let noise = NoiseSource::from_seed(LOOK_SEED);
    let steps = trainer.plan().steps();
    let mut points = Vec::new();
    for (at, moment) in moments(steps, effort.moments).into_iter().enumerate() {
        while trainer.steps_done() < moment && trainer.step(&mut Silent)?.is_some() {
            tick(trainer.steps_done() as f64 / steps as f64)?;
        }
        let view = View { network, data, sample: &sample, weights: trainer.weights() };
        let mean = view.mean()?;
        let first_step = at as u64 * effort.repeats;
        let looks = Looks { repeats: effort.repeats, noise: &noise, first_step };
        let wide: Vec<f64> = mean.iter().map(|g| f64::from(*g)).collect();
        let mut found = geometry(&wide, &setting, &looks)?;
        found.largest_turn = Some(view.largest_turn(&mean, effort.left_out)?);
        points.push((moment as f64, found));
    }
    Ok(Found { dataset: data.name().to_owned(), points })
}

/// Numbers of steps after which to look: evenly in their logarithm, 0 first.
fn moments(steps: u64, count: u64) -> Vec<u64> {
    let last = (count.max(2) - 1) as f64;
    let at = |k: u64| ((1.0 + steps as f64).powf(k as f64 / last) - 1.0).round() as u64;
    let mut all: Vec<u64> = (0..count).map(at).collect();
    all.dedup();
    all
}

/// `count` of `records` numbers, evenly.
fn every_nth(records: usize, count: usize) -> Vec<u32> {
    let count = count.min(records);
    (0..count).map(|i| (i * records / count) as u32).collect()
}

/// A model at a moment, and the records whose mean gradient is looked at.
struct View<'a> {
    network: &'a Network,
    data: &'a Dataset,
    sample: &'a [u32],
    weights: &'a [f32],
}

impl View<'_> {
    /// The clipped mean gradient.
    fn mean(&self) -> Result<Vec<f32>, Error> {
        let clip = Clip::flat(CLIP_NORM)?;
        let mut mean = vec![0.0_f32; self.network.dim()];
        let weight = |norm: f64| clip.weight(norm);
        self.network.clipped_sum(self.weights, self.data, self.sample, &weight, &mut mean)?;
        mean.iter_mut().for_each(|g| *g /= self.sample.len() as f32);
        Ok(mean)
    }

    /// What the record does that turns the mean most, of `count` of the sample.
    fn largest_turn(&self, mean: &[f32], count: usize) -> Result<Turn, Error> {
        let dim = mean.len();
        let (direction, clip) = (Direction::new(mean)?, Clip::flat(CLIP_NORM)?);
        let batch = self.sample.len() as u64;
        let chosen: Vec<u32> =
            every_nth(self.sample.len(), count).iter().map(|i| self.sample[*i as usize]).collect();
        let mut most = Turn { rotation: 0.0, covering_beta: 0.0 };
        for some in chosen.chunks(64) {
            let mut rows = vec![0.0; some.len() * dim];
            self.network.sample_gradients(self.weights, self.data, some, &mut rows)?;
            let factor = |row: &[f32]| clip.weight(square(row).sqrt()) / batch as f64;
            let factors: Vec<f64> = rows.chunks(dim).map(factor).collect();
            for movement in direction.leaving_out(&rows, &factors)? {
                let beta = movement.direction / assumed_turn(dim, batch, 1.0);
                most.covering_beta = most.covering_beta.max(beta);
            }
            for (row, factor) in rows.chunks(dim).zip(factors) {
                most.rotation = most.rotation.max(rotation(mean, row, factor));
            }
        }
        Ok(most)
    }
}

fn square(row: &[f32]) -> f64 {
    row.iter().map(|g| f64::from(*g).powi(2)).sum()
}

/// The angle between g and g − factor·row.
fn rotation(mean: &[f32], row: &[f32], factor: f64) -> f64 {
    let pairs = || mean.iter().zip(row).map(|(g, r)| (f64::from(*g), factor * f64::from(*r)));
    let norm = square(mean).sqrt();
    let along = pairs().map(|(g, r)| g * r).sum::<f64>() / norm;
    let across = (pairs().map(|(_, r)| r * r).sum::<f64>() - along * along).max(0.0).sqrt();
    across.atan2(norm - along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_begin_at_the_start_and_end_at_the_end() {
        assert_eq!(moments(293, 16).first(), Some(&0));
        assert_eq!(moments(293, 16).last(), Some(&293));
        assert_eq!(moments(3, 3), [0, 1, 3]);
    }

    #[test]
    fn leaving_out_a_record_across_turns_by_its_tangent() {
        let angle = rotation(&[2.0, 0.0], &[0.0, 4.0], 0.25);
        assert!((angle - 0.5_f64.atan()).abs() < 1e-12);
        let behind = rotation(&[1.0, 0.0], &[2.0, 0.0], 1.0);
        assert!((behind - std::f64::consts::PI).abs() < 1e-12);
    }
}
