//! Calibration meets its target from below and closely; a budget never passes it; a statement names its kind.

use geodp_account::{
    Accountant, Adjacency, Budget, Certified, Error, Event, GeoDpStatement, Method, PldAccountant,
    calibrate,
};

const ADJACENCY: Adjacency = Adjacency::AddRemove;

fn upper(event: &Event, count: u64, delta: f64, adjacency: Adjacency) -> f64 {
    let mut accountant = PldAccountant::new(adjacency);
    accountant.compose(event, count).unwrap();
    accountant.epsilon(delta).unwrap().upper
}

fn assert_close(found: f64, target: f64, name: &str) {
    assert!(found <= target, "{name}: {found} exceeds {target}");
    assert!(found >= 0.999 * target, "{name}: {found} is not within 0.1 % of {target}");
}

#[test]
fn noise_meets_its_target() {
    for (epsilon, delta, rate, steps) in [
        (3.0, 1e-5, 0.01, 2000),
        (0.5, 1e-6, 0.005, 5000),
        (8.0, 1e-5, 0.2, 100),
        (1.0, 1e-9, 1.0, 1),
        (50.0, 1e-5, 0.1, 300),
    ] {
        let run = |sigma| Event::sampled_gaussian(rate, sigma).repeated(steps);
        let sigma = calibrate::noise_multiplier(epsilon, delta, ADJACENCY, run).unwrap();
        assert_close(
            upper(&run(sigma), 1, delta, ADJACENCY),
            epsilon,
            &format!("{epsilon} {rate} {steps}: {sigma}"),
        );
    }
    let epochs = |sigma| Event::ShuffledEpoch { noise_multiplier: sigma }.repeated(10);
    let sigma = calibrate::noise_multiplier(2.0, 1e-5, Adjacency::ReplaceOne, epochs).unwrap();
    assert_close(upper(&epochs(sigma), 1, 1e-5, Adjacency::ReplaceOne), 2.0, "shuffled");
}

#[test]
fn steps_and_rates_meet_theirs() {
    let event = Event::sampled_gaussian(0.01, 1.0);
    let steps = calibrate::steps(3.0, 1e-5, ADJACENCY, &event).unwrap();
    assert_close(upper(&event, steps, 1e-5, ADJACENCY), 3.0, "steps");
    assert_eq!(calibrate::steps(0.01, 1e-9, ADJACENCY, &Event::gaussian(0.5)).unwrap(), 0);
    let few = Event::gaussian(2.0);
    let steps = calibrate::steps(5.0, 1e-5, ADJACENCY, &few).unwrap();
    assert!(
        upper(&few, steps, 1e-5, ADJACENCY) <= 5.0 && upper(&few, steps + 1, 1e-5, ADJACENCY) > 5.0
    );

    let run = |rate| Event::sampled_gaussian(rate, 1.2).repeated(1000);
    let rate = calibrate::sample_rate(2.0, 1e-5, ADJACENCY, run).unwrap();
    assert_close(upper(&run(rate), 1, 1e-5, ADJACENCY), 2.0, "rate");
}

#[test]
fn what_cannot_be_reached_is_said() {
    let run = |_| Event::gaussian(0.1);
    let error = calibrate::noise_multiplier(1.0, 1e-5, ADJACENCY, run).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    assert!(calibrate::noise_multiplier(-1.0, 1e-5, ADJACENCY, Event::gaussian).is_err());
    assert!(calibrate::noise_multiplier(1.0, 0.0, ADJACENCY, Event::gaussian).is_err());
}

#[test]
fn a_budget_is_a_hard_stop() {
    let event = Event::sampled_gaussian(0.05, 1.0);
    let mut budget = Budget::new(2.0, 1e-5, ADJACENCY).unwrap();
    let mut spent = 0;
    while budget.spend(&event, 5).unwrap() {
        spent += 5;
        assert!(budget.spent().unwrap().upper <= 2.0);
    }
    assert!(spent > 0 && !budget.fits(&event, 5).unwrap());
    assert!(upper(&event, spent + 5, 1e-5, ADJACENCY) > 1.99);
    assert!(!budget.fits(&Event::NoPrivacy, 1).unwrap());
}

#[test]
fn geodp_has_a_statement_but_no_certificate() {
    let plain = Event::sampled_gaussian(0.1, 2.0);
    let event = Event::geometric(plain.clone(), 0.1, 785);
    for method in [Method::Pld, Method::Rdp] {
        let mut accountant = method.accountant(ADJACENCY);
        assert!(matches!(accountant.compose(&event, 1), Err(Error::Unsupported { .. })));
        let nested = Event::composed(vec![plain.clone(), event.clone()]).repeated(2);
        assert!(accountant.compose(&nested, 1).is_err());
        // The failed composition left nothing behind.
        assert_eq!(Certified::by(accountant.as_ref(), 1e-5).unwrap().epsilon().upper, 0.0);
    }
    let statement = GeoDpStatement::new(&event, 100, 1e-5, ADJACENCY, Method::Pld).unwrap();
    assert_eq!(statement.as_published.epsilon.upper, {
        let mut accountant = PldAccountant::new(ADJACENCY);
        accountant.compose(&plain, 100).unwrap();
        accountant.epsilon(1e-5).unwrap().upper
    });
    assert!(statement.conditional.epsilon.lower > statement.as_published.epsilon.upper);
    assert_eq!(statement.as_published.delta_prime_at_most, 0.9);
    let text = statement.to_string();
    assert!(text.starts_with("as published: ") && text.contains("\nconditional: "), "{text}");
    assert!(
        text.contains("δ′ ≤ 0.9") && text.contains("784 angles") && !text.contains("certified"),
        "{text}"
    );
    assert!(GeoDpStatement::new(&plain, 1, 1e-5, ADJACENCY, Method::Pld).is_err());
    assert!(
        GeoDpStatement::new(&Event::geometric(plain, 1.5, 3), 1, 1e-5, ADJACENCY, Method::Pld)
            .is_err()
    );
}
