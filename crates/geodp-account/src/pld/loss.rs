//! The privacy loss of one release: L(x) = ln(P(x)/Q(x)), its inverse, and the
//! masses P and Q put on an interval of losses.
//!
//! Every pair is a mixture of unit-shifted normals on a line (σ the noise):
//! | release | direction | P | Q |
//! |---|---|---|---|
//! | sampled | remove | (1−q)N₀ + qN₁ | N₀ |
//! | sampled | add | N₀ | (1−q)N₀ + qN₁ |
//! | sampled, replace-one | both | (1−q)N₀ + qN₁ | (1−q)N₀ + qN₋₁ |
//! | Gaussian | both | N₁ | N₀, σ = 1/μ |
//!
//! (Zhu, Dong & Wang, [arXiv:2106.08567](https://arxiv.org/abs/2106.08567), show
//! that these pairs dominate.) L is monotone in x, so an interval of losses is
//! an interval of x. P − Q is formed from q(N₁ − N₀) directly: for small q the
//! difference of the two masses would be all rounding.

use crate::event::Release;
use crate::normal::{interval, upper_tail};

/// Which of the two neighbours holds the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// P has the record, Q does not (or the pair is symmetric).
    Remove,
    /// Q has the record, P does not.
    Add,
}

/// Masses of one interval of losses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CellMass {
    pub(crate) p: f64,
    pub(crate) q: f64,
    /// p − q, without the cancellation.
    pub(crate) difference: f64,
    /// What rounding may have done to `difference`.
    pub(crate) rounding: f64,
}

impl CellMass {
    /// ln(p/q): the loss of the interval taken as one outcome.
    pub(crate) fn barycentre(&self) -> f64 {
        if self.difference.abs() < 0.5 * self.q {
            (self.difference / self.q).ln_1p()
        } else {
            self.p.ln() - self.q.ln()
        }
    }
}

/// A release seen from one direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pair: Pair,
    rate: f64,
    sigma: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Pair {
    Remove,
    Add,
    Replace,
}

/// Relative error of one interval mass: a few ulp times z², z ≤ 15.
const MASS_ERROR: f64 = 1e-13;

impl Loss {
    pub(crate) fn new(release: Release, direction: Direction) -> Self {
        match release {
            Release::Gaussian { mu } => Self { pair: Pair::Remove, rate: 1.0, sigma: 1.0 / mu },
            Release::Sampled { rate, sigma } => match direction {
                Direction::Remove => Self { pair: Pair::Remove, rate, sigma },
                Direction::Add => Self { pair: Pair::Add, rate, sigma },
            },
            Release::SampledReplace { rate, sigma } => Self { pair: Pair::Replace, rate, sigma },
        }
    }

    /// The x beyond which each component of P has mass below that of z standard deviations.
    pub(crate) fn x_range(&self, z: f64) -> (f64, f64) {
        match self.pair {
            Pair::Add => (-self.sigma * z, self.sigma * z),
            Pair::Remove if self.rate == 1.0 => (1.0 - self.sigma * z, 1.0 + self.sigma * z),
            Pair::Remove | Pair::Replace => (-self.sigma * z, 1.0 + self.sigma * z),
        }
    }

    /// Length of the interval of losses within z deviations.
    pub(crate) fn span(&self, z: f64) -> f64 {
        let (from, to) = self.x_range(z);
        (self.at(to) - self.at(from)).abs()
    }

    /// Length of the interval of losses within one deviation: nearly all of them, at small rates.
    pub(crate) fn peak_width(&self) -> f64 {
        let middle = if self.rate == 1.0 { 1.0 } else { 0.0 };
        (self.at(middle + self.sigma) - self.at(middle - self.sigma)).abs()
    }

    /// L(x).
    pub(crate) fn at(&self, x: f64) -> f64 {
        match self.pair {
            Pair::Remove => self.ln_mixture(x),
            Pair::Add => -self.ln_mixture(x),
            Pair::Replace => self.ln_mixture(x) - self.ln_mixture(-x),
        }
    }

    /// ln(1 − q + q e^{(2x−1)/2σ²}).
    fn ln_mixture(&self, x: f64) -> f64 {
        let exponent = (x - 0.5) / (self.sigma * self.sigma);
        if self.rate == 1.0 {
            exponent
        } else if exponent > 30.0 {
            exponent + self.rate.ln() + ((1.0 - self.rate) / self.rate * (-exponent).exp()).ln_1p()
        } else {
            (self.rate * exponent.exp_m1()).ln_1p()
        }
    }

    /// The x at which L(x) = loss; infinite where L never gets there.
    pub(crate) fn x_of(&self, loss: f64) -> f64 {
        match self.pair {
            Pair::Remove => self.x_of_mixture(loss),
            Pair::Add => self.x_of_mixture(-loss),
            Pair::Replace => {
                // With x = σ²(τ + w), τ = loss/2: sinh w = (1−q)/q · e^{1/2σ²} · sinh τ.
                let half = 0.5 * loss;
                let variance = self.sigma * self.sigma;
                let ln_factor = (-self.rate).ln_1p() - self.rate.ln() + 0.5 / variance;
                let w = if half.abs() > 300.0 || ln_factor > 300.0 {
                    let ln_sinh =
                        half.abs() + (-(-2.0 * half.abs()).exp()).ln_1p() - std::f64::consts::LN_2;
                    let ln_argument = ln_factor + ln_sinh;
                    let magnitude = if ln_argument > 30.0 {
                        ln_argument + std::f64::consts::LN_2
                    } else {
                        ln_argument.exp().asinh()
                    };
                    magnitude.copysign(half)
                } else {
                    (ln_factor.exp() * half.sinh()).asinh()
                };
                variance * (half + w)
            }
        }
    }

    fn x_of_mixture(&self, loss: f64) -> f64 {
        let variance = self.sigma * self.sigma;
        if self.rate == 1.0 {
            return variance * loss + 0.5;
        }
        let exponent = if loss > 30.0 {
            loss - self.rate.ln() + ((self.rate - 1.0) * (-loss).exp()).ln_1p()
        } else {
            let ratio = loss.exp_m1() / self.rate;
            if ratio <= -1.0 { return f64::NEG_INFINITY } else { ratio.ln_1p() }
        };
        variance * exponent + 0.5
    }

    /// Masses on the x-interval between two points, in either order.
    pub(crate) fn mass(&self, x_one: f64, x_two: f64) -> CellMass {
        let (from, to) = if x_one <= x_two { (x_one, x_two) } else { (x_two, x_one) };
        let normal = |mean: f64| interval((from - mean) / self.sigma, (to - mean) / self.sigma);
        let q = self.rate;
        let (without, with) = (normal(0.0), normal(1.0));
        let mixture = if q == 1.0 { with } else { (1.0 - q) * without + q * with };
        let (p, q_mass, difference, scale) = match self.pair {
            Pair::Remove => (mixture, without, q * (with - without), q * (with + without)),
            Pair::Add => (without, mixture, q * (without - with), q * (with + without)),
            Pair::Replace => {
                let other = normal(-1.0);
                (mixture, (1.0 - q) * without + q * other, q * (with - other), q * (with + other))
            }
        };
        CellMass { p, q: q_mass, difference, rounding: MASS_ERROR * scale }
    }

    /// P-mass of losses below L(x_range.0 …) and above L(… x_range.1): what the lattice leaves out.
    pub(crate) fn outside(&self, z: f64) -> (f64, f64) {
        let (from, to) = self.x_range(z);
        let (below_x, above_x) = match self.pair {
            Pair::Add => (upper_tail(-from / self.sigma), upper_tail(to / self.sigma)),
            _ => {
                let q = self.rate;
                let below = (1.0 - q) * upper_tail(-from / self.sigma)
                    + q * upper_tail((1.0 - from) / self.sigma);
                let above = (1.0 - q) * upper_tail(to / self.sigma)
                    + q * upper_tail((to - 1.0) / self.sigma);
                (below, above)
            }
        };
        let (low_loss, high_loss) =
            if self.pair == Pair::Add { (above_x, below_x) } else { (below_x, above_x) };
        (low_loss * (1.0 + MASS_ERROR), high_loss * (1.0 + MASS_ERROR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_undoes_the_loss() {
        for (rate, sigma) in
            [(1e-9, 1.0), (1e-3, 0.6), (0.01, 2.0), (0.5, 0.05), (0.999, 10.0), (0.3, 100.0)]
        {
            for release in
                [Release::Sampled { rate, sigma }, Release::SampledReplace { rate, sigma }]
            {
                for direction in [Direction::Remove, Direction::Add] {
                    let loss = Loss::new(release, direction);
                    for z in [-6.0, -1.0, 0.1, 2.0, 8.0] {
                        let x = z * sigma;
                        let value = loss.at(x);
                        let back = loss.at(loss.x_of(value));
                        // Where L is flat x is lost, but L must come back.
                        if loss.x_of(value).is_finite() {
                            assert!(
                                (back - value).abs() <= 1e-12 * value.abs() + 1e-22,
                                "{release:?} {direction:?} {z}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn masses_and_tails_add_to_one() {
        for release in [
            Release::Gaussian { mu: 3.0 },
            Release::Sampled { rate: 0.2, sigma: 0.7 },
            Release::SampledReplace { rate: 0.2, sigma: 0.7 },
        ] {
            for direction in [Direction::Remove, Direction::Add] {
                let loss = Loss::new(release, direction);
                let (from, to) = loss.x_range(5.0);
                let (below, above) = loss.outside(5.0);
                assert!((loss.mass(from, to).p + below + above - 1.0).abs() < 1e-12);
            }
        }
    }
}
