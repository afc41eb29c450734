//! The fast GeoDP route against the textbook with the same noise, over sizes, noise scales, number
//! types and threads; and what must never change: bits with threads, the magnitude, finiteness.

use geodp_mechanism::perturb::reference;
use geodp_mechanism::sphere::to_spherical;
use geodp_mechanism::{Clip, Gaussian, Geometric, NoiseSource, Perturb, Real, Sensitivity};
use proptest::prelude::*;

fn sensitivity() -> Sensitivity {
    Clip::flat(1.0).unwrap().sensitivity()
}

/// GeoDP whose angle noise has standard deviation `radians` at dimension `dim`.
fn geodp_with_angle_noise(dim: usize, radians: f64) -> Geometric {
    let at_one = Geometric::new(sensitivity(), 1.0, 1, 1.0).unwrap().angle_std(dim);
    Geometric::new(sensitivity(), radians / at_one, 1, 1.0).unwrap()
}

fn wave<R: Real>(dim: usize) -> Vec<R> {
    (0..dim).map(|i| R::from_f64((i as f64 * 0.37 + 0.2).sin() / (1.0 + i as f64 % 17.0))).collect()
}

/// Largest difference between the routes, relative to the larger of ‖g‖ and the release's norm.
fn difference<R: Real>(geodp: &Geometric, gradient: &[R], step: u64) -> f64 {
    let noise = NoiseSource::from_seed(7);
    let fast = geodp.perturb(gradient, &noise, step).unwrap();
    let slow = reference::perturb_spherical(geodp, gradient, &noise, step).unwrap();
    let norm = to_spherical(gradient).unwrap().magnitude.max(slow.magnitude.abs());
    let slow = geodp_mechanism::sphere::to_rectangular(&slow).unwrap();
    let largest = fast.iter().zip(&slow).map(|(f, s)| (f.to_f64() - s).abs()).fold(0.0, f64::max);
    assert!(fast.iter().all(|f| f.to_f64().is_finite()));
    if norm == 0.0 { largest } else { largest / norm }
}

#[test]
fn equals_the_textbook_over_sizes_and_noise() {
    let dims = [2, 3, 7, 8, 9, 255, 257, 1023, 1024, 1025, 1026, 2048, 2049, 21_840, 100_003];
    for (step, dim) in dims.into_iter().enumerate() {
        for radians in [0.0, 1e-8, 1e-4, 1e-2, 0.3, 1.0, 10.0, 100.0] {
            let geodp = geodp_with_angle_noise(dim, radians);
            let f64_difference = difference::<f64>(&geodp, &wave(dim), step as u64);
            assert!(f64_difference < 1e-9, "f64, d = {dim}, {radians} rad: {f64_difference:e}");
            let f32_difference = difference::<f32>(&geodp, &wave(dim), step as u64);
            assert!(f32_difference < 1e-5, "f32, d = {dim}, {radians} rad: {f32_difference:e}");
        }
    }
}

#[test]
fn equals_the_textbook_in_a_million_dimensions() {
    for radians in [1e-8, 1e-3, 100.0] {
        let geodp = geodp_with_angle_noise(1_000_000, radians);
        assert!(difference::<f64>(&geodp, &wave(1_000_000), 3) < 1e-9, "{radians} rad");
        assert!(difference::<f32>(&geodp, &wave(1_000_000), 3) < 1e-5, "{radians} rad");
    }
}

#[test]
fn equals_the_textbook_on_corner_cases() {
    let mut single = vec![0.0; 3000];
    single[1024] = -2.0;
    let mut first_zero = wave::<f64>(2500);
    first_zero[..1100].fill(0.0);
    let mut last_zero = wave::<f64>(2500);
    last_zero[900..].fill(0.0);
    let mut zero_from_a_chunk_on = wave::<f64>(2500);
    zero_from_a_chunk_on[1024..].fill(0.0);
    let mut only_the_last = wave::<f64>(1025);
    only_the_last[7..1024].fill(0.0);
    let mut negative_last = wave::<f64>(1025);
    negative_last[1024] = -0.9;
    let cases = [
        vec![0.0; 2],
        vec![0.0; 3000],
        vec![-1.0, 0.0],
        vec![0.0, -1.0],
        vec![0.0, 0.0, -1.0],
        single,
        first_zero,
        last_zero,
        zero_from_a_chunk_on,
        only_the_last,
        negative_last,
        wave(100).iter().map(|x: &f64| x * 1e150).collect(),
        wave(100).iter().map(|x: &f64| x * 1e-150).collect(),
        wave(100).iter().map(|x: &f64| x * 1e-310).collect(),
        vec![1e150, 1.0, 1e-150, -1e-200],
        vec![1e-200, 1e-150, 1.0, -1e150],
    ];
    for (i, gradient) in cases.iter().enumerate() {
        for radians in [1e-6, 0.5, 50.0] {
            let geodp = geodp_with_angle_noise(gradient.len(), radians);
            let difference = difference(&geodp, gradient, 11);
            assert!(difference < 1e-9, "case {i}, {radians} rad: {difference:e}");
        }
    }
}

/// All of f32's magnitudes in one gradient, falling, rising, and in no order.
#[test]
fn equals_the_textbook_over_all_magnitudes() {
    let sized = |exponent: f64, i: usize| (10f64.powf(exponent) * (1.0 + i as f64).sin()) as f32;
    for dim in [5, 1024, 1030, 3000] {
        let of = |position: fn(f64) -> f64| -> Vec<f32> {
            (0..dim).map(|i| sized(82.0 * position(i as f64 / dim as f64) - 44.0, i)).collect()
        };
        for gradient in [of(|t| t), of(|t| 1.0 - t), of(|t| (t * 7919.0).fract())] {
            for radians in [1e-6, 0.05, 2.0] {
                let geodp = geodp_with_angle_noise(dim, radians);
                let difference = difference(&geodp, &gradient, 4);
                assert!(difference < 1e-5, "d = {dim}, {radians} rad: {difference:e}");
            }
        }
    }
}

/// Beyond what the fast reduction of angles can do, the release is the textbook's, not garbage.
#[test]
fn enormous_noise_is_still_the_textbooks() {
    let geodp = geodp_with_angle_noise(50, 1e9);
    assert_eq!(difference::<f64>(&geodp, &wave(50), 0), 0.0);
}

#[test]
fn without_noise_the_gradient_stays() {
    let geodp = Geometric::new(sensitivity(), 0.0, 10, 0.5).unwrap();
    let dp = Gaussian::new(sensitivity(), 0.0, 10).unwrap();
    let gradient: Vec<f64> = wave(5000);
    let noise = NoiseSource::from_seed(1);
    assert_eq!(dp.perturb(&gradient, &noise, 0).unwrap(), gradient);
    let release = geodp.perturb(&gradient, &noise, 0).unwrap();
    assert!(release.iter().zip(&gradient).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn threads_do_not_change_a_bit() {
    let noise = NoiseSource::from_seed(5);
    let dp = Gaussian::new(sensitivity(), 1.0, 64).unwrap();
    let geodp = Geometric::new(sensitivity(), 1.0, 64, 0.1).unwrap();
    for dim in [2, 1_250, 8_191, 8_192, 21_840, 300_001] {
        let gradient: Vec<f32> = wave(dim);
        for mechanism in [&dp as &dyn Perturb<f32>, &geodp] {
            let releases: Vec<Vec<f32>> = [1, 2, 5]
                .map(|threads| {
                    let pool =
                        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    pool.install(|| mechanism.perturb(&gradient, &noise, 9).unwrap())
                })
                .into();
            assert_eq!(releases[0], releases[1], "d = {dim}");
            assert_eq!(releases[0], releases[2], "d = {dim}");
        }
    }
}

/// A seed means the same release on every machine and in every version: these are its bits.
#[test]
fn a_seeded_release_is_pinned() {
    let noise = NoiseSource::from_seed(2024);
    let gradient = [0.5_f64, -0.25, 0.125, 1.0];
    let dp = Gaussian::new(sensitivity(), 1.0, 4).unwrap().perturb(&gradient, &noise, 1).unwrap();
    let geodp = Geometric::new(sensitivity(), 1.0, 4, 0.1).unwrap();
    let geodp = geodp.perturb(&gradient, &noise, 1).unwrap();
    let bits = |v: &[f64]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&dp), PINNED_DP, "{dp:?}");
    assert_eq!(bits(&geodp), PINNED_GEODP, "{geodp:?}");
}

const PINNED_DP: [u64; 4] =
    [4600606696045413299, 13823153101522347014, 13809496588186450584, 4603317895647813240];
const PINNED_GEODP: [u64; 4] =
    [4605227004061453053, 13820693872620903078, 4595929899812902222, 4603912200881016272];

proptest! {
    #[test]
    fn random_gradients_agree(
        gradient in prop::collection::vec(prop_oneof![5 => -1.0f64..1.0, 1 => Just(0.0), 1 => -1e-30f64..1e-30], 2..2200),
        log_radians in -8.0f64..2.0,
        step in 0u64..1000,
    ) {
        let geodp = geodp_with_angle_noise(gradient.len(), 10f64.powf(log_radians));
        prop_assert!(difference(&geodp, &gradient, step) < 1e-9);
    }

    /// The release's norm is the noisy magnitude: turning does not stretch.
    #[test]
    fn turning_keeps_the_length(gradient in prop::collection::vec(-1.0f64..1.0, 2..1500), step in 0u64..1000) {
        let geodp = geodp_with_angle_noise(gradient.len(), 0.2);
        let noise = NoiseSource::from_seed(3);
        let release = geodp.perturb(&gradient, &noise, step).unwrap();
        let spherical = reference::perturb_spherical(&geodp, &gradient, &noise, step).unwrap();
        let norm = to_spherical(&release).unwrap().magnitude;
        prop_assert!((norm - spherical.magnitude.abs()).abs() <= 1e-12 * norm.max(1.0));
    }
}
