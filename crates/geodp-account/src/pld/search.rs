//! One question, one direction: refines the lattice until the bracket is tight.
//!
//! Both lattices are true to second order, so the bracket's width falls with h²
//! and one measurement tells the next step. The first step comes from the
//! Gaussian limit, where the width is about α·T·h²/8 at the order α that the
//! Rényi bound chose. Steps are powers of 2^{1/4}, so neighbouring questions
//! (the next training step, the next candidate of a calibration) share lattices.

use super::compose::Composition;
use super::lattice::LatticePair;
use super::loss::{Direction, Loss};
use super::window::Side;
use crate::event::Release;
use crate::normal::tail_quantile;
use std::sync::{Arc, Mutex};

/// The first step is chosen for this share of the width, so that it mostly suffices.
const FIRST_SHARE: f64 = 0.67;
/// Lattice points of one release at most.
const MOST_CELLS: f64 = (1 << 18) as f64;
/// Refinements of the step at most.
const MOST_PASSES: usize = 6;
/// Lattices kept for later questions.
const MOST_CACHED: usize = 24;

/// What is asked of the composition.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Question {
    /// ε at this δ.
    EpsilonAt(f64),
    /// δ at this ε.
    DeltaAt(f64),
}

/// What the Rényi bound already tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hint {
    /// Its optimal order.
    pub(crate) order: f64,
    /// Its ε and δ: one is given, the other a bound.
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    /// Width aimed at, relative to the answer.
    pub(crate) width: f64,
}

/// Lattices made before: the key is (release, direction, step, z).
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Vec<(CacheKey, Arc<LatticePair>)>>);

type CacheKey = (Release, Direction, u64, u64);

impl Cache {
    fn get(&self, release: Release, direction: Direction, step: f64, z: f64) -> Arc<LatticePair> {
        let key = (release, direction, step.to_bits(), z.to_bits());
        // A poisoned lock only means that another thread stopped between two pushes.
        let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, pair)) = known.iter().find(|(known, _)| *known == key) {
            return Arc::clone(pair);
        }
        let pair = Arc::new(LatticePair::new(&Loss::new(release, direction), step, z));
        if known.len() >= MOST_CACHED {
            known.remove(0);
        }
        known.push((key, Arc::clone(&pair)));
        pair
    }
}

/// Widths that matter to nobody: 1e-7 in ε; any relative width matters in δ.
pub(crate) fn negligible(question: Question) -> f64 {
    match question {
        Question::EpsilonAt(_) => 1e-7,
        Question::DeltaAt(_) => 0.0,
    }
}

/// (lower, upper) for one direction, or `None` where nothing is certified.
///
/// Refinement stops at the width aimed at, or once the answer is known to be at most `floor`.
pub(crate) fn bracket(
    parts: &[(Release, u64)],
    direction: Direction,
    question: Question,
    hint: Hint,
    cache: &Cache,
    floor: Option<f64>,
) -> Option<(f64, f64)> {
    let losses: Vec<Loss> =
        parts.iter().map(|(release, _)| Loss::new(*release, direction)).collect();
    let steps: f64 = parts.iter().map(|(_, count)| *count as f64).sum();
    let mut delta = hint.delta.max(1e-300);
    let range = losses.iter().map(|loss| loss.span(8.0)).fold(0.0, f64::max);
    let mut step = first_step(question, hint, steps, range);
    if floor.is_some() {
        // To stay below the floor a coarse look mostly suffices.
        step *= 2.5;
    }
    let mut best: Option<(f64, f64)> = None;
    for _ in 0..MOST_PASSES {
        // Tails that cost at most 1e-5 of δ; rounded so that lattices are shared.
        let z = (4.0 * tail_quantile((1e-5 * delta / steps).ln())).ceil() / 4.0;
        let smallest =
            losses.iter().map(|loss| step_with_cells(loss, z)).fold(f64::MIN_POSITIVE, f64::max);
        if !smallest.is_finite() {
            return best;
        }
        let used = rounded(step.max(smallest));
        let found = one_pass(parts, direction, question, hint, used, z, cache);
        let at_limit = used > step * 1.2;
        if let Some((lower, upper)) = found {
            let merged = best.map_or((lower, upper), |(l, u)| (lower.max(l), upper.min(u)));
            best = Some(merged);
            let narrow = merged.1 - merged.0 <= (hint.width * merged.1).max(negligible(question));
            if narrow || at_limit || floor.is_some_and(|floor| merged.1 <= floor) {
                break;
            }
            if let Question::DeltaAt(_) = question {
                delta = merged.1.clamp(1e-300, delta);
            }
            let wanted = (hint.width * merged.1).max(0.5 * negligible(question));
            let shrink = (0.6 * wanted / (upper - lower)).sqrt();
            step = used * shrink.clamp(0.3, 0.6);
        } else {
            // Too long a transform: a coarser lattice still bounds.
            if best.is_some() {
                break;
            }
            step = used * 8.0;
        }
    }
    best
}

fn first_step(question: Question, hint: Hint, steps: f64, range: f64) -> f64 {
    let order = if hint.order.is_finite() { hint.order } else { 2.0 };
    // The width of ε aimed at; a δ moves by about α times as much, relatively.
    let width = match question {
        Question::EpsilonAt(_) => FIRST_SHARE * hint.width * hint.epsilon.clamp(1e-6, 1e6),
        Question::DeltaAt(_) => FIRST_SHARE * hint.width / order,
    };
    (8.0 * width / (order * steps)).sqrt().min(range / 64.0)
}

/// The smallest step that keeps a release within its number of cells.
fn step_with_cells(loss: &Loss, z: f64) -> f64 {
    loss.span(z) / MOST_CELLS
}

/// The next power of 2^{1/4} at or below.
fn rounded(step: f64) -> f64 {
    ((step.log2() * 4.0).floor() / 4.0).exp2()
}

fn one_pass(
    parts: &[(Release, u64)],
    direction: Direction,
    question: Question,
    hint: Hint,
    step: f64,
    z: f64,
    cache: &Cache,
) -> Option<(f64, f64)> {
    let pairs: Vec<Arc<LatticePair>> =
        parts.iter().map(|(release, _)| cache.get(*release, direction, step, z)).collect();
    // The second side's tilt is close to the first's.
    let mut start = (hint.order - 1.0).max(0.01);
    let mut side = |side: Side| {
        let composition = Composition {
            step,
            parts: pairs
                .iter()
                .zip(parts)
                .map(|(pair, (_, count))| {
                    let lattice = if side == Side::Upper { &pair.upper } else { &pair.lower };
                    (lattice, *count as f64)
                })
                .collect(),
        };
        let tilt = match question {
            Question::EpsilonAt(delta) => composition.tilt_for_delta(delta, start),
            Question::DeltaAt(epsilon) => composition.tilt_for_epsilon(epsilon, start),
        };
        start = tilt;
        let window = composition.window(tilt)?;
        match question {
            Question::EpsilonAt(delta) => window.epsilon(delta, side),
            Question::DeltaAt(epsilon) => window.delta(epsilon, side),
        }
    };
    let upper = side(Side::Upper)?.max(0.0);
    let lower = side(Side::Lower).unwrap_or(0.0).max(0.0);
    Some((lower.min(upper), upper))
}
