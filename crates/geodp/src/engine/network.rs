//! The engine of this project: a geodp-nn network over a sample source, one row for each record or, with
//! [`Units`], several.
//!
//! With units, index u of a batch is unit u: its gradient is ḡ_u, the mean over the rows that the step
//! chose of it, and it is ḡ_u that is weighed. Loss and accuracy on held-out records are of rows, or of
//! the mean probabilities of a record's views.

use super::{Constant, Engine, EngineError, RowChoice, WeightOf};
use crate::plan::Facts;
use geodp_data::Units;
use geodp_nn::{BatchOutcome, Evaluation, Grid, Network, Samples, mean_loss};

/// A network, its private training records, and held-out ones.
#[derive(Clone, Copy)]
pub struct NetworkEngine<'a> {
    network: &'a Network,
    train: &'a dyn Samples,
    test: Option<&'a dyn Samples>,
    units: Option<&'a Units>,
    test_units: Option<&'a Units>,
    choice: RowChoice,
    /// Number of the first unit among all, where these are a share.
    first: u32,
}

/// The rows of a batch of units, unit after unit.
struct ChosenRows {
    rows: Vec<u32>,
    ends: Vec<usize>,
}

impl ChosenRows {
    fn units(&self) -> Vec<&[u32]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(&start, &end)| &self.rows[start..end]).collect()
    }
}

impl<'a> NetworkEngine<'a> {
    /// Trains `network` on `train`, measures it on `test`.
    pub fn new(
        network: &'a Network,
        train: &'a dyn Samples,
        test: Option<&'a dyn Samples>,
    ) -> Self {
        let choice = RowChoice::default();
        Self { network, train, test, units: None, test_units: None, choice, first: 0 }
    }

    /// The same with the rows of `train` in units: those are what is counted, drawn and bounded.
    #[must_use]
    pub fn with_units(self, units: &'a Units) -> Self {
        Self { units: Some(units), ..self }
    }

    /// The same with the rows of `test` as views: probabilities are averaged over each unit's.
    #[must_use]
    pub fn averaging(self, test_units: &'a Units) -> Self {
        Self { test_units: Some(test_units), ..self }
    }

    /// The same as a share of more units: its first one has this number among all.
    pub(crate) fn numbered_from(self, first: u32) -> Self {
        Self { first, ..self }
    }

    /// The engine of one step; `None` where all steps use the same rows.
    pub(crate) fn at(self, choice: RowChoice) -> Option<Self> {
        self.units.map(|_| Self { choice, ..self })
    }

    /// The loss of each record of the batch; of a unit, the mean over its rows.
    pub(crate) fn losses(
        &self,
        weights: &[f32],
        batch: &[u32],
    ) -> Result<Vec<f32>, geodp_nn::Error> {
        let Some(units) = self.units else {
            return self.network.losses(weights, self.train, batch);
        };
        let (chosen, mut unread) = (self.choose(units, batch)?, vec![0.0; self.network.dim()]);
        let outcome = self.network.weighted_unit_sum(
            weights,
            self.train,
            &chosen.units(),
            &|_, _| 0.0,
            &mut unread,
        )?;
        Ok(outcome.losses)
    }

    /// Loss and accuracy on every `stride`-th held-out record, or unit of views.
    pub(crate) fn evaluate_every(
        &self,
        stride: usize,
        weights: &[f32],
    ) -> Result<Option<Evaluation>, EngineError> {
        let Some(test) = self.test.filter(|test| !test.is_empty()) else { return Ok(None) };
        let Some(units) = self.test_units else {
            let records: Vec<u32> = (0..test.len() as u32).step_by(stride).collect();
            return Ok(Some(self.network.evaluate(weights, test, &records)?));
        };
        let views = (0..units.len() as u32).step_by(stride).map(|unit| units.rows(unit));
        let views: Vec<&[u32]> = views.collect();
        let mut probabilities = vec![0.0; views.len() * self.network.classes()];
        Ok(Some(self.network.predict_units(weights, test, &views, &mut probabilities)?))
    }

    fn choose(&self, units: &Units, batch: &[u32]) -> Result<ChosenRows, geodp_nn::Error> {
        let mut chosen = ChosenRows { rows: Vec::new(), ends: Vec::with_capacity(batch.len()) };
        for &unit in batch {
            if unit as usize >= units.len() {
                return Err(geodp_nn::Error::Index { index: unit, samples: units.len() });
            }
            units.choose(unit, self.first + unit, self.choice.get(), &mut chosen.rows);
            chosen.ends.push(chosen.rows.len());
        }
        Ok(chosen)
    }
}

impl Engine for NetworkEngine<'_> {
    fn facts(&self) -> Facts {
        let records = self.units.map_or(self.train.len(), Units::len);
        Facts { records: records as u64, dim: self.network.dim() }
    }

    fn at_step(&self, choice: RowChoice) -> Option<Box<dyn Engine + '_>> {
        self.at(choice).map(|engine| Box::new(engine) as Box<dyn Engine>)
    }

    fn weighted_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        let weight_of = |place: usize, norm: f64| weight_of.weight(place, norm);
        let Some(units) = self.units else {
            return Ok(self.network.weighted_sum(weights, self.train, batch, &weight_of, sum)?);
        };
        let chosen = self.choose(units, batch)?;
        let units = chosen.units();
        Ok(self.network.weighted_unit_sum(weights, self.train, &units, &weight_of, sum)?)
    }

    fn exact_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        weight_of: WeightOf<'_>,
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, EngineError> {
        let weight_of = |place: usize, norm: f64| weight_of.weight(place, norm);
        let Some(units) = self.units else {
            return Ok(self
                .network
                .exact_sum(weights, self.train, batch, &weight_of, grid, sum)?);
        };
        let chosen = self.choose(units, batch)?;
        let units = chosen.units();
        Ok(self.network.exact_unit_sum(weights, self.train, &units, &weight_of, grid, sum)?)
    }

    fn gradient_sum(
        &self,
        weights: &[f32],
        batch: &[u32],
        sum: &mut [f32],
    ) -> Result<BatchOutcome, EngineError> {
        match self.units {
            None => Ok(self.network.gradient_sum(weights, self.train, batch, sum)?),
            Some(_) => self.weighted_sum(weights, batch, &Constant(1.0), sum),
        }
    }

    fn sample_gradients(
        &self,
        weights: &[f32],
        batch: &[u32],
        gradients: &mut [f32],
    ) -> Result<(), EngineError> {
        let Some(units) = self.units else {
            return Ok(self.network.sample_gradients(weights, self.train, batch, gradients)?);
        };
        let dim = self.network.dim();
        let chosen = self.choose(units, batch)?;
        for (unit, mean) in chosen.units().iter().zip(gradients.chunks_exact_mut(dim)) {
            let mut rows = vec![0.0; unit.len() * dim];
            self.network.sample_gradients(weights, self.train, unit, &mut rows)?;
            mean.fill(0.0);
            for row in rows.chunks_exact(dim) {
                mean.iter_mut().zip(row).for_each(|(mean, g)| *mean += g / unit.len() as f32);
            }
        }
        Ok(())
    }

    fn mean_loss(&self, weights: &[f32], batch: &[u32]) -> Result<f64, EngineError> {
        Ok(mean_loss(&self.losses(weights, batch)?))
    }

    fn evaluate(&self, weights: &[f32]) -> Result<Option<Evaluation>, EngineError> {
        self.evaluate_every(1, weights)
    }
}
