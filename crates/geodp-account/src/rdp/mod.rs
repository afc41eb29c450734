//! Rényi accounting: add divergences order by order, convert once.
//!
//! ε = min over α of R(α) + ln((α−1)/α) − (ln δ + ln α)/(α−1)
//! (Balle et al., [arXiv:1905.09982](https://arxiv.org/abs/1905.09982); Canonne,
//! Kamath & Steinke, [arXiv:2004.00010](https://arxiv.org/abs/2004.00010), Prop. 12).
//! Composition costs one addition an order, so it suits a running total; it
//! bounds from above only, and is the safety net under the PLD accountant.

mod sampled;

use crate::event::{Release, Releases};
use crate::misses::{delta_with_misses, epsilon_with_misses};
use crate::{Accountant, Adjacency, Bracket, Error, Event, Reason, error};
use sampled::sampled_gaussian_rdp;

/// Releases whose divergences are remembered.
const MOST_KNOWN: usize = 32;

/// The orders accounted unless others are given: 1.1 … 10.9, 11 … 63, 128 … 1024.
pub fn default_orders() -> Vec<f64> {
    (1..100)
        .map(|tenth| 1.0 + f64::from(tenth) / 10.0)
        .chain((11..64).map(f64::from))
        .chain([128.0, 256.0, 512.0, 1024.0])
        .collect()
}

/// Fewer orders, all whole: enough to start a search from.
fn sparse_orders() -> Vec<f64> {
    (2..16)
        .map(f64::from)
        .chain([18.0, 20.0, 24.0, 28.0, 32.0, 40.0, 48.0, 64.0, 128.0, 256.0, 512.0, 1024.0])
        .collect()
}

/// Accumulates Rényi divergences of the events composed.
#[derive(Clone, Debug)]
pub struct RdpAccountant {
    adjacency: Adjacency,
    orders: Vec<f64>,
    divergences: Vec<f64>,
    unprotected: bool,
    /// Probability that a release was not what was accounted, summed.
    misses: f64,
    /// Divergences of the releases seen, so that repeating one costs no series.
    known: Vec<(Release, Vec<f64>)>,
}

/// An ε and the order that gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimalOrder {
    /// The bound.
    pub epsilon: f64,
    /// The order α at which it is reached.
    pub order: f64,
    /// The optimum is the first or last order: more orders might give less.
    pub at_end: bool,
}

impl RdpAccountant {
    /// An accountant with the default orders and nothing composed.
    pub fn new(adjacency: Adjacency) -> Self {
        Self::from_checked(adjacency, default_orders())
    }

    /// An accountant with the given orders, each above 1.
    pub fn with_orders(adjacency: Adjacency, orders: Vec<f64>) -> Result<Self, Error> {
        match orders.iter().find(|order| !(order.is_finite() && **order > 1.0 && **order <= 1e5)) {
            Some(order) => Err(Error::OutOfRange {
                name: "order",
                range: "above 1, at most 1e5",
                found: *order,
            }),
            None => Ok(Self::from_checked(adjacency, orders)),
        }
    }

    /// An accountant with few and whole orders: looser, and many times cheaper.
    pub(crate) fn sparse(adjacency: Adjacency) -> Self {
        Self::from_checked(adjacency, sparse_orders())
    }

    /// An accountant with orders between [`RdpAccountant::sparse`]'s lowest and below them.
    pub(crate) fn sparse_low(adjacency: Adjacency) -> Self {
        Self::from_checked(adjacency, vec![1.1, 1.25, 1.5, 2.5, 3.5])
    }

    fn from_checked(adjacency: Adjacency, orders: Vec<f64>) -> Self {
        let divergences = vec![0.0; orders.len()];
        Self { adjacency, orders, divergences, unprotected: false, misses: 0.0, known: Vec::new() }
    }

    /// The orders and the divergences so far.
    pub fn divergences(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.orders.iter().copied().zip(self.divergences.iter().copied())
    }

    /// ε at δ with the order that gives it.
    pub fn optimal_order(&self, delta: f64) -> Result<OptimalOrder, Error> {
        error::check_delta(delta)?;
        if self.misses > 0.0 {
            return Err(Error::Unsupported {
                event: "the optimal order of releases that may miss".into(),
                advice: "ask for epsilon, which sets a share of delta aside for them",
            });
        }
        Ok(self.best_for_delta(delta))
    }

    pub(crate) fn best_for_delta(&self, delta: f64) -> OptimalOrder {
        let mut best = OptimalOrder { epsilon: f64::INFINITY, order: f64::NAN, at_end: true };
        if self.unprotected {
            return best;
        }
        for (at, (order, divergence)) in self.divergences().enumerate() {
            let epsilon = epsilon_at(order, divergence, delta);
            if epsilon < best.epsilon {
                best =
                    OptimalOrder { epsilon, order, at_end: at == 0 || at + 1 == self.orders.len() };
            }
        }
        best
    }

    /// The least δ at ε, and its order.
    pub(crate) fn best_for_epsilon(&self, epsilon: f64) -> (f64, f64) {
        if self.unprotected {
            return (1.0, f64::NAN);
        }
        self.divergences().fold((1.0, f64::NAN), |best, (order, divergence)| {
            let delta = delta_at(order, divergence, epsilon);
            if delta < best.0 { (delta, order) } else { best }
        })
    }

    pub(crate) fn reset(&mut self) {
        self.divergences.fill(0.0);
        self.unprotected = false;
        self.misses = 0.0;
    }

    pub(crate) fn add_releases(&mut self, releases: &Releases) {
        self.unprotected |= releases.unprotected;
        self.misses = (self.misses + releases.misses) * (1.0 + 2.0 * f64::EPSILON);
        for (release, count) in &releases.parts {
            let one = self.one(*release);
            for (total, one) in self.divergences.iter_mut().zip(one) {
                *total += one * *count as f64 * (1.0 + 4.0 * f64::EPSILON);
            }
        }
    }

    /// Divergences of one release at every order.
    fn one(&mut self, release: Release) -> Vec<f64> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == release) {
            return known.clone();
        }
        let one: Vec<f64> = self.orders.iter().map(|&order| divergence(release, order)).collect();
        if self.known.len() == MOST_KNOWN {
            self.known.remove(0);
        }
        self.known.push((release, one.clone()));
        one
    }
}

/// R(α) of one release.
fn divergence(release: Release, order: f64) -> f64 {
    match release {
        Release::Gaussian { mu } => 0.5 * order * mu * mu * (1.0 + 8.0 * f64::EPSILON),
        Release::Sampled { rate, sigma } => sampled_gaussian_rdp(rate, sigma, order),
        // Weak triangle inequality through N(0, σ²): Mironov, arXiv:1702.07476, Prop. 11.
        Release::SampledReplace { rate, sigma } => {
            (order - 0.5) / (order - 1.0) * sampled_gaussian_rdp(rate, sigma, 2.0 * order)
                + sampled_gaussian_rdp(rate, sigma, 2.0 * order - 1.0)
        }
    }
}

fn epsilon_at(order: f64, divergence: f64, delta: f64) -> f64 {
    // Bretagnolle–Huber: total variation ≤ √(1 − e^{−KL}), and KL ≤ R(α).
    if delta * delta > -(-divergence).exp_m1() {
        return 0.0;
    }
    let value = divergence + (-1.0 / order).ln_1p() - (delta.ln() + order.ln()) / (order - 1.0);
    if value.is_nan() { f64::INFINITY } else { value.max(0.0) }
}

fn delta_at(order: f64, divergence: f64, epsilon: f64) -> f64 {
    let variation = (-(-divergence).exp_m1()).max(0.0).sqrt();
    let ln_delta = (order - 1.0) * (divergence - epsilon + (-1.0 / order).ln_1p()) - order.ln();
    let value = ln_delta.exp().min(variation);
    if value.is_nan() { 1.0 } else { value.min(1.0) }
}

impl Accountant for RdpAccountant {
    fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    fn compose(&mut self, event: &Event, count: u64) -> Result<(), Error> {
        let mut releases = Releases::default();
        releases.add(event, count, self.adjacency)?;
        self.add_releases(&releases);
        Ok(())
    }

    fn epsilon(&self, delta: f64) -> Result<Bracket, Error> {
        error::check_delta(delta)?;
        epsilon_with_misses(self.misses, delta, |delta| self.accounted_epsilon(delta))
    }

    fn delta(&self, epsilon: f64) -> Result<Bracket, Error> {
        error::check_epsilon(epsilon)?;
        if self.unprotected {
            return Ok(Bracket::new(1.0, 1.0, self.adjacency, Some(Reason::NoPrivacy)));
        }
        let (upper, _) = self.best_for_epsilon(epsilon);
        let accounted = Bracket::new(0.0, upper, self.adjacency, Some(Reason::OneSided));
        Ok(delta_with_misses(self.misses, epsilon, accounted))
    }
}

impl RdpAccountant {
    /// ε of the accounted releases, misses aside.
    fn accounted_epsilon(&self, delta: f64) -> Result<Bracket, Error> {
        let upper = self.best_for_delta(delta).epsilon;
        let reason = match (self.unprotected, upper.is_finite()) {
            (true, _) => Reason::NoPrivacy,
            (false, true) => Reason::OneSided,
            (false, false) => Reason::Uncertified,
        };
        let lower = if self.unprotected { f64::INFINITY } else { 0.0 };
        Ok(Bracket::new(lower, upper, self.adjacency, Some(reason)))
    }
}
