//! `measured.json`: what a [`Measure`](crate::measure::Measure) found in a run, and its section of the
//! report page.

use crate::record_loss::{RecordLoss, RecordLossSummary};
use crate::report::record_loss_section;
use crate::{Error, claims_of};
use geodp::plan::Plan;
use geodp::statement::Statement;
use geodp_report::Section;
use serde::{Deserialize, Serialize};

/// `measured.json`: the summary first, then every record. Private.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredFile {
    /// What the records showed.
    #[serde(flatten)]
    pub summary: RecordLossSummary,
    /// Each record's totals.
    pub followed: RecordLoss,
}

impl MeasuredFile {
    /// Reads the text of a `measured.json`.
    ///
    /// # Errors
    /// A text that is none.
    pub fn parse(json: &str) -> Result<Self, Error> {
        serde_json::from_str(json).map_err(|error| Error::File {
            path: "measured.json".into(),
            reason: error.to_string(),
        })
    }

    /// Its section of the run's page.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn section(&self, plan: &Plan, statement: &Statement) -> Result<Section, Error> {
        let claims = claims_of(statement);
        record_loss_section(&self.summary, &self.followed, plan.poisson_rate(), &claims)
    }
}
