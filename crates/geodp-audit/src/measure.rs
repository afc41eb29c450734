//! Follows some records through a training: the watcher that fills a [`RecordLoss`].
//!
//! A fixed random subset is followed, so that totals over a run mean something. At a step, only the
//! followed records of its batch are looked at: their gradients, their weights, and how far leaving
//! each out moves the mean. The draw of the subset uses the run's own source under a purpose of its
//! own, and nothing here can change a step.

use crate::follow::MeasuredFile;
use crate::record_loss::{
    AngleNoise, RecordLoss, RecordLossSummary, RunFacts, StepEffect, StepNoise,
};
use crate::{AuditStream, Error};
use geodp::Statement;
use geodp::plan::Plan;
use geodp::watch::{Findings, StepView, Watch};
use geodp_mechanism::perturb::assumed_turn;
use geodp_mechanism::{Direction, NoiseSource, Spread};
use serde::{Deserialize, Serialize};

/// Gradients held at once.
const ROWS: usize = 256;

/// Measures a training while it runs. Serialises whole, for a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    every: u64,
    loss: RecordLoss,
}

impl Measure {
    /// Follows `count` of `records` records, drawn at random, at every `every`-th step.
    ///
    /// # Errors
    /// `every` = 0, or a source that refuses the draw.
    pub fn new(records: u64, count: u64, every: u64, source: &NoiseSource) -> Result<Self, Error> {
        if every == 0 {
            let (name, range) = ("step between measurements", "at least 1");
            return Err(Error::Parameter { name, range, found: 0.0 });
        }
        let records = u32::try_from(records).unwrap_or(u32::MAX);
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let followed = AuditStream::Followed.open(source, 0)?.choose(count, records);
        Ok(Self { every, loss: RecordLoss::new(followed) })
    }

    /// The totals so far.
    pub fn loss(&self) -> &RecordLoss {
        &self.loss
    }

    /// The measured claim so far; `None` without privacy or while nothing was measured.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn summary(&self, plan: &Plan) -> Result<Option<RecordLossSummary>, Error> {
        let Some(delta) = plan.delta() else { return Ok(None) };
        let (sample_rate, beta) = (plan.poisson_rate(), plan.mechanism().beta());
        self.loss.summary(&RunFacts { delta, sample_rate, beta })
    }

    /// Measures the records at these places of the batch; `followed` pairs them with their totals.
    fn measure(&mut self, view: &StepView<'_>, followed: &[(usize, usize)]) -> Result<(), Error> {
        let Some(spread) = view.spread else { return Ok(()) };
        let dim = view.mean.len();
        let (magnitude_std, angles) = match spread {
            // Of certified GeoDP's steps this is an upper end.
            Spread::Coordinates { std } | Spread::Mixed { std } => (std, None),
            Spread::Polar { magnitude_std, angle_std, assumed_turn } => {
                (magnitude_std, Some(AngleNoise { std: angle_std, assumed: assumed_turn }))
            }
        };
        let magnitude_bound = view.sensitivity / view.denominator as f64;
        let noise = StepNoise { magnitude_std, magnitude_bound, angles };
        let beta_unit = assumed_turn(dim, view.denominator, 1.0);
        let direction = Direction::new(view.mean)?;
        for followed in followed.chunks(ROWS) {
            let batch: Vec<u32> = followed.iter().map(|(at, _)| view.batch[*at]).collect();
            let mut rows = vec![0.0; batch.len() * dim];
            view.engine
                .sample_gradients(view.weights, &batch, &mut rows)
                .map_err(|source| geodp::Error::Engine { step: view.step, source })?;
            let lengths: Vec<(f64, f64)> = rows
                .chunks_mut(dim)
                .zip(followed)
                .map(|(row, (at, _))| contribution(view, row, *at))
                .collect();
            let mut factors: Vec<f64> = lengths.iter().map(|(factor, _)| *factor).collect();
            if view.batch.len() == 1 {
                // Alone in its batch: what is left is nothing, not the rounding of a difference.
                rows.copy_from_slice(view.mean);
                factors.fill(1.0);
            }
            let moved = direction.leaving_out(&rows, &factors)?;
            for (((_, place), (factor, contribution)), movement) in
                followed.iter().zip(lengths).zip(moved)
            {
                // A record of weight 0 took no part: its gradient was not finite, or its coin fell
                // against it.
                if factor > 0.0 {
                    let effect = StepEffect { contribution, movement };
                    self.loss.add(*place, &noise, &effect, beta_unit);
                }
            }
        }
        Ok(())
    }
}

/// w/B of the record at place `at` and ‖w·g‖/B; a gradient that is not finite becomes 0, as in the
/// sum.
fn contribution(view: &StepView<'_>, row: &mut [f32], at: usize) -> (f64, f64) {
    let norm = row.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
    let weight = if (norm as f32).is_finite() { view.weight_of.weight(at, norm) } else { 0.0 };
    if weight > 0.0 && weight.is_finite() {
        let factor = weight / view.denominator as f64;
        (factor, factor * norm)
    } else {
        row.fill(0.0);
        (0.0, 0.0)
    }
}

impl Watch for Measure {
    fn on_step(&mut self, view: &StepView<'_>) -> Result<(), geodp::Error> {
        if view.plan.is_adaptive() {
            return Err(refused("what votes for a clipping threshold tell is not measured"));
        }
        self.loss.add_step();
        let followed: Vec<(usize, usize)> = view
            .batch
            .iter()
            .enumerate()
            .filter_map(|(at, record)| Some((at, self.loss.place(*record)?)))
            .collect();
        if !view.step.is_multiple_of(self.every) {
            followed.iter().for_each(|(_, place)| self.loss.add_use(*place));
            return Ok(());
        }
        self.measure(view, &followed).map_err(|error| match error {
            Error::Training(error) => error,
            other => geodp::Error::Plan(format!("measuring step {}: {other}", view.step)),
        })
    }

    fn save(&self) -> Result<Option<String>, geodp::Error> {
        serde_json::to_string(self).map(Some).map_err(refused)
    }

    fn restore(&mut self, state: &str) -> Result<(), geodp::Error> {
        *self = serde_json::from_str(state).map_err(refused)?;
        Ok(())
    }

    fn findings(
        &self,
        plan: &Plan,
        statement: &Statement,
    ) -> Result<Option<Findings>, geodp::Error> {
        let Some(summary) = self.summary(plan).map_err(refused)? else { return Ok(None) };
        let file = MeasuredFile { summary, followed: self.loss().clone() };
        let section = file.section(plan, statement).map_err(refused)?;
        let json = serde_json::to_string_pretty(&file).map_err(refused)?;
        Ok(Some(Findings { json, section }))
    }
}

fn refused(error: impl std::fmt::Display) -> geodp::Error {
    geodp::Error::Plan(format!("the measurement: {error}"))
}
