//! Releases of exact sums: on the grid, of the right scale, the same for any number of threads.

use geodp_mechanism::exact::{LEFT_OVER_PER_DRAW, left_over_delta};
use geodp_mechanism::perturb::{mean_into, release_scalar};
use geodp_mechanism::{
    Clip, Error, ExactGaussian, ExactMean, Geometric, Grid, NoiseSource, Perturb, PerturbSum,
    Purpose, RoundedNormal, Sensitivity,
};

const BATCH: u64 = 256;

fn sensitivity(clip_norm: f64) -> Sensitivity {
    Clip::flat(clip_norm).unwrap().sensitivity()
}

fn sums(dim: usize) -> Vec<i64> {
    (0..dim as i64).map(|i| (i * 7_919 % 1001 - 500) << 18).collect()
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn threads_and_lengths_do_not_change_bits() {
    let mechanism = ExactGaussian::new(sensitivity(0.1), 1.3, Grid::default(), BATCH).unwrap();
    let noise = NoiseSource::from_seed(3);
    let sums = sums(50_000);
    let release = in_pool(1, || mechanism.release(&sums, &noise, 9).unwrap());
    for threads in [2, 3] {
        assert_eq!(in_pool(threads, || mechanism.release(&sums, &noise, 9).unwrap()), release);
    }
    // A release of fewer coordinates is a prefix: noise is addressed by coordinate.
    for dim in [1, 255, 1024, 1025, 9_000] {
        assert_eq!(mechanism.release(&sums[..dim], &noise, 9).unwrap(), release[..dim]);
    }
    assert_ne!(mechanism.release(&sums, &noise, 10).unwrap(), release);
}

/// (n + noise)·γ/B, with the noise of the addressed streams, rounded to f32 once.
#[test]
fn the_release_is_the_formula() {
    let (clip_norm, sigma) = (0.7, 2.5);
    let grid = Grid::new(20).unwrap();
    let mechanism = ExactGaussian::new(sensitivity(clip_norm), sigma, grid, BATCH).unwrap();
    let noise = NoiseSource::from_seed(4);
    let sums = sums(3_000);
    let release = mechanism.release(&sums, &noise, 2).unwrap();
    let law = RoundedNormal::new(sigma, grid).unwrap();
    for (chunk, (sums, release)) in sums.chunks(1024).zip(release.chunks(1024)).enumerate() {
        let mut draws = vec![0; sums.len()];
        noise.stream(Purpose::Coordinates, 2, chunk as u64).unwrap().fill_rounded(law, &mut draws);
        for ((sum, draw), released) in sums.iter().zip(&draws).zip(release) {
            let unit = clip_norm / f64::from(1 << 20) / BATCH as f64;
            assert_eq!(*released, ((sum + draw) as f64 * unit) as f32);
        }
    }
}

/// The noise is C·σ/B, whatever the grid: 5.5 standard errors of a variance.
#[test]
fn noise_has_the_spread_that_the_accountant_is_told() {
    let dim = 400_000;
    for (clip_norm, sigma, bits) in [(0.1, 1.0, 26), (3.0, 0.4, 20), (1.0, 6.0, 8)] {
        let grid = Grid::new(bits).unwrap();
        let mechanism = ExactGaussian::new(sensitivity(clip_norm), sigma, grid, BATCH).unwrap();
        let release = mechanism.release(&vec![0; dim], &NoiseSource::from_seed(5), 0).unwrap();
        let std = clip_norm * sigma / BATCH as f64;
        assert_eq!(mechanism.coordinate_std(), std);
        let variance = release.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / dim as f64;
        let error =
            5.5 * (2.0 / dim as f64).sqrt() + 1.0 / (12.0 * (sigma * f64::from(1 << bits)).powi(2));
        assert!((variance / std.powi(2) - 1.0).abs() < error, "{}", variance / std.powi(2));
    }
}

/// What is released is a whole number of units, so it tells nothing finer about the sum.
#[test]
fn releases_are_on_the_grid() {
    let grid = Grid::new(10).unwrap();
    let mechanism = ExactGaussian::new(sensitivity(1.0), 2.0, grid, 1).unwrap();
    for x in mechanism.release(&sums(2_000), &NoiseSource::from_seed(6), 0).unwrap() {
        assert_eq!((f64::from(x) * 1024.0).fract(), 0.0, "{x}");
    }
}

#[test]
fn extreme_sums_are_held_and_never_overflow() {
    let mechanism = ExactGaussian::new(sensitivity(1.0), 4.0, Grid::default(), 1).unwrap();
    let noise = NoiseSource::from_seed(7);
    let sums = [i64::MIN, i64::MAX, 1 << 50, -(1 << 50), 1 << 62];
    let release = mechanism.release(&sums, &noise, 0).unwrap();
    let held = mechanism.release(&sums.map(|n| n.clamp(-(1 << 50), 1 << 50)), &noise, 0).unwrap();
    assert_eq!(release, held);
    assert!(release.iter().all(|x| x.is_finite()));
}

#[test]
fn no_noise_is_the_mean_itself() {
    let mechanism = ExactGaussian::new(sensitivity(0.1), 0.0, Grid::default(), BATCH).unwrap();
    let sums = sums(2_000);
    let mut mean = vec![0.0; 2_000];
    mean_into(&sums, mechanism.unit(), &mut mean);
    assert_eq!(mechanism.release(&sums, &NoiseSource::from_seed(8), 0).unwrap(), mean);
}

#[test]
fn geodp_takes_the_exact_mean() {
    let (sensitivity, noise, sums) = (sensitivity(0.1), NoiseSource::from_seed(9), sums(5_000));
    let geodp = Geometric::new(sensitivity, 1.0, BATCH, 0.1).unwrap();
    let exact = ExactMean::new(geodp, sensitivity, Grid::default(), BATCH).unwrap();
    let mut mean = vec![0.0_f32; sums.len()];
    mean_into(&sums, Grid::default().unit(sensitivity) / BATCH as f64, &mut mean);
    assert_eq!(exact.release(&sums, &noise, 3).unwrap(), geodp.perturb(&mean, &noise, 3).unwrap());
}

/// GeoDP works where the release will stand: what was there must not be a mean without noise.
#[test]
fn a_failed_release_leaves_no_mean_behind() {
    let (sensitivity, noise) = (sensitivity(0.1), NoiseSource::from_seed(9));
    let geodp = Geometric::new(sensitivity, 1.0, BATCH, 0.1).unwrap();
    let exact = ExactMean::new(geodp, sensitivity, Grid::default(), BATCH).unwrap();
    for (dim, step) in [(3_000, u64::MAX), (20_000, u64::MAX), (1, 0)] {
        let mut out = vec![7.0; dim];
        assert!(exact.release_into(&sums(dim), &noise, step, &mut out).is_err());
        assert!(out.iter().all(|value| *value == 7.0 || *value == 0.0), "{dim}: {:?}", &out[..1]);
    }
}

/// A scalar's noise is the first of its stream's block, also where f64 cannot decide the rounding: at
/// a scale of 2⁴⁰ that is every fourth pair.
#[test]
fn a_scalars_noise_is_the_first_of_its_stream() {
    let noise = NoiseSource::from_seed(11);
    for (sigma, bits) in [(20.0, 26), (16.0, 36), (0.0, 26)] {
        let law = RoundedNormal::new(sigma, Grid::new(bits).unwrap()).unwrap();
        for step in 0..2_000 {
            let mut draws = [0; 3];
            noise.stream(Purpose::Magnitude, step, 0).unwrap().fill_rounded(law, &mut draws);
            let scalar = release_scalar(0, law, &noise, Purpose::Magnitude, step, 0).unwrap();
            assert_eq!(scalar, draws[0], "σ = {sigma}, step {step}");
        }
    }
}

/// One coordinate, at any address: the integer that the stream's first draw makes of it.
#[test]
fn scalars_have_their_own_addresses() {
    let noise = NoiseSource::from_seed(10);
    let law = RoundedNormal::new(20.0, Grid::default()).unwrap();
    let at =
        |purpose, step, chunk| release_scalar(1_000, law, &noise, purpose, step, chunk).unwrap();
    let mut draw = [0];
    noise.stream(Purpose::Importance, 4, 1).unwrap().fill_rounded(law, &mut draw);
    assert_eq!(at(Purpose::Importance, 4, 1), 1_000 + draw[0]);
    let others = [
        at(Purpose::Importance, 4, 2),
        at(Purpose::Importance, 5, 1),
        at(Purpose::Selection, 4, 1),
    ];
    assert!(others.iter().all(|other| *other != at(Purpose::Importance, 4, 1)));
    assert!(release_scalar(i64::MAX, law, &noise, Purpose::Selection, 0, 0).is_ok());
}

/// A number on the grid is never longer than 2ᴷ, and is cut, not rounded.
#[test]
fn scalars_are_placed_inside_their_bound() {
    let grid = Grid::new(8).unwrap();
    for (value, expected) in [
        (1.0, 256),
        (1.5, 256),
        (-2.0, -256),
        (0.999, 255),
        (-0.999, -255),
        (0.0, 0),
        (f64::NAN, 0),
        (f64::INFINITY, 256),
        (0.003, 0),
    ] {
        assert_eq!(grid.place(value * 0.1, 0.1), expected, "{value}");
    }
    for bound in [0.1, 1.0 / 3.0, 1e-7, 5e300] {
        assert!(Grid::default().place(bound, bound) <= Grid::default().most());
    }
}

#[test]
fn wrong_input_is_refused_with_its_value() {
    assert_eq!(Grid::new(40).unwrap_err(), Error::Grid(40));
    let grid = Grid::default();
    assert_eq!(
        RoundedNormal::new(1e-9, grid).unwrap_err(),
        Error::NoiseOffGrid { noise_multiplier: 1e-9, bits: 26 }
    );
    assert!(RoundedNormal::new(1e6, grid).is_err());
    assert!(RoundedNormal::new(f64::NAN, grid).is_err());
    assert!(ExactGaussian::new(sensitivity(1.0), 1.0, grid, 0).is_err());
    let mechanism = ExactGaussian::new(sensitivity(1.0), 1.0, grid, 1).unwrap();
    let noise = NoiseSource::from_seed(0);
    assert_eq!(mechanism.release(&[], &noise, 0).unwrap_err(), Error::Empty);
    let mut out = [7.0; 2];
    assert!(mechanism.release_into(&[1, 2, 3], &noise, 0, &mut out).is_err());
    assert!(mechanism.release_into(&[1, 2], &noise, 1 << 40, &mut out).is_err());
    assert_eq!(out, [7.0; 2]);
}

#[test]
fn what_is_left_over_is_counted() {
    assert_eq!(LEFT_OVER_PER_DRAW, f64::powi(2.0, -128));
    let delta = left_over_delta(1e13, 3.0);
    assert!(delta > 1e13 * LEFT_OVER_PER_DRAW * (1.0 + f64::exp(3.0)) && delta < 1e-23);
}
