//! Gaussian perturbation in floating point and on integers side by side, 1 and 2 threads.
//!
//! `cargo bench -p geodp-mechanism --bench exact` prints both times and their ratio. The two take
//! turns within one run and medians are compared, as in `perturb`.

use geodp_mechanism::{
    Clip, Error, ExactGaussian, Gaussian, Grid, NoiseSource, Perturb, PerturbSum,
};
use std::time::Instant;

const DIMS: [usize; 5] = [1_250, 5_000, 21_840, 320_000, 5_000_000];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "{:>9} {:>7} {:>12} {:>12} {:>7}",
        "dim", "threads", "floating µs", "exact µs", "ratio"
    );
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        for dim in DIMS {
            let [floating, exact] = pool.install(|| compare(dim))?;
            let ratio = exact / floating;
            println!("{dim:>9} {threads:>7} {floating:>12.1} {exact:>12.1} {ratio:>7.2}");
        }
    }
    Ok(())
}

/// Median microseconds of one release by each.
fn compare(dim: usize) -> Result<[f64; 2], Error> {
    let sensitivity = Clip::flat(0.1)?.sensitivity();
    let floating = Gaussian::new(sensitivity, 1.0, 4096)?;
    let exact = ExactGaussian::new(sensitivity, 1.0, Grid::default(), 4096)?;
    let noise = NoiseSource::from_os()?;
    let sums: Vec<i64> = (0..dim as i64).map(|i| (i * 7_919 % 100_003) << 8).collect();
    let mut gradient: Vec<f32> = (0..dim).map(|i| (i as f32 * 0.7).sin() * 1e-3).collect();
    let mut out = vec![0.0; dim];
    let mut times = [Vec::new(), Vec::new()];
    for step in 0..(40_000_000 / dim).clamp(15, 2_000) as u64 {
        let start = Instant::now();
        floating.perturb_in_place(&mut gradient, &noise, step)?;
        times[0].push(start.elapsed().as_secs_f64() * 1e6);
        let start = Instant::now();
        exact.release_into(&sums, &noise, step, &mut out)?;
        times[1].push(start.elapsed().as_secs_f64() * 1e6);
        std::hint::black_box((&gradient, &out));
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}
