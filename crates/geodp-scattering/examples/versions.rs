//! Every version of the transform that this machine can run: its time for an image, and that its bits are the
//! first one's. `cargo run --release -p geodp-scattering --example versions`

use geodp_scattering::{Level, Scattering};
use std::time::Instant;

const SIDE: usize = 28;
const ROUNDS: usize = 100;

fn main() -> Result<(), geodp_scattering::ScatteringError> {
    let pixel = |plane: usize, at: usize| ((at * at * 13 + plane * 41) % 256) as f32 / 255.0;
    let images: Vec<Vec<f32>> = (0..Scattering::BLOCK)
        .map(|plane| (0..SIDE * SIDE).map(|at| pixel(plane, at)).collect())
        .collect();
    let images: Vec<&[f32]> = images.iter().map(|image| &image[..]).collect();
    let mut first: Option<Vec<Vec<f32>>> = None;
    for level in Level::available() {
        let scattering = Scattering::at_level(SIDE, SIDE, level)?;
        let mut scratch = scattering.scratch();
        let mut found = vec![vec![0.0; scattering.output_len()]; images.len()];
        let start = Instant::now();
        for _ in 0..ROUNDS {
            let mut out: Vec<&mut [f32]> = found.iter_mut().map(|out| &mut out[..]).collect();
            scattering.transform(&images, &mut scratch, &mut out);
        }
        let micros = start.elapsed().as_secs_f64() * 1e6 / (ROUNDS * images.len()) as f64;
        let same = first.get_or_insert_with(|| found.clone()) == &found;
        let bits = if same { "the same bits" } else { "OTHER BITS" };
        println!("{:<10} {micros:>7.1} µs an image, {bits}", format!("{level:?}"));
    }
    Ok(())
}
