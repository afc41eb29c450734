//! `geodp report`: where a run stands, and its report page again.

use crate::failure::{bad_input, classify};
use geodp_audit::follow::MeasuredFile;
use serde::Serialize;
use std::path::PathBuf;

/// Show a run's statement, and write its report page anew.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: geodp report runs/mnist")]
pub(crate) struct Args {
    /// The folder of a run, finished or not.
    run: PathBuf,
}

#[derive(Serialize)]
struct Shown<'a> {
    report: PathBuf,
    finished: bool,
    step: u64,
    statement: &'a geodp::Statement,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let review = geodp::run::Review::open(&args.run).map_err(classify)?;
    let measured = match review.findings().map_err(classify)? {
        Some(json) => Some(
            MeasuredFile::parse(&json)
                .and_then(|file| file.section(&review.plan, &review.statement))
                .map_err(bad_input)?,
        ),
        None => None,
    };
    let report = review.write_report(measured).map_err(classify)?;
    if json {
        let (finished, step, statement) = (review.finished, review.step, &review.statement);
        println!("{}", serde_json::to_string_pretty(&Shown { report, finished, step, statement })?);
        return Ok(());
    }
    let state = if review.finished { "finished" } else { "not finished" };
    println!("{state} after step {} of {}", review.step, review.plan.steps());
    print!("{}", review.statement);
    println!("report: {}", report.display());
    Ok(())
}
