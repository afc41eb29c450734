//! The transform against kymatio's own numbers (`golden/make_golden.py`).

use geodp_scattering::{Scattering, group_norm};
use serde_json::Value;

/// The image that the script makes.
fn image([channels, height, width]: [usize; 3], number: usize) -> Vec<f32> {
    let pixel = |channel: usize, at: usize| {
        let value = (31 + 6 * number + 10 * channel) * at * at / 7 + 17 * channel;
        ((value % 256) as f64 / 255.0) as f32
    };
    let plane = |channel| (0..height * width).map(move |at| pixel(channel, at));
    (0..channels).flat_map(plane).collect()
}

fn coefficients(shape: [usize; 3], number: usize) -> Vec<f32> {
    let [channels, height, width] = shape;
    let scattering = Scattering::new(height, width).unwrap();
    let mut out = vec![0.0; channels * scattering.output_len()];
    let image = image(shape, number);
    let planes: Vec<&[f32]> = image.chunks_exact(height * width).collect();
    let mut targets: Vec<&mut [f32]> = out.chunks_exact_mut(scattering.output_len()).collect();
    scattering.transform(&planes, &mut scattering.scratch(), &mut targets);
    out
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn coefficients_are_those_of_kymatio() {
    let golden: Value = serde_json::from_str(include_str!("golden/golden.json")).unwrap();
    let step = golden["step"].as_u64().unwrap() as usize;
    let (mut worst_raw, mut worst_normalised) = (0.0f64, 0.0f64);
    for case in golden["cases"].as_array().unwrap() {
        let shape: Vec<usize> = numbers(&case["shape"]).iter().map(|&v| v as usize).collect();
        let shape = [shape[0], shape[1], shape[2]];
        let mut found = coefficients(shape, case["number"].as_u64().unwrap() as usize);
        // Relative to each coefficient itself: most of the second order are below 0.01.
        let raw = numbers(&case["raw"]);
        assert_eq!(found.len().div_ceil(step), raw.len(), "{shape:?}");
        for (found, expected) in found.iter().step_by(step).zip(&raw) {
            worst_raw = worst_raw.max((f64::from(*found) - expected).abs() / expected.abs());
        }
        group_norm(&mut found, 81 * shape[0], 27).unwrap();
        for (found, expected) in found.iter().step_by(step).zip(numbers(&case["normalised"])) {
            let error = (f64::from(*found) - expected).abs() / expected.abs().max(1.0);
            worst_normalised = worst_normalised.max(error);
        }
    }
    println!("largest relative error: raw {worst_raw:.1e}, normalised {worst_normalised:.1e}");
    assert!(worst_raw < 1e-4 && worst_normalised < 1e-4, "{worst_raw} {worst_normalised}");
}
