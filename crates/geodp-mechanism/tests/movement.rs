//! Movements against the textbook: both vectors to angles, differences wrapped and squared.

use geodp_mechanism::Direction;
use geodp_mechanism::sphere::{squared_direction_error, to_spherical};
use proptest::prelude::*;

/// (magnitude, direction) by the textbook, of g and g − factor·row.
fn textbook(gradient: &[f32], row: &[f32], factor: f64) -> (f64, f64) {
    let with: Vec<f64> = gradient.iter().map(|g| f64::from(*g)).collect();
    let without: Vec<f64> = with.iter().zip(row).map(|(g, x)| g - factor * f64::from(*x)).collect();
    let (with, without) = (to_spherical(&with).unwrap(), to_spherical(&without).unwrap());
    let squares = squared_direction_error(&without.angles, &with.angles).unwrap();
    ((with.magnitude - without.magnitude).abs(), squares.sqrt())
}

fn assert_equal(gradient: &[f32], row: &[f32], factor: f64) {
    let moved = Direction::new(gradient).unwrap().leaving_out(row, &[factor]).unwrap()[0];
    let (magnitude, direction) = textbook(gradient, row, factor);
    assert!((moved.magnitude - magnitude).abs() < 1e-9, "{} {magnitude}", moved.magnitude);
    let bound = 1e-9 * direction.max(1.0);
    assert!((moved.direction - direction).abs() < bound, "{} {direction}", moved.direction);
}

fn wave(dim: usize, phase: f32) -> Vec<f32> {
    (0..dim).map(|i| (i as f32 * 0.37 + phase).sin() / (1.0 + i as f32 % 17.0)).collect()
}

#[test]
fn equals_the_textbook_over_sizes() {
    for dim in [2, 3, 7, 8, 9, 255, 1023, 1024, 1025, 1026, 2047, 2048, 2049, 21_840] {
        for factor in [0.0, 1e-6, 1e-3, 0.3, 1.0, 30.0] {
            assert_equal(&wave(dim, 0.2), &wave(dim, 1.9), factor);
        }
        // The record is the whole mean, and all but the whole.
        assert_equal(&wave(dim, 0.2), &wave(dim, 0.2), 1.0);
        assert_equal(&wave(dim, 0.2), &wave(dim, 0.2), 1.0 - 1e-7);
        assert_equal(&wave(dim, 0.2), &wave(dim, 0.2), 2.0);
    }
}

#[test]
fn zeros_point_along_the_first_axis() {
    let zero = vec![0.0; 1500];
    assert_equal(&zero, &wave(1500, 0.4), 1.0);
    assert_equal(&zero, &zero, 1.0);
    for at in [0, 1, 1022, 1023, 1024, 1025, 1498, 1499] {
        for value in [-1.0, 1.0] {
            let mut single = zero.clone();
            single[at] = value;
            assert_equal(&single, &zero, 1.0);
            assert_equal(&single, &wave(1500, 0.4), 0.01);
            assert_equal(&wave(1500, 0.4), &single, 0.01);
            assert_equal(&single, &single, 2.0);
        }
    }
}

#[test]
fn rows_are_compared_one_by_one_and_misfits_refused() {
    let dim = 1100;
    let direction = Direction::new(&wave(dim, 0.1)).unwrap();
    let rows: Vec<f32> = (0..20).flat_map(|r| wave(dim, r as f32)).collect();
    let together = direction.to_each(&rows).unwrap();
    let g: Vec<f64> = wave(dim, 0.1).iter().map(|x| f64::from(*x)).collect();
    for (row, moved) in rows.chunks(dim).zip(&together) {
        assert_eq!(direction.to_each(row).unwrap()[0], *moved);
        let to: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
        let (a, b) = (to_spherical(&g).unwrap(), to_spherical(&to).unwrap());
        let squares = squared_direction_error(&a.angles, &b.angles).unwrap();
        assert!((moved.direction - squares.sqrt()).abs() < 1e-9);
        assert!((moved.magnitude - (a.magnitude - b.magnitude).abs()).abs() < 1e-9);
    }
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    assert_eq!(pool(1).install(|| direction.to_each(&rows).unwrap()), together);
    assert!(direction.leaving_out(&rows, &[1.0]).is_err());
    assert!(direction.leaving_out(&[f32::NAN; 1100], &[1.0]).is_err());
    assert!(Direction::new(&[1.0]).is_err());
    assert!(Direction::new(&[1.0, f32::INFINITY]).is_err());
    assert!(direction.to_each(&[]).unwrap().is_empty());
}

proptest! {
    #[test]
    fn equals_the_textbook_on_anything(
        pairs in prop::collection::vec((-1e3f32..1e3, -1e3f32..1e3), 2..60),
        zeros in prop::collection::vec(any::<bool>(), 60),
        factor in -2.0f64..2.0,
    ) {
        let (mut gradient, row): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        gradient.iter_mut().zip(zeros).for_each(|(g, zero)| if zero { *g = 0.0 });
        let moved = Direction::new(&gradient).unwrap().leaving_out(&row, &[factor]).unwrap()[0];
        let (magnitude, direction) = textbook(&gradient, &row, factor);
        prop_assert!((moved.magnitude - magnitude).abs() < 1e-9 * magnitude.max(1e3));
        prop_assert!((moved.direction - direction).abs() < 1e-9 * direction.max(1.0));
    }
}
