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
//! Nothing of this asks for every point of the lattice. At small rates and little noise nearly all
//! mass lies within a few h and losses reach up to 10⁵ h: there a [`Mesh`] takes fewer points the
//! further from the peak, cells of a constant share of their distance, and 300 points do for 100,000.

use super::loss::{CellMass, Loss};
use std::sync::Arc;

/// Relative error of all masses of a lattice together.
const TOTAL_ERROR: f64 = 4e-13;

/// Which points of the lattice a release's masses may lie on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mesh {
    /// h.
    pub(crate) step: f64,
    /// Points closer to the peak than twice this are all taken, of those further out as many between
    /// any distance and its double. `None`: all are.
    pub(crate) core: Option<i64>,
}

impl Mesh {
    /// All points.
    #[cfg(test)]
    pub(crate) fn even(step: f64) -> Self {
        Self { step, core: None }
    }

    /// The points taken from one at or below `first` to one at or above `last`; 0 is the peak.
    fn places(&self, first: i64, last: i64) -> Arc<[i64]> {
        let Some(core) = self.core else { return (first..=last).collect() };
        // The distances 2ᵏ·core … 2ᵏ⁺¹·core are multiples of 2ᵏ, and so are their bounds.
        let outwards = |end: i64| {
            let next = move |place: &i64| {
                let width = 1i64 << (place / core).max(1).ilog2();
                (*place < end).then_some(place + width)
            };
            std::iter::successors(Some(0), next)
        };
        let mut places: Vec<i64> = outwards(-first).skip(1).map(|distance| -distance).collect();
        places.reverse();
        places.extend(outwards(last));
        places.into()
    }
}

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
            let up = ((split.excess + split.rounding) / rise).clamp(0.0, split.p);
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

impl Lattice {
    fn new(offset: f64, places: &Arc<[i64]>, mass: &[f64], infinite: f64) -> Self {
        let ln_mass = mass.iter().map(|mass| mass.ln()).collect();
        Self { offset, places: Arc::clone(places), ln_mass, infinite }
    }
}

/// What a cell's width w is to a chord in e^ε.
#[derive(Clone, Copy)]
struct Span {
    /// e^{−w}
    fall: f64,
    /// 1 − e^{−w}
    rise: f64,
}

/// The spans of the cells between places; neighbours mostly have the same.
fn spans(places: &[i64], h: f64) -> Vec<Span> {
    let of = |width: i64| {
        let width = width as f64 * h;
        Span { fall: (-width).exp(), rise: -(-width).exp_m1() }
    };
    let mut last = (1, of(1));
    let widths = places.windows(2).map(|ends| ends[1] - ends[0]);
    let spans = widths.map(|width| {
        if width != last.0 {
            last = (width, of(width));
        }
        last.1
    });
    spans.collect()
}

/// A corner of the tangents that lie below H in a cell.
#[derive(Clone, Copy)]
struct Corner {
    /// Its place in the cell: 0 at the left end, 1 at the right, linear in e^ε.
    right_share: f64,
    left_share: f64,
    /// How far it lies below the chord.
    gap: f64,
}

/// One cell [ε, ε + h] of losses, and how its chord relates to H.
struct Split {
    p: f64,
    /// P − e^ε Q: what the cell adds to H at its lower end.
    excess: f64,
    /// H lies above the polygon through these.
    corners: [Corner; 2],
    /// Bound on the rounding error of `excess`.
    rounding: f64,
}

impl Split {
    fn new(halves: &[CellMass; 2], epsilon: f64, h: f64) -> Self {
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

/// How far each node must be pushed below the chords so that the segments
/// between pushed nodes pass below every corner.
///
/// Each push is the least its neighbour allows. Going from either tail towards
/// the peak the choice forgets its start; away from the peak it would swing.
fn pushes(corners: &[[Corner; 2]], peak: usize) -> Vec<f64> {
    let mut pushes = vec![0.0f64; corners.len() + 1];
    for cell in (peak..corners.len()).rev() {
        pushes[cell] = push_left(&corners[cell], pushes[cell + 1]);
    }
    let mut push = 0.0;
    for cell in 0..peak {
        push = push_right(&corners[cell], push);
        pushes[cell + 1] = pushes[cell + 1].max(push);
    }
    pushes
}

/// The least push of a cell's left end, given that of its right end.
fn push_left(corners: &[Corner; 2], right: f64) -> f64 {
    least_push(
        corners.iter().map(|corner| (corner.gap - corner.right_share * right, corner.left_share)),
    )
}

/// The least push of a cell's right end, given that of its left end.
fn push_right(corners: &[Corner; 2], left: f64) -> f64 {
    least_push(
        corners.iter().map(|corner| (corner.gap - corner.left_share * left, corner.right_share)),
    )
}

fn least_push(needs: impl Iterator<Item = (f64, f64)>) -> f64 {
    needs.fold(0.0, |most, (need, share)| if share > 0.0 { most.max(need / share) } else { most })
}

/// Masses, up to the last that is not 0, some of them negative.
struct Dominated {
    mass: Vec<f64>,
    last: usize,
}

/// Masses whose H passes through the chords' points pushed below the true H; made convex by
/// [`convex_hull`], it stays below.
fn dominated(upper: &[f64], pushes: &[f64], roundings: &[f64], spans: &[Span]) -> Dominated {
    let nodes = upper.len();
    // H of the chords at each node, and how far the point there is pushed down.
    let mut height = vec![0.0; nodes];
    let mut push = vec![0.0; nodes];
    let (mut above, mut rounding) = (0.0, 0.0);
    for node in (0..nodes - 1).rev() {
        above += upper[node + 1];
        rounding += 2.0 * roundings[node];
        let Span { fall, rise } = spans[node];
        height[node] = rise * above + fall * height[node + 1];
        push[node] = pushes[node] + rounding;
    }
    let mut mass = vec![0.0; nodes];
    // The curve ends at zero on the last point before the first one pushed to zero.
    let positive = (0..nodes).take_while(|&node| height[node] > push[node]).count();
    if positive < 2 {
        return Dominated { mass, last: 0 };
    }
    let last = positive - 1;
    push[last] = height[last];
    mass[last] = (height[last - 1] - push[last - 1]) / spans[last - 1].rise;
    for node in 1..last {
        let (left, right) = (spans[node - 1], spans[node]);
        let bend = right.fall * (push[node + 1] - push[node]) / right.rise
            - (push[node] - push[node - 1]) / left.rise;
        mass[node] = upper[node] - bend;
    }
    mass[0] = upper[0] + push[0] - spans[0].fall * (push[1] - push[0]) / spans[0].rise;
    Dominated { mass, last }
}

/// Removes points that lie above the chord of their neighbours: a negative mass
/// goes to the neighbours, keeping P- and Q-mass, until none is left.
fn convex_hull(mass: &mut [f64], places: &[i64], h: f64) {
    let distance = |from: usize, to: usize| (places[to] - places[from]) as f64 * h;
    let mut kept: Vec<usize> = Vec::with_capacity(mass.len());
    for node in 0..mass.len() {
        while let Some(&top) = kept.last() {
            if mass[top] >= 0.0 {
                break;
            }
            kept.pop();
            let negative = std::mem::take(&mut mass[top]);
            match kept.last() {
                Some(&left) => {
                    let down = distance(left, top);
                    let whole = -(-distance(left, node)).exp_m1();
                    let to_right = -(-down).exp_m1() / whole;
                    let to_left = (-down).exp() * -(-distance(top, node)).exp_m1() / whole;
                    mass[node] += negative * to_right;
                    mass[left] += negative * to_left;
                }
                // Left of the first node the curve ends at t = 0, infinitely far down.
                None => mass[node] += negative,
            }
        }
        kept.push(node);
    }
    // The last point is the lowest, so what is negative there is rounding.
    if let Some(end) = mass.last_mut() {
        *end = end.max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Release;
    use crate::pld::loss::Direction;

    /// H(ε) of the losses of a lattice up to `most`.
    fn hockey_stick(lattice: &Lattice, h: f64, epsilon: f64, most: f64) -> f64 {
        let node = |at: usize| lattice.offset + lattice.places[at] as f64 * h;
        let masses = lattice.ln_mass.iter().enumerate().filter(|(at, _)| node(*at) <= most);
        masses.map(|(at, mass)| mass.exp() * -(epsilon - node(at)).min(0.0).exp_m1()).sum()
    }

    /// The places are all at the peak and ever further apart beyond, but never by more than a share of
    /// their distance.
    #[test]
    fn cells_widen_with_their_distance() {
        let mesh = Mesh { step: 1.0, core: Some(5) };
        let places = mesh.places(-33, 100_000);
        assert!(places[0] <= -33 && places[places.len() - 1] >= 100_000 && places.contains(&0));
        assert!(places[1] > -33 && places[places.len() - 2] < 100_000);
        assert!((-10..=10).all(|place| places.contains(&place)));
        for ends in places.windows(2) {
            let (width, distance) = (ends[1] - ends[0], ends[0].abs().min(ends[1].abs()));
            assert!(width >= 1 && (width == 1 || width * 5 <= distance), "{ends:?}");
        }
        assert!(places.len() < 120, "{}", places.len());
        assert_eq!(Mesh::even(1.0).places(-2, 3).to_vec(), [-2, -1, 0, 1, 2, 3]);
    }

    /// H(ε) of the release itself: P − e^ε·Q of the losses above ε.
    fn true_hockey_stick(loss: &Loss, rises: bool, epsilon: f64) -> f64 {
        let (from, to) = loss.x_range(38.0);
        let x = loss.x_of(epsilon).clamp(from, to);
        let above = if rises { loss.mass(x, to) } else { loss.mass(from, x) };
        above.difference - above.q * epsilon.exp_m1()
    }

    /// On widening cells, too, the upper lattice dominates the release and the release the lower one,
    /// at every ε: on points, between them, near the peak and far out.
    #[test]
    fn widening_cells_stay_on_their_side() {
        let releases = [
            Release::Gaussian { mu: 1.0 },
            Release::Sampled { rate: 2.56e-4, sigma: 0.7 },
            Release::Sampled { rate: 1e-3, sigma: 0.45 },
            Release::Sampled { rate: 0.1, sigma: 1.2 },
            Release::SampledReplace { rate: 0.01, sigma: 0.8 },
        ];
        for release in releases {
            for direction in [Direction::Remove, Direction::Add] {
                let loss = Loss::new(release, direction);
                let rises = loss.at(1.0) > loss.at(0.0);
                let peak = loss.peak_width();
                for (cells, core) in [(4.0, 4), (10.0, 9), (40.0, 30)] {
                    let h = peak / cells;
                    let LatticePair { upper, lower } =
                        LatticePair::new(&loss, Mesh { step: h, core: Some(core) }, 9.0);
                    let name = format!("{release:?} {direction:?} {core}");
                    let gap = |epsilon: f64| {
                        let truth = true_hockey_stick(&loss, rises, epsilon);
                        let most = hockey_stick(&upper, h, epsilon, f64::INFINITY) + upper.infinite;
                        let least = hockey_stick(&lower, h, epsilon, f64::INFINITY);
                        let room = 1e-11 * truth + 1e-18;
                        assert!(most >= truth - room, "{name} at {epsilon}: {most} < {truth}");
                        assert!(least <= truth + room, "{name} at {epsilon}: {least} > {truth}");
                        most - least
                    };
                    let mut widest = 0.0f64;
                    for place in -160..160 {
                        widest = widest.max(gap(upper.offset + 0.13 * h * f64::from(place)));
                    }
                    for place in upper.places.windows(2) {
                        for share in [0.0, 0.21, 0.5, 0.83] {
                            let place = place[0] as f64 + share * (place[1] - place[0]) as f64;
                            gap(upper.offset + h * place);
                        }
                    }
                    assert!(widest <= h, "{name}: {widest} apart");
                }
            }
        }
    }

    /// Where so much is cut off that the left tail weighs, the upper lattice still dominates it. The
    /// right tail, which counts as infinite loss, is left out on both sides: it would hide the left one.
    #[test]
    fn a_cut_left_tail_stays_dominated() {
        let releases = [
            Release::Gaussian { mu: 1.0 },
            Release::Sampled { rate: 0.1, sigma: 0.8 },
            Release::SampledReplace { rate: 0.2, sigma: 1.0 },
        ];
        for release in releases {
            for direction in [Direction::Remove, Direction::Add] {
                let loss = Loss::new(release, direction);
                let (h, fine) = (0.05, 0.0005);
                let truth = LatticePair::new(&loss, Mesh::even(fine), 9.0).lower;
                for z in [0.7, 1.5] {
                    let coarse = LatticePair::new(&loss, Mesh::even(h), z).upper;
                    let most = loss_range(&loss, z).1 - fine;
                    let start = coarse.offset + coarse.places[0] as f64 * h;
                    for place in -20..40 {
                        let epsilon = start + 0.1 * h * f64::from(place);
                        let ours = hockey_stick(&coarse, h, epsilon, f64::INFINITY);
                        let least = hockey_stick(&truth, fine, epsilon, most);
                        assert!(
                            ours >= least,
                            "{release:?}, {direction:?}, z = {z}, ε = {epsilon}: {ours} < {least}"
                        );
                    }
                }
            }
        }
    }
}
