//! Compositions against an oracle that shares nothing with the accountant: no lattice, no FFT.
//!
//! δ(ε) = (1/π) ∫₀^∞ Re[ M(s)^T e^{−sε} / (s(s+1)) ] du,  s = λ + iu,  M(s) = E_P[e^{sL}],
//! for any λ > 0. M is an integral over the line of an analytic function that dies like a normal
//! density, so the trapezoid rule is exact to rounding; so is the outer one.

use geodp_account::{Accountant, Adjacency, Event, PldAccountant, RdpAccountant};

/// e^{sL} integrated against P, for both directions: P(x) ∝ e^{ln_p}.
struct Line {
    ln_p: Vec<f64>,
    loss: Vec<f64>,
    step: f64,
}

impl Line {
    fn new(rate: f64, sigma: f64, remove: bool) -> Self {
        Self::with_points(1600, rate, sigma, remove)
    }

    fn with_points(points: u32, rate: f64, sigma: f64, remove: bool) -> Self {
        let (low, high) = (-24.0 * sigma, 24.0 * sigma + 1.0);
        let step = (high - low) / f64::from(points);
        let (mut ln_p, mut loss) = (Vec::new(), Vec::new());
        for i in 0..=points {
            let x = low + step * f64::from(i);
            let ln_normal =
                -0.5 * (x / sigma).powi(2) - (sigma * (2.0 * std::f64::consts::PI).sqrt()).ln();
            let a = rate.ln() + (x - 0.5) / (sigma * sigma);
            let b = (1.0 - rate).ln();
            let ln_mixture = a.max(b) + (-(a - b).abs()).exp().ln_1p();
            ln_p.push(if remove { ln_normal + ln_mixture } else { ln_normal });
            loss.push(if remove { ln_mixture } else { -ln_mixture });
        }
        Self { ln_p, loss, step }
    }

    /// ln |M(λ + iu)| and its argument.
    fn moment(&self, tilt: f64, u: f64) -> (f64, f64) {
        let (mut re, mut im) = (0.0, 0.0);
        for (ln_p, loss) in self.ln_p.iter().zip(&self.loss) {
            let size = (ln_p + tilt * loss).exp();
            let (sin, cos) = (u * loss).sin_cos();
            re += size * cos;
            im += size * sin;
        }
        ((re * self.step).hypot(im * self.step).ln(), im.atan2(re))
    }

    /// δ at each of `epsilons` after `steps` compositions.
    fn delta(&self, steps: f64, tilt: f64, epsilons: &[f64]) -> Vec<f64> {
        let at_zero = self.moment(tilt, 0.0).0;
        // The sum has mass over a few tens of losses at most, so this step is fine enough.
        let du = 0.05f64.min(2.0 / (1.0 + epsilons[0]));
        let mut sums = vec![0.0; epsilons.len()];
        let mut u = 0.0;
        loop {
            let (ln_size, phase) = self.moment(tilt, u);
            let decay = steps * (ln_size - at_zero);
            // 1 / (s(s+1))
            let (re, im) = (tilt * (tilt + 1.0) - u * u, u * (2.0 * tilt + 1.0));
            let square = re * re + im * im;
            for (sum, epsilon) in sums.iter_mut().zip(epsilons) {
                let size = (decay + steps * at_zero - tilt * epsilon).exp();
                let (sin, cos) = (steps * phase - u * epsilon).sin_cos();
                let half = if u == 0.0 { 0.5 } else { 1.0 };
                *sum += half * size * (cos * re + sin * im) / square;
            }
            if decay < -32.0 {
                return sums.iter().map(|sum| sum * du / std::f64::consts::PI).collect();
            }
            u += du;
        }
    }
}

#[test]
fn both_ends_of_the_bracket_are_on_their_side() {
    // The last set is one where dp-accounting's pessimistic estimate is below the truth: its FFT
    // loses what lies under 1e-16 of the largest mass.
    for (rate, sigma, steps, delta) in [
        (0.04, 1.5, 2250, 1e-5),
        (0.01, 1.0, 1000, 1e-5),
        (256.0 / 60000.0, 1.1, 14062, 1e-5),
        (0.1, 3.0, 512, 1e-6),
        (0.02, 2.0, 5000, 1e-12),
        (0.5, 10.0, 100, 1e-30),
        (0.001, 1.0, 1_000_000, 1e-6),
        (0.00035233668503152616, 0.5297775527930553, 11747, 4.501998623807553e-9),
    ] {
        let event = Event::sampled_gaussian(rate, sigma);
        let mut accountant = PldAccountant::new(Adjacency::AddRemove);
        accountant.compose(&event, steps).unwrap();
        let mut renyi = RdpAccountant::new(Adjacency::AddRemove);
        renyi.compose(&event, steps).unwrap();
        let tilt = renyi.optimal_order(delta).unwrap().order - 1.0;
        let (remove, add) = accountant.epsilon_by_direction(delta).unwrap();
        for (bracket, is_remove) in [(remove, true), (add, false)] {
            let line = Line::new(rate, sigma, is_remove);
            let found = line.delta(steps as f64, tilt, &[bracket.lower, bracket.upper]);
            let name =
                format!("{rate} {sigma} {steps} {delta:e} remove {is_remove}: {bracket} {found:?}");
            assert!(found[0] >= delta * (1.0 - 1e-7), "{name}");
            assert!(found[1] <= delta * (1.0 + 1e-7), "{name}");
        }
    }
}

/// Where rare large losses decide, lattices have cells that widen: both ends of both directions, and
/// as narrow as promised.
#[test]
fn rare_large_losses_are_bracketed() {
    for (sigma, delta) in [(0.889, 1e-7), (0.714, 1e-7), (0.576, 1e-6), (0.452, 1e-7)] {
        let (rate, steps) = (2.56e-4, 70_313);
        let event = Event::sampled_gaussian(rate, sigma);
        let mut accountant = PldAccountant::new(Adjacency::AddRemove);
        accountant.compose(&event, steps).unwrap();
        let mut renyi = RdpAccountant::new(Adjacency::AddRemove);
        renyi.compose(&event, steps).unwrap();
        // At the best order those losses weigh so much that the integral has to be long.
        let tilt = 0.7 * (renyi.optimal_order(delta).unwrap().order - 1.0);
        let (remove, add) = accountant.epsilon_by_direction(delta).unwrap();
        for (bracket, is_remove) in [(remove, true), (add, false)] {
            let line = Line::with_points(8000, rate, sigma, is_remove);
            let found = line.delta(steps as f64, tilt, &[bracket.lower, bracket.upper]);
            let name = format!("{sigma} {delta:e} remove {is_remove}: {bracket} {found:?}");
            assert!(found[0] >= delta * (1.0 - 1e-6), "{name}");
            assert!(found[1] <= delta * (1.0 + 1e-6), "{name}");
            assert!(bracket.width() <= 1.5e-3 * bracket.upper, "{name}");
        }
        let both = accountant.epsilon(delta).unwrap();
        assert!(both.contains(remove.lower.max(both.lower)) && both.lower > add.upper, "{both}");
    }
}
