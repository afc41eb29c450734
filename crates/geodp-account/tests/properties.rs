//! What holds for every parameter: order, monotony, composition, the two ways round.

use geodp_account::{Accountant, Adjacency, Bracket, Event, PldAccountant, RdpAccountant};
use proptest::prelude::*;

fn composed(events: &[(Event, u64)], adjacency: Adjacency) -> PldAccountant {
    let mut accountant = PldAccountant::new(adjacency);
    for (event, count) in events {
        accountant.compose(event, *count).unwrap();
    }
    accountant
}

fn epsilon(rate: f64, sigma: f64, steps: u64, delta: f64) -> Bracket {
    composed(&[(Event::sampled_gaussian(rate, sigma), steps)], Adjacency::AddRemove)
        .epsilon(delta)
        .unwrap()
}

prop_compose! {
    fn parameters()(rate in -4.0..0.0f64, sigma in -0.3..1.3f64, steps in 0.0..4.0f64, delta in -9.0..-1.0f64)
        -> (f64, f64, u64, f64) {
        (10f64.powf(rate).min(1.0), 10f64.powf(sigma), 10f64.powf(steps) as u64, 10f64.powf(delta))
    }
}

/// Brackets of a smaller and a larger truth.
fn in_order(smaller: Bracket, larger: Bracket) -> bool {
    smaller.lower <= larger.upper
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn brackets_are_ordered_tight_and_below_renyi((rate, sigma, steps, delta) in parameters()) {
        let found = epsilon(rate, sigma, steps, delta);
        prop_assert!(0.0 <= found.lower && found.lower <= found.upper);
        prop_assert!(found.width() <= 0.01 * found.upper + 1e-6, "{found}");
        let mut renyi = RdpAccountant::new(Adjacency::AddRemove);
        renyi.compose(&Event::sampled_gaussian(rate, sigma), steps).unwrap();
        prop_assert!(found.upper <= renyi.epsilon(delta).unwrap().upper);
    }

    #[test]
    fn more_noise_costs_less_and_more_use_costs_more((rate, sigma, steps, delta) in parameters(), by in 1.05..3.0f64) {
        let base = epsilon(rate, sigma, steps, delta);
        prop_assert!(in_order(epsilon(rate, sigma * by, steps, delta), base));
        prop_assert!(in_order(base, epsilon(rate, sigma, (steps as f64 * by).ceil() as u64, delta)));
        prop_assert!(in_order(base, epsilon((rate * by).min(1.0), sigma, steps, delta)));
        prop_assert!(in_order(epsilon(rate, sigma, steps, (delta * by).min(0.9)), base));
    }

    #[test]
    fn order_and_grouping_do_not_matter((rate, sigma, steps, delta) in parameters(), other in 0.6..4.0f64) {
        let (first, second) = (Event::sampled_gaussian(rate, sigma), Event::gaussian(10.0 * other));
        let steps = steps.min(200);
        let together = composed(&[(first.clone(), steps), (second.clone(), 3)], Adjacency::AddRemove);
        let mut apart = vec![(second.clone(), 1), (first.clone(), steps - steps / 2), (second, 2)];
        apart.extend((0..steps / 2).map(|_| (first.clone(), 1)));
        let apart = composed(&apart, Adjacency::AddRemove);
        let nested = Event::composed(vec![first.repeated(steps), Event::gaussian(10.0 * other).repeated(3)]);
        let nested = composed(&[(nested, 1)], Adjacency::AddRemove);
        let one = together.epsilon(delta).unwrap();
        for two in [apart.epsilon(delta).unwrap(), nested.epsilon(delta).unwrap()] {
            prop_assert!((one.upper - two.upper).abs() <= 1e-9 * one.upper + 1e-12, "{one} {two}");
            prop_assert!((one.lower - two.lower).abs() <= 1e-9 * one.upper + 1e-12, "{one} {two}");
        }
    }

    #[test]
    fn the_two_ways_round_meet((rate, sigma, steps, _) in parameters(), ln_delta in -18.0..-2.0f64) {
        let accountant = composed(&[(Event::sampled_gaussian(rate, sigma), steps)], Adjacency::AddRemove);
        let delta = ln_delta.exp();
        let there = accountant.epsilon(delta).unwrap();
        if there.lower > 1e-3 {
            // δ at the upper ε is at most the δ asked for; at the lower ε it is at least that.
            let above = accountant.delta(there.upper).unwrap();
            let below = accountant.delta(there.lower).unwrap();
            prop_assert!(above.lower <= delta * (1.0 + 1e-9), "{above:?} {delta}");
            prop_assert!(below.upper >= delta * (1.0 - 1e-9), "{below:?} {delta}");
        }
    }

    #[test]
    fn replacing_costs_more_than_adding((rate, sigma, steps, delta) in parameters()) {
        let event = [(Event::sampled_gaussian(rate, sigma), steps.min(500))];
        let add = composed(&event, Adjacency::AddRemove).epsilon(delta).unwrap();
        let replace = composed(&event, Adjacency::ReplaceOne).epsilon(delta).unwrap();
        prop_assert!(in_order(add, replace), "{add} {replace}");
    }
}
