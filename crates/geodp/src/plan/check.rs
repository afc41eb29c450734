//! The way to a plan: every parameter is checked, alone and against the others.

use super::{DEFAULT_CLIP_NORM, DEFAULT_DELTA, Facts, Plan, Protection, Strategies, refuse};
use crate::Error;
use crate::budget::{self, Settled};
use crate::config::LedgerConfig;
use crate::optimizer::OptimizerKind;
use crate::params::{ClipKind, PlanParams};
use crate::sampler::{Sampler, Sampling};
use crate::schedule::Schedule;
use crate::statement::RECORD;
use geodp_account::Arithmetic;
use geodp_mechanism::{Clip, Spread};

/// An epoch of fewer steps is short.
const SHORT_EPOCH: u64 = 64;
/// Blocks of a long run, unless its epochs are longer.
const MOST_BLOCKS: u64 = 256;

impl PlanParams {
    /// Checks everything, calibrates σ if a target ε is given, and builds the plan.
    ///
    /// # Errors
    /// [`Error::Plan`] with what is wrong and what to do.
    pub fn check(&self, facts: Facts) -> Result<Plan, Error> {
        self.check_clipped(facts, self.check_clip()?, self.privacy.clip.to_string())
    }

    /// The same with a clipping rule of one's own instead of `clip` and `clip_norm`. [`Clip`] holds
    /// the rule to its C, whatever it answers, so the noise fits it.
    ///
    /// # Errors
    /// [`Error::Plan`] with what is wrong and what to do.
    pub fn check_with_clip(&self, facts: Facts, clip: Clip) -> Result<Plan, Error> {
        if self.privacy.clip_norm.is_some() || self.privacy.clip != ClipKind::Flat {
            return refuse("clip and clip_norm are given, and a rule of your own too; give one");
        }
        self.check_clipped(facts, Some(clip), "a rule of its own".to_owned())
    }

    fn check_clipped(
        &self,
        facts: Facts,
        clip: Option<Clip>,
        clip_name: String,
    ) -> Result<Plan, Error> {
        let (batch, steps) = self.check_length(facts)?;
        self.check_measure()?;
        if self.privacy.quantile.is_some() {
            return refuse(
                "quantile adapts C to the norms of clients' updates; records have rules that need no C \
                 to be found: clip = \"auto-s\" or \"psac\"",
            );
        }
        let sampling = self.privacy.sampling;
        let arithmetic = self.privacy.arithmetic.unwrap_or(Arithmetic::Exact);
        let per_epoch = Sampler::steps_per_epoch(sampling, facts.records, batch);
        let strategies = self.check_strategies(facts, batch, per_epoch)?;
        let settled = budget::settle(&self.privacy, facts, batch, steps, &strategies)?;
        let mut spread = None;
        let protection = match (settled, clip) {
            (None, clip) => Protection::None { clip },
            (Some(Settled { noise, accounting }), Some(clip)) => {
                // What a step will build must be possible.
                spread = Some(noise.at(clip.sensitivity(), batch, arithmetic)?.spread(facts.dim));
                Protection::Private { clip, noise, accounting }
            }
            (Some(_), None) => {
                return refuse("noise needs a clipping that scales it; give clip_norm");
            }
        };
        Ok(Plan {
            params: self.clone(),
            facts,
            batch,
            steps: protection.steps_within_limit(steps),
            sampling,
            protection,
            arithmetic,
            clip_name,
            strategies,
            learning_rate: self.check_learning_rate()?,
            schedule: self.check_schedule()?,
            average: self.check_average()?,
            optimizer: self.check_optimizer(spread)?,
            seed: self.train.seed,
            block: self.check_block(per_epoch, steps)?,
            warnings: self.warnings(facts),
            ledger: LedgerConfig::default(),
            unit: RECORD.to_owned(),
        })
    }

    fn check_measure(&self) -> Result<(), Error> {
        match (self.train.measure, self.privacy.mechanism.is_private()) {
            (Some(0), _) => refuse("measure is 0; follow at least 1 record, or leave it out"),
            (Some(_), false) => {
                refuse("measure holds records against the noise, but there is none")
            }
            _ => Ok(()),
        }
    }

    /// Steps that are charged at once; checkpoints and measurements come at their end, if not earlier.
    fn check_block(&self, per_epoch: u64, steps: u64) -> Result<u64, Error> {
        Ok(match self.privacy.sampling {
            Sampling::Poisson => match self.train.checkpoint_every {
                Some(0) => return refuse("checkpoint_every is 0; it must be at least 1"),
                Some(every) => every,
                None => block_of(per_epoch, steps),
            },
            // An epoch of shuffled batches is charged as one event, so it is one block.
            Sampling::Shuffle => per_epoch,
        })
    }

    fn warnings(&self, facts: Facts) -> Vec<String> {
        let delta = self.privacy.delta.unwrap_or(DEFAULT_DELTA);
        let mut warnings = Vec::new();
        if self.privacy.mechanism.is_private() && delta >= 1.0 / facts.records as f64 {
            warnings.push(format!(
                "δ = {delta:e} is not below 1/N = {:.1e}: with this δ, publishing a few records \
                 outright would count as private. Use a smaller δ",
                1.0 / facts.records as f64
            ));
        }
        if let Some(seed) = self.train.seed {
            warnings.push(format!(
                "seed = {seed}: the noise is repeatable, so nothing here is private against \
                 someone who knows the seed"
            ));
        }
        warnings
    }

    fn check_length(&self, facts: Facts) -> Result<(u64, u64), Error> {
        let train = &self.train;
        if facts.records == 0 {
            return refuse("the training set is empty");
        }
        if facts.records > u64::from(u32::MAX) {
            return refuse(format!("{} records are more than 2³² − 1", facts.records));
        }
        let Some(batch) = train.batch else {
            return refuse("batch is missing: give the expected batch size B");
        };
        if batch == 0 {
            return refuse("batch is 0; it must be at least 1");
        }
        if batch > facts.records {
            return refuse(format!(
                "batch {batch} exceeds the {} records of the training set; use at most that",
                facts.records
            ));
        }
        let per_epoch = Sampler::steps_per_epoch(self.privacy.sampling, facts.records, batch);
        let steps = match (train.epochs, train.steps) {
            (Some(_), Some(_)) => return refuse("epochs and steps are both given; give one"),
            (None, None) => return refuse("neither epochs nor steps is given; give one"),
            (Some(epochs), None) => match self.privacy.sampling {
                // q·T = epochs as nearly as whole steps allow.
                Sampling::Poisson => epochs.saturating_mul(facts.records).div_ceil(batch),
                Sampling::Shuffle => epochs.saturating_mul(per_epoch),
            },
            (None, Some(steps)) => steps,
        };
        if steps == 0 || steps > geodp_mechanism::noise::MAX_STEP {
            return refuse(format!("{steps} steps: there must be 1 to 2³² − 1"));
        }
        Ok((batch, steps))
    }

    fn check_clip(&self) -> Result<Option<Clip>, Error> {
        let privacy = &self.privacy;
        if !privacy.mechanism.is_private()
            && privacy.clip_norm.is_none()
            && privacy.clip == ClipKind::Flat
        {
            return Ok(None);
        }
        let clip_norm = privacy.clip_norm.unwrap_or(DEFAULT_CLIP_NORM);
        Ok(Some(privacy.clip.at(clip_norm)?))
    }

    fn check_schedule(&self) -> Result<Schedule, Error> {
        let schedule = self.train.schedule.unwrap_or_default();
        schedule.fault().map_or(Ok(schedule), refuse)
    }

    fn check_average(&self) -> Result<Option<f64>, Error> {
        match self.train.average {
            Some(decay) if !(0.0..1.0).contains(&decay) => {
                refuse(format!("average is {decay}; it must be in [0, 1)"))
            }
            decay => Ok(decay),
        }
    }

    fn check_learning_rate(&self) -> Result<f64, Error> {
        match self.train.learning_rate {
            Some(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
            Some(rate) => refuse(format!("learning_rate is {rate}; it must be finite and > 0")),
            None => refuse("learning_rate is missing"),
        }
    }

    /// The optimiser must fit noise of this spread; `None` is no noise.
    fn check_optimizer(&self, noise: Option<Spread>) -> Result<OptimizerKind, Error> {
        let kind = self.train.optimizer.unwrap_or(OptimizerKind::Sgd);
        match (kind, noise) {
            (OptimizerKind::AdamBc(_), Some(Spread::Polar { .. })) => refuse(
                "optimizer \"adam-bc\" subtracts the noise's variance from the second moment, which \
                 must be known and the same for all coordinates; GeoDP's depends on the gradient \
                 itself. Use \"adam\" with GeoDP, or mechanism = \"dp\"",
            ),
            (OptimizerKind::AdamBc(_), Some(Spread::Mixed { .. })) => refuse(
                "optimizer \"adam-bc\" subtracts the noise's variance from the second moment, which \
                 must be the same in every direction; certified GeoDP's is another along the gradient. \
                 Use \"adam\" with it, or mechanism = \"dp\"",
            ),
            (OptimizerKind::AdamBc(_), None) => refuse(
                "optimizer \"adam-bc\" corrects for noise, and mechanism = \"none\" adds none; use \
                 \"adam\"",
            ),
            _ => kind.fault().map_or(Ok(kind), refuse),
        }
    }

    /// IS and SUR are accounted as Poisson-sampled releases beside a private gradient.
    fn check_strategies(
        &self,
        facts: Facts,
        batch: u64,
        per_epoch: u64,
    ) -> Result<Strategies, Error> {
        let privacy = &self.privacy;
        let names =
            [("importance", privacy.importance.is_some()), ("select", privacy.select.is_some())];
        if let Some((name, _)) = names.into_iter().find(|(_, given)| *given) {
            if !privacy.mechanism.is_private() {
                return refuse(format!(
                    "{name} is given, but mechanism = \"none\" is not private, and {name} would add \
                     noisy releases to it. Use \"dp\" or \"geodp\", or leave {name} out"
                ));
            }
            if privacy.sampling == Sampling::Shuffle {
                return refuse(format!(
                    "{name} draws records by independent coins, and is accounted so, under add/remove; \
                     shuffled batches are accounted under replace-one, and the two do not compose. \
                     Use sampling = \"poisson\""
                ));
            }
        }
        let importance = privacy.importance.as_ref();
        let select = privacy.select.as_ref();
        Ok(Strategies {
            importance: importance.map(|p| p.check(facts.records, batch, per_epoch)).transpose()?,
            select: select.map(|p| p.check(facts.records)).transpose()?,
            // Rounds of clients add it to a checked plan.
            quantile: None,
        })
    }
}

/// Steps of a block where nobody asks for a number: a sixth of an epoch, because each block waits for the disk
/// several times. Where epochs are short, which makes them fast, up to [`SHORT_EPOCH`] steps, but no more than a
/// part in 32 of all; in a long run so many that there are [`MOST_BLOCKS`], but no more than an epoch.
fn block_of(per_epoch: u64, steps: u64) -> u64 {
    let sixth = per_epoch.div_ceil(6);
    if per_epoch < SHORT_EPOCH {
        return sixth.max(SHORT_EPOCH.min(steps / 32));
    }
    sixth.max(per_epoch.min(steps / MOST_BLOCKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_parts_of_an_epoch_and_few() {
        // Steps of an epoch, steps of the run, steps of a block.
        for (per_epoch, steps, block) in [
            (600, 6_000, 100),
            (600, 60_000, 234),
            (600, 600_000, 600),
            (59, 590, 18),
            (59, 59, 10),
            (8, 40_000, 64),
            (1, 1, 1),
        ] {
            assert_eq!(block_of(per_epoch, steps), block, "{per_epoch}, {steps}");
        }
    }
}
