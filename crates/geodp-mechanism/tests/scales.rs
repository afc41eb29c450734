//! The noise has exactly the promised size: C·σ/B on every DP coordinate and on GeoDP's magnitude,
//! √(d+2)·β·π·σ/B on every angle. Dropping or doubling any of C, B, σ, β, or taking √d for √(d+2),
//! makes a test here fail.
//!
//! Expected values are written out from the paper, not taken from the mechanism's accessors. With
//! n draws a standard deviation has relative error 1/√(2n); bounds are 5.5 of those (4e-8 a check).

use geodp_mechanism::sphere::{to_spherical, wrapped_difference};
use geodp_mechanism::{Clip, Gaussian, Geometric, NoiseSource, Perturb};
use std::f64::consts::PI;

const STANDARD_ERRORS: f64 = 5.5;

struct Moments {
    mean: f64,
    std: f64,
    count: f64,
}

fn moments(values: &[f64]) -> Moments {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let std = (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    Moments { mean, std, count }
}

fn assert_centred_with_std(values: &[f64], expected: f64, what: &str) {
    let Moments { mean, std, count } = moments(values);
    let relative = std / expected - 1.0;
    assert!(relative.abs() < STANDARD_ERRORS / (2.0 * count).sqrt(), "{what}: {std} ≠ {expected}");
    assert!(mean.abs() < STANDARD_ERRORS * expected / count.sqrt(), "{what}: mean {mean}");
}

/// (C, σ, B) away from 1, so that none can be dropped unseen.
const SETTINGS: [(f64, f64, u64); 3] = [(0.1, 3.0, 7), (2.5, 0.4, 16), (0.7, 1.3, 1)];

#[test]
fn every_dp_coordinate_has_the_promised_spread() {
    for (clip_norm, sigma, batch) in SETTINGS {
        let expected = clip_norm * sigma / batch as f64;
        let dp = Gaussian::new(Clip::flat(clip_norm).unwrap().sensitivity(), sigma, batch).unwrap();
        let noise = NoiseSource::from_seed(21);
        let gradient = [0.3, -0.2, 0.0, 1.0, -4.0];
        let mut errors = vec![Vec::new(); gradient.len()];
        for step in 0..40_000 {
            let release = dp.perturb(&gradient, &noise, step).unwrap();
            for (z, errors) in errors.iter_mut().enumerate() {
                errors.push(release[z] - gradient[z]);
            }
        }
        for (z, errors) in errors.iter().enumerate() {
            assert_centred_with_std(errors, expected, &format!("coordinate {z}"));
        }
    }
}

/// Also across chunks: a long gradient has fresh noise of the same size everywhere.
#[test]
fn a_long_gradient_has_fresh_noise_everywhere() {
    let dp = Gaussian::new(Clip::flat(0.1).unwrap().sensitivity(), 2.0, 50).unwrap();
    let noise = NoiseSource::from_seed(22);
    let release = dp.perturb(&vec![0.0_f64; 100_000], &noise, 0).unwrap();
    for part in release.chunks(20_000) {
        assert_centred_with_std(part, 0.1 * 2.0 / 50.0, "part");
    }
    let mut sorted = release.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    assert_eq!(sorted.len(), release.len(), "noise is reused");
    assert_ne!(release, dp.perturb(&vec![0.0_f64; 100_000], &noise, 1).unwrap());
}

#[test]
fn geodp_magnitude_and_angles_have_the_promised_spread() {
    for (clip_norm, sigma, batch) in SETTINGS {
        let beta = 0.013;
        // Small d: √(d+2) against √d is 22 % here, far outside the bounds.
        let gradient = [0.9, -0.7, 0.8, -0.6];
        let magnitude_std = clip_norm * sigma / batch as f64;
        let angle_std = 6.0_f64.sqrt() * beta * PI * sigma / batch as f64;
        let clip = Clip::flat(clip_norm).unwrap();
        let geodp = Geometric::new(clip.sensitivity(), sigma, batch, beta).unwrap();
        let noise = NoiseSource::from_seed(23);
        let original = to_spherical(&gradient).unwrap();
        let (mut magnitudes, mut angles) = (Vec::new(), vec![Vec::new(); 3]);
        for step in 0..40_000 {
            let release = geodp.perturb(&gradient, &noise, step).unwrap();
            let mut spherical = to_spherical(&release).unwrap();
            // A negative noisy magnitude shows as a turned direction: turn it back by the sign.
            let dot: f64 = release.iter().zip(&gradient).map(|(a, b)| a * b).sum();
            if dot < 0.0 {
                let flipped: Vec<f64> = release.iter().map(|x| -x).collect();
                spherical = to_spherical(&flipped).unwrap();
                spherical.magnitude = -spherical.magnitude;
            }
            magnitudes.push(spherical.magnitude - original.magnitude);
            for (z, angles) in angles.iter_mut().enumerate() {
                angles.push(wrapped_difference(spherical.angles[z], original.angles[z]));
            }
        }
        assert_centred_with_std(&magnitudes, magnitude_std, "magnitude");
        for (z, angles) in angles.iter().enumerate() {
            // GeoDP's angles are unbiased: the mean is checked here, too.
            assert_centred_with_std(angles, angle_std, &format!("angle {z}"));
        }
    }
}

/// Magnitude and angle noise, and the angles among each other, are independent draws.
#[test]
fn geodp_noise_is_independent_across_coordinates() {
    let geodp = Geometric::new(Clip::flat(0.1).unwrap().sensitivity(), 1.0, 10, 0.05).unwrap();
    let noise = NoiseSource::from_seed(24);
    let gradient = [0.9, -0.7, 0.8, -0.6];
    let original = to_spherical(&gradient).unwrap();
    let draws: Vec<[f64; 4]> = (0..40_000)
        .map(|step| {
            let release = to_spherical(&geodp.perturb(&gradient, &noise, step).unwrap()).unwrap();
            let angle = |z: usize| wrapped_difference(release.angles[z], original.angles[z]);
            [release.magnitude - original.magnitude, angle(0), angle(1), angle(2)]
        })
        .collect();
    let std = |i: usize| moments(&draws.iter().map(|d| d[i]).collect::<Vec<_>>()).std;
    for i in 0..4 {
        for j in 0..i {
            let dot: f64 = draws.iter().map(|d| d[i] * d[j]).sum();
            let correlation = dot / (draws.len() as f64 * std(i) * std(j));
            assert!(correlation.abs() < STANDARD_ERRORS / (draws.len() as f64).sqrt(), "{i}, {j}");
        }
    }
}

/// DP pulls the first angle towards π/2 (it is biased), GeoDP does not, at the same σ.
#[test]
fn dp_biases_angles_and_geodp_does_not() {
    let dim = 200;
    // One large coordinate: its angle is far from π/2, and 199 noisy ones pull it there.
    let mut gradient = vec![0.01; dim];
    gradient[0] = 1.0;
    let original = to_spherical(&gradient).unwrap().angles[0];
    let sensitivity = Clip::flat(1.0).unwrap().sensitivity();
    let noise = NoiseSource::from_seed(25);
    let dp = Gaussian::new(sensitivity, 0.05, 1).unwrap();
    let geodp = Geometric::new(sensitivity, 0.05, 1, 0.01).unwrap();
    let first_angle_errors = |mechanism: &dyn Perturb<f64>| -> Moments {
        let errors: Vec<f64> = (0..4_000)
            .map(|step| {
                let release = mechanism.perturb(&gradient, &noise, step).unwrap();
                let sign = release[0].signum();
                let release: Vec<f64> = release.iter().map(|x| x * sign).collect();
                to_spherical(&release).unwrap().angles[0] - original
            })
            .collect();
        moments(&errors)
    };
    let (biased, unbiased) = (first_angle_errors(&dp), first_angle_errors(&geodp));
    let in_errors = |m: &Moments| m.mean / (m.std / m.count.sqrt());
    assert!(in_errors(&biased) > 50.0, "DP's bias is {} standard errors", in_errors(&biased));
    assert!(in_errors(&unbiased).abs() < STANDARD_ERRORS, "GeoDP: {}", in_errors(&unbiased));
}

#[test]
fn accessors_agree_with_the_paper() {
    let sensitivity = Clip::psac(0.1, 0.1).unwrap().sensitivity();
    assert!(
        (Gaussian::new(sensitivity, 8.0, 4096).unwrap().coordinate_std() - 0.8 / 4096.0).abs()
            < 1e-18
    );
    let geodp = Geometric::new(sensitivity, 8.0, 4096, 0.1).unwrap();
    assert!((geodp.magnitude_std() - 0.8 / 4096.0).abs() < 1e-18);
    let expected = 20_002.0_f64.sqrt() * 0.1 * PI * 8.0 / 4096.0;
    assert!((geodp.angle_std(20_000) - expected).abs() < 1e-12);
}
