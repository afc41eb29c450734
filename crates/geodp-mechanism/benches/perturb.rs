//! DP and GeoDP perturbation side by side: f32 in and out, secure noise, 1 and 2 threads.
//!
//! `cargo bench -p geodp-mechanism` prints, for each dimension, both times and their ratio. The
//! two mechanisms take turns within one run, and the medians are compared: what else the machine
//! does hits both alike. (The paper's Figure 6 is this measurement.)

use geodp_mechanism::{Clip, Error, Gaussian, Geometric, NoiseSource, Perturb};
use std::time::{Duration, Instant};

const DIMS: [usize; 6] = [1_250, 5_000, 21_840, 80_000, 320_000, 5_000_000];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sensitivity = Clip::flat(0.1)?.sensitivity();
    let dp = Gaussian::new(sensitivity, 1.0, 4096)?;
    let geodp = Geometric::new(sensitivity, 1.0, 4096, 0.1)?;
    let noise = NoiseSource::from_os()?;
    println!("{:>9} {:>7} {:>12} {:>12} {:>7}", "dim", "threads", "DP µs", "GeoDP µs", "ratio");
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        for dim in DIMS {
            let (dp, geodp) = pool.install(|| compare(&dp, &geodp, &noise, dim))?;
            let micros = |t: Duration| t.as_secs_f64() * 1e6;
            let ratio = micros(geodp) / micros(dp);
            println!(
                "{dim:>9} {threads:>7} {:>12.1} {:>12.1} {ratio:>7.2}",
                micros(dp),
                micros(geodp)
            );
        }
    }
    Ok(())
}

/// Median time of one in-place release by each mechanism.
fn compare(
    dp: &Gaussian,
    geodp: &Geometric,
    noise: &NoiseSource,
    dim: usize,
) -> Result<(Duration, Duration), Error> {
    let original: Vec<f32> = (0..dim).map(|i| (i as f32 * 0.7).sin() * 1e-3).collect();
    let repeats = (40_000_000 / dim).clamp(15, 2_000) as u64;
    let mut gradient = original.clone();
    let mut times = [Vec::new(), Vec::new()];
    let mechanisms: [&dyn Perturb<f32>; 2] = [dp, geodp];
    for step in 0..repeats {
        for (mechanism, times) in mechanisms.iter().zip(&mut times) {
            gradient.copy_from_slice(&original);
            let start = Instant::now();
            mechanism.perturb_in_place(&mut gradient, noise, step)?;
            times.push(start.elapsed());
            std::hint::black_box(&gradient);
        }
    }
    let [dp, geodp] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    Ok((dp, geodp))
}
