//! One question, one direction: refines the lattice until the bracket is tight.
//!
//! Both lattices are true to second order, so the bracket's width falls with h²
//! and one measurement tells the next step. The first step comes from the
//! Gaussian limit, where the width is about α·T·h²/8 at the order α that the
//! Rényi bound chose. Steps are powers of 2^{1/4}, so neighbouring questions
//! (the next training step, the next candidate of a calibration) share lattices.
//!
//! Where losses reach many steps far, cells widen with their distance l from the peak: a width of
//! l/c costs α·T·E[l²]/8c², and as α·T·E[l²] is about ε in that limit, c alone decides the width.

use super::compose::Composition;
use super::lattice::{LatticePair, Mesh};
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
/// Losses that reach more steps than this have cells that widen.
const WIDENING_PAYS: f64 = 3000.0;
/// At the peak of these the step is at most this share of an even lattice's: there the mass is, and it
/// costs little.
const PEAK_SHARE: f64 = 0.25;
/// It is also at most this share of the peak's width, but not below the least share.
const PEAK_CELL: f64 = 0.15;
const LEAST_SHARE: f64 = 0.03;
/// Cells at the peak beyond which all cells are made even.
const MOST_CORE: f64 = 3000.0;
/// Losses that reach further (σ below 1e-4) are left to the Rényi bound: masses on a lattice would not be
/// numbers any more.
const MOST_RANGE: f64 = 1e8;
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

impl Hint {
    fn order(&self) -> f64 {
        if self.order.is_finite() { self.order } else { 2.0 }
    }
}

/// Lattices made before: the key is (release, direction, mesh, z).
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<Vec<(CacheKey, Arc<LatticePair>)>>);

type CacheKey = (Release, Direction, Mesh, u64);

impl Cache {
    fn get(&self, release: Release, direction: Direction, mesh: Mesh, z: f64) -> Arc<LatticePair> {
        let key = (release, direction, mesh, z.to_bits());
        // A poisoned lock only means that another thread stopped between two pushes.
        let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, pair)) = known.iter().find(|(known, _)| *known == key) {
            return Arc::clone(pair);
        }
        let pair = Arc::new(LatticePair::new(&Loss::new(release, direction), mesh, z));
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
    let range = losses.iter().map(|loss| loss.span(8.0)).fold(0.0, f64::max);
    if range > MOST_RANGE {
        return None;
    }
    // To stay below the floor a coarse look mostly suffices.
    let coarser = if floor.is_some() { 2.5 } else { 1.0 };
    let step = first_step(question, hint, steps, range) * coarser;
    let peak = losses.iter().map(Loss::peak_width).fold(f64::INFINITY, f64::min);
    let asked = Asked { parts, losses, steps, direction, question, hint, cache, floor };
    let mut best = None;
    if range > WIDENING_PAYS * step {
        let share = (PEAK_CELL * peak / step).clamp(LEAST_SHARE, PEAK_SHARE);
        let core = first_core(question, hint) / coarser;
        best = asked.refine(step * share, Some(core), None);
        if best.is_some_and(|best| asked.is_enough(best)) {
            return best;
        }
    }
    asked.refine(step, None, best)
}

/// What does not change from one refinement to the next.
struct Asked<'a> {
    parts: &'a [(Release, u64)],
    losses: Vec<Loss>,
    /// Releases in all.
    steps: f64,
    direction: Direction,
    question: Question,
    hint: Hint,
    cache: &'a Cache,
    floor: Option<f64>,
}

impl Asked<'_> {
    /// As narrow as wanted, or not above the floor.
    fn is_enough(&self, (lower, upper): (f64, f64)) -> bool {
        upper - lower <= (self.hint.width * upper).max(negligible(self.question))
            || self.floor.is_some_and(|floor| upper <= floor)
    }

    /// The best bracket of several meshes from this one on, and `best`; cells widen if there is a core,
    /// and then it ends where waves do not pay.
    fn refine(
        &self,
        mut step: f64,
        mut core: Option<f64>,
        mut best: Option<(f64, f64)>,
    ) -> Option<(f64, f64)> {
        let mut delta = self.hint.delta.max(1e-300);
        let mut found_any = false;
        for _ in 0..MOST_PASSES {
            // Tails that cost at most 1e-5 of δ; rounded so that lattices are shared.
            let z = (4.0 * tail_quantile((1e-5 * delta / self.steps).ln())).ceil() / 4.0;
            let smallest = self.losses.iter().map(|loss| step_with_cells(loss, z));
            let smallest = smallest.fold(f64::MIN_POSITIVE, f64::max);
            if !smallest.is_finite() || core.is_some_and(|core| core > MOST_CORE) {
                return best;
            }
            let used = rounded(if core.is_some() { step } else { step.max(smallest) });
            let mesh = Mesh { step: used, core: core.map(|core| core.ceil() as i64) };
            let at_limit = used > step * 1.2;
            if let Some((lower, upper)) = self.one_pass(mesh, z) {
                found_any = true;
                let merged = best.map_or((lower, upper), |(l, u)| (lower.max(l), upper.min(u)));
                best = Some(merged);
                if self.is_enough(merged) || at_limit || (core.is_some() && lower == 0.0) {
                    break;
                }
                if let Question::DeltaAt(_) = self.question {
                    delta = merged.1.clamp(1e-300, delta);
                }
                let wanted = (self.hint.width * merged.1).max(0.5 * negligible(self.question));
                let shrink = (0.6 * wanted / (upper - lower)).sqrt().clamp(0.3, 0.6);
                step = used * shrink;
                core = core.map(|core| core / shrink);
            } else {
                // Too long a transform: a coarser lattice still bounds.
                if found_any || core.is_some() {
                    break;
                }
                step = used * 8.0;
            }
        }
        best
    }

    /// (lower, upper) by lattices on one mesh; the lower end is left at 0 where the upper one is not
    /// above the floor.
    fn one_pass(&self, mesh: Mesh, z: f64) -> Option<(f64, f64)> {
        let lattices =
            |(release, _): &(Release, u64)| self.cache.get(*release, self.direction, mesh, z);
        let pairs: Vec<Arc<LatticePair>> = self.parts.iter().map(lattices).collect();
        if !pairs.iter().all(|pair| pair.is_sound()) {
            return None;
        }
        // The second side's tilt is close to the first's.
        let mut start = (self.hint.order - 1.0).max(0.01);
        let mut side = |side: Side| {
            let parts = pairs.iter().zip(self.parts).map(|(pair, (_, count))| {
                let lattice = if side == Side::Upper { &pair.upper } else { &pair.lower };
                (lattice, *count as f64)
            });
            let composition = Composition { step: mesh.step, parts: parts.collect() };
            let tilt = match self.question {
                Question::EpsilonAt(delta) => composition.tilt_for_delta(delta, start),
                Question::DeltaAt(epsilon) => composition.tilt_for_epsilon(epsilon, start),
            };
            start = tilt;
            let window = composition.window(tilt, self.hint.epsilon)?;
            match self.question {
                Question::EpsilonAt(delta) => window.epsilon(delta, side),
                Question::DeltaAt(epsilon) => window.delta(epsilon, side),
            }
        };
        let upper = side(Side::Upper)?.max(0.0);
        if self.floor.is_some_and(|floor| upper <= floor) {
            return Some((0.0, upper));
        }
        let lower = side(Side::Lower).unwrap_or(0.0).max(0.0);
        Some((lower.min(upper), upper))
    }
}

fn first_step(question: Question, hint: Hint, steps: f64, range: f64) -> f64 {
    let width = FIRST_SHARE * epsilon_width(question, hint);
    (8.0 * width / (hint.order() * steps)).sqrt().min(range / 64.0)
}

/// c: by measurement, the lower the order, the more single large losses matter.
fn first_core(question: Question, hint: Hint) -> f64 {
    let relative = epsilon_width(question, hint) / hint.epsilon.clamp(1e-6, 1e6);
    ((0.5 + 10.0 / hint.order().max(4.0)) / relative).sqrt()
}

/// The width of ε aimed at; a δ moves by about α times as much, relatively.
fn epsilon_width(question: Question, hint: Hint) -> f64 {
    match question {
        Question::EpsilonAt(_) => hint.width * hint.epsilon.clamp(1e-6, 1e6),
        Question::DeltaAt(_) => hint.width / hint.order(),
    }
}

/// The smallest step that keeps a release within its number of cells.
fn step_with_cells(loss: &Loss, z: f64) -> f64 {
    loss.span(z) / MOST_CELLS
}

/// The next power of 2^{1/4} at or below.
fn rounded(step: f64) -> f64 {
    ((step.log2() * 4.0).floor() / 4.0).exp2()
}
