//! One release's privacy loss on the lattice {i·h}: a pair that dominates it and
//! one that it dominates, both true to second order in the width of a cell.
//!
//! H(ε) = E_P[(1 − e^{ε−L})₊] is convex in t = e^ε. Any masses on the lattice
//! whose own H lies above (below) the true one at every ε bound δ from above
//! (below) after any composition, since δ of a composition is an average of H.
//! * Upper: chords through H at the lattice points ("connect the dots",
//!   Doroshenko et al., [arXiv:2207.04380](https://arxiv.org/abs/2207.04380)):
//!   each cell's mass goes to its two ends so that its P- and Q-mass are kept.
//! * Lower: a polygon with corners on the lattice that passes below the tangents
//!   of H in each cell, and the convex hull of its corners.
//!
//! Nothing of this asks for every point of the lattice: a [`Mesh`] says which are taken.

mod below;
mod cell;
mod mesh;
#[cfg(test)]
mod tests;

use super::loss::Loss;
use below::{Dominated, convex_hull, dominated, push_left, push_right, pushes};
use cell::Split;
pub(crate) use mesh::Mesh;
use mesh::spans;
use std::sync::Arc;

/// Relative error of all masses of a lattice together.
const TOTAL_ERROR: f64 = 4e-13;

/// Masses at offset + place·h for some places, rising, and the mass at infinite loss.
#[derive(Clone, Debug)]
pub(crate) struct Lattice {
    pub(crate) offset: f64,
    pub(crate) places: Arc<[i64]>,
    /// ln of the masses.
    pub(crate) ln_mass: Vec<f64>,
    pub(crate) infinite: f64,
}

/// The dominating and the dominated lattice of one release.
#[derive(Clone, Debug)]
pub(crate) struct LatticePair {
    pub(crate) upper: Lattice,
    pub(crate) lower: Lattice,
}

/// A lattice over a loss before its masses are known: point `node` is the loss offset + node·h.
struct Grid<'a> {
    loss: &'a Loss,
    h: f64,
    x_range: (f64, f64),
    offset: f64,
}

impl Grid<'_> {
    /// The x at a loss counted in half steps, within the range kept.
    fn x(&self, half_steps: i64) -> f64 {
        let (from, to) = self.x_range;
        self.loss.x_of(self.offset + 0.5 * self.h * half_steps as f64).clamp(from, to)
    }

    /// The cell between two places, whose lower end is at `x_left`; also its upper end.
    fn split(&self, from: i64, to: i64, x_left: f64) -> (Split, f64) {
        let (x_middle, x_right) = (self.x(from + to), self.x(2 * to));
        let halves = [self.loss.mass(x_left, x_middle), self.loss.mass(x_middle, x_right)];
        let width = (to - from) as f64 * self.h;
        (Split::new(&halves, self.offset + from as f64 * self.h, width), x_right)
    }

    /// How much further the cells above node 0 push it down than the cells below it.
    fn mismatch(&self) -> f64 {
        let mut x = self.x(-2 * NEIGHBOURHOOD);
        let mut below = 0.0;
        for node in -NEIGHBOURHOOD..0 {
            let (split, next) = self.split(node, node + 1, x);
            below = push_right(&split.corners, below);
            x = next;
        }
        let mut corners = Vec::with_capacity(NEIGHBOURHOOD as usize);
        for node in 0..NEIGHBOURHOOD {
            let (split, next) = self.split(node, node + 1, x);
            corners.push(split.corners);
            x = next;
        }
        corners.iter().rev().fold(0.0, |push, corners| push_left(corners, push)) - below
    }
}

/// Cells on either side of the peak that decide the offset.
const NEIGHBOURHOOD: i64 = 20;

/// Where the lattice starts counting: so that at the peak, where the pushes from
/// above and below meet, they agree. At small rates nearly all mass lies within
/// less than h; a lattice point that is not its barycentre would cost the lower
/// bound that distance at every step.
fn settle_offset(loss: &Loss, h: f64, x_range: (f64, f64)) -> f64 {
    let grid = |offset: f64| Grid { loss, h, x_range, offset };
    // First the barycentre of the losses within h/2 of it, near the median.
    let mut at = loss.at(0.5 * (x_range.0 + x_range.1));
    for _ in 0..6 {
        let cell = grid(at);
        let mass = loss.mass(cell.x(-1), cell.x(1));
        if mass.p <= 0.0 || mass.q <= f64::MIN_POSITIVE {
            return at;
        }
        at = mass.barycentre();
    }
    // The mismatch falls as the offset rises: one false-position step after another.
    let (mut low, mut high) = (at - 0.5 * h, at + 0.5 * h);
    let (mut at_low, mut at_high) = (grid(low).mismatch(), grid(high).mismatch());
    if !(at_low > 0.0 && at_high < 0.0) {
        return at;
    }
    let mut best = (at, f64::INFINITY);
    for round in 0..12 {
        let middle = if round % 3 == 2 {
            0.5 * (low + high)
        } else {
            (low * at_high - high * at_low) / (at_high - at_low)
        };
        let value = grid(middle).mismatch();
        if value.abs() < best.1 {
            best = (middle, value.abs());
        }
        if value.abs() < 1e-4 * h {
            break;
        }
        if value > 0.0 {
            (low, at_low) = (middle, value);
        } else {
            (high, at_high) = (middle, value);
        }
    }
    best.0
}

fn loss_range(loss: &Loss, z: f64) -> (f64, f64) {
    let (from, to) = loss.x_range(z);
    let (one, two) = (loss.at(from), loss.at(to));
    (one.min(two), one.max(two))
}

impl LatticePair {
    /// Discretises `loss` on a mesh, leaving out what lies beyond z deviations.
    pub(crate) fn new(loss: &Loss, mesh: Mesh, z: f64) -> Self {
        let h = mesh.step;
        let x_range = loss.x_range(z);
        let offset = settle_offset(loss, h, x_range);
        let grid = Grid { loss, h, x_range, offset };
        let (low, high) = loss_range(loss, z);
        let first = (((low - offset) / h).floor() as i64).min(-1);
        let last = (((high - offset) / h).ceil() as i64).max(1);
        let (below, above) = loss.outside(z);
        let places = mesh.places(first, last);

        let count = places.len() - 1;
        let mut upper = vec![0.0; count + 1];
        let mut corners = Vec::with_capacity(count);
        let mut roundings = Vec::with_capacity(count);
        let mut x_left = grid.x(2 * places[0]);
        let spans = spans(&places, h);
        for (cell, ends) in places.windows(2).enumerate() {
            let (split, x_right) = grid.split(ends[0], ends[1], x_left);
            x_left = x_right;
            let rise = spans[cell].rise;
            // Not `clamp`, which panics where a mass is not a number: see `is_sound`.
            let up = ((split.excess + split.rounding) / rise).max(0.0).min(split.p);
            upper[cell + 1] += up;
            upper[cell] += split.p - up;
            corners.push(split.corners);
            roundings.push(split.rounding);
        }
        let peak = places.partition_point(|place| *place < 0);
        let pushes = pushes(&corners, peak);
        let Dominated { mass: mut lower, last } = dominated(&upper, &pushes, &roundings, &spans);
        convex_hull(&mut lower[..=last], &places, h);
        upper.iter_mut().for_each(|mass| *mass *= 1.0 + TOTAL_ERROR);
        lower.iter_mut().for_each(|mass| *mass *= 1.0 - TOTAL_ERROR);
        // Losses below `low` are below the second node, not below the first.
        upper[1] += below;
        Self {
            upper: Lattice::new(offset, &places, &upper, above),
            lower: Lattice::new(offset, &places, &lower, 0.0),
        }
    }
}

impl LatticePair {
    /// Every mass is a number. At extreme losses one may not be, and then the pair bounds nothing.
    pub(crate) fn is_sound(&self) -> bool {
        [&self.upper, &self.lower].iter().all(|l| !l.ln_mass.iter().any(|mass| mass.is_nan()))
    }
}

impl Lattice {
    fn new(offset: f64, places: &Arc<[i64]>, mass: &[f64], infinite: f64) -> Self {
        let ln_mass = mass.iter().map(|mass| mass.ln()).collect();
        Self { offset, places: Arc::clone(places), ln_mass, infinite }
    }
}
