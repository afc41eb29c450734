//! Scattering features of MNIST: seconds for all 60,000 training images, by threads and storage.
//!
//! `cargo bench -p geodp-data --bench scattering`; `benchmarks/scattering/kymatio_mnist.py` times
//! kymatio on the same images. Both print seconds, and seconds scaled to all images if only some are
//! asked for (`-- 6000`).

use geodp_data::{FeatureSpec, Storage, mnist};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().filter_map(|arg| arg.parse().ok()).next().unwrap_or(60_000);
    let all = mnist::load_train(&mnist::standard_scaling())?;
    let data = all.subset(&(0..count).collect::<Vec<_>>())?;
    println!("{:>7} {:>7} {:>9} {:>14}", "threads", "storage", "seconds", "for 60,000");
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        for storage in [Storage::Single, Storage::Half] {
            let spec = FeatureSpec::scattering_as(storage);
            let start = Instant::now();
            let features = pool.install(|| spec.apply_to(&data, &|_, _| ()))?;
            let seconds = start.elapsed().as_secs_f64();
            std::hint::black_box(features);
            let scaled = seconds * 60_000.0 / count as f64;
            println!("{threads:>7} {:>7} {seconds:>9.2} {scaled:>14.2}", format!("{storage:?}"));
        }
    }
    Ok(())
}
