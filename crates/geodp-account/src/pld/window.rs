//! The answer read off a window of tilted masses, every error on its safe side.
//!
//! With t_j the tilted masses, δ(ε) = e^K Σ_{L_j > ε} t_j e^{−λL_j} (1 − e^{ε−L_j}): two running
//! sums from the top of the window down give it at every lattice point, and between two points it
//! is linear in e^ε.

use super::waves::Waves;

/// Whether errors are to be added or taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Upper,
    Lower,
}

/// Tilted masses at consecutive lattice points.
pub(super) enum Masses {
    /// One by one.
    Points(Vec<f64>),
    /// As few waves.
    Waves(Waves),
}

impl Masses {
    fn len(&self) -> usize {
        match self {
            Self::Points(points) => points.len(),
            Self::Waves(waves) => waves.points,
        }
    }
}

/// Parts of a window that the search for the crossing steps over first.
const COARSE_NODES: i64 = 48;

/// A node, the sums above it, and how far it is beyond its target.
struct Looked {
    node: i64,
    above: Above,
    excess: f64,
}

/// The sum's masses near the answer, tilted by λ.
pub(crate) struct Window {
    pub(super) step: f64,
    /// Loss of lattice point 0.
    pub(super) offset: f64,
    pub(super) first: i64,
    pub(super) tilt: f64,
    pub(super) masses: Masses,
    /// K(λ) of the sum.
    pub(super) cumulant: f64,
    /// Its mean at λ: weights e^{−λL} are taken relative to it.
    pub(super) reference: f64,
    /// Bound on the error of each mass.
    pub(super) noise: f64,
    /// Bound on the tilted mass outside the window, on either side.
    pub(super) outside: f64,
    /// Bound on the probability of infinite loss.
    pub(super) infinite: f64,
    /// Relative error of the scale e^{K − λε}.
    pub(super) scale_error: f64,
}

impl Window {
    fn loss(&self, node: i64) -> f64 {
        self.offset + node as f64 * self.step
    }

    /// e^{−λL} at a node, relative to the reference.
    fn weight(&self, node: i64) -> f64 {
        (-self.tilt * (self.loss(node) - self.reference)).exp()
    }

    /// δ at each lattice point is scale·H + base; this walks them from the top.
    ///
    /// Returns the ε at which the bound crosses `delta`: for the upper side no
    /// ε above it needs a larger δ, for the lower side no ε below it does with less.
    /// `None` where the window certifies nothing.
    pub(crate) fn epsilon(&self, delta: f64, side: Side) -> Option<f64> {
        let scaled = (delta - self.base(side)) / self.scale(side);
        let target = |node: i64| scaled + self.wrapped(side, node);
        let found = match &self.masses {
            Masses::Points(points) => self.highest_point(points, side, |node, above| {
                let target = target(node);
                target <= 0.0 || above.height >= target
            }),
            Masses::Waves(waves) => self.crossing(waves, side, target),
        };
        let Some((node, above)) = found else {
            // Even the lowest point needs less than `delta`, unless its weight was beyond f64.
            let looked = self.weight(self.first).is_finite();
            return (side == Side::Upper && looked).then(|| self.loss(self.first));
        };
        let (node_loss, target) = (self.loss(node), target(node));
        if target <= 0.0 {
            return (side == Side::Lower).then_some(node_loss);
        }
        // Within the cell δ is linear in e^ε.
        let under = above.mass - above.height;
        let within = if under > 0.0 { ((above.height - target) / under).ln_1p() } else { 0.0 };
        Some(node_loss + within.clamp(0.0, self.step))
    }

    /// The highest node at which `reached` holds, with the sums above it.
    fn highest_point(
        &self,
        points: &[f64],
        side: Side,
        reached: impl Fn(i64, Above) -> bool,
    ) -> Option<(i64, Above)> {
        let mut walk = Walk::new(self, points, side);
        while let Some(above) = walk.next() {
            if reached(walk.node, above) {
                return Some((walk.node, above));
            }
        }
        None
    }

    /// A node that reaches its target just below one that does not, with the sums above it: all that
    /// a bound needs. The saddle point is near it, and ln H is nearly straight from there.
    fn crossing(
        &self,
        waves: &Waves,
        side: Side,
        target: impl Fn(i64) -> f64,
    ) -> Option<(i64, Above)> {
        let top = self.first + waves.points as i64 - 1;
        let look = |node: i64| {
            let above = self.above(waves, node, side);
            let target = target(node);
            // ln(H / target): at least 0 where it is reached.
            let excess = if target <= 0.0 { f64::INFINITY } else { (above.height / target).ln() };
            let excess = if excess.is_nan() { f64::NEG_INFINITY } else { excess };
            Looked { node, above, excess }
        };
        // Outwards from the saddle point, until both sides are known.
        let saddle = ((self.reference - self.offset) / self.step) as i64;
        let mut next = saddle.clamp(self.first, top - 1);
        let mut stride = 1 + (top - self.first) / COARSE_NODES;
        let (mut reached, mut missed) = (None, None);
        while reached.is_none() || missed.is_none() {
            let looked = look(next);
            let end = if looked.excess >= 0.0 { top - 1 } else { self.first };
            let ended = next == end;
            let towards = if end == self.first { -stride } else { stride };
            next = (next + towards).clamp(self.first, top - 1);
            stride *= 2;
            if looked.excess >= 0.0 {
                reached = Some(looked)
            } else {
                missed = Some(looked)
            }
            if ended {
                break;
            }
        }
        // Where noise outweighs the lowest nodes, another may still reach its target.
        let mut reached = reached.or_else(|| {
            let places = 1..COARSE_NODES;
            let nodes = places.map(|place| top - (top - self.first) * place / COARSE_NODES);
            let found = nodes.map(look).find(|looked| looked.excess >= 0.0)?;
            missed = None;
            Some(found)
        })?;
        // Above the highest node there is nothing.
        let (mut high, mut missed) = missed.map_or((top, f64::NAN), |one| (one.node, one.excess));
        for round in 0.. {
            let gap = high - reached.node;
            if gap <= 1 {
                break;
            }
            let share = reached.excess / (reached.excess - missed);
            let share = if share.is_finite() && round % 4 != 3 { share } else { 0.5 };
            let looked = look(reached.node + ((gap as f64 * share) as i64).clamp(1, gap - 1));
            if looked.excess >= 0.0 {
                reached = looked;
            } else {
                (high, missed) = (looked.node, looked.excess);
            }
        }
        Some((reached.node, reached.above))
    }

    /// The sums above a node, from waves.
    fn above(&self, waves: &Waves, node: i64, side: Side) -> Above {
        let shift = match side {
            Side::Upper => self.noise,
            Side::Lower => -self.noise,
        };
        let Above { mass, height } = waves.above(node, shift);
        let weight = self.weight(node);
        Above { mass: mass * weight, height: height * weight }
    }

    /// Bound on δ at `epsilon`; `None` if it lies outside the window.
    pub(crate) fn delta(&self, epsilon: f64, side: Side) -> Option<f64> {
        let node = ((epsilon - self.offset) / self.step).floor();
        let last = self.first as f64 + self.masses.len() as f64 - 1.0;
        if node < self.first as f64 {
            return None;
        }
        if node >= last {
            let beyond = self.base(side);
            return Some(if side == Side::Upper { beyond } else { 0.0 });
        }
        let (node, above) = match &self.masses {
            Masses::Points(points) => {
                self.highest_point(points, side, |at, _| at as f64 <= node)?
            }
            Masses::Waves(waves) => (node as i64, self.above(waves, node as i64, side)),
        };
        let within = (epsilon - self.loss(node)).clamp(0.0, self.step);
        let under = above.mass - above.height;
        let height = (above.height - under * within.exp_m1()).max(0.0);
        let height = height - self.wrapped(side, node);
        let value = self.scale(side) * height.max(0.0) + self.base(side);
        value.is_finite().then_some(value.clamp(0.0, 1.0))
    }

    /// Probability that is not in the window at all: infinite loss, and for the
    /// upper side the mass above it.
    fn base(&self, side: Side) -> f64 {
        match side {
            Side::Upper => {
                let top = self.loss(self.first + self.masses.len() as i64);
                self.infinite + self.outside * (self.cumulant - self.tilt * top).exp()
            }
            Side::Lower => 0.0,
        }
    }

    /// What mass from outside the window, wrapped into it, may have added to H.
    fn wrapped(&self, side: Side, node: i64) -> f64 {
        match side {
            Side::Upper => 0.0,
            // e^{−λv}(1 − e^{−v}) ≤ 1/(λ + 1) for v ≥ 0
            Side::Lower => {
                let lift = -self.tilt * (self.loss(node) - self.reference);
                self.outside * lift.exp() / (self.tilt + 1.0)
            }
        }
    }

    fn scale(&self, side: Side) -> f64 {
        let factor = match side {
            Side::Upper => 1.0 + self.scale_error,
            Side::Lower => 1.0 - self.scale_error,
        };
        (self.cumulant - self.tilt * self.reference).exp() * factor
    }
}

/// Sums over the lattice points above a node: Σ m and Σ m(1 − e^{node−l}).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Above {
    pub(super) mass: f64,
    pub(super) height: f64,
}

/// Walks a window from its top, untilting as it goes.
struct Walk<'a> {
    window: &'a Window,
    points: &'a [f64],
    side: Side,
    node: i64,
    above: Above,
    fall: f64,
    rise: f64,
    /// e^{−λL} at the node, relative to the window's reference.
    weight: f64,
    growth: f64,
}

impl<'a> Walk<'a> {
    fn new(window: &'a Window, points: &'a [f64], side: Side) -> Self {
        let node = window.first + points.len() as i64 - 1;
        let (fall, rise) = ((-window.step).exp(), -(-window.step).exp_m1());
        let growth = (window.tilt * window.step).exp();
        Self {
            window,
            points,
            side,
            node,
            above: Above::default(),
            fall,
            rise,
            weight: 0.0,
            growth,
        }
    }

    /// Moves one node down and returns the sums over the points above it.
    fn next(&mut self) -> Option<Above> {
        if self.node <= self.window.first {
            return None;
        }
        let window = self.window;
        let tilted = self.points[(self.node - window.first) as usize];
        let bound = match self.side {
            Side::Upper => tilted.max(0.0) + window.noise,
            Side::Lower => (tilted - window.noise).max(0.0),
        };
        // e^{−λL} by a product, anew every 64 points so that rounding stays below 1e-13.
        if self.node % 64 == 0 || self.weight == 0.0 {
            self.weight = window.weight(self.node);
        } else {
            self.weight *= self.growth;
        }
        if !self.weight.is_finite() {
            return None;
        }
        self.above.mass += bound * self.weight;
        self.above.height = self.rise * self.above.mass + self.fall * self.above.height;
        self.node -= 1;
        Some(self.above)
    }
}
