//! From parameters to a guarantee: what is given must fit together, and σ is given or calibrated.

use super::{Accounting, Guarantee, Kind};
use crate::Error;
use crate::importance::Importance;
use crate::params::{MechanismKind, PrivacyParams};
use crate::plan::{DEFAULT_DELTA, DEFAULT_EPSILON, Facts, refuse};
use crate::sampler::{Sampler, Sampling};
use crate::select::Select;

/// Checks the budget's parameters against each other and settles σ.
pub(crate) fn settle(
    privacy: &PrivacyParams,
    facts: Facts,
    batch: u64,
    steps: u64,
    (importance, select): (Option<&Importance>, Option<&Select>),
) -> Result<Guarantee, Error> {
    let Some(kind) = kind_of(privacy)? else { return settle_none(privacy) };
    let delta = privacy.delta.unwrap_or(DEFAULT_DELTA);
    if !(delta > 0.0 && delta < 1.0) {
        return refuse(format!("delta is {delta}; it must lie strictly between 0 and 1"));
    }
    let unit_steps = match privacy.sampling {
        Sampling::Poisson => 1,
        Sampling::Shuffle => Sampler::steps_per_epoch(Sampling::Shuffle, facts.records, batch),
    };
    let mut accounting = Accounting {
        kind,
        noise_multiplier: 0.0,
        beta: privacy.beta,
        dim: facts.dim,
        delta,
        budget: privacy.epsilon.or(privacy.epsilon_limit),
        sampling: privacy.sampling,
        sample_rate: importance
            .map_or(batch as f64 / facts.records as f64, |importance| importance.candidate_rate),
        test: select.map(Select::event),
        release: importance.map(|importance| (importance.release_event(), importance.refresh)),
        unit_steps,
        most_units: u64::MAX,
    };
    let units = steps.div_ceil(unit_steps);
    accounting.noise_multiplier = noise_multiplier(privacy, &accounting, units)?;
    if let Some(limit) = privacy.epsilon_limit {
        if privacy.epsilon.is_some() {
            return refuse("epsilon and epsilon_limit are both given; epsilon is a limit already");
        }
        accounting.most_units = accounting.units_within(limit, units)?;
        if accounting.most_units == 0 {
            let first = accounting.epsilon_of(1)?.upper;
            return refuse(format!(
                "epsilon_limit {limit} does not allow a single step: with this noise the first one \
                 costs {kind} ε = {first:.3}. Raise the limit or the noise"
            ));
        }
    }
    Ok(Guarantee::Private(accounting))
}

/// The kind of ε that a mechanism buys; `None` without one.
fn kind_of(privacy: &PrivacyParams) -> Result<Option<Kind>, Error> {
    match (privacy.mechanism, privacy.beta) {
        (MechanismKind::None, _) => Ok(None),
        (MechanismKind::Dp, None) => Ok(Some(Kind::Certified)),
        (MechanismKind::Geodp, Some(_)) => Ok(Some(Kind::Conditional)),
        (MechanismKind::Dp, Some(beta)) => refuse(format!(
            "beta = {beta} is GeoDP's bounding factor; DP has none. Use mechanism = \"geodp\", \
             or leave beta out"
        )),
        (MechanismKind::Geodp, None) => {
            refuse("mechanism = \"geodp\" needs beta, its bounding factor in (0, 1]")
        }
    }
}

/// σ as given, or calibrated to the target.
fn noise_multiplier(
    privacy: &PrivacyParams,
    accounting: &Accounting,
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
        (None, epsilon) => accounting.calibrate(epsilon.unwrap_or(DEFAULT_EPSILON), units),
    }
}

/// Without a mechanism there is nothing to calibrate: parameters of privacy are mistakes.
fn settle_none(privacy: &PrivacyParams) -> Result<Guarantee, Error> {
    let given = [
        ("beta", privacy.beta),
        ("noise_multiplier", privacy.noise_multiplier),
        ("epsilon", privacy.epsilon),
        ("epsilon_limit", privacy.epsilon_limit),
    ];
    match given.iter().find(|(_, value)| value.is_some()) {
        Some((name, _)) => refuse(format!(
            "{name} is given, but mechanism = \"none\" adds no noise and has no privacy. Use \"dp\" \
             or \"geodp\", or leave {name} out"
        )),
        None => Ok(Guarantee::None),
    }
}
