//! The engine of rank 0: its own share, and the others' through the link.
//!
//! A batch of units is split by who holds them. Everybody gets the weights by one broadcast, and the rest
//! of what it needs in one message; sums come back by one reduction of integers, norms and losses in one
//! message each, and are put at the places they have in the batch. So every number is what one process
//! would have made.

use super::wire::{Part, PartOutcome, Request, SentRule};
use super::{Leader, SentClip};
use crate::Error;
use crate::engine::{Engine, EngineError, NetworkEngine, RowChoice, WeightOf, WeightRule};
use crate::plan::Facts;
use geodp_data::share;
use geodp_nn::{BatchOutcome, Evaluation, Grid, mean_loss};

/// A network over records in several processes.
#[derive(Clone, Copy)]
pub(crate) struct Joined<'a> {
    /// The share of this process.
    pub(crate) local: NetworkEngine<'a>,
    pub(crate) leader: &'a Leader,
    /// The config's rule, where it has one.
    pub(crate) clip: Option<SentClip>,
    /// Units of all.
    pub(crate) units: usize,
    pub(crate) choice: RowChoice,
}

/// A batch by owner: the places of each part in the batch, and the units in the owner's own numbers.
struct Parts {
    places: Vec<Vec<usize>>,
    units: Vec<Vec<u32>>,
}

impl Parts {
    fn of(batch: &[u32], total: usize, size: usize) -> Self {
        let starts: Vec<usize> = (0..size).map(|rank| share(total, rank, size).start).collect();
        let mut parts = Self { places: vec![Vec::new(); size], units: vec![Vec::new(); size] };
        for (place, &unit) in batch.iter().enumerate() {
            // The last share that begins at or before the unit; empty shares come before it.
            let owner = starts.partition_point(|start| *start <= unit as usize) - 1;
            parts.places[owner].push(place);
            parts.units[owner].push(unit - starts[owner] as u32);
        }
        parts
    }

    /// Values of each part, at their places in the batch.
    fn in_place(&self, values: &[Vec<f32>]) -> Result<Vec<f32>, Error> {
        let mut all = vec![0.0; self.places.iter().map(Vec::len).sum()];
        for (rank, (places, values)) in self.places.iter().zip(values).enumerate() {
            if places.len() != values.len() {
                let reason = format!("{} values for {} records", values.len(), places.len());
                return Err(Error::Process { rank, reason });
            }
            places.iter().zip(values).for_each(|(place, value)| all[*place] = *value);
        }
        Ok(all)
    }
}

impl Joined<'_> {
    fn parts(&self, batch: &[u32]) -> Parts {
        Parts::of(batch, self.units, self.leader.size())
    }

    fn part(&self, parts: &Parts, rank: usize) -> Part {
        Part { choice: self.choice.get(), units: parts.units[rank].clone() }
    }

    /// Sends everybody its request, and the weights.
    fn ask(&self, weights: &[f32], request: impl Fn(usize) -> Request) -> Result<(), Error> {
        let Leader { link, traffic } = self.leader;
        for rank in 1..link.size() {
            self.leader.send(rank, &request(rank))?;
        }
        traffic.add(1, std::mem::size_of_val(weights));
        link.broadcast(&mut weights.to_vec())?;
        Ok(())
    }

    /// The others' answers, all of them heard before any failure is returned.
    fn answers<T: super::Wire>(&self) -> Result<Vec<T>, Error> {
        let all: Vec<Result<T, Error>> =
            (1..self.leader.size()).map(|rank| self.leader.answer(rank)).collect();
        all.into_iter().collect()
    }

    /// The rule as the owner of a part follows it.
    fn sent_rule(&self, rule: WeightRule<'_>, places: &[usize]) -> Result<SentRule, EngineError> {
        match (rule, self.clip) {
            (WeightRule::Clipped, Some(clip)) => Ok(SentRule::Clipped(clip)),
            (WeightRule::Kept { length, uniforms }, Some(clip)) => {
                let uniforms = places.iter().map(|place| uniforms[*place]).collect();
                Ok(SentRule::Kept { clip, length, uniforms })
            }
            (rule, _) => Err(format!("weights {rule:?} cannot be sent to other processes").into()),
        }
    }

    /// The whole batch's outcome, of this process's part and of the others'.
    fn outcome(
        &self,
        parts: &Parts,
        own: Result<BatchOutcome, EngineError>,
    ) -> Result<BatchOutcome, EngineError> {
        let others = self.answers::<PartOutcome>();
        let mut all = vec![PartOutcome::from(own?)];
        all.extend(others?);
        let pick = |values: fn(&PartOutcome) -> &Vec<f32>| -> Vec<Vec<f32>> {
            all.iter().map(|part| values(part).clone()).collect()
        };
        let mut outcome = BatchOutcome::default();
        outcome.norms = parts.in_place(&pick(|part| &part.norms))?;
        outcome.losses = parts.in_place(&pick(|part| &part.losses))?;
        outcome.correct = all.iter().map(|part| part.correct as usize).sum();
        outcome.rows = all.iter().map(|part| part.rows as usize).sum();
        Ok(outcome)
    }
}

impl From<BatchOutcome> for PartOutcome {
    fn from(of: BatchOutcome) -> Self {
        let BatchOutcome { norms, losses, correct, rows, .. } = of;
        Self { norms, losses, correct: correct as u64, rows: rows as u64 }
    }
}

impl Engine for Joined<'_> {
    fn facts(&self) -> Facts {
        Facts { records: self.units as u64, dim: self.local.facts().dim }
    }

    fn at_step(&self, choice: RowChoice) -> Option<Box<dyn Engine + '_>> {
        let local = self.local.at(choice)?;
        Some(Box::new(Self { local, choice, ..*self }))
    }

    /// Norms and losses only, for weights of 0: sums of floating point depend on their order.
    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        if weight_of.rule() != Some(WeightRule::Constant(0.0)) {
            let reason = "sums in floating point depend on their order, so several processes make \
                          exact ones only: leave arithmetic at exact, and train with privacy";
            return Err(reason.into());
        }
        let parts = self.parts(batch);
        self.ask(weights, |rank| Request::Norms(self.part(&parts, rank)))?;
        let own = self.local.weighted_sum(weights, &parts.units[0], weight_of, sum);
        sum.fill(0.0);
        self.outcome(&parts, own)
    }

    fn exact_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, EngineError> {
        let Some(rule) = weight_of.rule() else {
            return Err("weights that are a closure cannot be sent to other processes".into());
        };
        let parts = self.parts(batch);
        let rules: Vec<SentRule> = parts
            .places
            .iter()
            .map(|places| self.sent_rule(rule, places))
            .collect::<Result<_, _>>()?;
        self.ask(weights, |rank| Request::Sum {
            part: self.part(&parts, rank),
            rule: rules[rank].clone(),
            sensitivity: grid.bound(),
        })?;
        let weigh = |place: usize, norm: f64| weight_of.weight(parts.places[0][place], norm);
        let own = self.local.exact_sum(weights, &parts.units[0], &weigh, grid, sum);
        if own.is_err() {
            sum.fill(0);
        }
        let Leader { link, traffic } = self.leader;
        traffic.add(1, std::mem::size_of_val(sum));
        link.sum_to_first(sum).map_err(Error::from)?;
        self.outcome(&parts, own)
    }

    fn sample_gradients(
        &self,
        _weights: &[f32],
        _batch: &[u32],
        _gradients: &mut [f32],
    ) -> Result<(), EngineError> {
        Err("single gradients stay in the process that holds the record: measure in one process"
            .into())
    }

    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        let parts = self.parts(batch);
        self.ask(weights, |rank| Request::Losses(self.part(&parts, rank)))?;
        let own = self.local.losses(weights, &parts.units[0]);
        let others = self.answers::<Vec<f32>>();
        let mut all = vec![own?];
        all.extend(others?);
        Ok(mean_loss(&parts.in_place(&all)?))
    }

    fn evaluate(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        self.local.evaluate(weights)
    }
}
