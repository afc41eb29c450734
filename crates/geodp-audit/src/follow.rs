//! A [`Measure`] as a run's follower: its state in the run folder, its findings in `measured.json`
//! and on the report page.

use crate::measure::Measure;
use crate::record_loss::{RecordLoss, RecordLossSummary};
use crate::report::record_loss_section;
use crate::{Error, claims_of};
use geodp::plan::Plan;
use geodp::run::{Findings, Follow};
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

fn refused(error: impl std::fmt::Display) -> geodp::Error {
    geodp::Error::Plan(format!("the measurement: {error}"))
}

impl Follow for Measure {
    fn state(&self) -> Result<String, geodp::Error> {
        serde_json::to_string(self).map_err(refused)
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
