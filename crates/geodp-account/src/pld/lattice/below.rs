//! The masses that the release dominates: the chords' points pushed down until the segments between them pass below
//! every corner, and the convex hull of what that gives.

use super::cell::Corner;
use super::mesh::Span;

/// How far each node must be pushed below the chords so that the segments
/// between pushed nodes pass below every corner.
///
/// Each push is the least its neighbour allows. Going from either tail towards
/// the peak the choice forgets its start; away from the peak it would swing.
pub(super) fn pushes(corners: &[[Corner; 2]], peak: usize) -> Vec<f64> {
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
pub(super) fn push_left(corners: &[Corner; 2], right: f64) -> f64 {
    least_push(
        corners.iter().map(|corner| (corner.gap - corner.right_share * right, corner.left_share)),
    )
}

/// The least push of a cell's right end, given that of its left end.
pub(super) fn push_right(corners: &[Corner; 2], left: f64) -> f64 {
    least_push(
        corners.iter().map(|corner| (corner.gap - corner.left_share * left, corner.right_share)),
    )
}

fn least_push(needs: impl Iterator<Item = (f64, f64)>) -> f64 {
    needs.fold(0.0, |most, (need, share)| if share > 0.0 { most.max(need / share) } else { most })
}

/// Masses, up to the last that is not 0, some of them negative.
pub(super) struct Dominated {
    pub(super) mass: Vec<f64>,
    pub(super) last: usize,
}

/// Masses whose H passes through the chords' points pushed below the true H; made convex by
/// [`convex_hull`], it stays below.
pub(super) fn dominated(
    upper: &[f64],
    pushes: &[f64],
    roundings: &[f64],
    spans: &[Span],
) -> Dominated {
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
pub(super) fn convex_hull(mass: &mut [f64], places: &[i64], h: f64) {
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
