//! A run and the ledger of its data set: the whole planned cost is charged before the run starts, once.
//!
//! Resuming charges nothing, because the run is known by its name; what must be paid again (see
//! `on_this_machine`) is paid here too. A plan that names no such ledger is charged nowhere but in its
//! own.

use crate::Error;
use crate::plan::{DEFAULT_DELTA, Plan};
use crate::statement::DataSetTotal;
use geodp_account::{DataLedger, DataLedgerRecord, Event};
use std::path::Path;

fn open(plan: &Plan) -> Result<Option<DataLedger>, Error> {
    let config = &plan.ledger;
    let Some(path) = &config.file else {
        return match config.total_epsilon {
            Some(_) => Err(Error::Plan("total_epsilon needs the ledger's file".to_owned())),
            None => Ok(None),
        };
    };
    let delta = plan.delta().unwrap_or(DEFAULT_DELTA);
    DataLedger::open(path, delta, config.total_epsilon).map(Some).map_err(|error| match error {
        geodp_account::Error::Io(source) => Error::Write { path: path.clone(), source },
        other => other.into(),
    })
}

fn record(plan: &Plan, run: &str, event: Event) -> DataLedgerRecord {
    let terms = plan.protection.terms();
    DataLedgerRecord {
        run: run.to_owned(),
        unit: plan.unit.clone(),
        arithmetic: terms.arithmetic,
        noise_draws: terms.noise_draws,
        event,
        count: 1,
    }
}

/// Refuses a plan that would take the data set beyond its total, before anything is made.
pub(super) fn check(plan: &Plan) -> Result<(), Error> {
    let Some(ledger) = open(plan)? else { return Ok(()) };
    Ok(ledger.fits(&record(plan, "", plan.protection.whole_cost(plan.steps)))?)
}

/// Charges the whole run, unless it was charged before.
pub(super) fn charge(plan: &Plan, run: &str) -> Result<(), Error> {
    match open(plan)? {
        Some(mut ledger) if !ledger.knows(run) => {
            Ok(ledger.charge(record(plan, run, plan.protection.whole_cost(plan.steps)))?)
        }
        _ => Ok(()),
    }
}

/// Charges what a run must pay again.
pub(super) fn charge_again(plan: &Plan, run: &str, event: Event) -> Result<(), Error> {
    match open(plan)? {
        Some(mut ledger) => Ok(ledger.charge(record(plan, run, event))?),
        None => Ok(()),
    }
}

/// Refuses to go on with a run that its data set's ledger does not know.
pub(super) fn check_known(plan: &Plan, run: &str, folder: &Path) -> Result<(), Error> {
    match open(plan)? {
        Some(ledger) if !ledger.knows(run) => {
            let reason = "the ledger of its data set does not know it: was that file replaced?";
            Err(super::identity::mismatch(folder, reason))
        }
        _ => Ok(()),
    }
}

/// What all runs of the data set's ledger cost together; `None` without one.
pub(super) fn total(plan: &Plan) -> Result<Option<DataSetTotal>, Error> {
    let Some(ledger) = open(plan)? else { return Ok(None) };
    let limit = ledger.header().total_epsilon;
    Ok(Some(DataSetTotal { runs: ledger.runs() as u64, claim: ledger.claim()?, limit }))
}
