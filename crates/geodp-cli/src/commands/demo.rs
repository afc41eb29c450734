//! `geodp demo`: the paper's CNN on MNIST without noise, with DP-SGD, with GeoDP-SGD and with certified
//! GeoDP, and what `geodp train` does by default: a linear model on scattering features, with DP-SGD.
//!
//! About a minute on two cores. Ends with a table: accuracy, ε and which kind it is, samples/s, and
//! where the report pages are.

use crate::failure::classify;
use crate::interrupt;
use crate::pool::in_pool;
use crate::progress::TrainingBar;
use geodp::run::{Ended, Finished, Run};
use geodp::watch::Silent;
use geodp::{ModelConfig, RunConfig};
use geodp_mechanism::{Mechanism, PolarSettings};
use geodp_report::format;
use serde::Serialize;
use std::path::PathBuf;

/// Train on MNIST five ways: no noise, DP, GeoDP, certified GeoDP, scattering.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: geodp demo --epochs 3")]
pub(crate) struct Args {
    /// Passes over the data for each of the CNNs.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=1000))]
    epochs: u64,
    /// Where the runs go; a fresh folder under runs/ if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// GeoDP's bounding factor in the demo: small enough that it keeps the direction better than DP.
const BETA: f64 = 0.01;
/// Few passes: the default's 38 gain half a point and take three times as long.
const SCATTERING_EPOCHS: u64 = 12;
/// A smaller batch than the default's: more steps in few epochs.
const PRIVATE_BATCH: u64 = 1024;

#[derive(Serialize)]
struct Row {
    name: &'static str,
    accuracy: Option<f64>,
    claims: Vec<geodp_account::Claim>,
    samples_per_second: f64,
    report: PathBuf,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let out = match args.out {
        Some(out) => out,
        None => super::train::next_folder("demo")?,
    };
    let stop = interrupt::flag()?;
    let mut rows = Vec::new();
    let cnn = |mechanism| (mechanism, config(mechanism, args.epochs));
    let ways = [
        ("no noise", cnn(Mechanism::None)),
        ("DP-SGD", cnn(Mechanism::Dp)),
        ("GeoDP-SGD", cnn(Mechanism::Geodp { beta: BETA })),
        ("certified GeoDP", cnn(Mechanism::GeodpCertified(PolarSettings::default()))),
        ("scattering", (Mechanism::Dp, RunConfig::mnist().epochs(SCATTERING_EPOCHS))),
    ];
    for (name, (mechanism, config)) in ways {
        let folder = match name {
            "scattering" => out.join(name),
            _ => out.join(mechanism.to_string()),
        };
        let run = Run::create(&folder, config).map_err(classify)?;
        let mut bar = TrainingBar::new(&run, &format!("{name:<15} "), json);
        let ended =
            in_pool(None, || run.execute(&mut Silent, &mut bar, stop))?.map_err(classify)?;
        bar.finish();
        let Ended::Finished(finished) = ended else {
            eprintln!("stopped; the runs are in {}", out.display());
            return Ok(());
        };
        rows.push(row(name, &finished, folder.join("report.html")));
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print_table(&rows);
    }
    Ok(())
}

fn config(mechanism: Mechanism, epochs: u64) -> RunConfig {
    let config = RunConfig::mnist().model(ModelConfig::Cnn).mechanism(mechanism).epochs(epochs);
    if mechanism.is_private() { config.batch(PRIVATE_BATCH) } else { config }
}

fn row(name: &'static str, finished: &Finished, report: PathBuf) -> Row {
    let seconds: f64 = finished.metrics.iter().map(|m| m.seconds).sum();
    let records: u64 = finished.metrics.iter().map(|m| m.records).sum();
    Row {
        name,
        accuracy: finished.test().map(|t| t.accuracy),
        claims: finished.statement.claims.clone(),
        samples_per_second: records as f64 / seconds.max(1e-9),
        report,
    }
}

fn print_table(rows: &[Row]) {
    println!("{:<15} {:>13} {:>11}   privacy of the weights", "", "test accuracy", "samples/s");
    for Row { name, accuracy, claims, samples_per_second, .. } in rows {
        let accuracy = accuracy.map_or("–".to_owned(), format::percent);
        let rate = format::count(*samples_per_second as u64);
        for (line, claim) in claims.iter().enumerate() {
            if line == 0 {
                println!("{name:<15} {accuracy:>13} {rate:>11}   {claim}");
            } else {
                println!("{:<15} {:>13} {:>11}   {claim}", "", "", "");
            }
        }
    }
    println!();
    println!("certified: a theorem about these weights. conditional: a theorem only if no record");
    println!(
        "turns the mean gradient further than β = {BETA} allows, which nothing enforces: GeoDP adds"
    );
    println!(
        "less noise to the direction than one record may move it by. certified GeoDP adds enough: the"
    );
    println!(
        "same split into length and direction, DP-SGD’s ε. scattering: a linear model on fixed"
    );
    println!("features of the images, with DP-SGD; what geodp train does by default.");
    println!();
    for Row { name, report, .. } in rows {
        println!("report of {name:<15} {}", report.display());
    }
}
