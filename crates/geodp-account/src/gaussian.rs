//! The Gaussian mechanism, exactly: δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).
//!
//! Balle & Wang, [arXiv:1805.06530](https://arxiv.org/abs/1805.06530), Theorem 8,
//! with μ = sensitivity / noise. With a = μ/2 − ε/μ one has e^ε φ(a − μ) = φ(a),
//! so both terms are φ(a) times a Mills ratio: nothing overflows, and the
//! rounding error is bounded in closed form and put on the safe side.

use crate::normal::{density, mills, upper_tail};

/// δ(ε) of a Gaussian with the given μ, as (lower, upper).
pub(crate) fn delta_of(mu: f64, epsilon: f64) -> (f64, f64) {
    if mu == 0.0 {
        return (0.0, 0.0);
    }
    let spread = 0.5 * mu + epsilon / mu;
    let a = 0.5 * mu - epsilon / mu;
    if !spread.is_finite() || !a.is_finite() {
        return (0.0, 1.0);
    }
    let second = density(a) * mills(spread);
    let first = if a > 0.0 { 1.0 - upper_tail(a) } else { density(a) * mills(-a) };
    let rounding = 16.0 * f64::EPSILON * (1.0 + a.abs() * spread) * (first + second);
    let value = first - second;
    ((value - rounding).max(0.0), (value + rounding).min(1.0))
}

/// ε(δ) of a Gaussian with the given μ, as (lower, upper).
pub(crate) fn epsilon_of(mu: f64, delta: f64) -> (f64, f64) {
    if mu == 0.0 {
        return (0.0, 0.0);
    }
    // 1 − Φ(z) ≤ e^{−z²/2}, so δ is reached before this ε.
    let high = 0.5 * mu * mu + mu * (-2.0 * delta.ln()).sqrt();
    if !high.is_finite() {
        return (0.0, f64::INFINITY);
    }
    // Invariant of both searches: the claim holds at `fits` (upper) or fails at `fails` (lower).
    let upper = if delta_of(mu, 0.0).1 <= delta {
        0.0
    } else {
        bisect(high, |e| delta_of(mu, e).1 <= delta).1
    };
    let lower = if delta_of(mu, 0.0).0 < delta {
        0.0
    } else {
        bisect(high, |e| delta_of(mu, e).0 < delta).0
    };
    (lower.min(upper), upper)
}

/// Narrows (0, high] around the point where `below` turns true.
fn bisect(high: f64, below: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, high);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high || high - low <= 1e-14 * high {
            break;
        }
        if below(middle) { high = middle } else { low = middle }
    }
    (low, high)
}

/// The smallest noise multiplier whose single release is (ε, δ)-DP, rounded up.
///
/// # Guarantee
/// The result satisfies the target; a multiplier 1e-9 smaller (relatively) does not.
pub fn analytic_gaussian_sigma(epsilon: f64, delta: f64) -> Result<f64, crate::Error> {
    crate::error::check_epsilon(epsilon)?;
    crate::error::check_delta(delta)?;
    // δ(ε) falls in σ = 1/μ; search on a doubling scale, then bisect.
    let fits = |sigma: f64| delta_of(1.0 / sigma, epsilon).1 <= delta;
    let (mut low, mut high) = (1e-8, 1.0);
    while !fits(high) {
        low = high;
        high *= 2.0;
    }
    while high / low > 1.0 + 1e-12 {
        let middle = (low * high).sqrt();
        if fits(middle) { high = middle } else { low = middle }
    }
    Ok(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multipliers_of_the_published_table() {
        for (epsilon, sigma) in [
            (0.1, 30.749_566),
            (0.5, 7.031_827),
            (1.0, 3.730_632),
            (2.0, 1.993_812),
            (4.0, 1.081_162),
            (8.0, 0.600_229),
        ] {
            let found = analytic_gaussian_sigma(epsilon, 1e-5).unwrap();
            assert!((found - sigma).abs() < 1e-6, "{epsilon}: {found} vs {sigma}");
        }
    }

    #[test]
    fn two_ways_round_meet() {
        for mu in [1e-6, 1e-3, 0.1, 1.0, 20.0, 1e3, 2e5] {
            for delta in [1e-30, 1e-12, 1e-5, 0.1, 0.5] {
                let (lower, upper) = epsilon_of(mu, delta);
                assert!(0.0 <= lower && lower <= upper && upper.is_finite());
                assert!(upper - lower <= 1e-9 * upper + 1e-9, "{mu} {delta}: {lower} {upper}");
                if lower > 0.0 {
                    let (low, high) = delta_of(mu, upper);
                    assert!(low <= delta * (1.0 + 1e-9) && high <= delta, "{mu} {delta}");
                }
            }
        }
    }
}
