//! Bad input is a typed error with the value in its message; the gradient stays as it was.

use geodp_mechanism::{Clip, Error, Gaussian, Geometric, NoiseSource, Perturb, Sensitivity};

fn sensitivity() -> Sensitivity {
    Clip::flat(0.1).unwrap().sensitivity()
}

#[test]
fn parameters_are_checked() {
    for sigma in [-1.0, -1e-300, f64::NAN, f64::INFINITY] {
        let dp = Gaussian::new(sensitivity(), sigma, 8).unwrap_err();
        let geodp = Geometric::new(sensitivity(), sigma, 8, 0.5).unwrap_err();
        assert!(matches!(dp, Error::NoiseMultiplier(_)) && dp.to_string() == geodp.to_string());
        assert!(dp.to_string().contains(&format!("{sigma}")), "{dp}");
    }
    for beta in [0.0, -0.1, 1.0 + 1e-12, f64::NAN, f64::INFINITY] {
        let error = Geometric::new(sensitivity(), 1.0, 8, beta).unwrap_err();
        assert!(matches!(error, Error::Beta(_)) && error.to_string().contains(&format!("{beta}")));
    }
    assert_eq!(Gaussian::new(sensitivity(), 1.0, 0), Err(Error::Batch));
    assert_eq!(Geometric::new(sensitivity(), 1.0, 0, 0.5), Err(Error::Batch));
    assert!(Geometric::new(sensitivity(), 0.0, 1, 1.0).is_ok());
}

#[test]
fn gradients_are_checked_and_left_alone() {
    let dp = Gaussian::new(sensitivity(), 1.0, 8).unwrap();
    let geodp = Geometric::new(sensitivity(), 1.0, 8, 0.5).unwrap();
    let noise = NoiseSource::from_seed(0);
    assert_eq!(Perturb::<f64>::perturb(&dp, &[], &noise, 0), Err(Error::Empty));
    assert_eq!(Perturb::<f32>::perturb(&geodp, &[], &noise, 0), Err(Error::Empty));
    assert_eq!(geodp.perturb(&[1.0_f64], &noise, 0), Err(Error::TooFewDimensions(1)));
    assert!(dp.perturb(&[1.0_f64], &noise, 0).is_ok(), "DP works in one dimension");

    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for index in [0, 1, 1500, 2999] {
            let mut gradient = vec![0.5; 3000];
            gradient[index] = bad;
            for mechanism in [&dp as &dyn Perturb<f64>, &geodp] {
                let mut target = gradient.clone();
                let error = mechanism.perturb_in_place(&mut target, &noise, 0).unwrap_err();
                assert!(matches!(error, Error::NotFinite { index: i, .. } if i == index));
                assert!(error.to_string().contains(&format!("coordinate {index}")), "{error}");
                let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
                assert!(target.iter().zip(&gradient).all(same), "the gradient was touched");
            }
        }
    }
}

#[test]
fn a_norm_beyond_f64_is_an_error_and_never_nan() {
    let geodp = Geometric::new(sensitivity(), 1.0, 8, 0.5).unwrap();
    let noise = NoiseSource::from_seed(0);
    let gradient = vec![f64::MAX; 4];
    assert_eq!(geodp.perturb(&gradient, &noise, 0), Err(Error::NormOverflow));
    let gradient = vec![f32::MAX; 4000];
    let release = geodp.perturb(&gradient, &noise, 0).unwrap();
    assert!(release.iter().all(|x| !x.is_nan()));
}

#[test]
fn a_step_out_of_range_is_refused_before_anything_happens() {
    let noise = NoiseSource::from_seed(0);
    let original = vec![0.5_f32; 10];
    let dp = Gaussian::new(sensitivity(), 1.0, 8).unwrap();
    let geodp = Geometric::new(sensitivity(), 1.0, 8, 0.5).unwrap();
    for mechanism in [&dp as &dyn Perturb<f32>, &geodp] {
        let mut gradient = original.clone();
        let error = mechanism.perturb_in_place(&mut gradient, &noise, 1 << 40).unwrap_err();
        assert!(matches!(error, Error::NoiseAddress { part: "step", .. }));
        assert_eq!(gradient, original);
    }
}
