//! Perturbation in floating point, on integers, and in polar form, side by side, 1 and 2 threads.
//!
//! `cargo bench -p geodp-mechanism --bench exact` prints four times and three ratios: the exact
//! Gaussian over the floating one, GeoDP on exact sums and the certified polar mechanism over the exact
//! Gaussian. They take turns within one run and medians are compared, as in `perturb`.

use geodp_mechanism::{
    CertifiedPolar, Clip, Error, ExactGaussian, ExactMean, Gaussian, Geometric, Grid, NoiseSource,
    Perturb, PerturbSum, PolarParams, PolarState,
};
use std::time::Instant;

const DIMS: [usize; 6] = [1_250, 5_000, 21_840, 80_000, 320_000, 5_000_000];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:>9} {:>7} {:>12} {:>12} {:>12} {:>12} {:>11} {:>11} {:>11}",
        "dim",
        "threads",
        "floating µs",
        "exact µs",
        "GeoDP µs",
        "polar µs",
        "exact/float",
        "GeoDP/exact",
        "polar/exact"
    );
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        for dim in DIMS {
            let [floating, exact, geodp, polar] = pool.install(|| compare(dim))?;
            println!(
                "{dim:>9} {threads:>7} {floating:>12.1} {exact:>12.1} {geodp:>12.1} {polar:>12.1} \
                 {:>11.2} {:>11.2} {:>11.2}",
                exact / floating,
                geodp / exact,
                polar / exact
            );
        }
    }
    Ok(())
}

/// Median microseconds of one release by each.
fn compare(dim: usize) -> Result<[f64; 4], Error> {
    let sensitivity = Clip::flat(0.1)?.sensitivity();
    let floating = Gaussian::new(sensitivity, 1.0, 4096)?;
    let exact = ExactGaussian::new(sensitivity, 1.0, Grid::default(), 4096)?;
    let geodp = Geometric::new(sensitivity, 1.0, 4096, 0.1)?;
    let geodp = ExactMean::new(geodp, sensitivity, Grid::default(), 4096)?;
    let params = PolarParams { most_ratio: f64::INFINITY, ..PolarParams::with_margin(6.5) };
    let polar = CertifiedPolar::new(sensitivity, 1.0, Grid::default(), 4096, dim, params)?;
    let noise = NoiseSource::from_os()?;
    let sums: Vec<i64> = (0..dim as i64).map(|i| (i * 7_919 % 100_003) << 12).collect();
    let mut gradient: Vec<f32> = (0..dim).map(|i| (i as f32 * 0.7).sin() * 1e-3).collect();
    let mut out = vec![0.0; dim];
    let mut state = PolarState::default();
    let mut times = [const { Vec::new() }; 4];
    for step in 0..(40_000_000 / dim).clamp(15, 2_000) as u64 {
        let start = Instant::now();
        floating.perturb_in_place(&mut gradient, &noise, step)?;
        times[0].push(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        exact.release_into(&sums, &noise, step, &mut out)?;
        times[1].push(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        geodp.release_into(&sums, &noise, step, &mut out)?;
        times[2].push(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        polar.perturb_sums(&sums, &noise, step, &mut state, &mut out)?;
        times[3].push(start.elapsed().as_secs_f64() * 1e6);
        std::hint::black_box((&gradient, &out));
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}
