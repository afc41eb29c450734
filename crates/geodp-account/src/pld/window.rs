//! The answer read off a window of tilted masses, every error on its safe side.
//!
//! With t_j the tilted masses, δ(ε) = e^K Σ_{L_j > ε} t_j e^{−λL_j} (1 − e^{ε−L_j}): two running
//! sums from the top of the window down give it at every lattice point, and between two points it
//! is linear in e^ε.

/// Whether errors are to be added or taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Upper,
    Lower,
}

/// The sum's masses near the answer, tilted by λ.
pub(crate) struct Window {
    pub(super) step: f64,
    /// Loss of lattice point 0.
    pub(super) offset: f64,
    pub(super) first: i64,
    pub(super) tilt: f64,
    pub(super) tilted: Vec<f64>,
    /// K(λ) of the sum.
    pub(super) cumulant: f64,
    /// Its mean at λ: weights e^{−λL} are taken relative to it.
    pub(super) reference: f64,
    /// Bound on the error of each entry of `tilted`.
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

    /// δ at each lattice point is scale·H + base; this walks them from the top.
    ///
    /// Returns the ε at which the bound crosses `delta`: for the upper side no
    /// ε above it needs a larger δ, for the lower side no ε below it does with less.
    /// `None` where the window certifies nothing.
    pub(crate) fn epsilon(&self, delta: f64, side: Side) -> Option<f64> {
        let mut walk = Walk::new(self, side);
        while let Some(above) = walk.next() {
            let scaled = (delta - self.base(side)) / self.scale(side);
            let target = scaled + self.wrapped(side, walk.node);
            if target > 0.0 && above.height < target {
                continue;
            }
            let node_loss = self.loss(walk.node);
            if target <= 0.0 {
                return (side == Side::Lower).then_some(node_loss);
            }
            // Within the cell δ is linear in e^ε.
            let under = above.mass - above.height;
            let within = if under > 0.0 { ((above.height - target) / under).ln_1p() } else { 0.0 };
            return Some(node_loss + within.clamp(0.0, self.step));
        }
        // Even the lowest point needs less than `delta`.
        (side == Side::Upper && walk.node == self.first).then(|| self.loss(walk.node))
    }

    /// Bound on δ at `epsilon`; `None` if it lies outside the window.
    pub(crate) fn delta(&self, epsilon: f64, side: Side) -> Option<f64> {
        let node = ((epsilon - self.offset) / self.step).floor();
        let last = self.first as f64 + self.tilted.len() as f64 - 1.0;
        if node < self.first as f64 {
            return None;
        }
        if node >= last {
            let beyond = self.base(side);
            return Some(if side == Side::Upper { beyond } else { 0.0 });
        }
        let mut walk = Walk::new(self, side);
        while let Some(above) = walk.next() {
            if walk.node as f64 > node {
                continue;
            }
            let within = (epsilon - self.loss(walk.node)).clamp(0.0, self.step);
            let under = above.mass - above.height;
            let height = (above.height - under * within.exp_m1()).max(0.0);
            let height = height - self.wrapped(side, walk.node);
            let value = self.scale(side) * height.max(0.0) + self.base(side);
            return value.is_finite().then_some(value.clamp(0.0, 1.0));
        }
        None
    }

    /// Probability that is not in the window at all: infinite loss, and for the
    /// upper side the mass above it.
    fn base(&self, side: Side) -> f64 {
        match side {
            Side::Upper => {
                let top = self.loss(self.first + self.tilted.len() as i64);
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
#[derive(Clone, Copy, Default)]
struct Above {
    mass: f64,
    height: f64,
}

/// Walks a window from its top, untilting as it goes.
struct Walk<'a> {
    window: &'a Window,
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
    fn new(window: &'a Window, side: Side) -> Self {
        let node = window.first + window.tilted.len() as i64 - 1;
        let (fall, rise) = ((-window.step).exp(), -(-window.step).exp_m1());
        let growth = (window.tilt * window.step).exp();
        Self { window, side, node, above: Above::default(), fall, rise, weight: 0.0, growth }
    }

    /// Moves one node down and returns the sums over the points above it.
    fn next(&mut self) -> Option<Above> {
        if self.node <= self.window.first {
            return None;
        }
        let window = self.window;
        let tilted = window.tilted[(self.node - window.first) as usize];
        let bound = match self.side {
            Side::Upper => tilted.max(0.0) + window.noise,
            Side::Lower => (tilted - window.noise).max(0.0),
        };
        // e^{−λL} by a product, anew every 64 points so that rounding stays below 1e-13.
        if self.node % 64 == 0 || self.weight == 0.0 {
            self.weight = (-window.tilt * (window.loss(self.node) - window.reference)).exp();
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
