//! From events to claims: everything that was charged, and what may be said of it.
//!
//! | among the events | claims |
//! |---|---|
//! | a release without noise | no privacy |
//! | GeoDP's release | conditional: each counted as two Gaussians, σ/√2; as published: as one |
//! | neither | certified |
//!
//! The noise of a machine is not quite a Gaussian: m draws are within m·τ of the theorem's in total
//! variation, which costs (1 + e^ε)·m·τ of δ. A thousandth of δ is kept for that, half of it where ε is
//! large, and where even that does not do, nothing is certified.
//!
//! A ledger, a plan and `geodp account` all ask here, so that one run has one answer.

use crate::claim::Counted;
use crate::{
    Accountant, Adjacency, Bracket, Claim, Denominator, Error, Event, Kind, Method, Reason, Terms,
};

/// Shares of δ that are kept for the noise's left-over, tried in this order.
const KEPT: [f64; 2] = [1e-3, 0.5];

impl Terms {
    /// δ that the Gaussians of the theorem are accounted at: what the noise's left-over leaves.
    pub fn accounted_deltas(&self) -> [f64; 2] {
        KEPT.map(
            |share| if self.noise_draws == 0 { self.delta } else { self.delta * (1.0 - share) },
        )
    }
}

/// An accountant of noise that is not quite Gaussian.
struct OfMachine {
    ideal: Box<dyn Accountant + Send + Sync>,
    terms: Terms,
}

impl Accountant for OfMachine {
    fn adjacency(&self) -> Adjacency {
        self.ideal.adjacency()
    }

    fn compose(&mut self, event: &Event, count: u64) -> Result<(), Error> {
        self.ideal.compose(event, count)
    }

    fn epsilon(&self, delta: f64) -> Result<Bracket, Error> {
        let terms = Terms { delta, ..self.terms };
        let draws = terms.noise_draws as f64;
        let mut lower = 0.0;
        for accounted in terms.accounted_deltas() {
            let bracket = self.ideal.epsilon(accounted)?;
            let left_over = (1.0 + bracket.upper.exp()) * draws * terms.arithmetic.left_over();
            if draws == 0.0 || bracket.upper.is_infinite() || left_over <= delta - accounted {
                return Ok(bracket);
            }
            lower = bracket.lower;
        }
        Ok(Bracket::new(lower, f64::INFINITY, self.adjacency(), Some(Reason::NoiseLeftOver)))
    }

    fn delta(&self, epsilon: f64) -> Result<Bracket, Error> {
        self.ideal.delta(epsilon)
    }
}

/// Everything charged so far, under its terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    terms: Terms,
    method: Method,
    /// Events with their counts; equal neighbours are one entry.
    charges: Vec<(Event, u64)>,
}

impl Account {
    /// An account on which nothing is charged.
    pub fn new(terms: Terms) -> Self {
        Self { terms, method: Method::Pld, charges: Vec::new() }
    }

    /// The same, asked of another accountant.
    pub fn with_method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    /// The same as if every draw of noise were the theorem's: what holds in real numbers. An ε beyond some
    /// fifty can be stated in no other way, because e^ε times what noise leaves over exceeds every δ.
    pub fn in_real_numbers(self) -> Self {
        Self { terms: Terms { noise_draws: 0, ..self.terms }, ..self }
    }

    /// What its claims share.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Charges `event`, `count` times.
    ///
    /// # Errors
    /// A parameter out of its range; nothing is charged then.
    pub fn charge(&mut self, event: &Event, count: u64) -> Result<(), Error> {
        event.check()?;
        match self.charges.last_mut() {
            Some((last, total)) if last == event => {
                *total = total.checked_add(count).ok_or(Error::TooManySteps {
                    found: *total as f64 + count as f64,
                    most: crate::MOST_STEPS,
                })?;
            }
            _ => self.charges.push((event.clone(), count)),
        }
        Ok(())
    }

    /// The kind of its first claim.
    pub fn kind(&self) -> Kind {
        let any =
            |found: fn(&Event) -> bool| self.charges.iter().any(|(event, _)| event.any(found));
        if any(|event| matches!(event, Event::NoPrivacy)) {
            Kind::NotPrivate
        } else if any(|event| matches!(event, Event::Geometric { .. })) {
            Kind::Conditional
        } else {
            Kind::Certified
        }
    }

    /// The strongest claim: the one that a limit is held to.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn claim(&self) -> Result<Claim, Error> {
        let terms = &self.terms;
        match self.kind() {
            Kind::Conditional => {
                let epsilon = self.composed(Event::as_two_releases)?.epsilon(terms.delta)?;
                Ok(Claim::conditional(epsilon, terms, self.assumption()))
            }
            Kind::Certified => {
                let accountant = self.composed(|event| Ok(event.clone()))?;
                Claim::certified(&accountant, terms.delta, terms.arithmetic)
            }
            _ => Ok(Claim::not_private(terms)),
        }
    }

    /// Every claim, the strongest first.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn claims(&self) -> Result<Vec<Claim>, Error> {
        let mut claims = vec![self.claim()?];
        if self.kind() == Kind::Conditional {
            let epsilon = self.composed(Event::as_published)?.epsilon(self.terms.delta)?;
            let betas = self.geometric().map(|(beta, _)| beta);
            let smallest = betas.fold(1.0, f64::min);
            claims.push(Claim::as_published(epsilon, &self.terms, 1.0 - smallest));
        }
        Ok(claims)
    }

    /// SUR's published figure, of an account on which the accepted iterations alone are charged.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn accepted_only(&self, accepted: u64, rejected: u64) -> Result<Claim, Error> {
        let epsilon = self.composed(Event::as_published)?.epsilon(self.terms.delta)?;
        Ok(Claim::accepted_only(epsilon, &self.terms, Counted { accepted, rejected }))
    }

    fn composed(&self, read: impl Fn(&Event) -> Result<Event, Error>) -> Result<OfMachine, Error> {
        let ideal = self.method.accountant(self.terms.adjacency);
        let mut accountant = OfMachine { ideal, terms: self.terms };
        for (event, count) in &self.charges {
            accountant.compose(&read(event)?, *count)?;
        }
        Ok(accountant)
    }

    /// β and d of every release of GeoDP.
    fn geometric(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut found = Vec::new();
        for (event, _) in &self.charges {
            event.visit(&mut |event| {
                if let Event::Geometric { beta, dim, .. } = event {
                    found.push((*beta, *dim));
                }
            });
        }
        found.into_iter()
    }

    /// What GeoDP's conditional claim rests on. It speaks of the batch as drawn from the other records,
    /// because amplification by sampling compares S with S ∪ {j} for every S, and of visited weights,
    /// because composition does; whatever falls outside costs its probability.
    fn assumption(&self) -> String {
        let (beta, dim) = self.geometric().fold((1.0, 2), |(b, _), (beta, dim)| (beta.min(b), dim));
        let denominator = match self.terms.denominator {
            Denominator::Batch(batch) => format!("B = {batch}"),
            Denominator::ExpectedBatch => "B the expected batch size".to_owned(),
            Denominator::Candidates => {
                "B the expected number of candidates of the step, rounded".to_owned()
            }
        };
        format!(
            "outside an event of probability δ″, at every step: at the weights visited, and for the batch \
             S drawn from the other records, taking any one record into S moves the magnitude of the \
             mean gradient by at most C/B and its {} angles, in Euclidean norm, by at most √(d+2)·β·π/B, \
             with C the step’s clipping norm, {denominator}, d = {dim}, β = {beta}; nothing enforces it \
             (an empty S has no direction and lies in that event)",
            dim.saturating_sub(1)
        )
    }
}
