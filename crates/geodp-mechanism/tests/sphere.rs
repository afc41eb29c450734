//! Coordinates: round trips over sizes, scales and corner cases; the paper's worked examples.

use geodp_mechanism::sphere::*;
use geodp_mechanism::{Clip, Error};
use proptest::prelude::*;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_3, FRAC_PI_4, PI};

/// ‖back − g‖ ≤ 1e-12·‖g‖, but for one unit of the smallest representable number.
fn assert_round_trip(g: &[f64]) {
    let spherical = to_spherical(g).unwrap();
    let last = spherical.angles.len() - 1;
    assert!(spherical.angles[..last].iter().all(|a| (0.0..=PI).contains(a)));
    assert!(spherical.angles[last] > -PI && spherical.angles[last] <= PI);
    let back = to_rectangular(&spherical).unwrap();
    for (i, (a, b)) in back.iter().zip(g).enumerate() {
        let bound = 1e-12 * spherical.magnitude + 5e-324;
        assert!((a - b).abs() <= bound, "coordinate {i}: {b} came back as {a}");
    }
}

#[test]
fn corner_cases_round_trip() {
    let cases: [&[f64]; 14] = [
        &[0.0, 0.0],
        &[0.0, 0.0, 0.0, 0.0],
        &[0.0, -0.0],
        &[-1.0, 0.0],
        &[-1.0, -0.0],
        &[0.0, 0.0, -3.0],
        &[0.0, -3.0, 0.0],
        &[-3.0, 0.0, 0.0],
        &[1.0, 2.0, -4.0],
        &[5e-324, -5e-324, 1e-310],
        &[1e150, -1e150, 3e149],
        &[1e-150, -1e-150, 3e-149],
        &[1e150, 1.0, -1e-150],
        &[1e-150, 1.0, 1e150],
    ];
    for g in cases {
        assert_round_trip(g);
    }
}

#[test]
fn the_zero_vector_points_along_the_first_axis() {
    let zero = to_spherical(&[0.0; 5]).unwrap();
    assert_eq!(zero, Spherical { magnitude: 0.0, angles: vec![0.0; 4] });
    let unit = to_rectangular(&Spherical { magnitude: 1.0, ..zero }).unwrap();
    assert_eq!(unit, [1.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn a_million_dimensions_round_trip_at_every_scale() {
    let wave: Vec<f64> = (0..1_000_000).map(|i| (f64::from(i) * 0.61).sin()).collect();
    for scale in [1e-150, 1.0, 1e150] {
        assert_round_trip(&wave.iter().map(|x| x * scale).collect::<Vec<_>>());
    }
    let mut spike = vec![0.0; 1_000_000];
    spike[999_999] = -2.0;
    assert_round_trip(&spike);
    spike[500_000] = 1e-8;
    assert_round_trip(&spike);
}

proptest! {
    #[test]
    fn any_gradient_round_trips(
        g in prop::collection::vec(prop_oneof![4 => -1e3..1e3, 1 => Just(0.0), 1 => -1e-160..1e-160], 2..300),
        exponent in -140i32..140,
    ) {
        let scaled: Vec<f64> = g.iter().map(|x| x * 10f64.powi(exponent)).collect();
        assert_round_trip(&scaled);
    }

    #[test]
    fn wrapping_undoes_full_turns(angle in -3.1f64..3.1, turns in -50i32..50) {
        let turned = angle + f64::from(turns) * std::f64::consts::TAU;
        prop_assert!((wrapped_difference(turned, 0.0) - angle).abs() < 1e-12);
    }
}

#[test]
fn wrapping_takes_the_short_way() {
    assert!((wrapped_difference(PI - 0.1, -PI + 0.1) + 0.2).abs() < 1e-15);
    assert_eq!(wrapped_difference(PI, 0.0), PI);
    assert_eq!(wrapped_difference(-PI, 0.0), PI);
}

#[test]
fn errors_are_the_papers_sums_of_squares() {
    // 0.2 across the cut, not 2π − 0.2.
    let across = squared_direction_error(&[1.1, -PI + 0.1], &[1.0, PI - 0.1]).unwrap();
    assert!((across - (0.01 + 0.04)).abs() < 1e-12);
    assert_eq!(squared_gradient_error(&[3.0, 0.0], &[0.0, 4.0]).unwrap(), 25.0);
    let uneven = squared_direction_error(&[0.1], &[]);
    assert!(matches!(uneven, Err(Error::LengthMismatch { .. })));
}

#[test]
fn cosine_is_independent_of_scale() {
    let close = |a: f64, b: f64| (a - b).abs() < 1e-15;
    assert!(close(cosine(&[1.0, 0.0], &[1.0, 1.0]).unwrap(), FRAC_PI_4.cos()));
    assert!(close(cosine(&[1e200, 0.0], &[-1e-200, 0.0]).unwrap(), -1.0));
    assert_eq!(cosine(&[0.0, 0.0], &[1.0, 1.0]).unwrap(), 0.0);
}

/// Example 1: clipping harder shrinks the noise, and leaves the perturbed direction as it was.
#[test]
fn paper_example_clipping_does_not_help_the_direction() {
    let g = [1.0, 3.0_f64.sqrt()];
    let original = to_spherical(&g).unwrap();
    assert!((original.angles[0] - FRAC_PI_3).abs() < 1e-15);
    assert!((original.magnitude - 2.0).abs() < 1e-15);

    let mut perturbed = Vec::new();
    for clip_norm in [2.0, 1.0] {
        let weight = Clip::flat(clip_norm).unwrap().weight(original.magnitude);
        let noise = [0.3 * clip_norm / 2.0, 0.15 * clip_norm / 2.0];
        let noisy = [g[0] * weight + noise[0], g[1] * weight + noise[1]];
        perturbed.push(to_spherical(&noisy).unwrap().angles[0]);
    }
    assert!((perturbed[0] - 0.97).abs() < 5e-3, "the paper gives 0.97, this is {}", perturbed[0]);
    assert!((perturbed[0] - perturbed[1]).abs() < 1e-15);
}

/// Example 2: under DP the noise of three coordinates gathers in the first angle.
#[test]
fn paper_example_noise_gathers_in_the_first_angle() {
    let (g, n) = ([0.5_f64, -1.0, 2.0], [0.3, 0.7, -0.2]);
    let noisy = [g[0] + n[0], g[1] + n[1], g[2] + n[2]];
    let first = to_spherical(&noisy).unwrap().angles[0];
    let by_hand = f64::atan2((noisy[1] * noisy[1] + noisy[2] * noisy[2]).sqrt(), noisy[0]);
    assert!((first - by_hand).abs() < 1e-15);
    // Noise on the tail alone moves the first angle, too.
    let tail_only = to_spherical(&[g[0], noisy[1], noisy[2]]).unwrap().angles[0];
    assert!((tail_only - to_spherical(&g).unwrap().angles[0]).abs() > 1e-2);
}

/// Example 3 (Section V): parallel gradients and the same noise end in different directions.
#[test]
fn paper_example_parallel_gradients_part() {
    let angle = |g: [f64; 2]| to_spherical(&g).unwrap().angles[0];
    assert_eq!(angle([1.0, 1.0]), FRAC_PI_4);
    assert_eq!(angle([2.0, 2.0]), FRAC_PI_4);
    assert_eq!(angle([1.0 + 2.0, 1.0 - 1.0]), 0.0);
    // The paper rounds atan2(1, 4) = 0.245 to 2π/25 = 0.251.
    assert!((angle([2.0 + 2.0, 2.0 - 1.0]) - 2.0 * PI / 25.0).abs() < 7e-3);
}

#[test]
fn three_dimensions_by_hand() {
    let s = to_spherical(&[0.0, 1.0, 1.0]).unwrap();
    assert!((s.angles[0] - FRAC_PI_2).abs() < 1e-15 && (s.angles[1] - FRAC_PI_4).abs() < 1e-15);
}
