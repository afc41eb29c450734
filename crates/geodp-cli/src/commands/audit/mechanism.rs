//! `geodp audit mechanism`: where GeoDP keeps its published ε, and where it does not.

use super::{audit_error, bar, print_json, stopped_or, write_results};
use crate::commands::train::next_folder;
use crate::interrupt;
use geodp_audit::cells::Cells;
use geodp_audit::mechanism::{Audited, Batch, Case, Setting, audit};
use geodp_audit::report::mechanism_section;
use serde::Serialize;
use std::path::PathBuf;

/// Tell releases of two neighbouring gradients apart: DP, GeoDP and certified GeoDP, an ordinary batch and one whose
/// mean nearly cancels. No data is used.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: geodp audit mechanism --beta 0.1 --noise-multiplier 1")]
pub(crate) struct Args {
    /// Number of parameters d; the paper's CNN if absent.
    #[arg(long, value_name = "D", default_value_t = 21_840)]
    dim: usize,
    /// Batch size B.
    #[arg(long, value_name = "B", default_value_t = 1024)]
    batch: u64,
    /// Clipping threshold C.
    #[arg(long, value_name = "C", default_value_t = 0.1)]
    clip_norm: f64,
    /// Noise multiplier σ.
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    noise_multiplier: f64,
    /// GeoDP's bounding factor β, in (0, 1].
    #[arg(long, value_name = "BETA", default_value_t = 0.1)]
    beta: f64,
    /// δ of the claims.
    #[arg(long, value_name = "D", default_value_t = 1e-5)]
    delta: f64,
    /// Releases of each gradient; more show larger ε.
    #[arg(long, value_name = "N", default_value_t = 8000, value_parser = clap::value_parser!(u64).range(2..=1_000_000_000))]
    repeats: u64,
    /// Confidence of the bounds.
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    confidence: f64,
    /// Seed of gradients and noise.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Folder of the audit; a numbered one under runs/ if absent. A stopped audit goes on in its
    /// folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct Audit {
    setting: Setting,
    cases: Vec<Case>,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let setting = Setting {
        dim: args.dim,
        batch: args.batch,
        clip_norm: args.clip_norm,
        noise_multiplier: args.noise_multiplier,
        beta: args.beta,
        delta: args.delta,
        repeats: args.repeats,
        significance: 1.0 - args.confidence,
        seed: args.seed,
    };
    let folder = match args.out {
        Some(folder) => folder,
        None => next_folder("audit-mechanism")?,
    };
    let stop = interrupt::flag()?;
    // A setting that makes no sense is refused before anything is written.
    let pair = geodp_audit::mechanism::Pair::new(&setting, Batch::Ordinary).map_err(audit_error)?;
    drop(pair);
    let cells = Cells::open(&folder, &setting).map_err(audit_error)?;
    let bar = bar(6 * 2 * setting.repeats, "releases", json);
    let mut cases = Vec::new();
    for (name, mechanism, batch) in [
        ("dp-ordinary", Audited::Dp, Batch::Ordinary),
        ("dp-cancelling", Audited::Dp, Batch::Cancelling),
        ("geodp-ordinary", Audited::Geodp, Batch::Ordinary),
        ("geodp-cancelling", Audited::Geodp, Batch::Cancelling),
        ("geodp-certified-ordinary", Audited::GeodpCertified, Batch::Ordinary),
        ("geodp-certified-cancelling", Audited::GeodpCertified, Batch::Cancelling),
    ] {
        let done = || bar.inc(1);
        match cells.cell(name, || audit(&setting, mechanism, batch, stop, &done)) {
            Ok(case) => cases.push(case),
            Err(error) => {
                bar.finish_and_clear();
                return stopped_or(error, &folder);
            }
        }
        bar.set_position(2 * setting.repeats * cases.len() as u64);
    }
    bar.finish_and_clear();
    let section = mechanism_section(&setting, &cases);
    let title = "Perturbations under audit";
    let subtitle = format!(
        "DP, GeoDP and certified GeoDP, β = {}, σ = {}",
        setting.beta, setting.noise_multiplier
    );
    let audit = Audit { setting, cases };
    let report = write_results(&cells, &audit, title, &subtitle, section)?;
    if json {
        return print_json(&audit, &report);
    }
    for case in &audit.cases {
        let claims: Vec<String> = case.claims.iter().map(geodp_account::Claim::short).collect();
        let verdict = match case.refuted().map(|c| c.kind().to_string()).collect::<Vec<_>>() {
            refuted if refuted.is_empty() => "not refuted".to_owned(),
            refuted => format!("REFUTED: {}", refuted.join(", ")),
        };
        println!(
            "{:<22} audited ε ≥ {:.3} ({:.0} %) · {} · {verdict}",
            format!("{:?}, {:?}", case.mechanism, case.batch).to_lowercase(),
            case.bound.epsilon_lower,
            100.0 * case.bound.confidence,
            claims.join(", ")
        );
    }
    println!("results {}", report.display());
    Ok(())
}
