//! Single steps against direct integration of the two densities.
//!
//! δ(ε) = ∫ (p(x) − e^ε q(x))₊ dx, by composite Simpson on a grid fine enough for
//! 1e-11: written from the definition, sharing nothing with the accountant.

use geodp_account::{Accountant, Adjacency, Event, PldAccountant, RdpAccountant};

fn normal(x: f64, mean: f64, sigma: f64) -> f64 {
    let z = (x - mean) / sigma;
    (-0.5 * z * z).exp() / (sigma * (2.0 * std::f64::consts::PI).sqrt())
}

/// The positive part is integrated from where it starts, so the integrand is smooth.
fn hockey_stick(p: impl Fn(f64) -> f64, q: impl Fn(f64) -> f64, epsilon: f64, sigma: f64) -> f64 {
    let (low, high) = (-14.0 * sigma - 1.0, 14.0 * sigma + 1.0);
    let value = |x: f64| p(x) - epsilon.exp() * q(x);
    // The loss is monotone: find the one crossing by bisection.
    let (left, right) = (value(low) > 0.0, value(high) > 0.0);
    let (from, to) = if left == right {
        if left { (low, high) } else { return 0.0 }
    } else {
        let (mut a, mut b) = (low, high);
        for _ in 0..200 {
            let middle = 0.5 * (a + b);
            if (value(middle) > 0.0) == left { a = middle } else { b = middle }
        }
        if left { (low, a) } else { (b, high) }
    };
    let pieces = 20_000;
    let h = (to - from) / f64::from(pieces);
    let sum: f64 = (0..=pieces)
        .map(|i| {
            let weight = if i == 0 || i == pieces {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            };
            weight * value(from + h * f64::from(i))
        })
        .sum();
    sum * h / 3.0
}

fn check(event: &Event, adjacency: Adjacency, epsilon: f64, truth: f64) {
    let mut accountant = PldAccountant::new(adjacency);
    accountant.compose(event, 1).unwrap();
    let delta = accountant.delta(epsilon).unwrap();
    let room = 1e-11 + 1e-9 * truth;
    assert!(
        delta.lower <= truth + room && truth - room <= delta.upper,
        "{event:?} {adjacency} at {epsilon}: {truth:e} not in [{:e}, {:e}]",
        delta.lower,
        delta.upper
    );
    assert!(delta.width() <= 0.01 * delta.upper + 1e-13, "{event:?} at {epsilon}: {delta:?}");
    if truth > 1e-9 {
        let back = accountant.epsilon(truth).unwrap();
        assert!(
            back.lower <= epsilon * (1.0 + 1e-6) + 1e-9
                && epsilon * (1.0 - 1e-6) - 1e-9 <= back.upper,
            "{event:?} {adjacency}: epsilon {epsilon} not in {back}"
        );
    }
}

#[test]
fn one_step_of_each_kind() {
    for (rate, sigma) in
        [(0.01, 1.0), (0.1, 0.6), (0.5, 3.0), (0.001, 0.5), (0.9, 1.2), (0.3, 20.0)]
    {
        let without = |x: f64| normal(x, 0.0, sigma);
        let with = |x: f64| (1.0 - rate) * normal(x, 0.0, sigma) + rate * normal(x, 1.0, sigma);
        let other = |x: f64| (1.0 - rate) * normal(x, 0.0, sigma) + rate * normal(x, -1.0, sigma);
        let event = Event::sampled_gaussian(rate, sigma);
        for epsilon in [0.0, 0.003, 0.05, 0.3, 1.0, 2.5] {
            let remove = hockey_stick(with, without, epsilon, sigma);
            let add = hockey_stick(without, with, epsilon, sigma);
            check(&event, Adjacency::AddRemove, epsilon, remove.max(add));
            let replace = hockey_stick(with, other, epsilon, sigma);
            check(&event, Adjacency::ReplaceOne, epsilon, replace);
        }
    }
    for sigma in [0.4, 1.0, 5.0] {
        for epsilon in [0.0, 0.1, 1.0, 4.0] {
            let truth =
                hockey_stick(|x| normal(x, 1.0, sigma), |x| normal(x, 0.0, sigma), epsilon, sigma);
            check(&Event::gaussian(sigma), Adjacency::AddRemove, epsilon, truth);
            let twice = hockey_stick(
                |x| normal(x, 2.0, sigma),
                |x| normal(x, 0.0, sigma),
                epsilon,
                sigma + 0.2,
            );
            check(&Event::gaussian(sigma), Adjacency::ReplaceOne, epsilon, twice);
            check(
                &Event::ShuffledEpoch { noise_multiplier: sigma },
                Adjacency::ReplaceOne,
                epsilon,
                twice,
            );
        }
    }
}

/// R(α) = ln E[(1−q + q e^{(2z−1)/2σ²})^α] / (α − 1), z ~ N(0, σ²), by Simpson's rule.
fn renyi(rate: f64, sigma: f64, order: f64) -> f64 {
    let (low, high) = (-14.0 * sigma, order + 14.0 * sigma);
    let pieces = 40_000;
    let h = (high - low) / f64::from(pieces);
    let sum: f64 = (0..=pieces)
        .map(|i| {
            let z = low + h * f64::from(i);
            let weight = if i == 0 || i == pieces { 1.0 } else { 2.0 + 2.0 * f64::from(i % 2) };
            let ratio = 1.0 - rate + rate * ((z - 0.5) / (sigma * sigma)).exp();
            weight * normal(z, 0.0, sigma) * ratio.powf(order)
        })
        .sum();
    (sum * h / 3.0).ln() / (order - 1.0)
}

#[test]
fn renyi_divergence_at_whole_and_broken_orders() {
    let orders = vec![1.1, 1.5, 2.5, 3.7, 7.0, 9.3, 10.9];
    for (rate, sigma) in
        [(0.01, 1.0), (0.3, 2.0), (0.5, 0.8), (0.05, 0.7), (0.75, 3.0), (0.002, 1.5)]
    {
        let mut one = RdpAccountant::with_orders(Adjacency::AddRemove, orders.clone()).unwrap();
        one.compose(&Event::sampled_gaussian(rate, sigma), 1).unwrap();
        for (order, found) in one.divergences() {
            let truth = renyi(rate, sigma, order);
            assert!(
                found >= truth - 1e-12 * (1.0 + truth),
                "{rate} {sigma} {order}: {found} below {truth}"
            );
            // Slowly converging series are cut after 1000 terms, and the last is added.
            let room = 1e-5;
            assert!(
                found <= truth * (1.0 + room) + 1e-12,
                "{rate} {sigma} {order}: {found} above {truth}"
            );
        }
    }
}
