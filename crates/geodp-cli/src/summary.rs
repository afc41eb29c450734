//! What a training prints before it starts and when it is done.

use geodp::config::Imported;
use geodp::config::TestIs;
use geodp::run::{Finished, Run};
use geodp::team::TeamTraffic;
use geodp_audit::record_loss::RecordLossSummary;
use geodp_report::format;
use std::path::Path;

/// Data, model and plan, before the first step.
pub(crate) fn announce(run: &Run) {
    let (plan, split) = (run.plan(), run.split());
    eprintln!(
        "{} ({} parameters) on {}: {} records to train on, {} to test on",
        run.config().model_text(&split.train),
        format::count(run.network().dim() as u64),
        split.train.name(),
        format::count(split.train.len() as u64),
        format::count(split.test.len() as u64)
    );
    if let Some(column) = split.train.units() {
        eprintln!(
            "one {} with all rows is protected: {} of them, of which a step uses {} rows at most each",
            column.name(),
            format::count(column.units().len() as u64),
            column.units().most_rows()
        );
    }
    run.imported().iter().for_each(announce_import);
    let noise = match (plan.noise_multiplier(), plan.protection().kind()) {
        (Some(sigma), Some(kind)) => {
            let budget = plan.protection().budget();
            let budget = budget.map_or(String::new(), |b| format!(", within {kind} ε = {b}"));
            format!("noise multiplier σ = {}{budget}", geodp_account::rounded_up(sigma))
        }
        _ => "no noise, no privacy".to_owned(),
    };
    eprintln!("{} steps of B = {}, {noise}", format::count(plan.steps()), plan.batch());
    if run.steps_done() > 0 {
        eprintln!("resuming after step {}", format::count(run.steps_done()));
    }
}

/// What reading a table changed, for the data's owner; loud where most of a column was.
pub(crate) fn announce_import(imported: &Imported) {
    eprintln!("{imported}");
    for warning in imported.report.warnings() {
        eprintln!("warning: {}: {warning}", imported.name());
    }
}

/// What is not for release.
pub(crate) struct ForOwner<'a> {
    /// What the followed records paid.
    pub(crate) measured: Option<&'a RecordLossSummary>,
    /// What reading did to tables.
    pub(crate) imported: &'a [Imported],
    /// What went between processes in this call, and how many steps were made in it.
    pub(crate) traffic: Option<(TeamTraffic, u64)>,
}

/// Accuracy, statement and where everything is.
pub(crate) fn print(
    finished: &Finished,
    owner: &ForOwner<'_>,
    folder: &Path,
    json: bool,
) -> anyhow::Result<()> {
    let seconds: f64 = finished.metrics.iter().map(|m| m.seconds).sum();
    let records: u64 = finished.metrics.iter().map(|m| m.records).sum();
    let rate = records as f64 / seconds.max(1e-9);
    if json {
        let result = serde_json::json!({
            "folder": folder,
            "test": finished.test(),
            "statement": finished.statement,
            "measured": owner.measured,
            "imported": owner.imported,
            "traffic": owner.traffic.map(|(traffic, steps)| serde_json::json!({
                "processes": traffic.processes,
                "messages_per_step": traffic.messages as f64 / steps.max(1) as f64,
                "bytes_per_step": traffic.bytes as f64 / steps.max(1) as f64,
            })),
            "seconds": seconds,
            "samples_per_second": rate,
        });
        println!("{}", serde_json::to_string_pretty(&result)?);
        return Ok(());
    }
    if let Some(test) = finished.test() {
        let found = match test.errors {
            Some(errors) => errors.to_string(),
            None => format!("accuracy {}", format::percent(test.accuracy)),
        };
        println!("{}", found_line(&found, test.records, test.is));
    }
    if let Some(released) = &finished.statement.accuracy {
        println!("released       accuracy {released}");
    }
    println!("privacy        {}", finished.statement.headline());
    for claim in finished.statement.claims.iter().skip(1) {
        println!("               {claim}");
    }
    if let Some(polar) = &finished.statement.polar {
        println!("steps          {polar}");
    }
    if let Some(measured) = owner.measured {
        println!("private        {}", measured.claim());
    }
    let time = format::duration(std::time::Duration::from_secs_f64(seconds));
    println!("time           {time}, {} samples/s", format::count(rate as u64));
    if let Some((traffic, steps)) = owner.traffic {
        println!(
            "processes      {}, {} kB a step between them",
            traffic.processes,
            format::count(traffic.bytes / steps.max(1) / 1000)
        );
    }
    println!("results        {}", folder.join("report.html").display());
    Ok(())
}

/// What was measured, and for whom it is.
fn found_line(found: &str, records: usize, is: TestIs) -> String {
    match is {
        TestIs::Public => format!("test {found}"),
        TestIs::Private => format!(
            "private        {found} on {} private records: for you, not for release",
            format::count(records as u64)
        ),
    }
}
