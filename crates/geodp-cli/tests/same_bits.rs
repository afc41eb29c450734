//! A seed means the same weights from one version to the next, until the arithmetic changes on purpose.
//!
//! SHA-256 of the weights of short seeded trainings. Sums of floats depend on how many samples a
//! vector holds, so the hashes are those of machines with AVX2 and without AVX-512.

mod common;

use common::{Bench, complaint};
use sha2::{Digest, Sha256};

/// SHA-256 of what follows the header of a safetensors file: the tensors and nothing else.
fn weights_hash(file: &[u8]) -> String {
    let header = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    Sha256::digest(&file[8 + header..]).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_the_reference_machine() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && !is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn assert_hash(args: &[&str], expected: &str) {
    if !is_the_reference_machine() {
        return;
    }
    let bench = Bench::new();
    let fixed = ["train", "--data", "mnist", "--seed", "7", "--out", "run"];
    let args: Vec<&str> = fixed.iter().chain(args).copied().collect();
    let output = bench.geodp(&args);
    assert!(output.status.success(), "{}", complaint(&output));
    let file = std::fs::read(bench.path("run/model.safetensors")).unwrap();
    assert_eq!(weights_hash(&file), expected, "geodp {}", args.join(" "));
}

#[test]
fn cnn_by_dp() {
    let args = ["--model", "cnn", "--noise-multiplier", "1", "--batch", "256", "--steps", "6"];
    assert_hash(&args, "e0f241412554bf8f3c7787450e9dff7f55046863b10690ca688f64b5e9d44515");
}

#[test]
fn cnn_by_geodp() {
    let geodp = ["--mechanism", "geodp", "--beta", "0.1"];
    let args = ["--model", "cnn", "--noise-multiplier", "1", "--batch", "256", "--steps", "6"];
    assert_hash(
        &[&geodp[..], &args[..]].concat(),
        "8233d301dca68aff09c43ac241d0d1605da1f39b3ab1d7eca12e92c5ec3e1977",
    );
}

#[test]
fn logistic_regression_with_is_and_sur() {
    let parts = ["--importance", "--select", "sur", "--clip", "psac", "--optimizer", "adam"];
    let args =
        ["--model", "logistic", "--noise-multiplier", "1", "--batch", "512", "--steps", "12"];
    assert_hash(
        &[&parts[..], &args[..]].concat(),
        "2770854fcf9f3322ecb34ac770958f2b019333455bbc69459141d63c6aa05fa6",
    );
}

#[test]
fn mlp_without_noise_and_with_shuffled_batches() {
    let args = ["--model", "mlp", "--hidden", "32", "--batch", "500", "--steps", "9"];
    assert_hash(
        &[&["--mechanism", "none"], &args[..]].concat(),
        "f3fe1caea37140856361cce1e2a390e1e4c6655432e3e5464b6aacd4e991b4e7",
    );
    let shuffled = ["--sampling", "shuffle", "--noise-multiplier", "2"];
    assert_hash(
        &[&shuffled[..], &args[..]].concat(),
        "233c5acf8bd6423e4c557e309b6e7a8d3c3ec761228648d67c897cc87a78e03f",
    );
}
