//! `geodp audit one-run`: train once with canaries, and bound ε from below.

use super::{audit_error, bar, print_json, seed_of, stopped_or, write_results};
use crate::commands::settings::Settings;
use crate::commands::train::next_folder;
use crate::failure::{bad_input, classify};
use crate::interrupt;
use crate::pool::in_pool;
use geodp::Statement;
use geodp::config::{Loaded, RunConfig};
use geodp_account::Claim;
use geodp_audit::canaries::{CanaryKind, CanaryTraining, Population};
use geodp_audit::cells::Cells;
use geodp_audit::one_run::{OneRun, OneRunParams, judge, toss};
use geodp_audit::report::one_run_section;
use geodp_audit::{Hooks, claims_of};
use geodp_mechanism::NoiseSource;
use serde::Serialize;
use std::path::PathBuf;

/// Train once with canaries and say what ε the result refutes.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: geodp audit one-run --data mnist --model logistic --epsilon 3 --epochs 5"
)]
pub(crate) struct Args {
    /// gradient (strongest: a gradient of full length each), mislabelled, blank.
    #[arg(long, value_name = "KIND", default_value = "gradient")]
    kind: String,
    /// Number of canaries m, added to the training records.
    #[arg(long, value_name = "M", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(2..=1_000_000))]
    canaries: u64,
    /// Confidence of the bound.
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    confidence: f64,
    /// Folder of the audit; a numbered one under runs/ if absent. A stopped audit goes on in its
    /// folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
    /// Threads to use; all cores if absent. Never changes the result.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Option<u64>,
}

#[derive(Serialize)]
struct Setup<'a> {
    audit: &'static str,
    seed: u64,
    kind: CanaryKind,
    canaries: u64,
    config: &'a RunConfig,
}

#[derive(Serialize)]
struct Audit {
    kind: CanaryKind,
    /// What a canary is, and whom the claims protect: "record", or the name of a unit of several rows.
    unit: String,
    claims: Vec<Claim>,
    refuted: Vec<Claim>,
    #[serde(flatten)]
    found: OneRun,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let mut config = args.settings.config()?;
    if !config.privacy.mechanism.is_private() {
        return Err(bad_input("--mechanism none claims no ε: there is nothing to audit"));
    }
    let kind: CanaryKind = serde_json::from_value(serde_json::json!(args.kind))
        .map_err(|error| bad_input(format!("--kind: {error}")))?;
    let folder = match args.out {
        Some(folder) => folder,
        None => next_folder("audit-one-run")?,
    };
    let seed = seed_of(&folder, config.train.seed)?;
    let source = NoiseSource::from_seed(seed);
    let Loaded { split, views, .. } = config.load(&|_, _| ()).map_err(classify)?;
    config.complete_on(&split.train);
    let network = config.model.spec(&split.train).build().map_err(bad_input)?;
    let canaries = args.canaries as usize;
    let params = config.plan_params();
    let train = match &views {
        None => {
            let units = split.train.units().map(geodp_data::UnitColumn::units);
            Population { rows: &split.train, units }
        }
        Some(views) => Population { rows: &views.train.0, units: Some(&views.train.1) },
    };
    let training = CanaryTraining::new(&network, train, &params, kind, canaries, &source)
        .map_err(audit_error)?;
    let plan = training.plan();
    let delta = plan.delta().unwrap_or(geodp::plan::DEFAULT_DELTA);
    let audit_params = OneRunParams { canaries, delta, significance: 1.0 - args.confidence };
    let setup = Setup { audit: "one-run", seed, kind, canaries: args.canaries, config: &config };
    let cells = Cells::open(&folder, &setup).map_err(audit_error)?;
    let claims = claims_of(&Statement::new(plan, plan.steps(), None).map_err(classify)?);
    let stop = interrupt::flag()?;
    let bar = bar(plan.steps(), "training", json);
    let hooks = Hooks { on_step: &|| bar.inc(1), stop };
    // A key of its own: the coins must not share a stream with the noise that hides them.
    let noise = source.derive(0)?;
    let present = toss(canaries, &source).map_err(audit_error)?;
    let checkpoint = folder.join("training.checkpoint");
    let scores = in_pool(args.threads, || {
        cells.cell("scores", || training.scores(&present, noise, &hooks, Some(&checkpoint)))
    })?;
    bar.finish_and_clear();
    let scores = match scores {
        Ok(scores) => scores,
        Err(error) => return stopped_or(error, &folder),
    };
    if checkpoint.exists() {
        std::fs::remove_file(&checkpoint)?;
    }
    let found = judge(&audit_params, &present, &scores).map_err(audit_error)?;
    let unit = split.train.units().map(geodp_data::UnitColumn::name);
    let section = one_run_section(&found, kind, unit, &claims);
    let refuted = claims.iter().filter(|c| found.epsilon_lower > c.upper()).cloned().collect();
    let each = unit.map_or(String::new(), |unit| format!(", each one {unit} with all rows"));
    let unit = unit.unwrap_or(plan.unit()).to_owned();
    let audit = Audit { kind, unit, claims, refuted, found };
    let subtitle = format!("{} on {}", config.model_text(&split.train), split.train.name());
    let report = write_results(&cells, &audit, "A training under audit", &subtitle, section)?;
    if json {
        return print_json(&audit, &report);
    }
    println!(
        "audited   ε ≥ {:.4} at δ = {delta:e}, confidence {:.0} %, {} {kind} canaries{each}",
        audit.found.epsilon_lower,
        100.0 * audit.found.confidence,
        audit.found.canaries
    );
    for claim in &audit.claims {
        let verdict = if audit.refuted.contains(claim) { "REFUTED" } else { "not refuted" };
        println!("claimed   {claim}: {verdict}");
    }
    println!("results   {}", report.display());
    Ok(())
}
