//! A seed means the same weights from one version to the next, until the arithmetic changes on purpose.
//!
//! SHA-256 of the weights of short seeded trainings. Private steps are exact, so the hashes are those
//! of every CPU and every number of threads.

use crate::common;

use common::{Bench, complaint};
use sha2::{Digest, Sha256};

/// SHA-256 of what follows the header of a safetensors file: the tensors and nothing else.
fn weights_hash(file: &[u8]) -> String {
    let header = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    Sha256::digest(&file[8 + header..]).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn weights_of(args: &[&str]) -> String {
    let bench = Bench::new();
    let fixed = ["train", "--data", "mnist", "--seed", "7", "--out", "run"];
    let args: Vec<&str> = fixed.iter().chain(args).copied().collect();
    let output = bench.geodp(&args);
    assert!(output.status.success(), "{}", complaint(&output));
    weights_hash(&std::fs::read(bench.path("run/model.safetensors")).unwrap())
}

#[track_caller]
fn assert_hash(args: &[&str], expected: &str) {
    assert_eq!(weights_of(args), expected, "geodp train {}", args.join(" "));
}

#[test]
fn cnn_by_dp() {
    let args = ["--model", "cnn", "--noise-multiplier", "1", "--batch", "256", "--steps", "6"];
    assert_hash(&args, "91a367f952064a0f1a811744b5b48fb49234e194395b2ac2c25c2c9c7f09c24a");
}

#[test]
fn cnn_by_geodp() {
    let geodp = ["--mechanism", "geodp", "--beta", "0.1"];
    let args = ["--model", "cnn", "--noise-multiplier", "1", "--batch", "256", "--steps", "6"];
    assert_hash(
        &[&geodp[..], &args[..]].concat(),
        "83ddb658783e4c5925be546b7bacc801df0a13c9577b2cd7537e007d36191d5e",
    );
}

#[test]
fn logistic_regression_with_is_and_sur() {
    let parts = ["--importance", "--select", "sur", "--clip", "psac", "--optimizer", "adam"];
    let args =
        ["--model", "logistic", "--noise-multiplier", "1", "--batch", "512", "--steps", "12"];
    assert_hash(
        &[&parts[..], &args[..]].concat(),
        "027adf07728d05e52814765f11bbcfb98ccd24b142b80e8dd8196dc55cce4ef1",
    );
}

#[test]
fn mlp_with_shuffled_batches_by_any_number_of_threads() {
    let args = ["--model", "mlp", "--hidden", "32", "--batch", "500", "--steps", "9"];
    let shuffled = ["--sampling", "shuffle", "--noise-multiplier", "2"];
    let args = [&shuffled[..], &args[..]].concat();
    let expected = "33332f1e21a82fbd7f065c3220101a41bee665c2fd019a67e22094cd2f519eb5";
    assert_hash(&args, expected);
    assert_hash(&[&args[..], &["--threads", "1"]].concat(), expected);
}
