//! The measured per-record loss of a training, as a cell keeps it (an ε of ∞ is `None`).

use geodp_audit::record_loss::{Quantiles, RecordLoss, RecordLossSummary};
use serde::{Deserialize, Serialize};

/// What the followed records of a training showed. Depends on the data: not for release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Records followed.
    pub records: u64,
    /// Records times the steps they were measured in.
    pub measurements: u64,
    /// Share of records that never moved further than the noise was scaled for.
    pub share_of_records_inside: f64,
    /// Share of measurements that were not further than that.
    pub share_of_measurements_inside: f64,
    /// The smallest β that would have covered every movement measured, whichever mechanism was run.
    pub beta_safe: f64,
    /// Against one who does not know the batches; Poisson sampling only.
    pub amplified: Option<Spread>,
    /// Against one who knows which batches used the record.
    pub plain: Spread,
}

/// Per-record ε over the records; `None` is ∞.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The largest.
    pub largest: Option<f64>,
    /// 99.9 % of the records are at most here.
    pub permille_999: Option<f64>,
    /// Half of them are.
    pub median: Option<f64>,
}

impl From<Quantiles> for Spread {
    fn from(q: Quantiles) -> Self {
        let finite = |x: f64| x.is_finite().then_some(x);
        Self {
            largest: finite(q.largest),
            permille_999: finite(q.permille_999),
            median: finite(q.median),
        }
    }
}

impl Loss {
    /// The summary of `loss`, as a cell keeps it.
    pub fn new(summary: RecordLossSummary, loss: &RecordLoss) -> Self {
        Self {
            records: summary.records,
            measurements: summary.measurements,
            share_of_records_inside: summary.share_of_records_inside,
            share_of_measurements_inside: summary.share_of_measurements_inside,
            beta_safe: loss.beta_needed(),
            amplified: summary.with_amplification.map(Spread::from),
            plain: summary.without_amplification.into(),
        }
    }

    /// The reading that is compared: with amplification where there is one.
    pub fn compared(&self) -> Spread {
        self.amplified.unwrap_or(self.plain)
    }
}
