//! `geodp account`: what a run's noise, rate and steps cost.
//!
//! The events are those a training would write into its ledger, and the claims are made of them in the
//! same place. DP-SGD's and certified GeoDP's is certified; GeoDP's are not.

use crate::failure::{bad_input, classify};
use geodp::plan::Noise;
use geodp::sampler::{Draw, Sampling};
use geodp_account::{
    Account, Adjacency, Arithmetic, Claim, Denominator, Event, Kind, Method, Terms, delta_of_misses,
};
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
    /// Accountant: pld (tight, both ends) or rdp (upper end only).
    #[arg(long, value_name = "NAME", default_value = "pld", value_parser = parse::<Method>)]
    accountant: Method,
    /// Neighbouring data sets: zero-out (a record made blank), add-remove or replace-one.
    #[arg(long, value_name = "NAME", default_value = "zero-out", value_parser = parse::<Adjacency>)]
    adjacency: Adjacency,
    #[command(flatten)]
    release: Release,
}

/// What a step releases: shared with `plan`.
#[derive(Debug, clap::Args)]
pub(crate) struct Release {
    /// Mechanism: dp, geodp or geodp-certified.
    #[arg(long, value_parser = ["dp", "geodp", "geodp-certified"], default_value = "dp",
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

impl Release {
    /// The mechanism with its β, and d where it needs one.
    pub(crate) fn mechanism(&self) -> anyhow::Result<(Mechanism, Option<u64>)> {
        let mechanism = Mechanism::named(&self.mechanism, self.beta).map_err(bad_input)?;
        match (mechanism.beta(), self.dim) {
            (Some(_), None) => Err(bad_input("--mechanism geodp needs --dim")),
            (None, Some(_)) => Err(bad_input("--dim is GeoDP's: add --mechanism geodp")),
            (_, dim) => Ok((mechanism, dim)),
        }
    }

    /// The noise with multiplier σ.
    fn noise(&self, sigma: f64) -> anyhow::Result<Option<Noise>> {
        let (mechanism, dim) = self.mechanism()?;
        Ok(Noise::of(mechanism, sigma, dim.unwrap_or(0) as usize))
    }
}

#[derive(Serialize)]
struct Report {
    accountant: Method,
    adjacency: Adjacency,
    sample_rate: f64,
    noise_multiplier: f64,
    steps: u64,
    delta: f64,
    claims: Vec<Claim>,
    /// The part of δ that covers releases beyond the Gaussian; certified GeoDP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_of_misses: Option<f64>,
}

/// (1 + e^ε)·T·δ₁ of a certified claim: the part of δ that covers steps which release more than their
/// Gaussian accounts for.
pub(crate) fn misses(noise: Option<&Noise>, steps: u64, claims: &[Claim]) -> Option<f64> {
    let miss = noise.map(Noise::miss).filter(|miss| *miss > 0.0)?;
    Some(delta_of_misses(miss * steps as f64, claims.first()?.upper()))
}

/// One line for each claim, with its kind; then where the truth lies and what is assumed.
pub(crate) fn print(claims: &[Claim], delta_of_misses: Option<f64>) {
    for claim in claims {
        println!("{claim}");
        println!("  the truth lies in {}", claim.epsilon());
        if let Some(delta) = delta_of_misses {
            println!(
                "  of δ, {delta:.1e} covers steps whose public radius is not below the private one"
            );
        }
        if let Some(assumption) = claim.assumption() {
            println!("  if {assumption}");
        }
    }
    match claims.first() {
        Some(claim) if claim.kind() == Kind::Certified => {}
        _ => println!("GeoDP has no certified epsilon."),
    }
}

pub(crate) fn run(args: Args, json: bool) -> anyhow::Result<()> {
    let (sample_rate, noise_multiplier) = (args.sample_rate, args.noise_multiplier);
    let terms = Terms {
        adjacency: args.adjacency,
        delta: args.delta,
        arithmetic: Arithmetic::FloatingPoint,
        denominator: Denominator::ExpectedBatch,
        noise_draws: 0,
    };
    let draw = Draw { sampling: Sampling::Poisson, rate: sample_rate };
    let claims_of = |noise: &Option<Noise>| {
        let event = noise.map_or(Event::NoPrivacy, |noise| noise.event(draw));
        let mut account = Account::new(terms).with_method(args.accountant);
        account.charge(&event, args.steps)?;
        account.claims()
    };
    let noise = match args.release.noise(noise_multiplier)? {
        // The chance of a miss follows from what the same σ costs without.
        Some(noise) if noise.mechanism().is_polar() => {
            let gaussian = Some(Noise::Gaussian { multiplier: noise_multiplier });
            let claims = claims_of(&gaussian).map_err(bad_input)?;
            let epsilon = claims.first().map_or(f64::INFINITY, Claim::upper);
            Some(noise.with_miss_beside(args.delta, args.steps, epsilon).map_err(classify)?)
        }
        other => other,
    };
    let claims = claims_of(&noise).map_err(bad_input)?;
    let delta_of_misses = misses(noise.as_ref(), args.steps, &claims);
    if !json {
        print(&claims, delta_of_misses);
        return Ok(());
    }
    let report = Report {
        accountant: args.accountant,
        adjacency: args.adjacency,
        sample_rate,
        noise_multiplier,
        steps: args.steps,
        delta: args.delta,
        claims,
        delta_of_misses,
    };
    println!("{}", serde_json::to_string_pretty(&report)?);
    Ok(())
}
