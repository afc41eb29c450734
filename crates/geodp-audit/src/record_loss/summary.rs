//! From totals to ε: what the worst record, nearly the worst and the middle one paid, in the two
//! readings of [`record_loss`](super).

use super::{RecordLoss, RecordTotals};
use crate::Error;
use crate::error::inside_unit;
use geodp_account::{Accountant, Adjacency, Event, Measured, PldAccountant};
use serde::{Deserialize, Serialize};

/// ε at δ of a Gaussian that moves by μ standard deviations.
///
/// # Errors
/// μ that is negative or not finite; δ outside (0, 1).
pub fn gaussian_epsilon(mu: f64, delta: f64) -> Result<f64, Error> {
    inside_unit("delta", delta)?;
    if mu == 0.0 {
        return Ok(0.0);
    }
    let mut accountant = PldAccountant::new(Adjacency::AddRemove);
    accountant.compose(&Event::gaussian(1.0 / mu), 1)?;
    Ok(accountant.epsilon(delta)?.upper)
}

/// ε at δ of `steps` Poisson-sampled releases that move by μ standard deviations where they use
/// the record.
///
/// # Errors
/// As [`gaussian_epsilon`]; a rate outside [0, 1].
pub fn sampled_epsilon(mu: f64, sample_rate: f64, steps: u64, delta: f64) -> Result<f64, Error> {
    inside_unit("delta", delta)?;
    if mu == 0.0 {
        return Ok(0.0);
    }
    let mut accountant = PldAccountant::new(Adjacency::AddRemove);
    accountant.compose(&Event::sampled_gaussian(sample_rate, 1.0 / mu), steps)?;
    Ok(accountant.epsilon(delta)?.upper)
}

/// Per-record ε of the kind "measured": the worst, nearly the worst, and the middle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Of the record that paid most.
    pub largest: f64,
    /// 99.9 % of the records paid at most this.
    pub permille_999: f64,
    /// Half of them did.
    pub median: f64,
}

/// How the run that was measured draws its batches, and what it claims.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunFacts {
    /// δ.
    pub delta: f64,
    /// q of Poisson sampling; `None` where sampling does not amplify.
    pub sample_rate: Option<f64>,
    /// β of GeoDP.
    pub beta: Option<f64>,
}

/// What the records of one data set showed. Depends on the data: not for release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordLossSummary {
    /// What this is, and for whom.
    pub notice: String,
    /// Records that were measured at least once.
    pub records: u64,
    /// Steps of the run so far.
    pub steps: u64,
    /// Measurements: records times the steps that used them.
    pub measurements: u64,
    /// δ of every ε here.
    pub delta: f64,
    /// β that the run assumed; GeoDP only.
    pub beta: Option<f64>,
    /// Share of records that never moved further than assumed.
    pub share_of_records_inside: f64,
    /// Share of measurements that were not further than assumed.
    pub share_of_measurements_inside: f64,
    /// The smallest β at which every movement measured would have been inside; above 1 none is. GeoDP
    /// only: DP's noise assumes nothing about directions.
    pub beta_safe: Option<f64>,
    /// Per-record ε against one who knows which batches were drawn: over the steps that used it.
    pub without_amplification: Quantiles,
    /// Per-record ε before batches are drawn, as accountants count; Poisson sampling only. It can be the
    /// larger one: a record may be drawn more often than it was.
    pub with_amplification: Option<Quantiles>,
}

/// Stands in every file of measured numbers.
pub const NOTICE: &str =
    "measured on the records themselves: for the data's owner, not for release";

impl RecordLoss {
    /// The smallest β of GeoDP that covers every movement measured, whichever mechanism was run.
    pub fn beta_needed(&self) -> f64 {
        self.totals.iter().map(|t| t.beta_needed).fold(0.0, f64::max)
    }

    /// The measured claim; `None` while nothing was measured.
    ///
    /// # Errors
    /// If the accountant refuses the facts.
    pub fn summary(&self, facts: &RunFacts) -> Result<Option<RecordLossSummary>, Error> {
        let seen: Vec<&RecordTotals> = self.totals.iter().filter(|t| t.measured > 0).collect();
        if seen.is_empty() {
            return Ok(None);
        }
        let sum = |value: fn(&RecordTotals) -> u64| seen.iter().map(|t| value(t)).sum::<u64>();
        let (measurements, outside) = (sum(|t| t.measured), sum(|t| t.outside));
        let inside = seen.iter().filter(|t| t.outside == 0).count();
        let totals = seen.iter().filter_map(|t| t.mu_total());
        let rms = seen.iter().filter_map(|t| t.mu_rms());
        let with_amplification = facts
            .sample_rate
            .map(|rate| quantiles(rms, |mu| sampled_epsilon(mu, rate, self.steps, facts.delta)));
        Ok(Some(RecordLossSummary {
            notice: NOTICE.to_owned(),
            records: seen.len() as u64,
            steps: self.steps,
            measurements,
            delta: facts.delta,
            beta: facts.beta,
            share_of_records_inside: inside as f64 / seen.len() as f64,
            share_of_measurements_inside: 1.0 - outside as f64 / measurements as f64,
            beta_safe: facts.beta.map(|_| self.beta_needed()),
            without_amplification: quantiles(totals, |mu| gaussian_epsilon(mu, facts.delta))?,
            with_amplification: with_amplification.transpose()?,
        }))
    }
}

impl RecordLossSummary {
    /// As the one-line claim of a statement; the strongest reading there is.
    pub fn claim(&self) -> Measured {
        let epsilon = self.with_amplification.unwrap_or(self.without_amplification);
        Measured {
            epsilon_largest: epsilon.largest,
            epsilon_median: epsilon.median,
            delta: self.delta,
            share_inside: self.share_of_records_inside,
            beta_safe: self.beta_safe,
        }
    }
}

/// ε rises with μ, so its quantiles are those of μ: three accountings instead of one for each record.
fn quantiles(
    mu: impl Iterator<Item = f64>,
    epsilon: impl Fn(f64) -> Result<f64, Error>,
) -> Result<Quantiles, Error> {
    let mut mu: Vec<f64> = mu.collect();
    mu.sort_by(f64::total_cmp);
    let at = |share: f64| mu[((share * mu.len() as f64).ceil() as usize).clamp(1, mu.len()) - 1];
    Ok(Quantiles {
        largest: epsilon(at(1.0))?,
        permille_999: epsilon(at(0.999))?,
        median: epsilon(at(0.5))?,
    })
}
