//! A sum's masses as few waves: t_j = Re Σ_{k ≤ K} c_k·e^{iω_k j}, ω_k = 2πk/N.
//!
//! δ needs two sums over the masses above a node, Σ t_j·e^{−λ(L_j − L)} and the same times
//! 1 − e^{L − L_j}. Over a wave these are geometric series with a closed form, so a node costs K
//! terms, and no mass is ever formed. For a million compositions K is about 50, N about 300,000.

use super::spectrum::{NEGLIGIBLE, TiltedPart};
use super::window::Above;
use realfft::num_complex::Complex64;
use std::f64::consts::PI;

/// Rounding of one term of a closed sum, relative to its bound: angles are true to 9 ulp, and there
/// are four.
const TERM_ROUNDING: f64 = 48.0 * f64::EPSILON;
/// Terms of the autocorrelation that [`highest_wave`] may form.
const MOST_PAIRS: usize = 400_000;
/// Start over end of the intervals that [`highest_wave`] goes down by.
const INTERVAL: f64 = 0.93;
/// Places that share their phases, up to one factor, in [`low_spectrum`].
const BLOCK: usize = 32;
/// Phases of which the first are multiplied by one more each to give the rest, see [`turns`].
const STRIDE: usize = 8;

/// Masses at first, first + 1, …, first + points − 1, ready to be summed with weights e^{−λh} for
/// every node of distance.
pub(super) struct Waves {
    pub(super) points: usize,
    /// The highest point.
    top: i64,
    terms: Vec<Term>,
    /// λh and (λ + 1)h.
    decay: (f64, f64),
    /// Bound on the rounding of the sums.
    rounding: Above,
}

/// One wave: c_k, c_k·e^{iω_k·top}, and e^w/(e^w − 1) for w = iω_k − decay with both decays.
struct Term {
    wave: Complex64,
    at_top: Complex64,
    near: Complex64,
    far: Complex64,
}

impl Waves {
    /// From c_0, c_1, … (the factor 2/N of k > 0 and 1/N of k = 0 included), tilt λ and step h.
    pub(super) fn new(
        first: i64,
        points: usize,
        waves: &[Complex64],
        (tilt, step): (f64, f64),
    ) -> Self {
        let top = first + points as i64 - 1;
        let decay = (tilt * step, (tilt + 1.0) * step);
        let mut rounding = Above::default();
        let terms = waves.iter().enumerate().map(|(k, &wave)| {
            let one = angle(k, 1, points);
            let below = (exp_m1(-decay.0, one), exp_m1(-decay.1, one));
            let bound = (2.0 * wave.norm() / below.0.norm(), 2.0 * wave.norm() / below.1.norm());
            rounding.mass += TERM_ROUNDING * bound.0;
            rounding.height += TERM_ROUNDING * (bound.0 + bound.1);
            Term {
                wave,
                at_top: wave * Complex64::from_polar(1.0, angle(k, top, points)),
                near: Complex64::from_polar((-decay.0).exp(), one) / below.0,
                far: Complex64::from_polar((-decay.1).exp(), one) / below.1,
            }
        });
        let terms = terms.collect();
        Self { points, top, terms, decay, rounding }
    }

    /// Sums over the points above `node`: each mass moved by `shift` (its error bound, or minus it),
    /// and rounding added in the same direction.
    ///
    /// Σ_{m=1}^{M} c·e^{iω·node}·e^{mw} = c·(e^{−decay·M}·e^{iω·top} − e^{iω·node})·e^w/(e^w − 1).
    pub(super) fn above(&self, node: i64, shift: f64) -> Above {
        let length = (self.top - node) as f64;
        let left = ((-self.decay.0 * length).exp(), (-self.decay.1 * length).exp());
        let (mut mass, mut far_mass) = (0.0, 0.0);
        let turns = turns(|k| angle(k, node, self.points));
        for (term, turn) in self.terms.iter().zip(turns) {
            let start = term.wave * turn;
            mass += ((term.at_top * left.0 - start) * term.near).re;
            far_mass += ((term.at_top * left.1 - start) * term.far).re;
        }
        // The same for a mass of 1 at every point.
        let even = |decay: f64| (-decay * length).exp_m1() / -decay.exp_m1();
        let (near, far) = (even(self.decay.0), even(self.decay.1));
        let safe = 1f64.copysign(shift);
        Above {
            mass: mass + shift * near + safe * self.rounding.mass,
            height: mass - far_mass + shift * (near - far) + safe * self.rounding.height,
        }
    }
}

/// ω_k·j, reduced exactly.
fn angle(k: usize, j: i64, points: usize) -> f64 {
    // k is below 2²² and N at most 2³⁰, so the product of the reduced j with k is exact.
    let turns = (k as i64 * j.rem_euclid(points as i64)).rem_euclid(points as i64);
    2.0 * PI * turns as f64 / points as f64
}

/// e^{i·angle(k)} for k = 0, 1, …, where angle(k) is k·angle(1) up to whole turns: a product of two
/// that are computed, so that few sines are and errors do not build up.
fn turns(angle: impl Fn(usize) -> f64) -> impl Iterator<Item = Complex64> {
    let turn = move |k: usize| Complex64::from_polar(1.0, angle(k));
    let first: [Complex64; STRIDE] = std::array::from_fn(&turn);
    (0..).step_by(STRIDE).flat_map(move |k| {
        let start = turn(k);
        first.map(|turn| start * turn)
    })
}

/// Σ a·b over the places that both have, in eight sums that do not wait for one another.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let places = a.len().min(b.len());
    let (a, b) = (&a[..places], &b[..places]);
    let (mut a_eights, mut b_eights) = (a.chunks_exact(8), b.chunks_exact(8));
    let mut sums = [0.0f64; 8];
    for (a, b) in a_eights.by_ref().zip(b_eights.by_ref()) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest = a_eights.remainder().iter().zip(b_eights.remainder());
    sums.iter().sum::<f64>() + rest.map(|(a, b)| a * b).sum::<f64>()
}

/// e^{x+iy} − 1 without cancellation, for x ≤ 0.
fn exp_m1(x: f64, y: f64) -> Complex64 {
    let half = (0.5 * y).sin();
    Complex64::new(x.exp_m1() * y.cos() - 2.0 * half * half, x.exp() * y.sin())
}

/// The spectrum of one step at ω_0 … ω_highest, and a bound on the error of each value.
pub(super) fn low_spectrum(
    part: &TiltedPart,
    points: usize,
    highest: usize,
) -> (Vec<Complex64>, f64) {
    if part.is_even() {
        even_spectrum(part, points, highest)
    } else {
        sparse_spectrum(part, points, highest)
    }
}

/// The same for points that lie apart: place by place, each a geometric series in k.
fn sparse_spectrum(part: &TiltedPart, points: usize, highest: usize) -> (Vec<Complex64>, f64) {
    const WIDE: usize = STRIDE * STRIDE;
    let mut spectrum = vec![Complex64::default(); highest + 1];
    for (place, mass) in part.places.iter().zip(&part.mass) {
        let turn = |k: usize| Complex64::from_polar(1.0, -angle(k, *place, points));
        let units: [Complex64; STRIDE] = std::array::from_fn(turn);
        let eights: [Complex64; STRIDE] = std::array::from_fn(|k| turn(STRIDE * k) * mass);
        let first: [Complex64; WIDE] =
            std::array::from_fn(|k| eights[k / STRIDE] * units[k % STRIDE]);
        for (block, values) in spectrum.chunks_mut(WIDE).enumerate() {
            let start = turn(WIDE * block);
            for (value, first) in values.iter_mut().zip(&first) {
                *value += first * start;
            }
        }
    }
    let total: f64 = part.mass.iter().sum();
    // Three phases that are true to 9 ulp each; a running sum loses an ulp a term of what it holds.
    (spectrum, (part.mass.len() as f64 + 64.0) * f64::EPSILON * total)
}

fn even_spectrum(part: &TiltedPart, points: usize, highest: usize) -> (Vec<Complex64>, f64) {
    let first = part.places.first().copied().unwrap_or(0);
    let spectrum = (0..=highest).map(|k| {
        let (mut cosines, mut sines) = ([0.0; BLOCK], [0.0; BLOCK]);
        let within = turns(|place| -angle(k, place as i64, points));
        for ((cosine, sine), turn) in cosines.iter_mut().zip(&mut sines).zip(within) {
            (*cosine, *sine) = (turn.re, turn.im);
        }
        let starts = turns(|block| -angle(k, (block * BLOCK) as i64, points));
        let mut sum = Complex64::default();
        for (masses, start) in part.mass.chunks(BLOCK).zip(starts) {
            sum += Complex64::new(dot(masses, &cosines), dot(masses, &sines)) * start;
        }
        sum * Complex64::from_polar(1.0, -angle(k, first, points))
    });
    let total: f64 = part.mass.iter().sum();
    // Five phases that are true to 9 ulp each; a running sum loses an ulp a term of what it holds.
    let terms = (BLOCK + part.mass.len().div_ceil(BLOCK)) as f64 + 64.0;
    (spectrum.collect(), terms * f64::EPSILON * total)
}

/// The largest k ≤ N/2 at which the part's spectrum to the power of its count may exceed
/// e^[`NEGLIGIBLE`]; `None` where the bounds below do not show it.
///
/// With A_l = Σ_i p_i·p_{i+l}: |φ(ω)|² = (Σp)² − 2·Σ_l A_l·(1 − cos lω), over all lags l, and at most
/// that over the lags up to m.
/// Pairs may be left out of the sum over lags: only those among the consecutive places that hold the
/// peak are in it.
/// * ω in [a, b], b ≤ π/m: 1 − cos lω ≥ 1 − cos la, for one short interval below another.
/// * ω ≥ π/m: Σ_{l ≤ m} (1 − cos lω) = m + ½ − sin((m + ½)ω)/(2·sin ω/2) ≥ (m + 1)/2, as sin ω/2 ≥ ω/π.
pub(super) fn highest_wave(part: &TiltedPart, points: usize) -> Option<usize> {
    let mass = peak(part);
    let (total, mean, square) =
        mass.iter().enumerate().fold((0.0, 0.0, 0.0), |(total, mean, square), (at, mass)| {
            let at = at as f64;
            (total + mass, mean + mass * at, square + mass * at * at)
        });
    let deviation = (square / total - (mean / total).powi(2)).max(0.0).sqrt();
    if !(deviation.is_finite() && part.mass.iter().sum::<f64>() <= 1.0 + 1e-9) {
        return None;
    }
    let most = (MOST_PAIRS / mass.len()).max(1);
    let longest = (deviation as usize).clamp(1, most);
    let lags = ((3.0 * deviation) as usize).clamp(1, most);
    let pairs: Vec<f64> = (1..=lags).map(|lag| dot(mass, mass.get(lag..).unwrap_or(&[]))).collect();
    // |φ|² ≤ 1 + slack − loss, so its count/2-th power is small enough if loss is at least:
    let slack = 1e-8;
    let enough = slack - (2.0 * NEGLIGIBLE / part.count).exp_m1();
    let fewest = pairs[..longest].iter().copied().fold(f64::INFINITY, f64::min);
    if fewest * (longest + 1) as f64 <= enough {
        return None;
    }
    // Down from π/m, as long as an interval's lags do.
    let mut proved = PI / longest as f64;
    loop {
        let start = INTERVAL * proved;
        let within = ((PI / proved) as usize).clamp(1, lags);
        let missing = |(at, pairs): (usize, &f64)| {
            let half = (0.5 * start * (at + 1) as f64).sin();
            4.0 * pairs * half * half
        };
        if pairs[..within].iter().enumerate().map(missing).sum::<f64>() < enough {
            break;
        }
        proved = start;
    }
    Some((proved * points as f64 / (2.0 * PI)).ceil() as usize)
}

/// The masses at the longest stretch of consecutive places.
fn peak(part: &TiltedPart) -> &[f64] {
    let stretches = part.places.chunk_by(|one, next| next - one == 1);
    let ends = stretches.scan(0, |end, stretch| {
        *end += stretch.len();
        Some((stretch.len(), *end))
    });
    let (length, end) = ends.max().unwrap_or_default();
    &part.mass[end - length..end]
}
