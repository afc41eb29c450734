//! Every combination takes the same steps as the plain implementation, and resumes in the middle.

use super::{Points, combinations, plain};
use geodp::engine::Engine;
use geodp::trainer::Trainer;
use geodp::watch::Silent;
use geodp_mechanism::NoiseSource;

#[test]
fn every_combination_takes_the_steps_of_the_plain_implementation() {
    let points = Points::spread(40, 5);
    let facts = points.facts();
    let combinations = combinations(25);
    assert_eq!(combinations.len(), 2 * 3 * 4 * 4 - 3 * 4);
    let (mut rejected, mut steps) = (0, 0);
    for (at, (name, params)) in combinations.iter().enumerate() {
        let plan = params.check(facts).unwrap_or_else(|error| panic!("{name}: {error}"));
        let noise = NoiseSource::from_seed(at as u64);
        let (expected, accepted) = plain::train(&points, params, &noise);
        let start = vec![0.0; points.facts().dim];
        let mut trainer = Trainer::new(plan, &points, start, noise).unwrap();
        while trainer.step(&mut Silent).unwrap().is_some() {}
        for (got, expected) in trainer.weights().iter().zip(&expected) {
            assert!((got - expected).abs() < 2e-5, "{name}: {got} instead of {expected}");
        }
        if let Some(selection) = trainer.selection() {
            assert_eq!(selection.accepted, accepted, "{name}");
            assert_eq!(selection.accepted + selection.rejected, 25, "{name}");
            (rejected, steps) = (rejected + selection.rejected, steps + 25);
        }
    }
    assert!(rejected > steps / 10 && rejected < steps * 9 / 10, "{rejected} of {steps} rejected");
}
