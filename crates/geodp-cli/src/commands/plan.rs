//! `geodp plan`: how much noise a budget needs, and what other budgets would buy.
//!
//! The plan is the one that `geodp train` would make of these numbers, and its claims are what that
//! training would state. With `--mechanism geodp` the target is the *conditional* ε; with
//! `--mechanism geodp-certified` it is certified, and part of δ is set aside.

use crate::commands::account::{Release, misses, print};
use crate::failure::{bad_input, classify};
use geodp::plan::Facts;
use geodp::team::cost::{Network, StepCost, StepSize};
use geodp::{Plan, PlanParams, Statement};
use geodp_account::{Adjacency, Claim, rounded_up};
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
    /// Number of records; of units, where --unit names one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    records: u64,
    /// Whom the promise covers: a record, or what [unit] in a schema names, with all rows.
    #[arg(long, value_name = "NAME", default_value = "record")]
    unit: String,
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
    release: Release,
    /// Also model a step over so many processes (docs/cluster.md).
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u64).range(1..=100_000),
          requires = "parameters")]
    ranks: Option<u64>,
    /// Parameters of the model.
    #[arg(long, value_name = "D", requires = "ranks")]
    parameters: Option<u64>,
    /// Bandwidth between processes, in GB/s.
    #[arg(long, value_name = "GB/S", default_value_t = 1.25, requires = "ranks")]
    bandwidth: f64,
    /// Latency of a message, in microseconds.
    #[arg(long, value_name = "µS", default_value_t = 50.0, requires = "ranks")]
    latency: f64,
    /// Records a second that one process computes: what `geodp train` prints at its end.
    #[arg(long, value_name = "R", default_value_t = 40_000.0, requires = "ranks")]
    speed: f64,
}

/// Budgets shown beside the one asked for.
const BUDGETS: [f64; 6] = [0.5, 1.0, 2.0, 3.0, 4.0, 8.0];

#[derive(Serialize)]
struct Report {
    unit: String,
    target_epsilon: f64,
    delta: f64,
    sample_rate: f64,
    steps: u64,
    noise_multiplier: f64,
    adjacency: Option<Adjacency>,
    claims: Vec<Claim>,
    /// The part of δ that covers releases beyond the Gaussian; certified GeoDP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_of_misses: Option<f64>,
    budgets: Vec<Row>,
    /// A model, not a measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    processes: Option<Processes>,
}

#[derive(Serialize)]
struct Processes {
    asked: StepCost,
    best: StepCost,
}

#[derive(Serialize)]
struct Row {
    epsilon: f64,
    noise_multiplier: f64,
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    if args.epsilon == 0.0 {
        return Err(bad_input(
            "--epsilon 0 cannot be reached with any noise: give a positive target",
        ));
    }
    let steps = steps(&args)?;
    let plan = plan(&args, args.epsilon, steps)?;
    let sigma_of = |plan: &Plan| plan.noise_multiplier().unwrap_or(0.0);
    let noise_multiplier = sigma_of(&plan);
    let statement = Statement::new(&plan, steps, None).map_err(classify)?;
    let delta_of_misses = misses(plan.protection().noise(), steps, &statement.claims);
    let budgets = BUDGETS
        .into_iter()
        .map(|epsilon| {
            let noise_multiplier = sigma_of(&self::plan(&args, epsilon, steps)?);
            Ok(Row { epsilon, noise_multiplier })
        })
        .collect::<anyhow::Result<Vec<Row>>>()?;
    let processes = processes(&args)?;
    let sample_rate = plan.sample_rate();
    if json {
        let report = Report {
            unit: args.unit,
            target_epsilon: args.epsilon,
            delta: args.delta,
            sample_rate,
            steps,
            noise_multiplier,
            adjacency: statement.adjacency,
            claims: statement.claims,
            delta_of_misses,
            budgets,
            processes,
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    let (sigma, rate) = (rounded_up(noise_multiplier), rounded_up(sample_rate));
    println!("noise multiplier {sigma} for {steps} steps at sample rate {rate}");
    print(&statement.claims, delta_of_misses);
    if args.unit != "record" {
        println!("for one {} with all rows: units are drawn and counted", args.unit);
    }
    let kind = statement.claims.first().map_or(String::new(), |claim| claim.kind().to_string());
    println!("\nwhat a budget buys, for the same steps and rate:");
    println!("  {kind} epsilon   noise multiplier");
    for row in &budgets {
        let sigma = rounded_up(row.noise_multiplier);
        println!("  {:>1$}   {sigma}", row.epsilon, kind.len() + 8);
    }
    if let Some(processes) = processes {
        print_processes(&processes);
    }
    Ok(())
}

/// What a step over several processes costs, by the model.
fn processes(args: &Args) -> anyhow::Result<Option<Processes>> {
    let (Some(ranks), Some(dim)) = (args.ranks, args.parameters) else { return Ok(None) };
    for (flag, value) in
        [("--bandwidth", args.bandwidth), ("--latency", args.latency), ("--speed", args.speed)]
    {
        if !(value.is_finite() && value > 0.0) {
            return Err(bad_input(format!("{flag} is {value}; it must be a number > 0")));
        }
    }
    let network = Network { bandwidth: 1e9 * args.bandwidth, latency: 1e-6 * args.latency };
    let step = StepSize { dim, batch: args.batch, records_per_second: args.speed };
    let (asked, best) =
        (StepCost::of(step, network, ranks), StepCost::best(step, network, MOST_RANKS.max(ranks)));
    Ok(Some(Processes { asked, best }))
}

/// The largest number of processes that the model is asked about on its own.
const MOST_RANKS: u64 = 4096;

fn print_processes(Processes { asked, best }: &Processes) {
    println!("\na step over processes, by the model of docs/cluster.md (not measured):");
    println!("  processes   messages   kB a step   computing ms   link ms");
    for cost in [asked, best] {
        let StepCost { processes, messages, bytes, computing, link } = *cost;
        println!(
            "  {processes:>9}   {messages:>8}   {:>9.1}   {:>12.2}   {:>7.2}",
            bytes as f64 / 1e3,
            1e3 * computing,
            1e3 * link
        );
    }
    println!("  more than {} do not pay", best.processes);
}

/// The plan of a training with this target.
fn plan(args: &Args, epsilon: f64, steps: u64) -> anyhow::Result<Plan> {
    let (mechanism, dim) = args.release.mechanism()?;
    let mut params = PlanParams::default();
    params.privacy.mechanism = mechanism;
    params.privacy.epsilon = Some(epsilon);
    params.privacy.delta = Some(args.delta);
    params.train.batch = Some(args.batch);
    params.train.steps = Some(steps);
    params.train.learning_rate = Some(1.0);
    // DP's noise does not depend on the model's size.
    let facts = Facts { records: args.records, dim: dim.unwrap_or(1) as usize };
    params.check(facts).map_err(classify)
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
