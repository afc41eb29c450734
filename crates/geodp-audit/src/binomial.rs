//! Tails of the binomial distribution, and the confidence limits that Clopper and Pearson (1934)
//! made of them.
//!
//! P[Bin(n, p) ≥ k] = I_p(k, n − k + 1), the regularised incomplete beta function, by Lentz's
//! continued fraction on the side where it converges fast. Relative precision is about 1e-12.

/// ln P[Bin(n, p) = k].
pub(crate) fn ln_pmf(n: u64, p: f64, k: u64) -> f64 {
    let (n, k) = (n as f64, k as f64);
    let choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    let power = |count: f64, ln: f64| if count == 0.0 { 0.0 } else { count * ln };
    choose + power(k, p.ln()) + power(n - k, (-p).ln_1p())
}

/// P[Bin(n, p) ≥ k].
pub(crate) fn at_least(n: u64, p: f64, k: u64) -> f64 {
    if k == 0 {
        1.0
    } else if k > n {
        0.0
    } else {
        incomplete_beta(k as f64, (n - k) as f64 + 1.0, p)
    }
}

/// The lower limit of p after k of n, with confidence 1 − `alpha`: the p with P[Bin ≥ k] = alpha.
pub(crate) fn lower_limit(n: u64, k: u64, alpha: f64) -> f64 {
    if k == 0 { 0.0 } else { bisect(|p| at_least(n, p, k) < alpha).0 }
}

/// The upper limit of p after k of n, with confidence 1 − `alpha`.
pub(crate) fn upper_limit(n: u64, k: u64, alpha: f64) -> f64 {
    if k >= n { 1.0 } else { 1.0 - lower_limit(n, n - k, alpha) }
}

/// The last point of [0, 1] where `below` holds, and the first where it does not.
fn bisect(below: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if high - low <= 1e-14 * high {
            break;
        }
        if below(middle) { low = middle } else { high = middle }
    }
    (low, high)
}

/// I_x(a, b) for a, b > 0 and 0 ≤ x ≤ 1.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    if x < (a + 1.0) / (a + b + 2.0) {
        (ln_front.exp() * fraction(a, b, x) / a).min(1.0)
    } else {
        (1.0 - ln_front.exp() * fraction(b, a, 1.0 - x) / b).max(0.0)
    }
}

/// The continued fraction of I_x(a, b), by Lentz's method as Thompson and Barnett wrote it.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let keep = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / keep(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    // It converges within about √max(a, b) terms on this side.
    for m in 1..100_000 {
        let m = f64::from(m);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / keep(1.0 + term * d);
            c = keep(1.0 + term / c);
            value *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tails against sums of the probabilities themselves.
    #[test]
    fn tails_are_sums() {
        for n in [1, 2, 7, 50, 1000] {
            for p in [1e-6, 0.01, 0.3, 0.5, 0.77, 0.999] {
                let mut tail = 0.0;
                for k in (0..=n).rev() {
                    tail += ln_pmf(n, p, k).exp();
                    let found = at_least(n, p, k);
                    assert!(
                        (found - tail).abs() < 1e-10 * tail + 1e-290,
                        "{n} {p} {k}: {found} {tail}"
                    );
                }
            }
        }
    }

    /// Limits where they are known: all or none of n; the rest from `tests/golden/make_golden.py`.
    #[test]
    fn limits_of_clopper_and_pearson() {
        assert_eq!((lower_limit(10, 0, 0.05), upper_limit(10, 10, 0.05)), (0.0, 1.0));
        assert!((lower_limit(100, 100, 0.05) - 0.05f64.powf(0.01)).abs() < 1e-12);
        assert!((upper_limit(100, 0, 0.05) - (1.0 - 0.05f64.powf(0.01))).abs() < 1e-12);
        assert!((lower_limit(100, 37, 0.025) - 0.275_566_579_614_55).abs() < 1e-12);
        assert!((upper_limit(100, 37, 0.025) - 0.472_351_640_551_68).abs() < 1e-12);
        assert!((lower_limit(1_000_000, 1200, 0.025) - 1.133_094_286_185_5e-3).abs() < 1e-12);
    }

    /// The limits do what they promise: P[Bin ≥ k] at the lower limit is alpha.
    #[test]
    fn limits_invert_tails() {
        for (n, k) in [(20, 1), (20, 19), (5000, 2500), (1_000_000, 3)] {
            for alpha in [0.001, 0.05] {
                let low = lower_limit(n, k, alpha);
                assert!((at_least(n, low, k) / alpha - 1.0).abs() < 1e-6);
                let high = upper_limit(n, k, alpha);
                assert!(((1.0 - at_least(n, high, k + 1)) / alpha - 1.0).abs() < 1e-6);
            }
        }
    }
}
