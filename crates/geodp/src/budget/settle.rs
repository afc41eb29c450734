//! From parameters to a guarantee: what is given must fit together, and σ is given or calibrated.

use super::Accounting;
use crate::Error;
use crate::importance::Keep;
use crate::params::PrivacyParams;
use crate::plan::{DEFAULT_DELTA, DEFAULT_EPSILON, Facts, Noise, Strategies, refuse};
use crate::sampler::{Draw, Sampler, Sampling};
use crate::select::Select;
use geodp_account::{Arithmetic, Denominator, Kind};

/// Noise whose σ is settled, and how its steps are accounted.
pub(crate) struct Settled {
    pub(crate) noise: Noise,
    pub(crate) accounting: Accounting,
}

/// Checks the budget's parameters against each other and settles σ; `None` without privacy.
pub(crate) fn settle(
    privacy: &PrivacyParams,
    facts: Facts,
    batch: u64,
    steps: u64,
    strategies: &Strategies,
) -> Result<Option<Settled>, Error> {
    // σ = 1 stands in until it is settled.
    let Some(noise) = Noise::of(privacy.mechanism, 1.0, facts.dim) else {
        return refuse_leftovers(privacy).map(|()| None);
    };
    let delta = privacy.delta.unwrap_or(DEFAULT_DELTA);
    if !(delta > 0.0 && delta < 1.0) {
        return refuse(format!("delta is {delta}; it must lie strictly between 0 and 1"));
    }
    let unit_steps = match privacy.sampling {
        Sampling::Poisson => 1,
        Sampling::Shuffle => Sampler::steps_per_epoch(Sampling::Shuffle, facts.records, batch),
    };
    let importance = strategies.importance.as_ref();
    let rate = batch as f64 / facts.records as f64;
    let mut accounting = Accounting {
        delta,
        arithmetic: match noise.kind() {
            Kind::Certified => privacy.arithmetic.unwrap_or(Arithmetic::Exact),
            // GeoDP turns angles in floating point, whatever its sums are made of.
            _ => Arithmetic::FloatingPoint,
        },
        denominator: match importance {
            Some(importance) if importance.keep == Keep::All => Denominator::Candidates,
            _ => Denominator::Batch(batch),
        },
        budget: privacy.epsilon.or(privacy.epsilon_limit),
        draw: Draw {
            sampling: privacy.sampling,
            rate: importance.map_or(rate, |importance| importance.candidate_rate),
        },
        test: strategies.select.as_ref().map(Select::event),
        release: importance.map(|importance| (importance.release_event(), importance.refresh)),
        unit_steps,
        most_units: u64::MAX,
    };
    let units = steps.div_ceil(unit_steps);
    let noise = match noise {
        Noise::Polar { .. } if privacy.sampling == Sampling::Shuffle => {
            return refuse(
                "mechanism = \"geodp-certified\" allows for one record more or less, and shuffled \
                 batches exchange one for another. Use sampling = \"poisson\"",
            );
        }
        Noise::Polar { .. } => {
            noise.with_miss(delta, units, most_epsilon(privacy, &accounting, units)?)?
        }
        other => other,
    };
    let noise = noise.with_multiplier(noise_multiplier(privacy, &accounting, noise, units)?);
    if let Some(limit) = privacy.epsilon_limit {
        if privacy.epsilon.is_some() {
            return refuse("epsilon and epsilon_limit are both given; epsilon is a limit already");
        }
        accounting.most_units = accounting.units_within(&noise, limit, units)?;
        if accounting.most_units == 0 {
            return refuse(format!(
                "epsilon_limit {limit} does not allow a single step: with this noise the first one \
                 costs {}. Raise the limit or the noise",
                accounting.claim_of(&noise, 1)?.short()
            ));
        }
    }
    Ok(Some(Settled { noise, accounting }))
}

/// An ε that the run will not exceed: the target, or what Gaussian noise of the given σ costs, with a
/// margin for the share of δ that is set aside.
fn most_epsilon(
    privacy: &PrivacyParams,
    accounting: &Accounting,
    units: u64,
) -> Result<f64, Error> {
    let Some(multiplier) = privacy.noise_multiplier.filter(|sigma| *sigma > 0.0) else {
        return Ok(privacy.epsilon.unwrap_or(DEFAULT_EPSILON));
    };
    let gaussian = accounting.claim_of(&Noise::Gaussian { multiplier }, units)?.upper();
    Ok((1.01 * gaussian + 0.01).min(privacy.epsilon_limit.unwrap_or(f64::INFINITY)))
}

/// σ as given, or calibrated to the target.
fn noise_multiplier(
    privacy: &PrivacyParams,
    accounting: &Accounting,
    noise: Noise,
    units: u64,
) -> Result<f64, Error> {
    match (privacy.noise_multiplier, privacy.epsilon) {
        (Some(_), Some(_)) => refuse(
            "noise_multiplier and epsilon are both given: a target ε determines the noise. Give \
             one; to stop a run with a given noise_multiplier at an ε, use epsilon_limit",
        ),
        (Some(sigma), None) if sigma.is_finite() && sigma > 0.0 => Ok(sigma),
        (Some(sigma), None) => refuse(format!(
            "noise_multiplier is {sigma}; it must be finite and > 0 (mechanism = \"none\" adds \
             no noise)"
        )),
        (None, epsilon) => accounting.calibrate(epsilon.unwrap_or(DEFAULT_EPSILON), units, noise),
    }
}

/// Without a mechanism there is nothing to calibrate: parameters of privacy are mistakes.
fn refuse_leftovers(privacy: &PrivacyParams) -> Result<(), Error> {
    let given = [
        ("noise_multiplier", privacy.noise_multiplier),
        ("epsilon", privacy.epsilon),
        ("epsilon_limit", privacy.epsilon_limit),
    ];
    match given.iter().find(|(_, value)| value.is_some()) {
        Some((name, _)) => refuse(format!(
            "{name} is given, but mechanism = \"none\" adds no noise and has no privacy. Use \"dp\" \
             or \"geodp\", or leave {name} out"
        )),
        None => Ok(()),
    }
}
