//! `geodp audit`: measure the privacy that was really bought.
//!
//! Every audit works in a folder: `setup.json`, a file a finished cell, `audit.json`, `report.html`.
//! The same command on the same folder goes on where it stopped.

mod mechanism;
mod membership;
mod one_run;

use crate::failure::{bad_input, classify};
use geodp_audit::Error;
use geodp_audit::cells::Cells;
use geodp_mechanism::{NoiseSource, Purpose};
use geodp_report::Section;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Measure the privacy that was really bought.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  geodp audit mechanism --beta 0.1
  geodp audit one-run --data mnist --model logistic --epsilon 3 --epochs 5 --canaries 1000
  geodp audit membership runs/mnist --records 500 --shadow-models 16")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    OneRun(Box<one_run::Args>),
    Membership(membership::Args),
    Mechanism(mechanism::Args),
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    match args.action {
        Action::OneRun(args) => one_run::run(*args, json),
        Action::Membership(args) => membership::run(args, json),
        Action::Mechanism(args) => mechanism::run(args, json),
    }
}

/// An error of an audit with the exit code it deserves.
fn audit_error(error: Error) -> anyhow::Error {
    match error {
        Error::Training(error) => classify(error),
        Error::Write { .. } | Error::Score { .. } => error.into(),
        _ => bad_input(error),
    }
}

/// A bar on a terminal, nothing elsewhere.
fn bar(length: u64, label: &str, quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    let template = format!("{label} {{bar:24}} {{percent:>3}}% · {{elapsed}}, {{eta}} left");
    // The template is fixed text: if it were wrong, the default style would do.
    bar.set_style(
        ProgressStyle::with_template(&template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("█▉▊▋▌▍▎▏ "),
    );
    bar
}

/// The seed of an audit: the one its folder was begun with, the one given, or a fresh one.
fn seed_of(folder: &Path, given: Option<u64>) -> anyhow::Result<u64> {
    let kept = std::fs::read(folder.join("setup.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
        .and_then(|setup| setup.get("seed")?.as_u64());
    match given.or(kept) {
        Some(seed) => Ok(seed),
        // 53 bits: every reader of JSON keeps them.
        None => Ok(NoiseSource::from_os()?.stream(Purpose::Audit, 0, 0)?.word() >> 11),
    }
}

/// Says that an audit was stopped, or passes its error on.
fn stopped_or(error: Error, folder: &Path) -> anyhow::Result<()> {
    match error {
        Error::Stopped => {
            let folder = folder.display();
            eprintln!(
                "stopped; what is done is in {folder}: the same command with --out {folder} goes on"
            );
            Ok(())
        }
        other => Err(audit_error(other)),
    }
}

/// Writes `audit.json` and `report.html`; returns the page's path.
fn write_results(
    cells: &Cells,
    result: &impl Serialize,
    title: &str,
    subtitle: &str,
    section: Section,
) -> anyhow::Result<PathBuf> {
    cells.write("audit", result).map_err(audit_error)?;
    let page = geodp_audit::report::page(title, subtitle, section);
    cells.write_text("report.html", &page).map_err(audit_error)
}

/// `value` printed as one JSON object, with the page's path.
fn print_json(result: &impl Serialize, report: &Path) -> anyhow::Result<()> {
    let mut value = serde_json::to_value(result)?;
    if let Some(object) = value.as_object_mut() {
        object.insert("report".to_owned(), serde_json::json!(report));
    }
    println!("{}", serde_json::to_string_pretty(&value)?);
    Ok(())
}
