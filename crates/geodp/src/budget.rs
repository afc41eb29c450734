//! What a plan buys: σ settled, the ledger's event, ε so far, and where a limit stops.
//!
//! | mechanism, sampling | one unit | its cost | kind |
//! |---|---|---|---|
//! | DP, Poisson | a step | sampled Gaussian(q, σ), add/remove | certified |
//! | DP, shuffle | an epoch | Gaussian(σ), replace-one (sensitivity 2C) | certified |
//! | GeoDP | the same | the same with σ/√2, if the assumption holds | conditional |
//! | with IS | a step, and a release of K | at the candidate rate; its own sampled Gaussian | |
//! | with SUR | a step with its test | both, whether the step is kept or not | |
//! | none | | none: ε = ∞ | |
//!
//! GeoDP's σ/√2: magnitude and direction are two Gaussian releases of the same records.

use crate::Error;
use crate::importance::Importance;
use crate::params::{MechanismKind, PrivacyParams};
use crate::plan::{DEFAULT_DELTA, DEFAULT_EPSILON, Facts, refuse};
use crate::sampler::{Sampler, Sampling};
use crate::select::Select;
use geodp_account::{Accountant, Adjacency, Bracket, Event, PldAccountant, calibrate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which kind an ε is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A theorem without assumptions about the data.
    Certified,
    /// A theorem under an assumption that nothing enforces.
    Conditional,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certified => "certified",
            Self::Conditional => "conditional",
        })
    }
}

/// An ε that says which kind it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EpsilonSoFar {
    /// Its kind.
    pub kind: Kind,
    /// The upper end of its bracket; `None` if nothing certifies a finite number.
    pub epsilon: Option<f64>,
    /// The δ it goes with.
    pub delta: f64,
}

impl fmt::Display for EpsilonSoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epsilon {
            Some(epsilon) => write!(f, "{} ε {epsilon:.3}", self.kind),
            None => write!(f, "{} ε ∞", self.kind),
        }
    }
}

/// What is bought, and how it is accounted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Guarantee {
    /// No noise, no privacy.
    None,
    /// Noise, with an account of it.
    Private(Accounting),
}

/// How the steps of a private plan are accounted.
#[derive(Debug, Clone, PartialEq)]
pub struct Accounting {
    pub(crate) kind: Kind,
    pub(crate) noise_multiplier: f64,
    pub(crate) beta: Option<f64>,
    pub(crate) dim: usize,
    pub(crate) delta: f64,
    /// Target or limit, where one was given.
    pub(crate) budget: Option<f64>,
    pub(crate) sampling: Sampling,
    /// Chance of a record to be in a step, at most.
    pub(crate) sample_rate: f64,
    /// What a step costs besides its gradient: SUR's test.
    pub(crate) test: Option<Event>,
    /// What is released once in so many steps: IS's K.
    pub(crate) release: Option<(Event, u64)>,
    /// Steps in one unit: 1 for Poisson, an epoch's for shuffle.
    pub(crate) unit_steps: u64,
    /// Units that fit the limit.
    pub(crate) most_units: u64,
}

/// Checks the budget's parameters against each other and settles σ.
pub(crate) fn settle(
    privacy: &PrivacyParams,
    facts: Facts,
    batch: u64,
    steps: u64,
    (importance, select): (Option<&Importance>, Option<&Select>),
) -> Result<Guarantee, Error> {
    let kind = match (privacy.mechanism, privacy.beta) {
        (MechanismKind::None, _) => return settle_none(privacy),
        (MechanismKind::Dp, None) => Kind::Certified,
        (MechanismKind::Dp, Some(beta)) => {
            return refuse(format!(
                "beta = {beta} is GeoDP's bounding factor; DP has none. Use mechanism = \"geodp\", \
                 or leave beta out"
            ));
        }
        (MechanismKind::Geodp, None) => {
            return refuse("mechanism = \"geodp\" needs beta, its bounding factor in (0, 1]");
        }
        (MechanismKind::Geodp, Some(_)) => Kind::Conditional,
    };
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
    accounting.noise_multiplier = match (privacy.noise_multiplier, privacy.epsilon) {
        (Some(_), Some(_)) => {
            return refuse(
                "noise_multiplier and epsilon are both given: a target ε determines the noise. Give \
                 one; to stop a run with a given noise_multiplier at an ε, use epsilon_limit",
            );
        }
        (Some(sigma), None) if sigma.is_finite() && sigma > 0.0 => sigma,
        (Some(sigma), None) => {
            return refuse(format!(
                "noise_multiplier is {sigma}; it must be finite and > 0 (mechanism = \"none\" adds \
                 no noise)"
            ));
        }
        (None, epsilon) => accounting.calibrate(epsilon.unwrap_or(DEFAULT_EPSILON), units)?,
    };
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

impl Guarantee {
    /// σ; `None` without privacy.
    pub fn noise_multiplier(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Private(accounting) => Some(accounting.noise_multiplier),
        }
    }

    /// Which kind its ε is of; `None` without privacy.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::None => None,
            Self::Private(accounting) => Some(accounting.kind),
        }
    }

    /// The target or limit that was given.
    pub fn budget(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Private(accounting) => accounting.budget,
        }
    }

    /// Adjacency and δ for the ledger's header; without privacy they say nothing.
    pub(crate) fn terms(&self) -> (Adjacency, f64) {
        match self {
            Self::None => (Adjacency::AddRemove, DEFAULT_DELTA),
            Self::Private(a) => (a.adjacency(), a.delta),
        }
    }

    /// ε after `steps` steps, with its kind; `None` without privacy.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn epsilon_so_far(&self, steps: u64) -> Result<Option<EpsilonSoFar>, Error> {
        let Self::Private(accounting) = self else { return Ok(None) };
        let epsilon = accounting.epsilon_of(accounting.units(steps))?.upper;
        Ok(Some(EpsilonSoFar {
            kind: accounting.kind,
            epsilon: epsilon.is_finite().then_some(epsilon),
            delta: accounting.delta,
        }))
    }

    /// The event (and its count) that pays for the steps from `from` to `to`, which are whole units.
    pub(crate) fn charge(&self, from: u64, to: u64) -> (Event, u64) {
        match self {
            Self::None => (Event::NoPrivacy, to - from),
            Self::Private(a) => a.cost(a.event(), from, to),
        }
    }

    /// How many of `steps` steps the limit allows.
    pub(crate) fn steps_within_limit(&self, steps: u64) -> u64 {
        match self {
            Self::None => steps,
            Self::Private(a) => steps.min(a.most_units.saturating_mul(a.unit_steps)),
        }
    }
}

impl Accounting {
    /// Units begun by `steps` steps.
    pub(crate) fn units(&self, steps: u64) -> u64 {
        steps.div_ceil(self.unit_steps)
    }

    /// Under which change of the data the guarantee holds.
    pub(crate) fn adjacency(&self) -> Adjacency {
        match self.sampling {
            Sampling::Poisson => Adjacency::AddRemove,
            Sampling::Shuffle => Adjacency::ReplaceOne,
        }
    }

    /// What the ledger records for a unit.
    pub(crate) fn event(&self) -> Event {
        let plain = self.gaussian_event(self.noise_multiplier);
        match self.beta {
            None => plain,
            Some(beta) => Event::geometric(plain, beta, self.dim as u64),
        }
    }

    fn gaussian_event(&self, noise_multiplier: f64) -> Event {
        match self.sampling {
            Sampling::Poisson => Event::sampled_gaussian(self.sample_rate, noise_multiplier),
            Sampling::Shuffle => Event::ShuffledEpoch { noise_multiplier },
        }
    }

    /// σ of the one Gaussian that a release of this kind amounts to.
    fn effective(&self, noise_multiplier: f64) -> f64 {
        match self.kind {
            Kind::Certified => noise_multiplier,
            Kind::Conditional => noise_multiplier / std::f64::consts::SQRT_2,
        }
    }

    /// What the steps from `from` to `to` cost if a unit's gradients cost `gradient`: an event and
    /// its count.
    fn cost(&self, gradient: Event, from: u64, to: u64) -> (Event, u64) {
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

    /// The accountant of every ε of a run: as fine as the one that calibrates, so that a calibrated
    /// run's statement stays within its target.
    pub(crate) fn accountant(&self) -> Result<PldAccountant, Error> {
        Ok(PldAccountant::new(self.adjacency()).with_width(calibrate::WIDTH)?)
    }

    /// ε of `units` units, of this accounting's kind.
    pub(crate) fn epsilon_of(&self, units: u64) -> Result<Bracket, Error> {
        Ok(self.account(self.effective(self.noise_multiplier), units)?.epsilon(self.delta)?)
    }

    /// ε of `units` units as GeoDP and SUR are published: each magnitude and direction one release
    /// of σ. For DP it is [`epsilon_of`](Self::epsilon_of).
    pub(crate) fn published_epsilon_of(&self, units: u64) -> Result<Bracket, Error> {
        Ok(self.account(self.noise_multiplier, units)?.epsilon(self.delta)?)
    }

    /// An accountant with `units` units at σ = `noise_multiplier` composed.
    pub(crate) fn account(
        &self,
        noise_multiplier: f64,
        units: u64,
    ) -> Result<PldAccountant, Error> {
        let mut accountant = self.accountant()?;
        let steps = units.saturating_mul(self.unit_steps);
        let (event, count) = self.cost(self.gaussian_event(noise_multiplier), 0, steps);
        accountant.compose(&event, count)?;
        Ok(accountant)
    }

    /// Smallest σ whose ε over `units` units stays within `epsilon`.
    fn calibrate(&self, epsilon: f64, units: u64) -> Result<f64, Error> {
        let steps = units.saturating_mul(self.unit_steps);
        if self.test.is_some() || self.release.is_some() {
            let rest = self.account(f64::MAX.sqrt(), units)?.epsilon(self.delta)?.upper;
            if rest >= epsilon {
                return refuse(format!(
                    "epsilon {epsilon} is out of reach: the releases besides the gradients (SUR's \
                     tests, IS's norms) alone cost ε = {rest:.3} over {steps} steps. Give them more \
                     noise (select.noise_multiplier, importance.noise_multiplier), or take fewer \
                     steps"
                ));
            }
        }
        let event = |sigma: f64| {
            let (event, count) = self.cost(self.gaussian_event(self.effective(sigma)), 0, steps);
            event.repeated(count)
        };
        Ok(calibrate::noise_multiplier(epsilon, self.delta, self.adjacency(), event)?)
    }

    /// Largest number of units, at most `units`, whose ε stays within `limit`.
    fn units_within(&self, limit: f64, units: u64) -> Result<u64, Error> {
        if !(limit.is_finite() && limit > 0.0) {
            return refuse(format!("epsilon_limit is {limit}; it must be finite and > 0"));
        }
        let (mut fits, mut exceeds) = (0, units + 1);
        while exceeds - fits > 1 {
            let middle = fits + (exceeds - fits) / 2;
            if self.epsilon_of(middle)?.upper <= limit { fits = middle } else { exceeds = middle }
        }
        Ok(fits)
    }
}
