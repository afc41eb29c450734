//! The proof's inequalities, on the integers that the mechanism forms, in 128-bit arithmetic.
//!
//! `GEODP_TEST_NEIGHBOURS=1000000` makes the property tests as long as one wants; the default is
//! quick.

use super::*;
use crate::clip::Clip;
use crate::noise::Stream;

const BITS: u32 = 26;

fn mechanism(sigma: f64, dim: usize, params: PolarParams) -> CertifiedPolar {
    let sensitivity = Clip::flat(0.1).unwrap().sensitivity();
    CertifiedPolar::new(sensitivity, sigma, Grid::new(BITS).unwrap(), 64, dim, params).unwrap()
}

fn cases(quick: usize) -> usize {
    let asked = std::env::var("GEODP_TEST_NEIGHBOURS").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or(quick)
}

fn square(vector: &[i64]) -> i128 {
    vector.iter().map(|x| i128::from(*x) * i128::from(*x)).sum()
}

fn difference(a: &[i64], b: &[i64]) -> Vec<i64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn normals(stream: &mut Stream, dim: usize) -> Vec<f64> {
    let mut direction = vec![0.0; dim];
    stream.fill_normals(&mut direction);
    direction
}

/// An integer vector along `direction`, cut toward zero, so no longer than `length`.
fn along(direction: &[f64], length: f64) -> Vec<i64> {
    let norm = direction.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-300);
    direction.iter().map(|x| (x / norm * length * (1.0 - 1e-12)) as i64).collect()
}

/// A sum and its neighbour with one record more: random ones and the worst ones.
struct Neighbours {
    without: Vec<i64>,
    with: Vec<i64>,
}

/// Sums from a hundredth of a record's length to 2^`records_log2` records.
fn neighbours(stream: &mut Stream, case: usize, records_log2: f64) -> Neighbours {
    let most = f64::from(1 << BITS);
    let dim = if case.is_multiple_of(200) { 3_000 } else { 1 + stream.below(24) as usize };
    let length = most * f64::powf(2.0, stream.uniform() * (records_log2 + 6.6) - 6.6);
    let direction = normals(stream, dim);
    let without = along(&direction, if case % 9 == 8 { 0.0 } else { length });
    let other = normals(stream, dim);
    let record = match case % 9 {
        // Parallel, opposite, one that cancels the sum, one that nearly does.
        0 => along(&direction, most),
        1 => along(&direction.iter().map(|x| -x).collect::<Vec<_>>(), most),
        2 => without.iter().map(|x| -x).collect(),
        3 => along(&direction.iter().map(|x| -x).collect::<Vec<_>>(), length * 0.999),
        // Orthogonal; one coordinate alone; short; anything; the first record of an empty batch.
        4 => {
            let dot: f64 = direction.iter().zip(&other).map(|(x, y)| x * y).sum();
            let norm: f64 = direction.iter().map(|x| x * x).sum();
            let rest = other.iter().zip(&direction).map(|(y, x)| y - dot / norm * x);
            along(&rest.collect::<Vec<_>>(), most)
        }
        5 => (0..dim).map(|i| if i == 0 { 1 << BITS } else { 0 }).collect(),
        6 => along(&other, most * stream.uniform()),
        _ => along(&other, most),
    };
    let too_long = square(&record) > 1 << (2 * BITS);
    let record = if too_long { along(&other, most) } else { record };
    let with = without.iter().zip(&record).map(|(x, y)| x + y).collect();
    Neighbours { without, with }
}

/// (ã − b̃)² + ‖n − n′‖² ≤ (2ᴷ + slack)² for every radius that either neighbour can release unless
/// z₀ > t: with noise of σ·(2ᴷ + slack) that is μ₁² + μ₂² ≤ 1/σ².
#[test]
fn magnitude_and_direction_share_one_budget() {
    let mut stream = NoiseSource::from_seed(31).stream(Purpose::Audit, 0, 0).unwrap();
    let (mut directions, mut tightest) = (0, 0.0_f64);
    for case in 0..cases(30_000) {
        // Every other sum may come near 2⁵⁰ units, where f64 is least precise.
        let records_log2 = if case % 2 == 0 { 14.0 } else { 23.9 };
        let Neighbours { without, with } = neighbours(&mut stream, case, records_log2);
        assert!(square(&difference(&with, &without)) <= 1 << (2 * BITS));
        let sigma = 0.3 * f64::powf(30.0, stream.uniform());
        let t = 3.0 + 4.0 * stream.uniform();
        let mechanism = mechanism(sigma, with.len(), PolarParams::with_margin(t));
        let (a, b) = (norm(&with), norm(&without));
        let (rounded_a, rounded_b) = (rounded_norm(a), rounded_norm(b));
        for z in [t, t - 2.0 * stream.uniform(), stream.uniform(), -3.0 * stream.uniform()] {
            let noise = (z * mechanism.law.scale()).round() as i64;
            for magnitude in [rounded_a + noise, rounded_b + noise] {
                let radius = mechanism.radius(magnitude);
                // L ≤ min(a, b) ≤ √(ab), exactly.
                let square_of_radius = i128::from(radius.max(0)) * i128::from(radius.max(0));
                assert!(square_of_radius <= square(&with).min(square(&without)), "case {case}");
                if !mechanism.has_direction(radius) {
                    continue;
                }
                directions += 1;
                let placed = |sums: &[i64], norm: f64| -> Vec<i64> {
                    let shrink = radius as f64 / norm;
                    sums.iter().map(|sum| rounded::shrunk(*sum, shrink)).collect()
                };
                let apart = difference(&placed(&with, a), &placed(&without, b));
                let moved = square(&[rounded_a - rounded_b]) + square(&apart);
                let most = (1_i128 << BITS) + slack(with.len()) as i128;
                assert!(moved <= most * most, "case {case}: {moved} > {most}²");
                tightest = tightest.max(moved as f64 / (most * most) as f64);
            }
        }
    }
    // The cases reach the bound: the test is not idle.
    assert!(directions > cases(30_000) / 4 && tightest > 0.9999, "{directions} {tightest}");
}

/// (a − b)² + ab‖u − v‖² = ‖s − s′‖², with a, b, u, v to 40 binary places.
#[test]
fn law_of_cosines() {
    let mut stream = NoiseSource::from_seed(32).stream(Purpose::Audit, 0, 0).unwrap();
    for case in 0..cases(20_000) {
        let Neighbours { without, with } = neighbours(&mut stream, case, 14.0);
        // Norms with 20 places, unit vectors with 40.
        let norms = [&with, &without].map(|s| (square(s) << 40).unsigned_abs().isqrt() as i128);
        if norms.contains(&0) {
            continue;
        }
        let unit = |s: &[i64], norm: i128| -> Vec<f64> {
            s.iter().map(|x| ((i128::from(*x) << 60) / norm) as f64 / f64::powi(2.0, 40)).collect()
        };
        let (u, v) = (unit(&with, norms[0]), unit(&without, norms[1]));
        let [a, b] = norms.map(|norm| norm as f64 / f64::from(1 << 20));
        let chord: f64 = u.iter().zip(&v).map(|(x, y)| (x - y).powi(2)).sum();
        let sides = square(&difference(&with, &without)) as f64;
        let error = ((a - b).powi(2) + a * b * chord - sides).abs();
        assert!(error <= 1e-9 * (a * a + b * b), "case {case}: {error}");
    }
}

/// The release is the formula, made of m̃ alone but for n = round(L·u): neither a radius from the
/// private norm, nor noise of another size, nor a direction below κ would pass.
#[test]
fn a_release_is_the_formula() {
    let dim = 2_500;
    let sums: Vec<i64> = (0..dim as i64).map(|i| (i * 7_919 % 1001 - 480) << 18).collect();
    let noise = NoiseSource::from_seed(33);
    for (normalised, sigma) in [(false, 1.0), (true, 1.0), (false, 40.0)] {
        let params =
            PolarParams { normalised, most_ratio: f64::INFINITY, ..PolarParams::with_margin(6.0) };
        let mechanism = mechanism(sigma, dim, params);
        let mut out = vec![f32::NAN; dim];
        let mut state = PolarState::default();
        let release = mechanism.perturb_sums(&sums, &noise, 5, &mut state, &mut out).unwrap();
        let kind = release.kind;
        let law = RoundedNormal::new(
            sigma * (1.0 + (f64::from(dim as u32).sqrt().ceil() + 133.0) / f64::from(1 << BITS)),
            Grid::new(BITS).unwrap(),
        )
        .unwrap();
        let mut draw = [0];
        noise.stream(Purpose::Magnitude, 5, 0).unwrap().fill_rounded(law, &mut draw);
        let norm = (square(&sums) as f64).sqrt();
        let magnitude = norm.round() as i64 + draw[0];
        let radius = magnitude - (6.0 * law.scale()).ceil() as i64 - (1 << BITS) - 34;
        // The public state is made of what was released, never of the norm behind it.
        let seen = (magnitude as f64 / f64::from(1 << BITS)).powi(2) - sigma * sigma;
        assert_eq!(state.squared_norm, Some(seen));
        if radius < 2 << BITS {
            assert_eq!(kind, StepKind::Directionless);
            assert!(out.iter().all(|x| *x == 0.0));
            assert_eq!(sigma, 40.0);
            continue;
        }
        assert_eq!(kind, StepKind::Polar);
        assert_eq!(release.magnitude, Some(magnitude as f64 / f64::from(1 << BITS)));
        assert_eq!(release.radius, Some(radius as f64 / f64::from(1 << BITS)));
        let unit = 0.1 / f64::from(1 << BITS) / 64.0;
        let mut expected = Vec::new();
        for (chunk, sums) in sums.chunks(1024).enumerate() {
            let mut draws = vec![0; sums.len()];
            let mut stream = noise.stream(Purpose::Coordinates, 5, chunk as u64).unwrap();
            stream.fill_rounded(law, &mut draws);
            for (sum, draw) in sums.iter().zip(draws) {
                let placed = (*sum as f64 * (radius as f64 / norm)).round() as i64;
                expected.push((placed + draw) as f64 * unit);
            }
        }
        let length = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
        let factor = if normalised {
            magnitude as f64 * unit / length
        } else {
            magnitude as f64 / radius as f64
        };
        for (released, expected) in out.iter().zip(expected) {
            let expected = expected * factor;
            assert!((f64::from(*released) - expected).abs() <= 1e-6 * expected.abs() + 1e-15);
        }
    }
}

#[test]
fn margins_and_misses_fit() {
    for miss in [0.1, 1e-3, 4e-11, 1e-20, 1e-100] {
        let margin = PolarParams::margin_for(miss).unwrap();
        let made = PolarParams::with_margin(margin).miss();
        assert!(made <= miss && made > 0.999 * miss, "{miss}: {margin} {made}");
    }
    // Φ(−6.5) = 4.016e-11.
    assert!((PolarParams::with_margin(6.5).miss() / 4.016e-11 - 1.0).abs() < 1e-3);
    assert!(PolarParams::with_margin(60.0).miss() > 0.0);
    assert!(PolarParams::margin_for(0.0).is_err() && PolarParams::margin_for(0.7).is_err());
}
