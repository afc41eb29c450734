//! Composition: the distribution of a sum of lattice losses near the ε in question.
//!
//! A plain FFT sees nothing below 1e-16 of the largest mass. So the masses are
//! first tilted by e^{λL} with λ at the saddle point: the tilted sum is centred
//! where the answer is, and every δ keeps its relative precision. The window is
//! as wide as Chernoff bounds of the tilted sum ask; what lies outside it, what
//! wraps around, and the rounding of both transforms are bounded and put on the
//! safe side of the answer.

use super::lattice::Lattice;
use super::spectrum::{self, MOST_POINTS, TiltedPart};
use super::window::Window;

/// The widest window of points that waves pass.
const MOST_PASSED: usize = 1 << 30;
/// −ln of the tilted mass allowed outside the window: less where tails are too heavy for more.
const WINDOW_EXPONENTS: [f64; 3] = [26.0, 18.0, 12.0];
/// λ²K″ above this many (λK′ − K) means a second hump.
const HEAVY: f64 = 3.0;
/// Steps down from it at most, and what they may add to the exponent of every error.
const MOST_LIGHTER: usize = 24;
const MOST_EXPONENT: f64 = 6.0;

/// ln E[e^{λL}] with its first two derivatives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cumulant {
    pub(crate) value: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

/// Independent losses on one lattice, each with a count.
pub(crate) struct Composition<'a> {
    pub(crate) step: f64,
    pub(crate) parts: Vec<(&'a Lattice, f64)>,
}

impl Composition<'_> {
    /// K(λ) of the sum. −∞ if a part has no mass.
    pub(crate) fn cumulant(&self, tilt: f64) -> Cumulant {
        let mut total = Cumulant::default();
        for (lattice, count) in &self.parts {
            let one = lattice.cumulant(tilt, self.step);
            total.value += count * one.value;
            total.mean += count * one.mean;
            total.variance += count * one.variance;
        }
        total
    }

    /// The tilt at which the Rényi bound on ε(δ) is least.
    pub(crate) fn tilt_for_delta(&self, delta: f64, start: f64) -> f64 {
        let target = -delta.ln();
        self.solve_tilt(start, |tilt, k| {
            let value = tilt * k.mean - k.value - target + tilt.ln_1p();
            (value, tilt * k.variance + 1.0 / (tilt + 1.0))
        })
    }

    /// The tilt at which the Rényi bound on δ(ε) is least.
    pub(crate) fn tilt_for_epsilon(&self, epsilon: f64, start: f64) -> f64 {
        self.solve_tilt(start, |tilt, k| {
            let value = k.mean - (1.0 / tilt).ln_1p() - epsilon;
            (value, k.variance + 1.0 / (tilt * (tilt + 1.0)))
        })
    }

    /// A tilt below `tilt` where the tilted sum has a lighter tail, and K there.
    ///
    /// The Rényi bound is often best at the tilt where single losses far beyond ε begin to weigh as
    /// much as all others: a little below they weigh next to nothing, and the window is many times
    /// shorter. In the Gaussian limit λ²K″ = 2(λK′ − K); a second hump makes it many times that. Any
    /// tilt gives a bound, but rounding errors grow by e^{K − λε}, of which this spends
    /// [`MOST_EXPONENT`]. Waves can afford that, transforms of all points cannot.
    fn lighter(&self, tilt: f64, epsilon: f64) -> (f64, Cumulant) {
        let start = self.cumulant(tilt);
        let (mut best, mut at) = (tilt, start);
        for _ in 0..MOST_LIGHTER {
            let is_light = best * best * at.variance <= HEAVY * (best * at.mean - at.value);
            let lower = 0.93 * best;
            if is_light {
                break;
            }
            let next = self.cumulant(lower);
            let excess = (next.value - start.value) + (tilt - lower) * epsilon;
            if excess > MOST_EXPONENT || next.value.is_nan() {
                break;
            }
            (best, at) = (lower, next);
        }
        (best, at)
    }

    /// The λ at which a rising function vanishes, roughly: any λ near the root serves.
    fn solve_tilt(&self, start: f64, function: impl Fn(f64, Cumulant) -> (f64, f64)) -> f64 {
        // Beyond this tilt neighbouring lattice points differ by e^20.
        let most = 20.0 / self.step;
        rising_root(1e-6, most, start, 0.02, |tilt| function(tilt, self.cumulant(tilt)))
    }

    /// Where the tilted sum leaves less than e^{−exponent} beyond, above or below.
    ///
    /// Chernoff: at most e^{K(λ+sθ) − K(λ) − θ·|reach|} for every θ > 0; θ is the best one, roughly.
    fn reach(&self, tilt: f64, at: Cumulant, exponent: f64, sign: f64) -> f64 {
        let target = exponent + 0.5;
        let start = (2.0 * target).sqrt() / at.variance.sqrt().max(self.step);
        let mut best = f64::INFINITY;
        rising_root(1e-9, 1e3 * start + 20.0 / self.step, start, 0.1, |theta| {
            let moved = self.cumulant(tilt + sign * theta);
            let gain = moved.value - at.value;
            best = best.min((gain + target) / theta);
            (theta * sign * moved.mean - gain - target, theta * moved.variance)
        });
        sign * best
    }

    /// The window for this tilt or one below, to ask about an ε of at most `epsilon`, or `None` where it
    /// would be too long or carries no mass.
    pub(crate) fn window(&self, tilt: f64, epsilon: f64) -> Option<Window> {
        let is_even = self.is_even();
        let (tilt, at) =
            if is_even { (tilt, self.cumulant(tilt)) } else { self.lighter(tilt, epsilon) };
        if !at.value.is_finite() || !at.mean.is_finite() {
            return None;
        }
        let offset: f64 = self.parts.iter().map(|(lattice, count)| count * lattice.offset).sum();
        let most_points = if is_even { MOST_POINTS } else { MOST_PASSED };
        let extent = |exponent: f64| {
            let reach = |sign: f64| (self.reach(tilt, at, exponent, sign) - offset) / self.step;
            (exponent, reach(-1.0).floor() - 1.0, reach(1.0).ceil() + 1.0)
        };
        let fits = |(_, low, high): &(f64, f64, f64)| {
            high - low < most_points as f64 && low.abs().max(high.abs()) < 1e15
        };
        let (exponent, low, high) = WINDOW_EXPONENTS.into_iter().map(extent).find(fits)?;
        let first = low as i64;
        let wanted = ((high - low + 1.0) as usize).max(16);
        let (masses, noise) =
            spectrum::sum_masses(&self.tilted_parts(tilt), first, wanted, (tilt, self.step))?;
        let infinite = self.parts.iter().map(|(lattice, count)| count * lattice.infinite).sum();
        let magnitude =
            at.value.abs() + tilt * (offset.abs() + self.step * low.abs().max(high.abs()));
        Some(Window {
            step: self.step,
            offset,
            first,
            tilt,
            masses,
            cumulant: at.value,
            reference: at.mean,
            noise,
            outside: 2.0 * (-exponent).exp(),
            infinite,
            scale_error: 8.0 * f64::EPSILON * (8.0 + magnitude) + 1e-11,
        })
    }

    /// Every lattice has all its points.
    fn is_even(&self) -> bool {
        self.parts.iter().all(|(lattice, _)| spectrum::are_consecutive(&lattice.places))
    }

    fn tilted_parts(&self, tilt: f64) -> Vec<TiltedPart> {
        let part = |(lattice, count): &(&Lattice, f64)| {
            let (mass, rounding) = lattice.tilted(tilt, self.step);
            TiltedPart::trimmed(&lattice.places, mass, rounding, *count)
        };
        self.parts.iter().map(part).collect()
    }
}

impl Lattice {
    /// ln E[e^{λL}] of one step, with derivatives.
    fn cumulant(&self, tilt: f64, step: f64) -> Cumulant {
        let slope = tilt * step;
        // Places count from the first here, so that they are small.
        let first = self.places[0];
        let points = || {
            let place = |place: &i64| (place - first) as f64;
            self.places.iter().map(place).zip(&self.ln_mass)
        };
        let largest =
            points().fold(f64::NEG_INFINITY, |most, (at, ln_mass)| most.max(ln_mass + slope * at));
        if largest == f64::NEG_INFINITY {
            return Cumulant { value: f64::NEG_INFINITY, ..Cumulant::default() };
        }
        let (mut sum, mut moment, mut second) = (0.0, 0.0, 0.0);
        for (at, ln_mass) in points() {
            let exponent = ln_mass + slope * at - largest;
            if exponent > -60.0 {
                let weight = exponent.exp();
                sum += weight;
                moment += weight * at;
                second += weight * at * at;
            }
        }
        let mean = moment / sum;
        Cumulant {
            value: sum.ln() + largest + slope * first as f64 + tilt * self.offset,
            mean: (mean + first as f64) * step + self.offset,
            variance: (second / sum - mean * mean).max(0.0) * step * step,
        }
    }

    /// The tilted, normalised masses, and a bound on the sum of their rounding errors.
    fn tilted(&self, tilt: f64, step: f64) -> (Vec<f64>, f64) {
        let slope = tilt * step;
        let value = self.cumulant(tilt, step).value - tilt * self.offset;
        let mut rounding = 0.0;
        let mass = self.places.iter().zip(&self.ln_mass).map(|(place, ln_mass)| {
            let lift = slope * *place as f64;
            let weight = (ln_mass + lift - value).exp();
            rounding += weight * (8.0 + lift.abs() + value.abs() - ln_mass.clamp(-1e3, 0.0));
            weight
        });
        let mass = mass.collect();
        (mass, if rounding.is_finite() { rounding * f64::EPSILON } else { f64::INFINITY })
    }
}

/// Bracketed Newton's method on ln x for a function that rises from below 0, given with
/// its slope; stops when x moves by less than `tolerance`, relatively.
fn rising_root(
    low: f64,
    high: f64,
    start: f64,
    tolerance: f64,
    mut function: impl FnMut(f64) -> (f64, f64),
) -> f64 {
    let (mut low, mut high) = (low.ln(), high.ln());
    let mut at = start.ln().clamp(low, high);
    for _ in 0..60 {
        let x = at.exp();
        let (value, slope) = function(x);
        if value > 0.0 {
            high = at;
        } else {
            low = at;
        }
        let newton = at - value / (x * slope);
        let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
        let moved = (next - at).abs();
        at = next;
        if moved < tolerance || !moved.is_finite() {
            break;
        }
    }
    at.exp()
}
