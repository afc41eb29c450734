//! `geodp plan`: how much noise a budget needs, and what other budgets would buy.
//!
//! With `--mechanism geodp` the noise is calibrated so that the *conditional* ε meets the target, as
//! `geodp train` does, and GeoDP's statement is printed instead of a certified ε.

use crate::commands::account::{How, Outcome};
use crate::failure::bad_input;
use geodp_account::{Adjacency, Event, Method, calibrate};
use geodp_mechanism::Mechanism;
use serde::Serialize;

/// Find the noise multiplier that a privacy budget needs.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: geodp plan --epsilon 3 --delta 1e-5 --records 60000 --batch 256 --epochs 20"
)]
#[command(group = clap::ArgGroup::new("length").required(true).args(["epochs", "steps"]))]
pub(crate) struct Args {
    /// Target epsilon.
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: f64,
    /// Delta, strictly between 0 and 1.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: f64,
    /// Number of records.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Expected batch size; each record is drawn with probability batch / records.
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Length of the run in epochs of records / batch steps each.
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    epochs: Option<f64>,
    /// Length of the run in steps.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    #[command(flatten)]
    how: How,
}

/// Budgets shown beside the one asked for.
const BUDGETS: [f64; 6] = [0.5, 1.0, 2.0, 3.0, 4.0, 8.0];

#[derive(Serialize)]
struct Report {
    target_epsilon: f64,
    delta: f64,
    sample_rate: f64,
    steps: u64,
    noise_multiplier: f64,
    accountant: Method,
    adjacency: Adjacency,
    #[serde(flatten)]
    outcome: Outcome,
    budgets: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    epsilon: f64,
    noise_multiplier: f64,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    if args.batch > args.records {
        return Err(bad_input(format!(
            "--batch {} exceeds --records {}",
            args.batch, args.records
        )));
    }
    if args.epsilon == 0.0 {
        return Err(bad_input(
            "--epsilon 0 cannot be reached with any noise: give a positive target",
        ));
    }
    let sample_rate = args.batch as f64 / args.records as f64;
    let steps = steps(&args)?;
    // GeoDP releases magnitude and direction: two Gaussians of σ amount to one of σ/√2.
    let (kind, releases) = match args.how.mechanism()? {
        Mechanism::Dp => ("certified", 1.0_f64),
        Mechanism::Geodp { .. } => ("conditional", 2.0),
        Mechanism::None => return Err(bad_input("--mechanism none needs no noise")),
    };
    let sigma_for = |epsilon: f64| {
        let run = |sigma: f64| {
            Event::sampled_gaussian(sample_rate, sigma / releases.sqrt()).repeated(steps)
        };
        calibrate::noise_multiplier(epsilon, args.delta, args.how.adjacency, run).map_err(bad_input)
    };
    let noise_multiplier = sigma_for(args.epsilon)?;
    let outcome = args.how.outcome(sample_rate, noise_multiplier, steps, args.delta)?;
    let budgets = BUDGETS
        .into_iter()
        .map(|epsilon| Ok(Row { epsilon, noise_multiplier: sigma_for(epsilon)? }))
        .collect::<anyhow::Result<Vec<Row>>>()?;
    if json {
        let report = Report {
            target_epsilon: args.epsilon,
            delta: args.delta,
            sample_rate,
            steps,
            noise_multiplier,
            accountant: args.how.accountant,
            adjacency: args.how.adjacency,
            outcome,
            budgets,
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    println!(
        "noise multiplier {noise_multiplier:.4} for {steps} steps at sample rate {sample_rate:.6}"
    );
    outcome.print(args.delta);
    println!("\nwhat a budget buys, for the same steps and rate:");
    println!("  {kind} epsilon   noise multiplier");
    for row in &budgets {
        println!("  {:>1$}   {2:.4}", row.epsilon, kind.len() + 8, row.noise_multiplier);
    }
    Ok(())
}

/// Steps of the run: ⌈epochs · records / batch⌉, or as given.
fn steps(args: &Args) -> anyhow::Result<u64> {
    let Some(epochs) = args.epochs else {
        return Ok(args.steps.unwrap_or(1));
    };
    let steps = (epochs * args.records as f64 / args.batch as f64).ceil();
    if steps >= 1.0 && steps <= geodp_account::MOST_STEPS as f64 {
        Ok(steps as u64)
    } else {
        Err(bad_input(format!(
            "--epochs {epochs} makes {steps} steps: it must be positive and not absurd"
        )))
    }
}
