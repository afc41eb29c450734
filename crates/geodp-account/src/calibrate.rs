//! The questions turned round: how much noise, how many steps, what rate a target buys.
//!
//! # Guarantee
//! The upper end of the result's ε, by a [`PldAccountant`] as it comes, never exceeds
//! the target, and is within 0.1 % of it unless the parameter is at the end of its
//! range or whole: the search compares brackets of the very accountant that will be
//! asked. ε rises with 1/σ, T and q, so each search is for the largest parameter that
//! fits. It starts where the Rényi bound, which is cheap and never below, reaches the target.

use crate::error::{check_delta, check_epsilon};
use crate::{Accountant, Adjacency, Error, Event, MOST_STEPS, PldAccountant, RdpAccountant};

/// Noise multipliers searched.
const SIGMAS: (f64, f64) = (1e-3, 1e7);
/// Sample rates searched.
const RATES: (f64, f64) = (1e-12, 1.0);
/// A fitting ε this close to its target ends the search.
const CLOSE: f64 = 0.9994;

/// The target and how to ask for it.
struct Target {
    epsilon: f64,
    delta: f64,
    tight: PldAccountant,
    adjacency: Adjacency,
}

impl Target {
    fn new(epsilon: f64, delta: f64, adjacency: Adjacency) -> Result<Self, Error> {
        check_epsilon(epsilon)?;
        check_delta(delta)?;
        let tight = PldAccountant::new(adjacency);
        Ok(Self { epsilon, delta, tight, adjacency })
    }

    fn tight(&self, event: &Event, count: u64) -> Result<f64, Error> {
        let mut accountant = self.tight.clone();
        accountant.compose(event, count)?;
        Ok(accountant.epsilon(self.delta)?.upper)
    }

    fn quick(&self, event: &Event, count: u64) -> Result<f64, Error> {
        let mut accountant = RdpAccountant::new(self.adjacency);
        accountant.compose(event, count)?;
        Ok(accountant.epsilon(self.delta)?.upper)
    }

    fn unreachable(&self, parameter: &'static str, (low, high): (f64, f64)) -> Error {
        Error::Unreachable { parameter, low, high, epsilon: self.epsilon, delta: self.delta }
    }

    /// The largest x in the range whose ε fits, `None` if none does: first by the Rényi
    /// bound, roughly, then from there by the tight accountant.
    fn largest(
        &self,
        range: (f64, f64),
        resolution: f64,
        event: impl Fn(f64) -> (Event, u64),
    ) -> Result<Option<f64>, Error> {
        let quick = |x: f64| {
            let (event, count) = event(x);
            self.quick(&event, count)
        };
        let tight = |x: f64| {
            let (event, count) = event(x);
            self.tight(&event, count)
        };
        let start =
            largest_fitting(self.epsilon, range, None, 0.9, resolution, quick)?.unwrap_or(range.0);
        largest_fitting(self.epsilon, range, Some(start), CLOSE, resolution, tight)
    }
}

/// The smallest noise multiplier σ at which the event fits (ε, δ).
///
/// `event` gives the whole run for a σ; its ε must fall in σ.
pub fn noise_multiplier(
    epsilon: f64,
    delta: f64,
    adjacency: Adjacency,
    event: impl Fn(f64) -> Event,
) -> Result<f64, Error> {
    let target = Target::new(epsilon, delta, adjacency)?;
    let range = (1.0 / SIGMAS.1, 1.0 / SIGMAS.0);
    match target.largest(range, 0.0, |precision| (event(1.0 / precision), 1))? {
        Some(precision) => Ok(1.0 / precision),
        None => Err(target.unreachable("noise multiplier", SIGMAS)),
    }
}

/// The largest number of times `event` fits (ε, δ); 0 if not even once, and
/// [`MOST_STEPS`] if it costs nothing.
pub fn steps(epsilon: f64, delta: f64, adjacency: Adjacency, event: &Event) -> Result<u64, Error> {
    let target = Target::new(epsilon, delta, adjacency)?;
    let range = (1.0, MOST_STEPS as f64);
    let found = target.largest(range, 1.0, |count| (event.clone(), count as u64))?;
    Ok(found.map_or(0, |count| count as u64))
}

/// The largest sample rate q at which the event fits (ε, δ).
///
/// `event` gives the whole run for a q; its ε must rise in q.
pub fn sample_rate(
    epsilon: f64,
    delta: f64,
    adjacency: Adjacency,
    event: impl Fn(f64) -> Event,
) -> Result<f64, Error> {
    let target = Target::new(epsilon, delta, adjacency)?;
    match target.largest(RATES, 0.0, |rate| (event(rate), 1))? {
        Some(rate) => Ok(rate),
        None => Err(target.unreachable("sample rate", RATES)),
    }
}

/// The largest x of the range with f(x) ≤ target for a rising f, as far as the
/// search resolves it: it ends once a fitting value is at least `close`·target, or
/// at neighbours; a `resolution` of 1 asks at whole numbers only.
fn largest_fitting(
    target: f64,
    (low, high): (f64, f64),
    start: Option<f64>,
    close: f64,
    resolution: f64,
    function: impl Fn(f64) -> Result<f64, Error>,
) -> Result<Option<f64>, Error> {
    let start = start.unwrap_or((low * high).sqrt()).clamp(low, high);
    let start = if resolution == 1.0 { start.floor() } else { start };
    let value = function(start)?;
    let (mut fits, mut exceeds) = (None, None);
    if value <= target {
        fits = Some((start, value));
    } else {
        exceeds = Some((start, value));
    }
    // Step outwards until both sides are known or the range ends.
    let mut factor = 1.1f64;
    while fits.is_none() || exceeds.is_none() {
        let (from, end) = match (fits, exceeds) {
            (Some((x, value)), _) if value >= close * target => return Ok(Some(x)),
            (Some((x, _)), _) => (x, high),
            (None, Some((x, _))) => (x, low),
            (None, None) => return Ok(None),
        };
        if from == end {
            return Ok(fits.map(|(x, _)| x));
        }
        let next = if end == high { (from * factor).min(high) } else { (from / factor).max(low) };
        let next = if resolution == 1.0 { next.round().max(low) } else { next };
        let value = function(next)?;
        if value <= target {
            fits = Some((next, value));
        } else {
            exceeds = Some((next, value));
        }
        factor *= factor.min(100.0);
    }
    let (Some(mut below), Some(mut above)) = (fits, exceeds) else {
        return Ok(fits.map(|(x, _)| x));
    };
    for round in 0..80 {
        if below.1 >= close * target
            || above.0 <= below.0 * (1.0 + 1e-12)
            || above.0 - below.0 <= resolution
        {
            break;
        }
        // False position towards a value just below the target; halving every third time.
        let (ln_below, ln_above) = (below.0.ln(), above.0.ln());
        let share = (0.5 * (1.0 + close) * target - below.1) / (above.1 - below.1);
        let share =
            if round % 3 == 2 || !share.is_finite() { 0.5 } else { share.clamp(0.02, 0.98) };
        let next = (ln_below + share * (ln_above - ln_below)).exp();
        // Whole numbers strictly between, where only those count.
        let next = if resolution == 1.0 {
            next.floor().max(below.0 + 1.0).min(above.0 - 1.0)
        } else {
            next
        };
        let value = function(next)?;
        if value <= target {
            below = (next, value);
        } else {
            above = (next, value);
        }
    }
    Ok(Some(below.0))
}
