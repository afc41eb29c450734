//! Canaries: records made to be noticed, m of them beside the N of the training set.
//!
//! | kind | the record | its score after training |
//! |---|---|---|
//! | gradient | a gradient of norm 10·C along a parameter of its own that the loss does not know | how far that parameter went |
//! | mislabelled | a training record with a wrong label | −loss |
//! | blank | an empty input with a few values lit, and a random label | −loss |
//!
//! All m are records of the plan (N + m of them, sampled alike); those whose coin fell "out" add
//! nothing where they are drawn, so that both worlds draw from the same batches and B, q and the
//! accounting are the plan's own. Gradient canaries are the strongest: they see exactly the noise
//! that hides a record of full length. The others are what an outsider could insert.
//!
//! Where records are units of several rows, a canary is a unit as well: a gradient of its own, or as many
//! copies of its input as a step uses rows of the largest unit.

use crate::error::same_length;
use crate::procedure::{Hooks, INITIAL_WEIGHTS_SEED, train};
use crate::{AuditStream, Error};
use geodp::engine::{Engine, EngineError, NetworkEngine, RowChoice, WeightOf};
use geodp::params::PlanParams;
use geodp::plan::{Facts, Plan};
use geodp_data::Units;
use geodp_mechanism::NoiseSource;
use geodp_nn::{BatchOutcome, Evaluation, Grid, Network, Samples};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Norm of a gradient canary in units of C: clipping must cut it down.
const GRADIENT_NORM: f64 = 10.0;
/// Values lit in a blank input.
const LIT: usize = 16;

/// Which kind of canary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanaryKind {
    /// Gradients along parameters of their own.
    Gradient,
    /// Training records with a wrong label.
    Mislabelled,
    /// Empty inputs with a few values lit.
    Blank,
}

impl std::fmt::Display for CanaryKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Gradient => "gradient",
            Self::Mislabelled => "mislabelled",
            Self::Blank => "blank",
        })
    }
}

/// A training with canaries in it.
pub struct CanaryTraining<'a> {
    network: &'a Network,
    train: Population<'a>,
    kind: CanaryKind,
    canaries: usize,
    plan: Plan,
    inputs: Vec<(Vec<f32>, u32)>,
}

/// Whom canaries are put among: rows, and units of them where a record has several.
#[derive(Clone, Copy)]
pub struct Population<'a> {
    /// All rows.
    pub rows: &'a dyn Samples,
    /// Which rows belong together; one row is a record if absent.
    pub units: Option<&'a Units>,
}

impl<'a> Population<'a> {
    /// A row is a record.
    pub fn of_rows(rows: &'a dyn Samples) -> Self {
        Self { rows, units: None }
    }

    fn records(&self) -> usize {
        self.units.map_or(self.rows.len(), Units::len)
    }
}

impl<'a> CanaryTraining<'a> {
    /// Trains `network` on `train` and `canaries` canaries; `source` makes these.
    ///
    /// # Errors
    /// If the plan is refused for N + m records.
    pub fn new(
        network: &'a Network,
        train: Population<'a>,
        params: &PlanParams,
        kind: CanaryKind,
        canaries: usize,
        source: &NoiseSource,
    ) -> Result<Self, Error> {
        let extra = if kind == CanaryKind::Gradient { canaries } else { 0 };
        let facts =
            Facts { records: (train.records() + canaries) as u64, dim: network.dim() + extra };
        let inputs = inputs(network, train.rows, kind, canaries, source)?;
        Ok(Self { network, train, kind, canaries, plan: params.check(facts)?, inputs })
    }

    /// The plan, for N + m records.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Trains once with the canaries whose coin fell "in", and scores all of them. A training that
    /// was stopped goes on from `checkpoint`, if `noise` and coins are the same.
    ///
    /// # Errors
    /// A failing training; [`Error::Stopped`].
    pub fn scores(
        &self,
        present: &[bool],
        noise: NoiseSource,
        hooks: &Hooks<'_>,
        checkpoint: Option<&Path>,
    ) -> Result<Vec<f64>, Error> {
        same_length("coins of canaries", present.len(), self.canaries)?;
        let Population { rows, units } = self.train;
        let records = self.train.records();
        let mut start = self.network.init(INITIAL_WEIGHTS_SEED);
        let dim = start.len();
        if self.kind == CanaryKind::Gradient {
            let inner = NetworkEngine::new(self.network, rows, None);
            let inner = Box::new(units.map_or(inner, |units| inner.with_units(units)));
            let length = GRADIENT_NORM * self.plan.clip_norm().unwrap_or(1.0);
            let engine = WithCanaries { inner, records, present, length: Some(length) };
            start.resize(dim + self.canaries, 0.0);
            let weights = train(self.plan.clone(), &engine, start, noise, hooks, checkpoint)?;
            // A descent goes against the gradient.
            return Ok(weights[dim..].iter().map(|w| -f64::from(*w)).collect());
        }
        let copies = units.map_or(1, copies);
        let extended = Extended { base: rows, canaries: &self.inputs, copies };
        let units = units.map(|units| with_canaries(units, self.canaries, copies)).transpose()?;
        let inner = NetworkEngine::new(self.network, &extended, None);
        let inner = Box::new(units.as_ref().map_or(inner, |units| inner.with_units(units)));
        let engine = WithCanaries { inner, records, present, length: None };
        let weights = train(self.plan.clone(), &engine, start, noise, hooks, checkpoint)?;
        let first = |canary: usize| (rows.len() + canary * copies) as u32;
        let all: Vec<u32> = (0..self.canaries).map(first).collect();
        let logits = crate::membership::logits(self.network, &weights, &extended, &all)?;
        Ok(logits)
    }
}

/// Rows of a canary: what a step uses of the largest unit.
fn copies(units: &Units) -> usize {
    let largest = (0..units.len() as u32).map(|unit| units.rows(unit).len()).max();
    largest.unwrap_or(1).min(units.most_rows())
}

/// `units`, and behind them `canaries` units of `copies` rows each.
fn with_canaries(units: &Units, canaries: usize, copies: usize) -> Result<Units, Error> {
    let mut unit_of_row = vec![0; units.row_count()];
    for unit in 0..units.len() as u32 {
        units.rows(unit).iter().for_each(|&row| unit_of_row[row as usize] = unit);
    }
    let numbers = units.len() as u32..(units.len() + canaries) as u32;
    unit_of_row.extend(numbers.flat_map(|unit| std::iter::repeat_n(unit, copies)));
    Units::new(&unit_of_row, units.most_rows()).map_err(|e| Error::from(geodp::Error::from(e)))
}

/// The inputs of canaries that have any.
fn inputs(
    network: &Network,
    train: &dyn Samples,
    kind: CanaryKind,
    canaries: usize,
    source: &NoiseSource,
) -> Result<Vec<(Vec<f32>, u32)>, Error> {
    let (len, classes) = (train.input_len(), network.classes() as u64);
    let mut stream = AuditStream::Canaries.open(source, 0)?;
    let mut make = |_| {
        let mut input = vec![0.0; len];
        let label = match kind {
            CanaryKind::Mislabelled if !train.is_empty() => {
                let index = stream.below(train.len() as u64) as usize;
                train.read_input(index, &mut input);
                let shift = 1 + stream.below(classes - 1) as u32;
                (train.label(index) + shift) % classes as u32
            }
            _ => {
                for _ in 0..LIT.min(len) {
                    input[stream.below(len as u64) as usize] = 2.0;
                }
                stream.below(classes) as u32
            }
        };
        (input, label)
    };
    Ok(match kind {
        CanaryKind::Gradient => Vec::new(),
        _ => (0..canaries).map(&mut make).collect(),
    })
}

/// The training set with canaries behind it.
struct Extended<'a> {
    base: &'a dyn Samples,
    canaries: &'a [(Vec<f32>, u32)],
    /// Rows of each canary.
    copies: usize,
}

impl Samples for Extended<'_> {
    fn len(&self) -> usize {
        self.base.len() + self.canaries.len() * self.copies
    }
    fn input_len(&self) -> usize {
        self.base.input_len()
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        match index.checked_sub(self.base.len()) {
            Some(row) => out.copy_from_slice(&self.canaries[row / self.copies].0),
            None => self.base.read_input(index, out),
        }
    }
    fn label(&self, index: usize) -> u32 {
        match index.checked_sub(self.base.len()) {
            Some(row) => self.canaries[row / self.copies].1,
            None => self.base.label(index),
        }
    }
    fn target(&self, index: usize) -> f32 {
        // A canary's target is the lower end of the range, as its label is a class.
        if index < self.base.len() { self.base.target(index) } else { 0.0 }
    }
}

/// An engine in which absent canaries contribute nothing; with a `length`, canaries are gradients
/// of that norm along parameters behind those of the inner engine.
struct WithCanaries<'a> {
    inner: Box<dyn Engine + 'a>,
    records: usize,
    present: &'a [bool],
    length: Option<f64>,
}

impl WithCanaries<'_> {
    /// Splits a batch: (its records for the inner engine, their places), places of present canaries.
    fn split(&self, batch: &[u32]) -> (Vec<u32>, Vec<usize>, Vec<(usize, usize)>) {
        let (mut inner, mut places, mut canaries) = (Vec::new(), Vec::new(), Vec::new());
        for (place, index) in batch.iter().enumerate() {
            match (*index as usize).checked_sub(self.records) {
                Some(canary) if !self.present[canary] => {}
                Some(canary) if self.length.is_some() => canaries.push((place, canary)),
                _ => {
                    inner.push(*index);
                    places.push(place);
                }
            }
        }
        (inner, places, canaries)
    }

    /// The network's norms at their places of the whole batch.
    fn norms_in_place(&self, batch: usize, places: &[usize], outcome: &BatchOutcome) -> Vec<f32> {
        let mut norms = vec![0.0; batch];
        for (place, norm) in places.iter().zip(&outcome.norms) {
            norms[*place] = *norm;
        }
        norms
    }

    fn sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: Option<WeightOf<'_>>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        let (inner, places, canaries) = self.split(batch);
        let dim = self.inner.facts().dim;
        let (of_network, of_canaries) = sum.split_at_mut(dim);
        let mut outcome = match weight_of {
            Some(weight_of) => self.inner.weighted_sum(
                &weights[..dim],
                &inner,
                &|place, norm| weight_of.weight(places[place], norm),
                of_network,
            )?,
            None => self.inner.gradient_sum(&weights[..dim], &inner, of_network)?,
        };
        of_canaries.fill(0.0);
        let mut norms = self.norms_in_place(batch.len(), &places, &outcome);
        for (place, canary) in canaries {
            let length = self.length.unwrap_or(0.0);
            norms[place] = length as f32;
            let weight = weight_of.map_or(1.0, |weight_of| weight_of.weight(place, length));
            of_canaries[canary] += (weight * length) as f32;
        }
        outcome.norms = norms;
        Ok(outcome)
    }
}

impl Engine for WithCanaries<'_> {
    fn facts(&self) -> Facts {
        let extra = if self.length.is_some() { self.present.len() } else { 0 };
        Facts {
            records: (self.records + self.present.len()) as u64,
            dim: self.inner.facts().dim + extra,
        }
    }
    fn at_step(&self, choice: RowChoice) -> Option<Box<dyn Engine + '_>> {
        let Self { records, present, length, .. } = *self;
        let inner = self.inner.at_step(choice)?;
        Some(Box::new(WithCanaries { inner, records, present, length }))
    }
    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        self.sum(weights, batch, Some(weight_of), sum)
    }
    fn gradient_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        self.sum(weights, batch, None, sum)
    }
    fn exact_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, EngineError> {
        let (inner, places, canaries) = self.split(batch);
        let dim = self.inner.facts().dim;
        let (of_network, of_canaries) = sum.split_at_mut(dim);
        let weight_of_inner = |place: usize, norm| weight_of.weight(places[place], norm);
        let mut outcome =
            self.inner.exact_sum(&weights[..dim], &inner, &weight_of_inner, grid, of_network)?;
        of_canaries.fill(0);
        let mut norms = self.norms_in_place(batch.len(), &places, &outcome);
        for (place, canary) in canaries {
            let length = self.length.unwrap_or(0.0);
            norms[place] = length as f32;
            let weight = |_| weight_of.weight(place, length);
            grid.add_gradient(&[length as f32], weight, &mut of_canaries[canary..=canary]);
        }
        outcome.norms = norms;
        Ok(outcome)
    }
    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        self.inner.mean_loss(&weights[..self.inner.facts().dim], &self.split(batch).0)
    }
    fn evaluate(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        self.inner.evaluate(&weights[..self.inner.facts().dim])
    }
}
