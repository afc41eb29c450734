//! Privacy-loss accounting with a certified bracket.
//!
//! Each release becomes two lattice distributions, one that dominates its
//! privacy loss and one that it dominates, with fewer points far out where few do ([`lattice`]); both are
//! composed by a tilted FFT, or by the few waves that a large power leaves ([`compose`], [`spectrum`]) and
//! refined until they agree to 0.15 % ([`search`]).
//! Both directions of add/remove are answered and the worse one counts. The
//! Rényi bound stands beside: the upper end is the smaller of the two, each of
//! which is a true bound. Purely Gaussian compositions are answered exactly.

mod compose;
mod lattice;
mod loss;
mod search;
mod spectrum;
mod waves;
mod window;

use crate::event::{Release, Releases};
use crate::misses::{delta_with_misses, epsilon_with_misses};
use crate::rdp::RdpAccountant;
use crate::{Accountant, Adjacency, Bracket, Error, Event, Reason, error, gaussian};
use loss::Direction;
use search::{Cache, Hint, Question};
use std::sync::{Arc, OnceLock};

/// Widest bracket reported without a reason, relative to its upper end.
const PROMISED_WIDTH: f64 = 0.01;
/// Width aimed at, relative to the answer.
pub(crate) const DEFAULT_WIDTH: f64 = 1.5e-3;
/// Up to this whole order fractional ones may be better.
const LOW_ORDER: f64 = 4.0;
/// A δ known to be smaller than this is left at its Rényi bound.
const LEAST_DELTA: f64 = 1e-250;

/// Composes privacy-loss distributions; the accountant to use.
#[derive(Clone, Debug)]
pub struct PldAccountant {
    adjacency: Adjacency,
    releases: Releases,
    /// With few orders: where to start, and a bound.
    renyi: RdpAccountant,
    /// The same with low fractional orders, which are dear: made where a low order is the best.
    renyi_low: OnceLock<RdpAccountant>,
    /// Relative width aimed at.
    width: f64,
    /// Shared by clones: lattices depend on releases only.
    cache: Arc<Cache>,
}

impl PldAccountant {
    /// An accountant with nothing composed.
    pub fn new(adjacency: Adjacency) -> Self {
        Self {
            adjacency,
            releases: Releases::default(),
            renyi: RdpAccountant::sparse(adjacency),
            renyi_low: OnceLock::new(),
            width: DEFAULT_WIDTH,
            cache: Arc::default(),
        }
    }

    /// The same accountant with brackets of at most this relative width, where the
    /// lattices allow: 1e-5 to 0.01. Cost grows with one over its square root.
    pub fn with_width(mut self, relative_width: f64) -> Result<Self, Error> {
        if !(1e-5..=0.01).contains(&relative_width) {
            let range = "between 1e-5 and 0.01";
            return Err(Error::OutOfRange { name: "bracket width", range, found: relative_width });
        }
        self.width = relative_width;
        Ok(self)
    }

    /// Forgets the events, keeps what was computed about them: for asking
    /// about many compositions of the same releases.
    pub fn reset(&mut self) {
        self.releases = Releases::default();
        self.renyi.reset();
        self.renyi_low = OnceLock::new();
    }

    /// What one direction alone gives, as (remove, add): add/remove is their maximum.
    /// Equal where the pair is symmetric.
    pub fn epsilon_by_direction(&self, delta: f64) -> Result<(Bracket, Bracket), Error> {
        error::check_delta(delta)?;
        if self.releases.misses > 0.0 {
            return Err(Error::Unsupported {
                event: "one direction alone of releases that may miss".into(),
                advice: "ask for epsilon, which sets a share of delta aside for them",
            });
        }
        let one = |direction| {
            let question = Question::EpsilonAt(delta);
            match self.settled(question) {
                Some(bracket) => bracket,
                None => self.finish(question, self.one_direction(question, direction, None)),
            }
        };
        let remove = one(Direction::Remove);
        let add = if self.symmetric() { remove } else { one(Direction::Add) };
        Ok((remove, add))
    }

    fn symmetric(&self) -> bool {
        !self.releases.parts.iter().any(|(release, _)| matches!(release, Release::Sampled { .. }))
    }

    /// Answers that need no lattice.
    fn settled(&self, question: Question) -> Option<Bracket> {
        let exact = |(lower, upper)| Some(Bracket::new(lower, upper, self.adjacency, None));
        if self.releases.unprotected {
            let value = if let Question::EpsilonAt(_) = question { f64::INFINITY } else { 1.0 };
            return Some(Bracket::new(value, value, self.adjacency, Some(Reason::NoPrivacy)));
        }
        if self.releases.parts.is_empty() {
            return exact((0.0, 0.0));
        }
        let mu = self.releases.only_gaussian()?;
        match question {
            Question::EpsilonAt(delta) => exact(gaussian::epsilon_of(mu, delta)),
            Question::DeltaAt(epsilon) => exact(gaussian::delta_of(mu, epsilon)),
        }
    }

    fn answer(&self, question: Question) -> Bracket {
        if let Some(bracket) = self.settled(question) {
            return bracket;
        }
        if matches!(question, Question::EpsilonAt(_)) && self.sparse_renyi(question).0 == 0.0 {
            return Bracket::new(0.0, 0.0, self.adjacency, None);
        }
        let remove = self.one_direction(question, Direction::Remove, None);
        let found = if self.symmetric() {
            remove
        } else {
            let floor = remove.map(|(lower, _)| lower);
            let add = self.one_direction(question, Direction::Add, floor);
            // What one direction alone shows bounds both from below, not from above.
            let one = remove.or(add).map(|(lower, _)| (lower, f64::INFINITY));
            remove.zip(add).map(|(r, a)| (r.0.max(a.0), r.1.max(a.1))).or(one)
        };
        self.finish(question, found)
    }

    /// One direction; refinement stops early once it is known to be below `floor`.
    fn one_direction(
        &self,
        question: Question,
        direction: Direction,
        floor: Option<f64>,
    ) -> Option<(f64, f64)> {
        let hint = self.hint(question);
        if hint.delta < LEAST_DELTA {
            return None;
        }
        search::bracket(&self.releases.parts, direction, question, hint, &self.cache, floor)
    }

    fn hint(&self, question: Question) -> Hint {
        match question {
            Question::EpsilonAt(delta) => {
                let (epsilon, order) = self.sparse_renyi(question);
                Hint { order, epsilon, delta, width: self.width }
            }
            Question::DeltaAt(epsilon) => {
                let (delta, order) = self.sparse_renyi(question);
                Hint { order, epsilon, delta, width: self.width }
            }
        }
    }

    /// The Rényi bound with few orders, and the order that gives it.
    fn sparse_renyi(&self, question: Question) -> (f64, f64) {
        let whole = renyi_bound(&self.renyi, question);
        if whole.1 > LOW_ORDER {
            return whole;
        }
        let low = renyi_bound(
            self.renyi_low.get_or_init(|| {
                let mut low = RdpAccountant::sparse_low(self.adjacency);
                low.add_releases(&self.releases);
                low
            }),
            question,
        );
        if low.0 < whole.0 { low } else { whole }
    }

    /// Puts the Rényi bound beside what was found, and says what is unusual.
    fn finish(&self, question: Question, found: Option<(f64, f64)>) -> Bracket {
        let (lower, upper) = found.unwrap_or((0.0, f64::INFINITY));
        let is_wide =
            |upper: f64| upper - lower > (PROMISED_WIDTH * upper).max(search::negligible(question));
        let (mut renyi, _) = self.sparse_renyi(question);
        if is_wide(upper.min(renyi)) {
            // Here the Rényi bound may be the answer: worth all its orders.
            let mut all_orders = RdpAccountant::new(self.adjacency);
            all_orders.add_releases(&self.releases);
            renyi = renyi.min(renyi_bound(&all_orders, question).0);
        }
        let best = upper.min(renyi);
        let reason = if best.is_infinite() {
            Some(Reason::Uncertified)
        } else if !is_wide(best) {
            None
        } else if renyi < upper {
            Some(Reason::RenyiOnly)
        } else {
            Some(Reason::Resolution)
        };
        Bracket::new(lower, best, self.adjacency, reason)
    }
}

/// The bound by Rényi divergences on what is asked, and the order that gives it.
fn renyi_bound(renyi: &RdpAccountant, question: Question) -> (f64, f64) {
    match question {
        Question::EpsilonAt(delta) => {
            let best = renyi.best_for_delta(delta);
            (best.epsilon, best.order)
        }
        Question::DeltaAt(epsilon) => renyi.best_for_epsilon(epsilon),
    }
}

impl Accountant for PldAccountant {
    fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    fn compose(&mut self, event: &Event, count: u64) -> Result<(), Error> {
        let mut added = Releases::default();
        added.add(event, count, self.adjacency)?;
        self.releases.add(event, count, self.adjacency)?;
        self.renyi.add_releases(&added);
        self.renyi_low = OnceLock::new();
        Ok(())
    }

    fn epsilon(&self, delta: f64) -> Result<Bracket, Error> {
        error::check_delta(delta)?;
        epsilon_with_misses(self.releases.misses, delta, |delta| {
            Ok(self.answer(Question::EpsilonAt(delta)))
        })
    }

    fn delta(&self, epsilon: f64) -> Result<Bracket, Error> {
        error::check_epsilon(epsilon)?;
        let accounted = self.answer(Question::DeltaAt(epsilon));
        Ok(delta_with_misses(self.releases.misses, epsilon, accounted))
    }
}
