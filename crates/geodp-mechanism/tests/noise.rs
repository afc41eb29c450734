//! The noise is what it says: normal, secure streams that do not overlap.
//!
//! Statistical tests use fixed seeds, and bounds of at least 5.5 standard errors (two-sided normal
//! tail 4e-8 a check; all checks of this file together stay below the false-alarm rate of 1e-6
//! each).

use geodp_mechanism::{Error, NoiseSource, Origin, Purpose};
use rand_distr::{Distribution, StandardNormal};

const COUNT: usize = 4_000_000;
const STANDARD_ERRORS: f64 = 5.5;

fn normals(seed: u64, count: usize) -> Vec<f64> {
    let source = NoiseSource::from_seed(seed);
    let mut out = vec![0.0; count];
    for (chunk, values) in out.chunks_mut(100_000).enumerate() {
        source.stream(Purpose::Coordinates, 3, chunk as u64).unwrap().fill_normals(values);
    }
    out
}

fn mean_of(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    values.iter().map(|x| f(*x)).sum::<f64>() / values.len() as f64
}

#[test]
fn moments_are_those_of_the_normal() {
    let z = normals(1, COUNT);
    let error = 1.0 / (COUNT as f64).sqrt();
    // (power, its mean, the variance of the power under N(0, 1))
    for (power, mean, variance) in
        [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0), (6, 15.0, 10_170.0)]
    {
        let measured = mean_of(&z, |x| x.powi(power));
        let bound = STANDARD_ERRORS * error * f64::sqrt(variance);
        assert!((measured - mean).abs() < bound, "E z^{power} = {measured}, expected {mean}");
    }
}

/// P(|z| > t) for the normal, from erfc; counts are binomial.
#[test]
fn tails_are_those_of_the_normal() {
    let z = normals(2, COUNT);
    for t in [0.1, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5] {
        for sign in [-1.0, 1.0] {
            let p = 0.5 * libm::erfc(t / std::f64::consts::SQRT_2);
            let count = z.iter().filter(|x| *x * sign > t).count() as f64;
            let expected = p * COUNT as f64;
            // Few expected events are Poisson, whose tail is heavier: allow for it.
            let bound = STANDARD_ERRORS * (expected * (1.0 - p)).sqrt() + 12.0;
            assert!((count - expected).abs() < bound, "t = {}: {count} for {expected}", sign * t);
        }
    }
}

/// Two-sample Kolmogorov–Smirnov against rand_distr's ziggurat: an independent sampler.
#[test]
fn agrees_with_an_independent_sampler() {
    use rand::SeedableRng;
    let mut ours = normals(3, 500_000);
    let rng = rand::rngs::StdRng::seed_from_u64(17);
    let mut theirs: Vec<f64> = StandardNormal.sample_iter(rng).take(500_000).collect();
    ours.sort_by(f64::total_cmp);
    theirs.sort_by(f64::total_cmp);
    let mut at = 0;
    let mut distance = 0.0_f64;
    for (i, x) in ours.iter().enumerate() {
        while at < theirs.len() && theirs[at] <= *x {
            at += 1;
        }
        distance = distance.max((i as f64 - at as f64).abs() / 500_000.0);
    }
    // P(distance > c·√(2/n)) ≈ 2·exp(−2c²): c = 2.75 gives 5e-7.
    assert!(distance < 2.75 * (2.0_f64 / 500_000.0).sqrt(), "KS distance {distance}");
}

#[test]
fn neighbours_in_a_stream_are_independent() {
    let z = normals(4, COUNT);
    // 128 is the distance of the two normals made from one pair of words.
    for lag in [1, 2, 3, 4, 127, 128, 129, 256, 1024] {
        for f in [|x: f64| x, |x: f64| x * x - 1.0] {
            let pairs = COUNT - lag;
            let sum: f64 = (0..pairs).map(|i| f(z[i]) * f(z[i + lag])).sum();
            let variance = mean_of(&z, |x| f(x) * f(x)).powi(2);
            let bound = STANDARD_ERRORS * (variance * pairs as f64).sqrt() * 1.2;
            assert!(sum.abs() < bound, "lag {lag}: {sum}");
        }
    }
}

#[test]
fn streams_are_independent() {
    let source = NoiseSource::from_seed(9);
    let draw = |source: &NoiseSource, purpose, step, chunk| {
        let mut z = vec![0.0; 200_000];
        source.stream(purpose, step, chunk).unwrap().fill_normals(&mut z);
        z
    };
    let streams = [
        draw(&source, Purpose::Coordinates, 0, 0),
        draw(&source, Purpose::Coordinates, 0, 1),
        draw(&source, Purpose::Coordinates, 1, 0),
        draw(&source, Purpose::Coordinates, 256, 0),
        draw(&source, Purpose::Angles, 0, 0),
        draw(&source, Purpose::Magnitude, 0, 0),
        draw(&NoiseSource::from_seed(10), Purpose::Coordinates, 0, 0),
    ];
    for (i, a) in streams.iter().enumerate() {
        for b in &streams[..i] {
            let dot: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
            assert!(dot.abs() < STANDARD_ERRORS * 200_000f64.sqrt(), "correlation {dot}");
        }
    }
}

/// Drawing one normal costs two words, but gives and leaves behind what drawing its block would.
#[test]
fn one_normal_is_the_first_of_a_block() {
    let stream = || NoiseSource::from_seed(12).stream(Purpose::Magnitude, 3, 0).unwrap();
    let (mut blocks, mut singly) = (stream(), stream());
    for _ in 0..5 {
        let mut first = [0.0];
        blocks.fill_normals(&mut first);
        assert_eq!(singly.normal().to_bits(), first[0].to_bits());
    }
    assert_eq!(singly.word(), blocks.word());
}

#[test]
fn the_same_address_gives_the_same_noise_and_a_prefix_is_a_prefix() {
    let source = NoiseSource::from_seed(11);
    let draw = |count: usize| {
        let mut z = vec![0.0; count];
        source.stream(Purpose::Angles, 5, 6).unwrap().fill_normals(&mut z);
        z
    };
    let long = draw(1024);
    for count in [1, 255, 256, 257, 1000] {
        assert_eq!(draw(count), long[..count]);
    }
}

#[test]
fn secure_sources_differ_and_hide_their_key() {
    let (a, b) = (NoiseSource::from_os().unwrap(), NoiseSource::from_os().unwrap());
    assert_ne!(a.secret_key(), b.secret_key());
    assert_eq!(a.origin(), Origin::OperatingSystem);
    assert_eq!(NoiseSource::from_seed(3).origin(), Origin::Seed(3));
    assert_eq!(format!("{a:?}"), "NoiseSource { origin: OperatingSystem, .. }");
    let restored = NoiseSource::from_secret_key(a.secret_key(), a.origin());
    let first = |s: &NoiseSource| s.stream(Purpose::Sampling, 1, 2).unwrap().word();
    assert_eq!(first(&a), first(&restored));
}

#[test]
fn addresses_out_of_range_are_refused() {
    let source = NoiseSource::from_seed(0);
    let error = source.stream(Purpose::Angles, 1 << 32, 0).unwrap_err();
    assert_eq!(error, Error::NoiseAddress { part: "step", value: 1 << 32, limit: (1 << 32) - 1 });
    assert!(source.stream(Purpose::Angles, 0, 1 << 24).is_err());
    assert!(source.stream(Purpose::Angles, (1 << 32) - 1, (1 << 24) - 1).is_ok());
}

#[test]
fn integers_below_a_bound_are_uniform() {
    let mut stream = NoiseSource::from_seed(12).stream(Purpose::Shuffling, 0, 0).unwrap();
    let mut counts = [0_u32; 6];
    for _ in 0..600_000 {
        counts[stream.below(6) as usize] += 1;
    }
    let bound = STANDARD_ERRORS * (600_000.0_f64 * (1.0 / 6.0) * (5.0 / 6.0)).sqrt();
    assert!(counts.iter().all(|c| (f64::from(*c) - 100_000.0).abs() < bound), "{counts:?}");
    assert_eq!(stream.below(1), 0);
    assert_eq!(stream.below(0), 0);
}

#[test]
fn uniforms_fill_the_unit_interval() {
    let mut stream = NoiseSource::from_seed(13).stream(Purpose::Sampling, 0, 0).unwrap();
    let u: Vec<f64> = (0..1_000_000).map(|_| stream.uniform()).collect();
    assert!(u.iter().all(|x| (0.0..1.0).contains(x)));
    let bound = STANDARD_ERRORS * (1.0_f64 / 12.0 / 1e6).sqrt();
    assert!((mean_of(&u, |x| x) - 0.5).abs() < bound);
}

#[test]
fn derived_sources_repeat_and_differ() {
    let source = NoiseSource::from_seed(1);
    let word = |source: &NoiseSource| source.stream(Purpose::Coordinates, 0, 0).unwrap().word();
    let first = source.derive(0).unwrap();
    assert_eq!(word(&first), word(&source.derive(0).unwrap()));
    assert_eq!(first.origin(), source.origin());
    let others = [source.clone(), source.derive(1).unwrap(), first.derive(0).unwrap()];
    assert!(others.iter().all(|other| word(other) != word(&first)));
    assert!(source.derive(geodp_mechanism::noise::MAX_STEP + 1).is_err());
}

/// Where each of six items ends up is uniform, for whole orders and for choices: 60,000 orders, counts
/// of 10,000 ± 91; six standard deviations are a false alarm below 1e-8 each, and the seed is fixed.
#[test]
fn orders_and_choices_are_uniform() {
    let mut stream = NoiseSource::from_seed(6).stream(Purpose::Shuffling, 0, 0).unwrap();
    let (mut shuffled, mut chosen) = ([[0i32; 6]; 6], [[0i32; 6]; 6]);
    for _ in 0..60_000 {
        let mut order = [0, 1, 2, 3, 4, 5];
        stream.shuffle(&mut order);
        order.iter().enumerate().for_each(|(place, item)| shuffled[place][*item] += 1);
        let some = stream.choose(4, 6);
        assert_eq!(some.len(), 4);
        some.iter().enumerate().for_each(|(place, item)| chosen[place][*item as usize] += 1);
    }
    let uniform =
        |counts: &[[i32; 6]]| counts.iter().flatten().all(|count| (count - 10_000).abs() < 550);
    assert!(uniform(&shuffled) && uniform(&chosen[..4]), "{shuffled:?} {chosen:?}");
    let mut all = stream.choose(9, 5);
    all.sort_unstable();
    assert_eq!(all, [0, 1, 2, 3, 4]);
}
