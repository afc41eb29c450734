//! The mechanism alone, on a gradient of your own: DP and GeoDP side by side.
//!
//! `cargo run --release -p geodp-mechanism --example mechanism`

use geodp_mechanism::{Clip, Error, Gaussian, Geometric, NoiseSource, Perturb, analysis, sphere};

fn main() -> Result<(), Error> {
    // A clipped mean gradient: d = 5,000, C = 0.1, ‖g̃‖ = 0.02, B = 4096.
    let (clip_norm, batch, sigma) = (0.1, 4096, 1.0);
    let wave: Vec<f64> = (0..5000).map(|i| (f64::from(i) * 1.3).sin()).collect();
    let norm = wave.iter().map(|x| x * x).sum::<f64>().sqrt();
    let gradient: Vec<f64> = wave.iter().map(|x| 0.02 * x / norm).collect();

    let clip = Clip::flat(clip_norm)?;
    let noise = NoiseSource::from_os()?;
    let crossing = analysis::crossing_beta(&gradient, clip_norm, sigma, batch)?;
    println!("β* = {:.4} by rotation, {:.4} by angles", crossing.by_rotation, crossing.by_angles);

    let dp = Gaussian::new(clip.sensitivity(), sigma, batch)?.perturb(&gradient, &noise, 0)?;
    println!("DP             cosine {:.4}", sphere::cosine(&dp, &gradient)?);
    for (step, beta) in [1.0, 0.1, 0.01].into_iter().enumerate() {
        let geodp = Geometric::new(clip.sensitivity(), sigma, batch, beta)?;
        let release = geodp.perturb(&gradient, &noise, 1 + step as u64)?;
        println!("GeoDP β = {beta:<4} cosine {:.4}", sphere::cosine(&release, &gradient)?);
    }
    Ok(())
}
