//! How the steps of a private plan are accounted: events for the ledger, ε of so many units, the σ of
//! a target and the steps of a limit, all from the one cost of a stretch of steps.

use crate::Error;
use crate::plan::{Noise, refuse};
use crate::sampler::Draw;
use geodp_account::{Account, Adjacency, Arithmetic, Claim, Denominator, Event, Terms, calibrate};

/// How the steps of a private plan are accounted.
#[derive(Debug, Clone, PartialEq)]
pub struct Accounting {
    pub(crate) delta: f64,
    /// In which arithmetic the claims hold.
    pub(crate) arithmetic: Arithmetic,
    /// What sums are divided by.
    pub(crate) denominator: Denominator,
    /// Draws of noise of the whole run, at most.
    pub(crate) noise_draws: u64,
    /// Target or limit, where one was given.
    pub(crate) budget: Option<f64>,
    /// How records come into steps.
    pub(crate) draw: Draw,
    /// What a step costs besides its gradient: SUR's test.
    pub(crate) test: Option<Event>,
    /// What is released once in so many steps: IS's K.
    pub(crate) release: Option<(Event, u64)>,
    /// What is released at the end: a noisy accuracy.
    pub(crate) accuracy: Option<Event>,
    /// Steps in one unit: 1 for Poisson, an epoch's for shuffle.
    pub(crate) unit_steps: u64,
    /// Units that fit the limit.
    pub(crate) most_units: u64,
}

impl Accounting {
    /// Units begun by `steps` steps.
    pub(crate) fn units(&self, steps: u64) -> u64 {
        steps.div_ceil(self.unit_steps)
    }

    /// Under which change of the data the guarantee holds.
    pub(crate) fn adjacency(&self) -> Adjacency {
        self.draw.adjacency()
    }

    /// What its claims share.
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            adjacency: self.adjacency(),
            delta: self.delta,
            arithmetic: self.arithmetic,
            denominator: self.denominator,
            noise_draws: self.noise_draws,
        }
    }

    /// What the steps from `from` to `to` cost if a unit's gradients cost `gradient`: an event and
    /// its count.
    pub(crate) fn cost(&self, gradient: Event, from: u64, to: u64) -> (Event, u64) {
        let units = self.units(to) - self.units(from);
        let unit = match &self.test {
            None => gradient,
            Some(test) => Event::composed(vec![gradient, test.clone()]),
        };
        let Some((release, every)) = &self.release else { return (unit, units) };
        match to.div_ceil(*every) - from.div_ceil(*every) {
            0 => (unit, units),
            count => {
                let all = vec![unit.repeated(units), release.clone().repeated(count)];
                (Event::composed(all), 1)
            }
        }
    }

    /// An account with `units` units of this noise charged, by the accountant that calibrates: a
    /// calibrated run's statement stays within its target.
    pub(crate) fn account(&self, noise: &Noise, units: u64) -> Result<Account, Error> {
        let mut account = Account::new(self.terms());
        let steps = units.saturating_mul(self.unit_steps);
        let (event, count) = self.cost(noise.event(self.draw), 0, steps);
        account.charge(&event, count)?;
        if let Some(accuracy) = &self.accuracy {
            account.charge(accuracy, 1)?;
        }
        Ok(account)
    }

    /// The claim about `units` units of this noise.
    pub(crate) fn claim_of(&self, noise: &Noise, units: u64) -> Result<Claim, Error> {
        Ok(self.account(noise, units)?.claim()?)
    }

    /// Smallest σ of noise like this whose ε over `units` units stays within `epsilon`.
    pub(super) fn calibrate(&self, epsilon: f64, units: u64, noise: Noise) -> Result<f64, Error> {
        let steps = units.saturating_mul(self.unit_steps);
        if self.test.is_some() || self.release.is_some() || self.accuracy.is_some() {
            let rest = self.claim_of(&noise.with_multiplier(f64::MAX.sqrt()), units)?;
            if rest.upper() >= epsilon {
                return refuse(format!(
                    "epsilon {epsilon} is out of reach: the releases besides the gradients (SUR's \
                     tests, IS's norms, the accuracy) alone cost {} over {steps} steps. Give them more noise \
                     (select.noise_multiplier, importance.noise_multiplier), or take fewer steps",
                    rest.short()
                ));
            }
        }
        let event = |sigma: f64| {
            let gradient = noise.with_multiplier(sigma).event(self.draw);
            let (event, count) = self.cost(gradient, 0, steps);
            // What could not be read would count as a release without noise.
            let steps = event.as_two_releases().unwrap_or(Event::NoPrivacy).repeated(count);
            match &self.accuracy {
                None => steps,
                Some(accuracy) => Event::composed(vec![steps, accuracy.clone()]),
            }
        };
        // The noise's left-over takes a part of δ; where ε is large, a larger one.
        let [most, least] = self.terms().accounted_deltas();
        let sigma = calibrate::noise_multiplier(epsilon, most, self.adjacency(), event)?;
        if self.claim_of(&noise.with_multiplier(sigma), units)?.upper() <= epsilon {
            return Ok(sigma);
        }
        let sigma = calibrate::noise_multiplier(epsilon, least, self.adjacency(), event)?;
        match self.claim_of(&noise.with_multiplier(sigma), units)? {
            claim if claim.upper() <= epsilon => Ok(sigma),
            claim => refuse(format!("epsilon {epsilon} is out of reach: {claim}")),
        }
    }

    /// Largest number of units, at most `units`, whose ε stays within `limit`.
    pub(super) fn units_within(&self, noise: &Noise, limit: f64, units: u64) -> Result<u64, Error> {
        if !(limit.is_finite() && limit > 0.0) {
            return refuse(format!("epsilon_limit is {limit}; it must be finite and > 0"));
        }
        let (mut fits, mut exceeds) = (0, units + 1);
        while exceeds - fits > 1 {
            let middle = fits + (exceeds - fits) / 2;
            if self.claim_of(noise, middle)?.upper() <= limit {
                fits = middle;
            } else {
                exceeds = middle;
            }
        }
        Ok(fits)
    }
}
