//! The certified polar mechanism as its user sees it: kinds of steps, the public state behind them,
//! and what a release looks like. (The proof's inequalities are tested beside the code.)

use geodp_mechanism::analysis::{dp_direction_mse, polar_step};
use geodp_mechanism::{
    CertifiedPolar, Clip, ExactGaussian, Grid, NoiseSource, Perturb, PerturbSum, PolarParams,
    PolarState, Sensitivity, StepKind,
};

const BATCH: u64 = 1024;
const CLIP_NORM: f64 = 0.1;

fn sensitivity() -> Sensitivity {
    Clip::flat(CLIP_NORM).unwrap().sensitivity()
}

fn polar(sigma: f64, dim: usize, params: PolarParams) -> CertifiedPolar {
    CertifiedPolar::new(sensitivity(), sigma, Grid::default(), BATCH, dim, params).unwrap()
}

/// A sum of length `norm`·C.
fn sums(dim: usize, norm: f64) -> Vec<i64> {
    let shape: Vec<f64> = (0..dim).map(|i| (i as f64 * 0.7).sin()).collect();
    let length = shape.iter().map(|x| x * x).sum::<f64>().sqrt();
    let most = Grid::default().most() as f64;
    shape.iter().map(|x| (x / length * norm * most) as i64).collect()
}

fn length(release: &[f32]) -> f64 {
    release.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt()
}

fn kinds(norm_at: impl Fn(u64) -> f64, sigma: f64, dim: usize, steps: u64) -> Vec<StepKind> {
    let mechanism = polar(sigma, dim, PolarParams::with_margin(6.5));
    let (noise, mut state) = (NoiseSource::from_seed(1), PolarState::default());
    let mut out = vec![0.0; dim];
    (0..steps)
        .map(|step| {
            let sums = sums(dim, norm_at(step));
            mechanism.perturb_sums(&sums, &noise, step, &mut state, &mut out).unwrap().kind
        })
        .collect()
}

/// a/L ≤ 1.2 needs a ≥ 6·(tσ + 1)·C = 45 C.
#[test]
fn the_kind_of_a_step_follows_public_estimates() {
    let large = kinds(|_| 200.0, 1.0, 5_000, 30);
    assert_eq!(large[0], StepKind::Isotropic, "nothing is known before the first step");
    assert!(large[5..].iter().all(|kind| *kind == StepKind::Polar));
    assert!(kinds(|_| 20.0, 1.0, 5_000, 30).iter().all(|kind| *kind == StepKind::Isotropic));
    // Gradients shrink during training: polar steps first, isotropic ones later.
    let shrinking = kinds(|step| 200.0 * f64::powi(0.95, step as i32), 1.0, 5_000, 80);
    assert!(shrinking[5..20].iter().all(|kind| *kind == StepKind::Polar));
    assert!(shrinking[60..].iter().all(|kind| *kind == StepKind::Isotropic));
    // In high dimension one isotropic release says little about a; it is not trusted.
    assert!(kinds(|_| 5.0, 1.0, 1_000_000, 6).iter().all(|kind| *kind == StepKind::Isotropic));
}

#[test]
fn isotropic_steps_are_those_of_the_exact_gaussian() {
    let (dim, noise) = (3_000, NoiseSource::from_seed(2));
    let sums = sums(dim, 10.0);
    let mut out = vec![0.0; dim];
    let mechanism = polar(1.3, dim, PolarParams::with_margin(6.0));
    let mut state = PolarState::default();
    let kind = mechanism.perturb_sums(&sums, &noise, 3, &mut state, &mut out).unwrap().kind;
    // What is learnt of the norm is learnt from the release.
    let seen = (length(&out) * BATCH as f64 / CLIP_NORM).powi(2) - dim as f64 * 1.3 * 1.3;
    assert!((state.squared_norm.unwrap() / seen - 1.0).abs() < 1e-9);
    assert_eq!(kind, StepKind::Isotropic);
    let gaussian = ExactGaussian::new(sensitivity(), 1.3, Grid::default(), BATCH).unwrap();
    assert_eq!(out, gaussian.release(&sums, &noise, 3).unwrap());
}

/// The state is a function of releases: two sums that give the same releases give the same state,
/// and a run that goes on from a stored state makes the same steps.
#[test]
fn the_state_can_be_stored_and_continued() {
    let dim = 2_000;
    let mechanism = polar(1.0, dim, PolarParams::with_margin(6.5));
    let noise = NoiseSource::from_seed(3);
    let run = |from: u64, to: u64, state: &mut PolarState| {
        let mut out = vec![0.0; dim];
        (from..to)
            .map(|step| {
                let sums = sums(dim, 60.0 + 10.0 * (step as f64).sin());
                mechanism.perturb_sums(&sums, &noise, step, state, &mut out).unwrap();
                out.clone()
            })
            .collect::<Vec<_>>()
    };
    let mut whole = PolarState::default();
    let releases = run(0, 20, &mut whole);
    let mut first = PolarState::default();
    run(0, 9, &mut first);
    let mut second = PolarState { ..first };
    assert_eq!(run(9, 20, &mut second), releases[9..]);
    assert_eq!(second, whole);
    assert_eq!(whole.counts.polar + whole.counts.isotropic + whole.counts.directionless, 20);
    assert!(whole.counts.polar > 0 && whole.counts.isotropic > 0);
}

/// A mean summed in floating point is placed on the grid and perturbed like the exact sum.
#[test]
fn floating_means_take_the_same_route() {
    let (dim, noise) = (2_000, NoiseSource::from_seed(14));
    let mechanism = polar(1.0, dim, PolarParams::with_margin(6.5));
    let sums = sums(dim, 200.0);
    let unit = Grid::default().unit(sensitivity()) / BATCH as f64;
    let (mut exact, mut floating) = (PolarState::default(), PolarState::default());
    for step in 0..4 {
        let mut out = vec![0.0_f32; dim];
        mechanism.release_step(&sums, &noise, step, &mut exact, &mut out).unwrap();
        let mut mean: Vec<f64> = sums.iter().map(|n| *n as f64 * unit).collect();
        mechanism.perturb_step(&mut mean, &noise, step, &mut floating).unwrap();
        assert!(mean.iter().zip(&out).all(|(a, b)| *a == f64::from(*b)));
    }
    assert_eq!(exact, floating);
    assert!(exact.counts.polar > 0);
    assert!(mechanism.perturb_step(&mut [f32::NAN; 2_000], &noise, 9, &mut floating).is_err());
}

#[test]
fn threads_do_not_change_bits() {
    let dim = 40_000;
    let sums = sums(dim, 500.0);
    let params = PolarParams { most_ratio: f64::INFINITY, ..PolarParams::with_margin(6.0) };
    let release = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (mut out, mut state) = (vec![0.0; dim], PolarState::default());
            let noise = NoiseSource::from_seed(4);
            polar(1.0, dim, params).perturb_sums(&sums, &noise, 0, &mut state, &mut out).unwrap();
            (out, state)
        })
    };
    assert_eq!(release(1), release(2));
    assert_eq!(release(1), release(3));
}

/// An unbiased release: its mean is the mean gradient. 5.5 standard errors a coordinate.
#[test]
fn polar_releases_are_unbiased() {
    let (dim, rounds) = (40, 4_000_u64);
    let params = PolarParams { most_ratio: f64::INFINITY, ..PolarParams::with_margin(5.0) };
    let (mechanism, noise) = (polar(2.0, dim, params), NoiseSource::from_seed(5));
    let sums = sums(dim, 60.0);
    let mut mean = vec![0.0; dim];
    let mut out = vec![0.0; dim];
    for step in 0..rounds {
        mechanism.perturb_sums(&sums, &noise, step, &mut PolarState::default(), &mut out).unwrap();
        mean.iter_mut().zip(&out).for_each(|(m, x)| *m += f64::from(*x) / rounds as f64);
    }
    let unit = Grid::default().unit(sensitivity()) / BATCH as f64;
    // The direction's noise is at most DP's times 60/(60 − 2·5 − 1 − 5σ).
    let error = 5.5 * mechanism.coordinate_std() * 1.5 / (rounds as f64).sqrt();
    for (mean, sum) in mean.iter().zip(&sums) {
        assert!((mean - *sum as f64 * unit).abs() < error, "{mean} for {}", *sum as f64 * unit);
    }
}

#[test]
fn a_normalised_release_has_the_length_of_the_magnitude() {
    let dim = 3_000;
    let params = PolarParams {
        normalised: true,
        most_ratio: f64::INFINITY,
        ..PolarParams::with_margin(6.0)
    };
    let mut out = vec![0.0; dim];
    polar(1.0, dim, params)
        .perturb_sums(
            &sums(dim, 300.0),
            &NoiseSource::from_seed(6),
            0,
            &mut PolarState::default(),
            &mut out,
        )
        .unwrap();
    let expected = 300.0 * CLIP_NORM / BATCH as f64;
    assert!((length(&out) / expected - 1.0).abs() < 5.0 / 300.0);
}

#[test]
fn small_magnitudes_release_no_direction() {
    let dim = 100;
    let params = PolarParams { most_ratio: f64::INFINITY, ..PolarParams::with_margin(6.0) };
    for sums in [sums(dim, 0.0), sums(dim, 3.0)] {
        let mut state = PolarState::default();
        let mut out = vec![1.0; dim];
        let noise = NoiseSource::from_seed(7);
        let mechanism = polar(1.0, dim, params);
        let release = mechanism.perturb_sums(&sums, &noise, 0, &mut state, &mut out).unwrap();
        assert_eq!((release.kind, release.radius), (StepKind::Directionless, None));
        assert_eq!(out, vec![0.0; dim]);
        assert_eq!(state.counts.directionless, 1);
    }
}

/// κ = 2: with almost no noise L = a − C(tσ + 1), and a direction is released from L = 2C on.
#[test]
fn a_direction_needs_a_radius_of_kappa() {
    let params = PolarParams { most_ratio: f64::INFINITY, ..PolarParams::with_margin(6.0) };
    let mechanism = polar(1e-3, 100, params);
    for (norm, kind) in
        [(1.5, StepKind::Directionless), (2.9, StepKind::Directionless), (3.1, StepKind::Polar)]
    {
        let (mut out, mut state) = (vec![0.0; 100], PolarState::default());
        let noise = NoiseSource::from_seed(9);
        let release = mechanism.perturb_sums(&sums(100, norm), &noise, 0, &mut state, &mut out);
        assert_eq!(release.unwrap().kind, kind, "a = {norm}·C");
    }
}

/// The analysis agrees with the mechanism: noise around the mean direction is a/L times DP's.
#[test]
fn the_expected_noise_is_dps_times_the_ratio() {
    let dim = 20_000;
    let params = PolarParams { most_ratio: f64::INFINITY, ..PolarParams::with_margin(6.0) };
    let sums = sums(dim, 40.0);
    let unit = Grid::default().unit(sensitivity()) / BATCH as f64;
    let mean: Vec<f64> = sums.iter().map(|n| *n as f64 * unit).collect();
    let step = polar_step(&mean, CLIP_NORM, 1.0, BATCH, &params).unwrap().unwrap();
    assert!((step.noise_ratio - 40.0 / 33.0).abs() < 1e-6);
    let dp_std = CLIP_NORM / BATCH as f64;
    let expected = dp_direction_mse(&mean, dp_std * 40.0 / 33.0).unwrap();
    assert!((step.direction_mse / expected - 1.0).abs() < 1e-5);
    // β = C·B/(L·π·√(d+2)) with L = 33 C.
    let beta = BATCH as f64 / (33.0 * std::f64::consts::PI * f64::from(20_002).sqrt());
    assert!((step.effective_beta / beta - 1.0).abs() < 1e-6);

    let mut out = vec![0.0; dim];
    let noise = NoiseSource::from_seed(8);
    polar(1.0, dim, params)
        .perturb_sums(&sums, &noise, 0, &mut PolarState::default(), &mut out)
        .unwrap();
    let dot: f64 = out.iter().zip(&mean).map(|(x, g)| f64::from(*x) * g).sum();
    let along = dot / mean.iter().map(|g| g * g).sum::<f64>();
    let spread: f64 = out.iter().zip(&mean).map(|(x, g)| (f64::from(*x) / along - g).powi(2)).sum();
    let measured = (spread / dim as f64).sqrt() / dp_std;
    // z₀ moves L, hence the ratio, by a few hundredths.
    assert!((measured / step.noise_ratio - 1.0).abs() < 0.15, "{measured}");
    assert!(polar_step(&mean, CLIP_NORM, 8.0, BATCH, &params).unwrap().is_none());
}

#[test]
fn wrong_parameters_are_refused() {
    let build = |sigma: f64, dim: usize, params: PolarParams| {
        CertifiedPolar::new(sensitivity(), sigma, Grid::default(), BATCH, dim, params)
    };
    let good = PolarParams::with_margin(6.0);
    assert!(build(1.0, 10, good).is_ok());
    assert!(build(0.0, 10, good).is_err() && build(1.0, 0, good).is_err());
    assert!(build(f64::NAN, 10, good).is_err());
    for bad in [
        PolarParams { margin: 0.0, ..good },
        PolarParams { margin: f64::NAN, ..good },
        PolarParams { least_radius: 0.0, ..good },
        PolarParams { most_ratio: 1.0, ..good },
    ] {
        assert!(build(1.0, 10, bad).is_err(), "{bad:?}");
    }
    let mut out = vec![0.0; 9];
    let mut state = PolarState::default();
    let noise = NoiseSource::from_seed(0);
    let mechanism = build(1.0, 10, good).unwrap();
    assert!(mechanism.perturb_sums(&[0; 10], &noise, 0, &mut state, &mut out).is_err());
    assert_eq!(state, PolarState::default());
}
