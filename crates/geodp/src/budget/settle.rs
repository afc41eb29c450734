//! From parameters to a guarantee: what is given must fit together, and σ is given or calibrated.

use super::Accounting;
use crate::Error;
use crate::importance::Keep;
use crate::params::PrivacyParams;
use crate::plan::{DEFAULT_DELTA, DEFAULT_EPSILON, Facts, Noise, Strategies, refuse};
use crate::sampler::{Draw, Sampler, Sampling};
use crate::select::Select;
use geodp_account::{Arithmetic, Denominator, Event, Kind};
use geodp_mechanism::noise::{Coins, most_left_over};

/// Noise whose σ is settled, and how its steps are accounted.
pub(crate) struct Settled {
    pub(crate) noise: Noise,
    pub(crate) accounting: Accounting,
}

/// Draws of a step that may differ from their law, each by the arithmetic's left-over.
fn draws_of_a_step(
    facts: Facts,
    batch: u64,
    strategies: &Strategies,
    arithmetic: Arithmetic,
) -> u64 {
    // Coordinates or magnitude and angles, SUR's test, IS's K.
    let noise = facts.dim as u64 + 3;
    let coins = match arithmetic {
        // Coins err by 2⁻¹²⁷: a thousand million of them less than one normal in floating point.
        Arithmetic::FloatingPoint => 1,
        Arithmetic::Exact => {
            let others =
                u64::from(strategies.importance.is_some()) + u64::from(strategies.select.is_some());
            Coins::of_count(batch as u32, facts.records as u32).left_over()
                + others * most_left_over(facts.records)
        }
    };
    noise.saturating_add(coins)
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
    let rate = rate_up(batch, facts.records);
    let arithmetic = match noise.kind() {
        Kind::Certified => privacy.arithmetic.unwrap_or(Arithmetic::Exact),
        // GeoDP turns angles in floating point, whatever its sums are made of.
        _ => Arithmetic::FloatingPoint,
    };
    let mut accounting = Accounting {
        delta,
        arithmetic,
        denominator: match importance {
            Some(importance) if importance.keep == Keep::All => Denominator::Candidates,
            _ => Denominator::Batch(batch),
        },
        noise_draws: steps.saturating_mul(draws_of_a_step(facts, batch, strategies, arithmetic)),
        budget: privacy.epsilon.or(privacy.epsilon_limit),
        draw: Draw {
            sampling: privacy.sampling,
            rate: importance.map_or(rate, |importance| importance.candidate_rate),
        },
        test: strategies.select.as_ref().map(Select::event),
        release: importance.map(|importance| (importance.release_event(), importance.refresh)),
        accuracy: privacy.release_accuracy.map(|e| accuracy_event(e, delta)).transpose()?,
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
        Noise::Polar { .. } => polar_noise(noise, privacy, &accounting, units)?,
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

/// Certified GeoDP's noise with δ₁ settled for an ε that the run will not exceed: the target or the
/// limit, or a little more than what Gaussian noise of the given σ costs.
fn polar_noise(
    noise: Noise,
    privacy: &PrivacyParams,
    accounting: &Accounting,
    units: u64,
) -> Result<Noise, Error> {
    let delta = accounting.delta;
    let Some(multiplier) = privacy.noise_multiplier.filter(|sigma| *sigma > 0.0) else {
        return noise.with_miss(delta, units, privacy.epsilon.unwrap_or(DEFAULT_EPSILON));
    };
    let gaussian = accounting.claim_of(&Noise::Gaussian { multiplier }, units)?.upper();
    match privacy.epsilon_limit {
        Some(limit) if limit < gaussian => noise.with_miss(delta, units, limit),
        _ => noise.with_miss_beside(delta, units, gaussian),
    }
}

/// A release of the number of right answers, to which a record contributes 0 or 1.
fn accuracy_event(epsilon: f64, delta: f64) -> Result<Event, Error> {
    if !(epsilon.is_finite() && epsilon > 0.0) {
        return refuse(format!("release_accuracy is {epsilon}; it must be finite and > 0"));
    }
    Ok(Event::gaussian(geodp_account::analytic_gaussian_sigma(epsilon, delta)?))
}

/// The least f64 that is not below B/N: what is charged is never below what happens.
fn rate_up(batch: u64, records: u64) -> f64 {
    let rate = batch as f64 / records as f64;
    // Both are below 2⁵³, and a fused multiply-add has the sign of the exact difference.
    if rate.mul_add(records as f64, -(batch as f64)) < 0.0 { rate.next_up() } else { rate }
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
        ("release_accuracy", privacy.release_accuracy),
    ];
    match given.iter().find(|(_, value)| value.is_some()) {
        Some((name, _)) => refuse(format!(
            "{name} is given, but mechanism = \"none\" adds no noise and has no privacy. Use \"dp\" \
             or \"geodp\", or leave {name} out"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::rate_up;

    /// q·N ≥ B in integers, and no f64 below q has that.
    #[test]
    fn rates_are_rounded_up() {
        let at_least = |rate: f64, batch: u64, records: u64| {
            // rate = mantissa·2^exponent; compare mantissa·N with B·2^−exponent.
            let bits = rate.to_bits();
            let exponent = (bits >> 52) as i32 - 1075;
            let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
            mantissa * u128::from(records) >= u128::from(batch) << (-exponent).min(100)
        };
        let mut rounded = 0;
        for (batch, records) in (1..400).flat_map(|n| (1..n).map(move |b| (b, n))) {
            let rate = rate_up(batch, records);
            assert!(at_least(rate, batch, records), "{batch}/{records}");
            assert!(!at_least(rate.next_down(), batch, records), "{batch}/{records}");
            rounded += u32::from(rate != batch as f64 / records as f64);
        }
        assert!(rounded > 1000, "{rounded}");
        assert_eq!(rate_up(7, 7), 1.0);
    }
}
