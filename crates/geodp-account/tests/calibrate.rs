//! Calibration meets its target from below and closely; a budget never passes it; a claim names its kind.

use geodp_account::{
    Account, Accountant, Adjacency, Arithmetic, Budget, Claim, Denominator, Error, Event, Kind,
    Method, PldAccountant, Terms, calibrate,
};

const ADJACENCY: Adjacency = Adjacency::ZeroOut;
const TERMS: Terms = Terms {
    adjacency: ADJACENCY,
    delta: 1e-5,
    arithmetic: Arithmetic::FloatingPoint,
    denominator: Denominator::Batch(256),
    noise_draws: 0,
};

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
    // A million records in small batches: rare large losses decide, and every ε is as near.
    for (epsilon, delta) in [(0.5, 1e-7), (1.0, 1e-7), (2.0, 1e-6), (8.0, 1e-5)] {
        let run = |sigma| Event::sampled_gaussian(2.56e-4, sigma).repeated(70_313);
        let sigma = calibrate::noise_multiplier(epsilon, delta, ADJACENCY, run).unwrap();
        let mut accountant = PldAccountant::new(ADJACENCY);
        accountant.compose(&run(sigma), 1).unwrap();
        let found = accountant.epsilon(delta).unwrap();
        assert_close(found.upper, epsilon, &format!("{epsilon} {delta}: {sigma}"));
        assert!(found.width() <= 1.5e-3 * epsilon, "{epsilon} {delta}: {found}");
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
fn geodp_has_claims_but_no_certificate() {
    let plain = Event::sampled_gaussian(0.1, 2.0);
    let event = Event::geometric(plain.clone(), 0.1, 785);
    for method in [Method::Pld, Method::Rdp] {
        let mut accountant = method.accountant(ADJACENCY);
        assert!(matches!(accountant.compose(&event, 1), Err(Error::Unsupported { .. })));
        let nested = Event::composed(vec![plain.clone(), event.clone()]).repeated(2);
        assert!(accountant.compose(&nested, 1).is_err());
        // The failed composition left nothing behind.
        let nothing = Claim::certified(accountant.as_ref(), 1e-5, Arithmetic::FloatingPoint);
        assert_eq!(nothing.unwrap().upper(), 0.0);
    }
    let charged = |events: &[(&Event, u64)]| {
        let mut account = Account::new(TERMS);
        for (event, count) in events {
            account.charge(event, *count)?;
        }
        account.claims()
    };
    let claims = charged(&[(&event, 60), (&event, 40)]).unwrap();
    let kinds: Vec<Kind> = claims.iter().map(Claim::kind).collect();
    assert_eq!(kinds, [Kind::Conditional, Kind::AsPublished]);
    assert_eq!(claims[1].upper(), upper(&plain, 100, 1e-5, ADJACENCY));
    let halves = Event::sampled_gaussian(0.1, 2.0 / 2f64.sqrt());
    assert_eq!(claims[0].upper(), upper(&halves, 100, 1e-5, ADJACENCY));
    assert!(claims[0].epsilon().lower > claims[1].upper());
    assert_eq!(claims[1].delta_prime_at_most(), Some(0.9));
    let text = format!("{}\n{}", claims[0], claims[1]);
    assert!(text.starts_with("conditional ε = ") && text.contains("\nas published ε = "), "{text}");
    assert!(text.contains("+ δ″") && text.contains("δ′ up to 0.9"), "{text}");
    assert!(!text.contains("certified"), "{text}");
    let assumption = claims[0].assumption().unwrap();
    assert!(assumption.contains("784 angles") && assumption.contains("B = 256"), "{assumption}");
    // A part that is certified alone takes nothing of the assumption away, and costs its own ε.
    let both = charged(&[(&event, 100), (&plain, 10)]).unwrap();
    assert_eq!(both[0].kind(), Kind::Conditional);
    assert!(both[0].epsilon().lower > claims[0].upper());
    // Nor does anything hide a release without noise.
    let open = charged(&[(&event, 100), (&Event::NoPrivacy, 1), (&plain, 10)]).unwrap();
    assert!(open.len() == 1 && !open[0].is_private() && open[0].upper().is_infinite());
    assert!(charged(&[(&Event::geometric(plain.clone(), 1.5, 3), 1)]).is_err());
    let composed = Event::geometric(Event::composed(vec![plain.clone()]), 0.5, 3);
    assert!(charged(&[(&composed, 1)]).is_err());
    let certified = charged(&[(&plain, 100)]).unwrap();
    assert_eq!(certified.len(), 1);
    assert_eq!(certified[0].kind(), Kind::Certified);
    assert_eq!(certified[0].upper(), claims[1].upper());
}

/// A claim survives JSON, infinite ends included, and a bent bracket is straightened upwards.
#[test]
fn claims_come_back_from_json() {
    for event in [Event::sampled_gaussian(0.1, 2.0), Event::NoPrivacy] {
        let mut account = Account::new(TERMS);
        account.charge(&event, 5).unwrap();
        let claim = account.claim().unwrap();
        let text = serde_json::to_string(&claim).unwrap();
        assert_eq!(serde_json::from_str::<Claim>(&text).unwrap(), claim, "{text}");
    }
    let bent = r#"{"lower":3.0,"upper":-1.0,"adjacency":"zero-out"}"#;
    let bracket: geodp_account::Bracket = serde_json::from_str(bent).unwrap();
    assert_eq!((bracket.lower, bracket.upper), (0.0, 0.0));
}

/// The noise's left-over is paid for out of δ, and a δ too small for it certifies nothing.
#[test]
fn the_noises_left_over_is_in_delta() {
    let event = Event::sampled_gaussian(0.1, 2.0);
    let claim = |terms: Terms, event: &Event, count: u64| {
        let mut account = Account::new(terms);
        account.charge(event, count).unwrap();
        account.claim().unwrap()
    };
    let draws = |noise_draws, delta| Terms { noise_draws, delta, ..TERMS };
    let ideal = claim(TERMS, &event, 100).upper();
    let machine = claim(draws(1 << 30, 1e-5), &event, 100);
    assert!(machine.upper() > ideal && machine.upper() < 1.001 * ideal);
    let exact = Terms { arithmetic: Arithmetic::Exact, ..draws(1 << 30, 1e-18) };
    assert!(claim(exact, &event, 100).upper().is_finite());
    let refused = claim(draws(1 << 30, 1e-18), &event, 100);
    assert!(refused.upper().is_infinite() && refused.to_string().contains("δ is below"));
    let loud = claim(draws(1 << 30, 1e-5), &Event::gaussian(0.05), 1);
    assert!(loud.upper().is_infinite(), "{loud}");
}
