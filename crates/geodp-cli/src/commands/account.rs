//! `geodp account`: what a run's noise, rate and steps cost.
//!
//! DP-SGD has a certified ε, printed as a bracket whose upper end is the claim. GeoDP has none:
//! its statement is printed instead.

use crate::failure::bad_input;
use geodp_account::{Adjacency, Bracket, Certified, Event, GeoDpStatement, Method, Statement};
use geodp_mechanism::Mechanism;
use serde::Serialize;

/// Say what epsilon a noise multiplier, a sample rate and a number of steps cost.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: geodp account --sample-rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5"
)]
pub(crate) struct Args {
    /// Poisson sampling probability q of a record, in [0, 1].
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    sample_rate: f64,
    /// Noise multiplier: noise std over clipping threshold.
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    noise_multiplier: f64,
    /// Number of steps.
    #[arg(long, value_name = "T")]
    steps: u64,
    /// Delta, strictly between 0 and 1.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: f64,
    #[command(flatten)]
    how: How,
}

/// How to account: shared with `plan`.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// Accountant: pld (tight, both ends) or rdp (upper end only).
    #[arg(long, value_name = "NAME", default_value = "pld", value_parser = parse::<Method>)]
    pub(crate) accountant: Method,
    /// Neighbouring data sets: add-remove or replace-one.
    #[arg(long, value_name = "NAME", default_value = "add-remove", value_parser = parse::<Adjacency>)]
    pub(crate) adjacency: Adjacency,
    /// Mechanism: dp or geodp.
    #[arg(long, value_parser = ["dp", "geodp"], default_value = "dp",
          requires_ifs = [("geodp", "beta"), ("geodp", "dim")])]
    mechanism: String,
    /// GeoDP's bounding factor, in (0, 1].
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    beta: Option<f64>,
    /// Number of parameters of the model, for GeoDP.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..))]
    dim: Option<u64>,
}

fn parse<T: std::str::FromStr<Err = geodp_account::Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: geodp_account::Error| error.to_string())
}

#[derive(Serialize)]
struct Report {
    accountant: Method,
    adjacency: Adjacency,
    sample_rate: f64,
    noise_multiplier: f64,
    steps: u64,
    delta: f64,
    #[serde(flatten)]
    outcome: Outcome,
}

/// What a run costs: one certified ε, or GeoDP's statement.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Outcome {
    Certified { epsilon: Bracket, kind: &'static str },
    GeoDp { statement: GeoDpStatement },
}

impl How {
    /// The mechanism, with its β.
    pub(crate) fn mechanism(&self) -> anyhow::Result<Mechanism> {
        Mechanism::named(&self.mechanism, self.beta).map_err(bad_input)
    }

    /// Accounts `steps` steps at rate q with multiplier σ.
    pub(crate) fn outcome(
        &self,
        rate: f64,
        sigma: f64,
        steps: u64,
        delta: f64,
    ) -> anyhow::Result<Outcome> {
        let plain = Event::sampled_gaussian(rate, sigma);
        match (self.mechanism()?, self.dim) {
            (Mechanism::Geodp { beta }, Some(dim)) => {
                let event = Event::geometric(plain, beta, dim);
                let statement =
                    GeoDpStatement::new(&event, steps, delta, self.adjacency, self.accountant)
                        .map_err(bad_input)?;
                Ok(Outcome::GeoDp { statement })
            }
            (Mechanism::Geodp { .. }, None) => Err(bad_input("--mechanism geodp needs --dim")),
            (Mechanism::None, _) => Err(bad_input("--mechanism none has no epsilon")),
            (Mechanism::Dp, None) => {
                let mut accountant = self.accountant.accountant(self.adjacency);
                accountant.compose(&plain, steps).map_err(bad_input)?;
                let epsilon =
                    Certified::by(accountant.as_ref(), delta).map_err(bad_input)?.epsilon();
                Ok(Outcome::Certified { epsilon, kind: "certified" })
            }
            (Mechanism::Dp, Some(_)) => Err(bad_input("--dim is GeoDP's: add --mechanism geodp")),
        }
    }
}

impl Outcome {
    /// One line a claim, each with its kind.
    pub(crate) fn print(&self, delta: f64) {
        match self {
            Outcome::Certified { epsilon, kind } => {
                println!("{kind}: epsilon {:.4} at delta {delta:e}", epsilon.upper);
                println!("  the truth lies in {epsilon}");
            }
            Outcome::GeoDp { statement } => {
                println!("{}", Statement::AsPublished(statement.as_published));
                println!("{}", statement.conditional);
                println!("GeoDP has no certified epsilon.");
            }
        }
    }
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let (sample_rate, noise_multiplier) = (args.sample_rate, args.noise_multiplier);
    let outcome = args.how.outcome(sample_rate, noise_multiplier, args.steps, args.delta)?;
    if json {
        let report = Report {
            accountant: args.how.accountant,
            adjacency: args.how.adjacency,
            sample_rate,
            noise_multiplier,
            steps: args.steps,
            delta: args.delta,
            outcome,
        };
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        outcome.print(args.delta);
    }
    Ok(())
}
