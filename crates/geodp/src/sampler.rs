//! Which records take part in a step: a function of (noise source, step) alone.
//!
//! - Poisson (default): every record joins with probability q = B/N, on its own coin; where q is small,
//!   gaps between records are drawn instead, which is the same law. Batch sizes vary, and an empty batch
//!   is an ordinary step.
//! - Shuffle: one random order an epoch, cut into batches of B (the last may be shorter); every
//!   record is used exactly once an epoch. Accounted as that, never as Poisson.
//!
//! Coins come from the secure source, addressed by step or epoch: a resumed run draws the same
//! batches, and a batch can be drawn again without replaying the steps before it.

use geodp_account::{Adjacency, Event};
use geodp_mechanism::noise::{Coins, NoiseSource, Purpose};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How batches are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Independent coins: the subsampling that accountants amplify.
    #[default]
    Poisson,
    /// A fresh order every epoch, batches of fixed size, no amplification.
    Shuffle,
}

impl Sampling {
    /// The names, as files and flags spell them.
    pub const NAMES: &'static [&'static str] = &["poisson", "shuffle"];
}

impl std::fmt::Display for Sampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Poisson => "poisson",
            Self::Shuffle => "shuffle",
        })
    }
}

/// How a record comes into a release, as accountants see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// How batches are drawn.
    pub sampling: Sampling,
    /// Chance of a record to be in a step, at most; what it is for shuffled batches does not matter.
    pub rate: f64,
}

impl Draw {
    /// A Gaussian release of σ = `noise_multiplier` from records drawn so: of a step for Poisson
    /// batches, of an epoch for shuffled ones.
    pub fn gaussian(&self, noise_multiplier: f64) -> Event {
        match self.sampling {
            Sampling::Poisson => Event::sampled_gaussian(self.rate, noise_multiplier),
            Sampling::Shuffle => Event::ShuffledEpoch { noise_multiplier },
        }
    }

    /// Which change of the data the account is about.
    pub fn adjacency(&self) -> Adjacency {
        match self.sampling {
            Sampling::Poisson => Adjacency::ZeroOut,
            Sampling::Shuffle => Adjacency::ReplaceOne,
        }
    }
}

/// Draws the batch of any step.
#[derive(Debug, Clone)]
pub struct Sampler {
    sampling: Sampling,
    records: u32,
    batch: u32,
    /// Chance q = B/N, rounded down: never above the q accounted (Poisson only).
    coins: Coins,
    /// The order of the epoch drawn last (shuffle only).
    order: Option<(u64, Vec<u32>)>,
}

impl Sampler {
    /// For `records` records and (expected) batches of `batch`, with 1 ≤ batch ≤ records.
    pub fn new(sampling: Sampling, records: u32, batch: u32) -> Self {
        Self { sampling, records, batch, coins: Coins::of_count(batch, records), order: None }
    }

    /// Steps in one pass over the data.
    pub(crate) fn steps_per_epoch(sampling: Sampling, records: u64, batch: u64) -> u64 {
        match sampling {
            // The nearest whole number: an epoch of Poisson batches is a manner of speaking.
            Sampling::Poisson => ((records + batch / 2) / batch).max(1),
            Sampling::Shuffle => records.div_ceil(batch),
        }
    }

    /// Replaces `batch` by the records of `step`, in ascending order for Poisson.
    pub fn draw(
        &mut self,
        noise: &NoiseSource,
        step: u64,
        batch: &mut Vec<u32>,
    ) -> Result<(), geodp_mechanism::Error> {
        batch.clear();
        match self.sampling {
            Sampling::Poisson => self.draw_poisson(noise, step, batch),
            Sampling::Shuffle => self.draw_shuffled(noise, step, batch),
        }
    }

    fn draw_poisson(
        &self,
        noise: &NoiseSource,
        step: u64,
        batch: &mut Vec<u32>,
    ) -> Result<(), geodp_mechanism::Error> {
        self.coins.select(&mut noise.stream(Purpose::Sampling, step, 0)?, batch);
        Ok(())
    }

    fn draw_shuffled(
        &mut self,
        noise: &NoiseSource,
        step: u64,
        batch: &mut Vec<u32>,
    ) -> Result<(), geodp_mechanism::Error> {
        let (records, size) = (u64::from(self.records), u64::from(self.batch));
        let steps = Self::steps_per_epoch(Sampling::Shuffle, records, size);
        let (epoch, place) = (step / steps, step % steps);
        if self.order.as_ref().is_none_or(|(drawn, _)| *drawn != epoch) {
            let mut stream = noise.stream(Purpose::Shuffling, epoch, 0)?;
            let mut order: Vec<u32> = (0..self.records).collect();
            stream.shuffle(&mut order);
            self.order = Some((epoch, order));
        }
        if let Some((_, order)) = &self.order {
            let start = (place * size) as usize;
            let end = order.len().min(start + size as usize);
            batch.extend_from_slice(&order[start..end]);
        }
        Ok(())
    }
}

/// The batches of one run, step after step. Poisson batches are drawn for some steps at once, on all threads: a
/// draw on one of them would keep the others waiting, in a small model for as long as the step takes.
#[derive(Debug, Clone)]
pub(crate) struct Batches {
    sampler: Sampler,
    noise: NoiseSource,
    /// Of the run.
    steps: u64,
    /// Of the steps from `next` on.
    ahead: VecDeque<Vec<u32>>,
    next: u64,
}

/// Steps drawn at once at most, and records in them.
const MOST_AHEAD: usize = 16;
const MOST_RECORDS_AHEAD: usize = 1 << 22;

impl Batches {
    pub(crate) fn new(sampler: Sampler, noise: NoiseSource, steps: u64) -> Self {
        Self { sampler, noise, steps, ahead: VecDeque::new(), next: 0 }
    }

    /// Replaces `batch` by the records of `step`: those of [`Sampler::draw`].
    pub(crate) fn draw(
        &mut self,
        step: u64,
        batch: &mut Vec<u32>,
    ) -> Result<(), geodp_mechanism::Error> {
        if step != self.next {
            self.ahead.clear();
        }
        if self.ahead.is_empty() {
            let steps = self.steps_at_once(step);
            if steps == 1 {
                return self.sampler.draw(&self.noise, step, batch);
            }
            self.ahead = (step..step + steps)
                .into_par_iter()
                .map(|step| self.poisson(step))
                .collect::<Result<_, _>>()?;
        }
        self.next = step + 1;
        *batch = self.ahead.pop_front().unwrap_or_default();
        Ok(())
    }

    /// How many steps from `step` on are drawn at once.
    fn steps_at_once(&self, step: u64) -> u64 {
        if self.sampler.sampling != Sampling::Poisson || rayon::current_num_threads() == 1 {
            return 1;
        }
        let fit = MOST_RECORDS_AHEAD / self.sampler.batch.max(1) as usize;
        // Nobody wants batches behind the last step.
        (fit.clamp(1, MOST_AHEAD) as u64).min(self.steps.saturating_sub(step)).max(1)
    }

    fn poisson(&self, step: u64) -> Result<Vec<u32>, geodp_mechanism::Error> {
        let mut batch = Vec::new();
        self.sampler.draw_poisson(&self.noise, step, &mut batch)?;
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a row, from anywhere, again, and past the last step.
    #[test]
    fn batches_drawn_ahead_are_those_of_their_steps() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        for sampling in [Sampling::Poisson, Sampling::Shuffle] {
            let noise = NoiseSource::from_seed(1);
            let mut sampler = Sampler::new(sampling, 100, 30);
            let mut batches = Batches::new(sampler.clone(), noise.clone(), 100);
            let (mut drawn, mut expected) = (vec![7], Vec::new());
            for step in (0..40).chain([90, 3, 3, 4, 98, 99, 100]) {
                pool.install(|| batches.draw(step, &mut drawn)).unwrap();
                sampler.draw(&noise, step, &mut expected).unwrap();
                assert_eq!(drawn, expected, "{sampling}, step {step}");
            }
            assert!(batches.ahead.is_empty(), "{sampling}: drawn for nobody");
        }
    }

    fn batches(sampling: Sampling, records: u32, size: u32, steps: u64) -> Vec<Vec<u32>> {
        let mut sampler = Sampler::new(sampling, records, size);
        let noise = NoiseSource::from_seed(1);
        (0..steps)
            .map(|step| {
                let mut batch = vec![99];
                sampler.draw(&noise, step, &mut batch).unwrap();
                batch
            })
            .collect()
    }

    /// Each record's count is binomial; 5.5 standard errors have a false-alarm rate of 4e-8 each.
    #[test]
    fn poisson_includes_every_record_at_rate_q() {
        let (records, size, steps) = (50, 20, 20_000);
        let batches = batches(Sampling::Poisson, records, size, steps);
        let q = f64::from(size) / f64::from(records);
        let bound = 5.5 * (steps as f64 * q * (1.0 - q)).sqrt();
        let mut counts = vec![0.0; records as usize];
        let mut pairs = 0.0;
        for batch in &batches {
            batch.iter().for_each(|i| counts[*i as usize] += 1.0);
            pairs += f64::from(u8::from(batch.contains(&3) && batch.contains(&4)));
        }
        assert!(counts.iter().all(|c| (c - q * steps as f64).abs() < bound), "{counts:?}");
        // Independent: two given records meet at rate q².
        assert!((pairs - q * q * steps as f64).abs() < bound);
        // The batch size varies as a binomial does; a fixed size would not be Poisson sampling.
        let variance = batches.iter().map(|b| (b.len() as f64 - 20.0).powi(2)).sum::<f64>();
        assert!((variance / steps as f64 - 12.0).abs() < 0.8);
    }

    #[test]
    fn poisson_of_everything_is_everything() {
        assert!(batches(Sampling::Poisson, 7, 7, 3).iter().all(|b| *b == [0, 1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn poisson_may_draw_nobody() {
        assert!(batches(Sampling::Poisson, 5, 1, 200).iter().any(Vec::is_empty));
    }

    #[test]
    fn shuffle_uses_every_record_once_an_epoch() {
        let batches = batches(Sampling::Shuffle, 10, 4, 6);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2, 4, 4, 2]);
        for epoch in batches.chunks(3) {
            let mut all: Vec<u32> = epoch.concat();
            all.sort_unstable();
            assert_eq!(all, (0..10).collect::<Vec<_>>());
        }
        assert_ne!(batches[..3], batches[3..], "epochs have their own order");
    }

    #[test]
    fn any_step_can_be_drawn_alone() {
        for sampling in [Sampling::Poisson, Sampling::Shuffle] {
            let all = batches(sampling, 100, 30, 9);
            let mut late = Vec::new();
            let noise = NoiseSource::from_seed(1);
            Sampler::new(sampling, 100, 30).draw(&noise, 7, &mut late).unwrap();
            assert_eq!(late, all[7]);
        }
    }
}
