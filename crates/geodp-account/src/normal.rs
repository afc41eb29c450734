//! The normal distribution where it matters here: far tails and narrow cells,
//! to relative precision.
//!
//! Mills' ratio m(x) = (1 − Φ(x)) / φ(x) carries the tails without underflow;
//! a cell too narrow for a difference of two tails is integrated by the Taylor
//! series of φ about its middle.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

const INV_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

/// φ(x).
pub(crate) fn density(x: f64) -> f64 {
    INV_SQRT_2PI * (-0.5 * x * x).exp()
}

/// 1 − Φ(x), to relative precision for x ≥ 0.
pub(crate) fn upper_tail(x: f64) -> f64 {
    0.5 * libm::erfc(x * FRAC_1_SQRT_2)
}

/// m(x) = (1 − Φ(x)) / φ(x) for x ≥ 0.
pub(crate) fn mills(x: f64) -> f64 {
    if x < 4.0 {
        return upper_tail(x) / density(x);
    }
    // Laplace's continued fraction 1/(x + 1/(x + 2/(x + 3/(x + …)))), from the
    // back; the further out, the fewer levels give full precision.
    let levels = if x < 6.0 {
        60
    } else if x < 10.0 {
        28
    } else {
        14
    };
    let mut tail = x;
    for level in (1..=levels).rev() {
        tail = x + f64::from(level) / tail;
    }
    1.0 / tail
}

/// ln Φ(x).
pub(crate) fn ln_cdf(x: f64) -> f64 {
    if x > 0.0 {
        (-upper_tail(x)).ln_1p()
    } else {
        mills(-x).ln() - 0.5 * x * x - 0.5 * (2.0 * PI).ln()
    }
}

/// Φ(b) − Φ(a) for a ≤ b, to a relative error of a few 1e-15.
pub(crate) fn interval(a: f64, b: f64) -> f64 {
    let half = 0.5 * (b - a);
    let middle = 0.5 * (a + b);
    if half * (1.0 + middle.abs()) <= 0.1 {
        // ∫ φ = 2r φ(m) Σ He₂ₖ(m) r²ᵏ / (2k+1)!; the next term is below 1e-17.
        let (m2, r2) = (middle * middle, half * half);
        let he4 = (m2 - 6.0) * m2 + 3.0;
        let he6 = ((m2 - 15.0) * m2 + 45.0) * m2 - 15.0;
        let he8 = (((m2 - 28.0) * m2 + 210.0) * m2 - 420.0) * m2 + 105.0;
        let series =
            1.0 + r2 / 6.0 * ((m2 - 1.0) + r2 / 20.0 * (he4 + r2 / 42.0 * (he6 + r2 / 72.0 * he8)));
        return 2.0 * half * density(middle) * series;
    }
    if a >= 0.0 {
        upper_tail(a) - upper_tail(b)
    } else if b <= 0.0 {
        upper_tail(-b) - upper_tail(-a)
    } else {
        1.0 - upper_tail(b) - upper_tail(-a)
    }
}

/// A z ≥ 0 with 1 − Φ(z) ≤ e^ln_tail, at most a little larger than need be.
pub(crate) fn tail_quantile(ln_tail: f64) -> f64 {
    // 1 − Φ(z) ≤ e^{−z²/2} / 2, and for large z one more factor 1/z is free.
    let first = (-2.0 * (ln_tail + std::f64::consts::LN_2)).max(0.0).sqrt();
    let excess = ((first * (2.0 * PI).sqrt() / 2.0).max(1.0)).ln();
    let second = (first * first - 2.0 * excess).max(0.0).sqrt();
    if ln_cdf(-second) <= ln_tail { second } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adaptive Simpson on φ: independent of erfc.
    fn simpson(a: f64, b: f64) -> f64 {
        let n = 4000;
        let h = (b - a) / f64::from(n);
        (0..=n)
            .map(|i| {
                let w = if i == 0 || i == n {
                    1.0
                } else if i % 2 == 1 {
                    4.0
                } else {
                    2.0
                };
                w * density(a + h * f64::from(i))
            })
            .sum::<f64>()
            * h
            / 3.0
    }

    #[test]
    fn intervals_match_quadrature() {
        for middle in [-13.0, -5.0, -1.0, -0.01, 0.0, 0.3, 2.0, 7.0, 14.0] {
            for half in [1e-6, 1e-3, 4e-3, 0.02, 0.05, 0.2] {
                let (a, b) = (middle - half, middle + half);
                let truth = simpson(a, b);
                assert!((interval(a, b) / truth - 1.0).abs() < 3e-10, "{middle} {half}");
            }
        }
    }

    #[test]
    fn series_and_difference_agree_where_they_meet() {
        for middle in [0.0, 0.5, 3.0, 9.0] {
            let half = 0.1 / (1.0 + middle);
            let inside = interval(middle - half * 0.999_999, middle + half * 0.999_999);
            let outside = interval(middle - half * 1.000_001, middle + half * 1.000_001);
            assert!((outside / inside - 1.0 - 2e-6).abs() < 2e-7, "{middle}");
        }
    }

    #[test]
    fn tails_are_bounded_by_their_quantile() {
        for ln_tail in [-0.8, -3.0, -20.0, -100.0, -400.0] {
            let z = tail_quantile(ln_tail);
            assert!(ln_cdf(-z) <= ln_tail, "{ln_tail}");
            assert!(ln_cdf(-z + 0.8) > ln_tail, "{ln_tail}");
        }
    }

    #[test]
    fn mills_ratio_is_continuous_at_the_switch() {
        let (below, above) = (mills(4.0 - 1e-9), mills(4.0));
        assert!((below / above - 1.0).abs() < 1e-8);
        for x in [4.0, 5.9, 6.0, 9.9, 10.0, 12.0, 30.0f64] {
            let many = (1..=400).rev().fold(x, |tail, level| x + f64::from(level) / tail);
            assert!((mills(x) * many - 1.0).abs() < 1e-15, "{x}");
        }
        assert!((mills(10.0) - 0.099_028_596_471_731_92).abs() < 1e-14);
    }
}
