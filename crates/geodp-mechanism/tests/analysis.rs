//! The paper's quantities: Theorem 1 as an identity, predicted direction errors against simulated
//! ones, the crossing β*, and the bounds on δ′.

use geodp_mechanism::analysis::*;
use geodp_mechanism::sphere::{squared_direction_error, to_spherical};
use geodp_mechanism::{Clip, Error, Gaussian, Geometric, NoiseSource, Perturb};
use proptest::prelude::*;

proptest! {
    /// Theorem 1: ME(private) − ME(plain) = η²·A + 2η·B, in the noise's own terms, too.
    #[test]
    fn the_efficiency_difference_is_an_identity(
        rows in prop::collection::vec((-2.0f64..2.0, -2.0f64..2.0, -0.1f64..0.1, -3.0f64..3.0), 2..60),
        learning_rate in 0.0f64..2.0,
        clip_norm in 0.01f64..1.0,
        batch in 1u32..100,
    ) {
        let weights: Vec<f64> = rows.iter().map(|r| r.0).collect();
        let optimum: Vec<f64> = rows.iter().map(|r| r.1).collect();
        let gradient: Vec<f64> = rows.iter().map(|r| r.2).collect();
        let scale = clip_norm / f64::from(batch);
        let noise: Vec<f64> = rows.iter().map(|r| r.3).collect();
        let private: Vec<f64> = gradient.iter().zip(&noise).map(|(g, n)| g + scale * n).collect();

        let step = |g: &[f64]| -> Vec<f64> {
            weights.iter().zip(g).map(|(w, g)| w - learning_rate * g).collect()
        };
        let direct = model_efficiency(&step(&private), &optimum).unwrap()
            - model_efficiency(&step(&gradient), &optimum).unwrap();
        let ed = efficiency_difference(learning_rate, &weights, &optimum, &gradient, &private).unwrap();
        let tolerance = 1e-10 * (1.0 + direct.abs());
        prop_assert!((ed.total - direct).abs() < tolerance, "{ed:?} against {direct}");

        // The paper's form: A = (2C/B)⟨n, g⟩ + C²n²/B², B = ⟨n, w⋆ − w⟩ with factor 2ηC/B.
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let gap: Vec<f64> = optimum.iter().zip(&weights).map(|(o, w)| o - w).collect();
        let item_a = 2.0 * scale * dot(&noise, &gradient) + scale * scale * dot(&noise, &noise);
        prop_assert!((ed.item_a - item_a).abs() < tolerance);
        prop_assert!((ed.item_b - scale * dot(&noise, &gap)).abs() < tolerance);
    }
}

/// Corollary 1: at the optimum Item B is zero and Item A is not.
#[test]
fn a_private_step_leaves_the_optimum() {
    let w = [1.0, -1.0];
    let ed = efficiency_difference(0.1, &w, &w, &[0.0, 0.0], &[0.3, 0.4]).unwrap();
    assert_eq!(ed.item_b, 0.0);
    assert!((ed.total - 0.01 * 0.25).abs() < 1e-15);
}

fn simulate(mechanism: &dyn Perturb<f64>, gradient: &[f64], repeats: u64) -> (f64, f64) {
    let noise = NoiseSource::from_seed(31);
    let original = to_spherical(gradient).unwrap();
    let errors: Vec<f64> = (0..repeats)
        .map(|step| {
            let release = mechanism.perturb(gradient, &noise, step).unwrap();
            let angles = to_spherical(&release).unwrap().angles;
            squared_direction_error(&angles, &original.angles).unwrap()
        })
        .collect();
    let mean = errors.iter().sum::<f64>() / repeats as f64;
    let variance = errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / repeats as f64;
    (mean, (variance / repeats as f64).sqrt())
}

/// Prediction and simulation of DP's direction error, from small noise to noise that drowns the
/// gradient. The formula is asymptotic in the tail's length: 3 % is its accuracy here.
#[test]
fn dp_direction_error_is_predicted() {
    let gradient: Vec<f64> = (0..2000).map(|i| (f64::from(i) * 0.9).sin() * 1e-3).collect();
    let clip = Clip::flat(0.1).unwrap();
    for (sigma, batch) in [(0.1, 4096), (1.0, 4096), (8.0, 4096), (8.0, 512)] {
        let dp = Gaussian::new(clip.sensitivity(), sigma, batch).unwrap();
        let predicted = dp_direction_mse(&gradient, dp.coordinate_std()).unwrap();
        let (measured, error) = simulate(&dp, &gradient, 60);
        let bound = 0.03 * predicted + 5.5 * error;
        assert!((measured - predicted).abs() < bound, "σ = {sigma}: {measured} ≠ {predicted}");
    }
}

/// (d − 1)(d + 2)(βπσ/B)², against angles measured after the round trip.
#[test]
fn geodp_direction_error_is_predicted() {
    let gradient: Vec<f64> = (0..300).map(|i| (f64::from(i) * 0.9).sin() * 1e-3).collect();
    let clip = Clip::flat(0.1).unwrap();
    // The magnitude's noise must not change its sign: the gradient is long against C·σ/B.
    let geodp = Geometric::new(clip.sensitivity(), 0.1, 4096, 0.1).unwrap();
    let predicted = 299.0 * 302.0 * (0.1 * std::f64::consts::PI * 0.1 / 4096.0_f64).powi(2);
    let own = geodp_direction_mse(300, geodp.angle_std(300));
    assert!((own / predicted - 1.0).abs() < 1e-12);
    let (measured, error) = simulate(&geodp, &gradient, 400);
    assert!((measured - predicted).abs() < 5.5 * error, "{measured} ≠ {predicted} ± {error}");
}

/// The bias has the predicted size and direction for each angle.
#[test]
fn dp_angle_bias_is_predicted() {
    let mut gradient = vec![0.01; 400];
    gradient[0] = 0.5;
    gradient[10] = -0.5;
    let std = 0.02;
    let predicted = dp_angle_errors(&gradient, std).unwrap();
    assert!(predicted[0].bias > 0.0, "a positive coordinate's angle grows towards π/2");
    assert!(predicted[10].bias < 0.0, "a negative coordinate's angle shrinks towards π/2");
    assert_eq!(predicted[398].bias, 0.0);
    let dp = Gaussian::new(Clip::flat(1.0).unwrap().sensitivity(), std, 1).unwrap();
    let noise = NoiseSource::from_seed(33);
    let original = to_spherical(&gradient).unwrap();
    let repeats = 3000;
    for z in [0, 10] {
        let errors: Vec<f64> = (0..repeats)
            .map(|step| {
                let release = dp.perturb(&gradient, &noise, step).unwrap();
                to_spherical(&release).unwrap().angles[z] - original.angles[z]
            })
            .collect();
        let mean = errors.iter().sum::<f64>() / repeats as f64;
        let error = (predicted[z].variance / repeats as f64).sqrt();
        let bound = 0.03 * predicted[z].bias.abs() + 5.5 * error;
        assert!((mean - predicted[z].bias).abs() < bound, "angle {z}: {mean}, {:?}", predicted[z]);
    }
}

/// At β* the two mechanisms' errors meet; below it GeoDP's is smaller, above it larger.
#[test]
fn direction_errors_cross_at_beta_star() {
    let gradient: Vec<f64> = (0..5000).map(|i| (f64::from(i) * 1.3).sin() * 2e-4).collect();
    let (clip_norm, sigma, batch) = (0.1, 1.0, 16_384);
    let clip = Clip::flat(clip_norm).unwrap();
    let crossing = crossing_beta(&gradient, clip_norm, sigma, batch).unwrap();
    let dp = dp_direction_mse(&gradient, clip_norm * sigma / batch as f64).unwrap();
    let at = |beta: f64| {
        let geodp = Geometric::new(clip.sensitivity(), sigma, batch, beta).unwrap();
        geodp_direction_mse(gradient.len(), geodp.angle_std(gradient.len()))
    };
    assert!((at(crossing.by_angles) / dp - 1.0).abs() < 1e-9);
    assert!(at(0.9 * crossing.by_angles) < dp && at(1.1 * crossing.by_angles) > dp);

    // The rotation as a whole, by simulation: mean cosines meet at β*.
    let noise = NoiseSource::from_seed(34);
    let mean_cosine = |mechanism: &dyn Perturb<f64>| -> f64 {
        let cosine = |step| {
            let release = mechanism.perturb(&gradient, &noise, step).unwrap();
            geodp_mechanism::sphere::cosine(&release, &gradient).unwrap()
        };
        (0..200).map(cosine).sum::<f64>() / 200.0
    };
    let geodp = |factor: f64| {
        let beta = crossing.by_rotation * factor;
        mean_cosine(&Geometric::new(clip.sensitivity(), sigma, batch, beta).unwrap())
    };
    let dp = mean_cosine(&Gaussian::new(clip.sensitivity(), sigma, batch).unwrap());
    assert!(geodp(0.8) > dp && geodp(1.25) < dp, "{} {} {}", geodp(0.8), dp, geodp(1.25));
}

/// Cosines of noisy and clean mean gradients measured for the CNN: ‖mean‖/C ≈ 0.1, B = 16384, d = 21,840.
#[test]
fn cosines_of_the_cnn_setting_come_out() {
    let dim = 21_840;
    let clip_norm = 0.1;
    let raw: Vec<f64> = (0..dim).map(|i| (i as f64 * 1.7).sin()).collect();
    let norm = raw.iter().map(|x| x * x).sum::<f64>().sqrt();
    let gradient: Vec<f64> = raw.iter().map(|x| x * 0.1 * clip_norm / norm).collect();
    let clip = Clip::flat(clip_norm).unwrap();
    let noise = NoiseSource::from_seed(35);
    let cosine = |mechanism: &dyn Perturb<f64>| {
        let one = |step| {
            let release = mechanism.perturb(&gradient, &noise, step).unwrap();
            geodp_mechanism::sphere::cosine(&release, &gradient).unwrap()
        };
        (0..20).map(one).sum::<f64>() / 20.0
    };
    let dp = |sigma| cosine(&Gaussian::new(clip.sensitivity(), sigma, 16_384).unwrap());
    let geodp =
        |sigma, beta| cosine(&Geometric::new(clip.sensitivity(), sigma, 16_384, beta).unwrap());
    for (measured, expected, tolerance) in [
        (dp(1.0), 0.994, 0.01),
        (dp(10.0), 0.69, 0.08),
        (geodp(1.0, 0.1), 0.966, 0.02),
        (geodp(1.0, 0.01), 0.9997, 0.001),
        (geodp(10.0, 0.01), 0.966, 0.02),
    ] {
        assert!((measured - expected).abs() < tolerance, "{measured} ≠ {expected}");
    }
    // Above β* the direction is mostly lost; how much depends on the gradient's shape (0.25 and
    // 0.26 for the CNN's own gradients).
    assert!(geodp(1.0, 1.0) < 0.5 * dp(1.0) && geodp(10.0, 0.1) < 0.5 * dp(10.0));
}

#[test]
fn delta_prime_follows_the_gaussian_model() {
    // One angle (d = 2): it is the last, so its region is 2βπ wide.
    let (variance, batch, beta) = (0.5, 4, 0.1);
    let std = (variance / batch as f64).sqrt();
    let tail = libm::erfc(beta * std::f64::consts::PI / (std * std::f64::consts::SQRT_2));
    let bounds = delta_prime(&[variance], batch, beta).unwrap();
    assert!((bounds.lower - tail).abs() < 1e-15);
    assert!((bounds.upper - 0.9).abs() < 1e-15);
    // Tight directions leave nothing outside, wide ones everything.
    assert_eq!(delta_prime(&[0.0; 50], 10, 0.01).unwrap().lower, 0.0);
    assert!(delta_prime(&[2.0; 5000], 10, 0.01).unwrap().lower > 1.0 - 1e-12);
    // Tiny probabilities keep their digits.
    let tiny = delta_prime(&[0.01, 0.01], 100, 0.05).unwrap().lower;
    assert!(tiny > 0.0 && tiny < 1e-13, "{tiny}");
}

#[test]
fn bad_input_is_named() {
    assert_eq!(delta_prime(&[], 1, 0.5), Err(Error::TooFewDimensions(1)));
    assert_eq!(delta_prime(&[1.0], 1, 0.0), Err(Error::Beta(0.0)));
    assert!(matches!(delta_prime(&[-1.0], 1, 0.5), Err(Error::Negative { .. })));
    assert!(matches!(crossing_beta(&[0.0, 0.0], 0.1, 1.0, 8), Err(Error::Negative { .. })));
    assert_eq!(crossing_beta(&[1.0, 0.0], 0.1, 0.0, 8), Err(Error::NoiseMultiplier(0.0)));
    assert!(dp_angle_errors(&[1.0, 2.0], f64::NAN).is_err());
    let mismatch = efficiency_difference(0.1, &[1.0], &[1.0, 2.0], &[1.0], &[1.0]);
    assert!(matches!(mismatch, Err(Error::LengthMismatch { what: "the optimum", .. })));
}
