//! Sums over units of several rows: Σ_u w(‖ḡ_u‖)·ḡ_u, where ḡ_u is the mean gradient of unit u's rows.
//!
//! A unit is whatever one person's privacy covers: views of one record, or all records of one user. It
//! is the unit that is weighed, by the norm of its one mean gradient, so that it contributes at most C
//! however many rows it has.

use super::{BatchOutcome, Evaluation, Network, check_len};
use crate::Samples;
use crate::error::Error;
use crate::grid::Grid;
use crate::passes::Pass;
use crate::passes::exact::{ExactBatch, ExactGoal};

/// Units whose rows' probabilities are held at once.
const PREDICTED_UNITS: usize = 1024;

impl Network {
    /// [`Network::weighted_sum`] over units: Σ_u w(‖ḡ_u‖)·ḡ_u.
    ///
    /// Norms and losses (means over rows) are those of units, hits those of rows. A unit without rows
    /// contributes nothing.
    ///
    /// # Guarantee
    /// That of [`Network::clipped_sum`] for each unit. A unit with a row whose gradient is not finite
    /// contributes exactly 0. Units of one row contribute what samples do.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn weighted_unit_sum(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        units: &[&[u32]],
        weight_of: &(dyn Fn(usize, f64) -> f64 + Sync),
        sum: &mut [f32],
    ) -> Result<BatchOutcome, Error> {
        let pass = self.check_units(weights, samples, units)?;
        check_len("the sum", sum.len(), self.layout.dim)?;
        Ok(self.passes.unit_gradient(pass, weights, units, weight_of, sum))
    }

    /// [`Network::exact_sum`] over units of several rows: Σ_u n_u, where n_u·[`Grid::step`] is
    /// w(‖ḡ_u‖)·ḡ_u truncated to the grid and ḡ_u the mean gradient of the rows of unit u. A unit is
    /// whatever one person's privacy covers: views of one record, or all records of one user.
    ///
    /// Norms and losses (means over rows) are those of units, hits those of rows. A unit without rows
    /// contributes nothing. Memory does not grow with the number of units or rows.
    ///
    /// # Guarantee
    /// That of [`Network::exact_sum`] for each unit: ‖n_u‖₂ ≤ 2^[`Grid::BITS`] for any number of rows,
    /// and n_u depends on the unit alone. A unit with a row whose gradient is not finite contributes
    /// exactly 0. Units of one row contribute what records do.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn exact_unit_sum(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        units: &[&[u32]],
        weight_of: &(dyn Fn(usize, f64) -> f64 + Sync),
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, Error> {
        let pass = self.check_units(weights, samples, units)?;
        self.check_exact(units.len(), sum)?;
        let goal = ExactGoal { grid: &grid, weight_of };
        Ok(self.passes.exact(pass, weights, ExactBatch::Units(units), goal, sum))
    }

    /// Class probabilities of units, `[unit][class]`: the mean over the rows of each; and the loss and
    /// the hits of these means. The label is that of a unit's first row; a unit without rows has
    /// probabilities of 0 and counts as missed.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn predict_units(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        units: &[&[u32]],
        probabilities: &mut [f32],
    ) -> Result<Evaluation, Error> {
        self.check_units(weights, samples, units)?;
        let classes = self.layout.classes;
        check_len("probabilities", probabilities.len(), units.len() * classes)?;
        probabilities.fill(0.0);
        let mut evaluation = Evaluation { count: units.len(), ..Evaluation::default() };
        let mut of_rows = Vec::new();
        let chunks = units.chunks(PREDICTED_UNITS);
        for (units, means) in chunks.zip(probabilities.chunks_mut(PREDICTED_UNITS * classes)) {
            let rows = units.concat();
            of_rows.resize(rows.len() * classes, 0.0);
            self.predict(weights, samples, &rows, &mut of_rows)?;
            let mut of_rows = of_rows.chunks_exact(classes);
            for (unit, mean) in units.iter().zip(means.chunks_exact_mut(classes)) {
                for row in of_rows.by_ref().take(unit.len()) {
                    for (mean, p) in mean.iter_mut().zip(row) {
                        *mean += p / unit.len() as f32;
                    }
                }
                let label = unit.first().map_or(0, |&row| samples.label(row as usize) as usize);
                let best = (0..classes).max_by(|a, b| mean[*a].total_cmp(&mean[*b]));
                evaluation.correct += usize::from(!unit.is_empty() && best == Some(label));
                evaluation.mean_loss -= f64::from(mean[label].max(f32::MIN_POSITIVE)).ln();
            }
        }
        evaluation.mean_loss /= units.len().max(1) as f64;
        Ok(evaluation)
    }

    fn check_units<'a>(
        &'a self,
        weights: &[f32],
        samples: &'a dyn Samples,
        units: &[&[u32]],
    ) -> Result<Pass<'a>, Error> {
        let mut pass = self.check(weights, samples, &[])?;
        for unit in units {
            pass = self.check(weights, samples, unit)?;
        }
        Ok(pass)
    }
}
