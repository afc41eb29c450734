//! The ends of the ranges: an answer, whatever is asked, and errors for what makes no sense.

use geodp_account::{Accountant, Adjacency, Error, Event, PldAccountant, RdpAccountant, Reason};

/// (q, σ, T): the ends of the ranges, and where numbers are least comfortable.
const CORNERS: [(f64, f64, u64); 21] = [
    (1e-9, 0.05, 1),
    (1e-9, 0.5, 1000),
    (1e-9, 1e3, 100_000_000),
    (1e-4, 0.05, 1000),
    (1e-4, 0.5, 1000),
    (1e-4, 20.0, 100_000_000),
    (0.002_56, 7.8e-5, 7_813),
    (0.002_133_333_3, 3.375_790_658_725_928_6e-5, 9_375),
    (0.002_56, 1e-10, 7_813),
    (0.1, 0.05, 1),
    (0.1, 0.05, 100_000_000),
    (0.1, 0.5, 1000),
    (0.1, 1e3, 1),
    (0.1, 1e3, 100_000_000),
    (0.3, 1e-7, 9_375),
    (0.3, 1e-40, 9_375),
    (0.999_999, 0.05, 1),
    (0.999_999, 0.05, 1000),
    (0.999_999, 20.0, 1000),
    (1.0, 0.05, 100_000_000),
    (1.0, 1e3, 1),
];

#[test]
fn every_corner_has_an_answer() {
    for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
        for (rate, sigma, steps) in CORNERS {
            let mut accountant = PldAccountant::new(adjacency);
            accountant.compose(&Event::sampled_gaussian(rate, sigma), steps).unwrap();
            for delta in [1e-30, 1e-6, 0.5] {
                let found = accountant.epsilon(delta).unwrap();
                let name =
                    format!("{adjacency} q {rate} sigma {sigma} T {steps} delta {delta}: {found}");
                assert!(found.lower >= 0.0 && found.lower <= found.upper, "{name}");
                assert!(found.upper.is_finite() || found.reason.is_some(), "{name}");
            }
            let back = accountant.delta(1.0).unwrap();
            assert!(0.0 <= back.lower && back.lower <= back.upper && back.upper <= 1.0, "{back:?}");
        }
    }
}

/// Steps of next to no noise with tests of ordinary noise between them, as SUR has: the answer is that of the steps,
/// and a little more. (The window for both once asked for a hundred million waves.)
#[test]
fn little_noise_composes_with_ordinary_noise() {
    let rate = 128.0 / 60_000.0;
    for (sigma, steps) in [(7.8125e-5, 79), (7.8125e-5, 869), (7.8125e-5, 7_813), (7.8125e-3, 869)]
    {
        let epsilon = |tested: bool| {
            let mut accountant = PldAccountant::new(Adjacency::AddRemove);
            accountant.compose(&Event::sampled_gaussian(rate, sigma), steps).unwrap();
            if tested {
                accountant.compose(&Event::sampled_gaussian(2.0 * rate, 1.0), steps).unwrap();
            }
            accountant.epsilon(0.999e-5).unwrap()
        };
        let (alone, both) = (epsilon(false), epsilon(true));
        let name = format!("sigma {sigma}, {steps} steps: {alone} alone, {both} with tests");
        assert!(both.upper.is_finite() && both.upper >= alone.lower, "{name}");
        assert!(both.upper <= 1.05 * alone.upper, "{name}");
    }
}

#[test]
fn large_epsilons_stay_tight() {
    let mut accountant = PldAccountant::new(Adjacency::AddRemove);
    accountant.compose(&Event::sampled_gaussian(0.5, 0.05), 50).unwrap();
    let found = accountant.epsilon(1e-5).unwrap();
    assert!(
        found.lower > 5e3 && found.upper < 2e4 && found.width() < 0.01 * found.upper,
        "{found}"
    );
}

#[test]
fn nothing_costs_nothing_and_no_noise_costs_everything() {
    let mut accountant = PldAccountant::new(Adjacency::AddRemove);
    assert_eq!(accountant.epsilon(1e-5).unwrap().upper, 0.0);
    accountant.compose(&Event::sampled_gaussian(0.0, 1.0), 1000).unwrap();
    accountant.compose(&Event::sampled_gaussian(0.1, 1.0), 0).unwrap();
    assert_eq!(accountant.epsilon(1e-5).unwrap().upper, 0.0);
    accountant.compose(&Event::NoPrivacy, 1).unwrap();
    let found = accountant.epsilon(1e-5).unwrap();
    assert_eq!((found.upper, found.reason), (f64::INFINITY, Some(Reason::NoPrivacy)));
    assert_eq!(accountant.delta(1.0).unwrap().upper, 1.0);
    let text = serde_json::to_string(&found).unwrap();
    assert!(text.contains("\"upper\":null"), "{text}");
    assert_eq!(serde_json::from_str::<geodp_account::Bracket>(&text).unwrap(), found);
}

#[test]
fn bad_input_is_refused() {
    let mut accountant = PldAccountant::new(Adjacency::AddRemove);
    for (rate, sigma) in [
        (-0.1, 1.0),
        (1.1, 1.0),
        (f64::NAN, 1.0),
        (0.5, 0.0),
        (0.5, -1.0),
        (0.5, f64::NAN),
        (0.5, f64::INFINITY),
    ] {
        let refused = accountant.compose(&Event::sampled_gaussian(rate, sigma), 1);
        assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{rate} {sigma}");
    }
    for delta in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(matches!(accountant.epsilon(delta), Err(Error::OutOfRange { .. })), "{delta}");
    }
    for epsilon in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(accountant.delta(epsilon), Err(Error::OutOfRange { .. })), "{epsilon}");
    }
    let many = Event::gaussian(1.0).repeated(u64::MAX).repeated(u64::MAX);
    assert!(matches!(accountant.compose(&many, 3), Err(Error::TooManySteps { .. })));
    let shuffled = Event::ShuffledEpoch { noise_multiplier: 1.0 };
    assert!(matches!(accountant.compose(&shuffled, 1), Err(Error::Unsupported { .. })));
    assert!(RdpAccountant::with_orders(Adjacency::AddRemove, vec![1.0]).is_err());
    // Nothing of what was refused was composed.
    assert_eq!(accountant.epsilon(1e-5).unwrap().upper, 0.0);
}

#[test]
fn events_keep_their_meaning_through_json() {
    let event = Event::composed(vec![
        Event::sampled_gaussian(0.01, 1.0).repeated(3),
        Event::ShuffledEpoch { noise_multiplier: 2.0 },
        Event::geometric(Event::gaussian(1.0), 0.1, 785),
        Event::NoPrivacy,
    ]);
    let text = serde_json::to_string(&event).unwrap();
    assert!(
        text.contains(r#"{"type":"sampled_gaussian","sample_rate":0.01,"noise_multiplier":1.0}"#),
        "{text}"
    );
    assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
}
