//! Clipping rules: their formulas, and that no rule can break the sensitivity it declares.

use geodp_mechanism::clip::{AutoS, Psac};
use geodp_mechanism::{Clip, ClipNorm, ClipRule, Error};
use proptest::prelude::*;

#[test]
fn weights_follow_their_formulas() {
    let flat = Clip::flat(0.1).unwrap();
    assert_eq!(flat.weight(0.05), 1.0);
    assert_eq!(flat.weight(0.2), 0.5);
    assert_eq!(flat.weight(0.0), 1.0);
    let auto_s = Clip::auto_s(0.1, AutoS::GAMMA).unwrap();
    assert!((auto_s.weight(0.99) - 0.1).abs() < 1e-15);
    assert!((auto_s.weight(0.0) - 10.0).abs() < 1e-12);
    let psac = Clip::psac(0.1, Psac::R).unwrap();
    assert!((psac.weight(0.0) - 0.1).abs() < 1e-15);
    // r/(n + r), not r/n + r: at n = 1 they differ by a factor of two.
    assert!((psac.weight(1.0) - 0.1 / (1.0 + 0.1 / 1.1)).abs() < 1e-15);
}

/// PSAC's largest weight is at √r − r and is C/(√r(2 − √r)): 1.88·C for r = 0.1.
#[test]
fn psac_peaks_where_it_should() {
    let (c, r) = (0.1, 0.1_f64);
    let psac = Clip::psac(c, r).unwrap();
    let at = r.sqrt() - r;
    let peak = c / (r.sqrt() * (2.0 - r.sqrt()));
    assert!((psac.weight(at) - peak).abs() < 1e-15);
    assert!((peak / c - 1.88).abs() < 5e-3);
    assert!(psac.weight(at - 0.01) < peak && psac.weight(at + 0.01) < peak);
}

/// A rule that ignores its promise.
#[derive(Debug)]
struct Reckless(f64);

impl ClipRule for Reckless {
    fn clip_norm(&self) -> ClipNorm {
        ClipNorm::new(0.5).unwrap()
    }
    fn weight(&self, _norm: f64) -> f64 {
        self.0
    }
}

proptest! {
    #[test]
    fn no_rule_exceeds_its_sensitivity(
        norm in prop_oneof![0.0f64..1e-3, 0.0f64..10.0, 1e10f64..1e300, 0.0f64..1e-300],
        clip_norm in 1e-6f64..1e6,
        constant in 1e-6f64..0.999,
        reckless in prop::num::f64::ANY,
    ) {
        let rules = [
            Clip::flat(clip_norm).unwrap(),
            Clip::auto_s(clip_norm, constant).unwrap(),
            Clip::psac(clip_norm, constant).unwrap(),
            Clip::new(Reckless(reckless)),
        ];
        for clip in rules {
            let weight = clip.weight(norm);
            prop_assert!(weight >= 0.0 && weight.is_finite());
            prop_assert!(weight * norm <= clip.sensitivity().get() * (1.0 + f64::EPSILON), "{clip:?}");
        }
    }
}

#[test]
fn non_finite_gradients_contribute_nothing() {
    for clip in
        [Clip::flat(1.0).unwrap(), Clip::auto_s(1.0, 0.01).unwrap(), Clip::psac(1.0, 0.1).unwrap()]
    {
        for norm in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            assert_eq!(clip.weight(norm), 0.0);
        }
    }
}

#[test]
fn bad_constants_are_refused_with_their_value() {
    for c in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        let error = Clip::flat(c).unwrap_err();
        assert!(matches!(error, Error::ClipNorm(_)));
        assert!(error.to_string().contains(&format!("{c}")), "{error}");
    }
    assert_eq!(Clip::auto_s(1.0, 0.0).unwrap_err(), Error::ClipConstant { name: "γ", value: 0.0 });
    assert_eq!(Clip::psac(1.0, 1.0).unwrap_err(), Error::ClipConstant { name: "r", value: 1.0 });
    assert!(matches!(Clip::psac(1.0, f64::NAN), Err(Error::ClipConstant { .. })));
}
