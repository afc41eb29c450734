//! One cell of losses: its mass split to its two ends, so that its P- and Q-mass are kept, and the corners of the
//! tangents that lie below H in it.

use crate::pld::loss::CellMass;

/// A corner of the tangents that lie below H in a cell.
#[derive(Clone, Copy)]
pub(super) struct Corner {
    /// Its place in the cell: 0 at the left end, 1 at the right, linear in e^ε.
    pub(super) right_share: f64,
    pub(super) left_share: f64,
    /// How far it lies below the chord.
    pub(super) gap: f64,
}

/// One cell [ε, ε + h] of losses, and how its chord relates to H.
pub(super) struct Split {
    pub(super) p: f64,
    /// P − e^ε Q: what the cell adds to H at its lower end.
    pub(super) excess: f64,
    /// H lies above the polygon through these.
    pub(super) corners: [Corner; 2],
    /// Bound on the rounding error of `excess`.
    pub(super) rounding: f64,
}

impl Split {
    pub(super) fn new(halves: &[CellMass; 2], epsilon: f64, h: f64) -> Self {
        let [left, right] = halves;
        let whole = CellMass {
            p: left.p + right.p,
            q: left.q + right.q,
            difference: left.difference + right.difference,
            rounding: left.rounding + right.rounding,
        };
        let p = whole.p;
        if whole.q <= f64::MIN_POSITIVE {
            // Q underflows: all of P may sit at the upper end, and nothing is known below it.
            let corner = Corner { right_share: 0.5, left_share: 0.5, gap: p };
            return Self { p, excess: p, corners: [corner; 2], rounding: p };
        }
        // An atom (P, Q) is worth P(1 − e^{−u}) at the lower end, u = ln(P/Q) − ε.
        let height = |mass: &CellMass| {
            if mass.q <= 0.0 || mass.p <= 0.0 {
                return if mass.p > 0.0 { h } else { 0.0 };
            }
            (mass.barycentre() - epsilon).clamp(0.0, h)
        };
        let excess = p * -(-height(&whole)).exp_m1();
        let rounding = 2.0 * whole.rounding + 4.0 * f64::EPSILON * p * (epsilon.abs() + h.min(1.0));
        let up = excess / -(-h).exp_m1();
        // Tangents of H at the ends and the middle meet above the barycentres of the halves.
        let (low, high) = (height(left), height(right));
        let chord = |u: f64| up * -(u - h).exp_m1();
        let corner = |u: f64, gap: f64| {
            let whole = -(-h).exp_m1();
            let left_share = -(u - h).exp_m1() / whole;
            Corner {
                right_share: (u - h).exp() * -(-u).exp_m1() / whole,
                left_share,
                gap: gap.max(0.0),
            }
        };
        let corners =
            [corner(low, chord(low) - right.p * -(low - high).exp_m1()), corner(high, chord(high))];
        Self { p, excess, corners, rounding }
    }
}
