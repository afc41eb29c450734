//! The certified polar release costs its Gaussian and a term on δ.

use geodp_account::{
    Account, Accountant, Adjacency, Error, Event, Kind, Method, PldAccountant, RdpAccountant,
    calibrate, delta_of_misses,
};

const DELTA: f64 = 1e-5;
const MISS: f64 = 1e-12;

fn composed(method: Method, event: &Event, count: u64) -> Box<dyn Accountant + Send + Sync> {
    let mut accountant = method.accountant(Adjacency::ZeroOut);
    accountant.compose(event, count).unwrap();
    accountant
}

fn plain() -> Event {
    Event::sampled_gaussian(0.01, 1.0)
}

#[test]
fn epsilon_is_dps_up_to_the_share_set_aside() {
    for method in [Method::Pld, Method::Rdp] {
        let steps = 1000;
        let dp = composed(method, &plain(), steps).epsilon(DELTA).unwrap().upper;
        let polar = composed(method, &Event::polar(plain(), MISS), steps).epsilon(DELTA).unwrap();
        assert!(polar.upper > dp && polar.upper < 1.002 * dp, "{} for {dp}", polar.upper);
        // What was set aside is enough: the two parts together are within δ.
        let at = composed(method, &plain(), steps).delta(polar.upper).unwrap().upper;
        let whole = at + 1000.0 * MISS * (1.0 + polar.upper.exp());
        assert!(whole <= DELTA * (1.0 + 5e-3), "{whole}");
    }
}

/// A dropped δ term would be seen: misses as large as δ certify nothing, larger ones cost more.
#[test]
fn misses_are_charged() {
    let steps = 1000;
    let epsilon = |miss: f64| {
        composed(Method::Pld, &Event::polar(plain(), miss), steps).epsilon(DELTA).unwrap().upper
    };
    let dp = composed(Method::Pld, &plain(), steps).epsilon(DELTA).unwrap().upper;
    assert_eq!(epsilon(0.0), dp);
    // (1 + e^ε)·1000·miss is 40 % of δ, then more than δ.
    assert!(epsilon(5e-10) > 1.01 * dp && epsilon(5e-10).is_finite());
    assert_eq!(epsilon(1e-8), f64::INFINITY);
    // Counted per step, per repetition, and beside other events.
    let event = Event::composed(vec![Event::polar(plain(), 1e-11).repeated(500), plain()]);
    let accountant = composed(Method::Pld, &event, 2);
    let without = {
        let event = Event::composed(vec![plain().repeated(500), plain()]);
        composed(Method::Pld, &event, 2).delta(2.0).unwrap().upper
    };
    let with = accountant.delta(2.0).unwrap().upper;
    let term = delta_of_misses(1000.0 * 1e-11, 2.0);
    assert!((with - without - term).abs() < 1e-3 * term, "{with} {without} {term}");
}

#[test]
fn a_calibrated_polar_run_stays_within_its_target() {
    let whole =
        |sigma: f64| Event::polar(Event::sampled_gaussian(0.02, sigma), 1e-13).repeated(500);
    let sigma = calibrate::noise_multiplier(2.0, DELTA, Adjacency::ZeroOut, whole).unwrap();
    let epsilon = composed(Method::Pld, &whole(sigma), 1).epsilon(DELTA).unwrap().upper;
    assert!(epsilon <= 2.0 && epsilon > 1.99, "{epsilon}");
}

#[test]
fn its_claim_is_certified() {
    let terms = geodp_account::Terms {
        adjacency: Adjacency::ZeroOut,
        delta: DELTA,
        arithmetic: geodp_account::Arithmetic::Exact,
        denominator: geodp_account::Denominator::Batch(256),
        noise_draws: 0,
    };
    let mut account = Account::new(terms);
    account.charge(&Event::polar(plain(), MISS), 100).unwrap();
    assert_eq!(account.kind(), Kind::Certified);
    assert_eq!(account.claims().unwrap().len(), 1);
    let json = serde_json::to_string(&Event::polar(plain(), MISS)).unwrap();
    assert!(json.contains("\"type\":\"polar\"") && json.contains("\"miss\":1e-12"), "{json}");
    assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), Event::polar(plain(), MISS));
}

#[test]
fn what_the_theorem_does_not_cover_is_refused() {
    let polar = Event::polar(plain(), MISS);
    let refused = |adjacency, event: &Event| {
        let mut accountant = PldAccountant::new(adjacency);
        matches!(accountant.compose(event, 1), Err(Error::Unsupported { .. }))
    };
    assert!(refused(Adjacency::ReplaceOne, &polar));
    assert!(!refused(Adjacency::AddRemove, &polar));
    assert!(refused(Adjacency::ZeroOut, &Event::polar(Event::NoPrivacy, MISS)));
    assert!(refused(Adjacency::ZeroOut, &Event::polar(polar.clone(), MISS)));
    for miss in [-1e-3, 1.5, f64::NAN] {
        let mut accountant = PldAccountant::new(Adjacency::AddRemove);
        assert!(accountant.compose(&Event::polar(plain(), miss), 1).is_err());
    }
    // Answers that would leave the misses out are refused.
    let mut renyi = RdpAccountant::new(Adjacency::AddRemove);
    renyi.compose(&polar, 10).unwrap();
    assert!(renyi.optimal_order(DELTA).is_err() && renyi.epsilon(DELTA).is_ok());
}
