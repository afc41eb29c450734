//! Random parameter sets against the PyPI package dp-accounting
//! (tests/golden/make_golden.py wrote the file).

use geodp_account::{Accountant, Adjacency, Event, PldAccountant, RdpAccountant};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    orders: Vec<f64>,
    sets: Vec<Set>,
    replace_one: Vec<ReplaceSet>,
}

#[derive(Deserialize)]
struct Set {
    sample_rate: f64,
    noise_multiplier: f64,
    steps: u64,
    delta: f64,
    pessimistic: f64,
    optimistic: f64,
    rdp_epsilon: f64,
    /// `null` where their series did not converge.
    rdp: Vec<Option<f64>>,
}

#[derive(Deserialize)]
struct ReplaceSet {
    sample_rate: f64,
    noise_multiplier: f64,
    steps: u64,
    delta: f64,
    pessimistic: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/dp_accounting.json")).expect("the golden file parses")
}

/// Their answers are exact to about their own interval and truncation only.
const ROOM: f64 = 2e-7;

#[test]
fn pld_lies_between_their_estimates() {
    for set in golden().sets {
        let mut accountant = PldAccountant::new(Adjacency::AddRemove);
        accountant
            .compose(&Event::sampled_gaussian(set.sample_rate, set.noise_multiplier), set.steps)
            .unwrap();
        let epsilon = accountant.epsilon(set.delta).unwrap();
        let name = format!(
            "q {} sigma {} T {} delta {}: {epsilon} against {} … {}",
            set.sample_rate,
            set.noise_multiplier,
            set.steps,
            set.delta,
            set.optimistic,
            set.pessimistic
        );
        assert!(epsilon.upper >= set.optimistic - ROOM, "{name}");
        assert!(epsilon.upper <= 1.005 * set.pessimistic + ROOM, "{name}");
        // Rounding of their FFT can put their bound below the truth (see tests/contour.rs).
        assert!(epsilon.lower <= set.pessimistic * (1.0 + 1e-4) + ROOM, "{name}");
        assert!(epsilon.width() <= 0.01 * epsilon.upper + ROOM, "{name}");
        assert_eq!(epsilon.reason, None, "{name}");
    }
}

#[test]
fn replace_one_agrees_with_theirs() {
    for set in golden().replace_one {
        let mut accountant = PldAccountant::new(Adjacency::ReplaceOne);
        accountant
            .compose(&Event::sampled_gaussian(set.sample_rate, set.noise_multiplier), set.steps)
            .unwrap();
        let epsilon = accountant.epsilon(set.delta).unwrap();
        let name = format!(
            "q {} sigma {} T {} delta {}: {epsilon} against {}",
            set.sample_rate, set.noise_multiplier, set.steps, set.delta, set.pessimistic
        );
        assert!(epsilon.lower <= set.pessimistic + ROOM, "{name}");
        assert!(epsilon.upper <= 1.005 * set.pessimistic + ROOM, "{name}");
        // Small answers are finer than their interval.
        assert!(epsilon.upper >= 0.98 * set.pessimistic - 2e-3, "{name}");
    }
}

#[test]
fn renyi_divergences_agree_with_theirs() {
    let golden = golden();
    for set in &golden.sets {
        let event = Event::sampled_gaussian(set.sample_rate, set.noise_multiplier);
        let mut one =
            RdpAccountant::with_orders(Adjacency::AddRemove, golden.orders.clone()).unwrap();
        one.compose(&event, 1).unwrap();
        for ((order, found), theirs) in one.divergences().zip(&set.rdp) {
            let Some(theirs) = theirs else { continue };
            let name = format!(
                "{} {} order {order}: {found} not {theirs}",
                set.sample_rate, set.noise_multiplier
            );
            if order.fract() == 0.0 {
                assert!((found - theirs).abs() <= 1e-6 * theirs + 1e-15, "{name}");
            } else {
                // Theirs bounds the alternating series by its absolute values.
                assert!(found <= theirs * (1.0 + 1e-6) + 1e-13, "{name}");
            }
        }
        let mut all = RdpAccountant::new(Adjacency::AddRemove);
        all.compose(&event, set.steps).unwrap();
        let epsilon = all.epsilon(set.delta).unwrap().upper;
        assert!(
            epsilon <= set.rdp_epsilon * (1.0 + 1e-6) + 1e-9,
            "{epsilon} above {}",
            set.rdp_epsilon
        );
        // Theirs leaves out orders whose series did not converge, so ours may be well below.
        assert!(epsilon >= set.optimistic, "{epsilon} below {}", set.optimistic);
    }
}
