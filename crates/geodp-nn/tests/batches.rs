//! Weighted sums of batches against the sum of batches of one, and what batches may be.

use crate::common;

use common::{Table, table};
use geodp_nn::{Error, Network, NetworkSpec, ResnetSpec};

fn small_resnet() -> NetworkSpec {
    let spec = ResnetSpec { input: [3, 12, 12], stem: 4, widths: [4, 6, 8], ..Default::default() };
    NetworkSpec::resnet(&ResnetSpec { groups: Some(2), ..spec })
}

fn models() -> Vec<(&'static str, NetworkSpec)> {
    vec![
        ("logistic", NetworkSpec::logistic(20, 2)),
        ("softmax", NetworkSpec::logistic(20, 5)),
        ("mlp", NetworkSpec::mlp(20, &[16, 8], 5)),
        ("cnn", NetworkSpec::cnn()),
        ("resnet", small_resnet()),
    ]
}

fn setup(spec: &NetworkSpec, count: usize) -> (Network, Vec<f32>, Table) {
    let network = spec.build().unwrap();
    let data = table(network.input_len(), network.classes(), count, 7);
    let weights = network.init(3);
    (network, weights, data)
}

fn clip(norm: f64) -> f64 {
    (0.5 / norm).min(1.0)
}

/// The truth: each sample alone, clipped and added in double precision.
fn one_by_one(
    network: &Network,
    weights: &[f32],
    data: &Table,
    batch: &[u32],
) -> (Vec<f64>, Vec<f64>) {
    let mut sum = vec![0.0f64; network.dim()];
    let mut norms = Vec::new();
    let mut gradient = vec![0.0f32; network.dim()];
    for &index in batch {
        network.sample_gradient(weights, data, index, &mut gradient).unwrap();
        let norm = gradient.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
        for (sum, &g) in sum.iter_mut().zip(&gradient) {
            *sum += clip(norm) * f64::from(g);
        }
        norms.push(norm);
    }
    (sum, norms)
}

fn assert_close(got: &[f32], expected: &[f64], what: &str) {
    let norm = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
    let error =
        got.iter().zip(expected).map(|(g, e)| (f64::from(*g) - e).powi(2)).sum::<f64>().sqrt();
    assert!(error <= 1e-5 * norm, "{what}: off by {error} of {norm}");
}

#[test]
fn weighted_sums_equal_batches_of_one() {
    for (name, spec) in models() {
        let (network, weights, data) = setup(&spec, 70);
        for len in [0usize, 1, 2, 7, 8, 9, 64, 65, 131, 300] {
            let len = if name == "cnn" || name == "resnet" { len.min(140) } else { len };
            let batch: Vec<u32> = (0..len as u32).map(|i| i * 37 % 70).collect();
            let (expected, norms) = one_by_one(&network, &weights, &data, &batch);
            let mut sum = vec![f32::NAN; network.dim()];
            let outcome = network.clipped_sum(&weights, &data, &batch, &clip, &mut sum).unwrap();
            assert_close(&sum, &expected, &format!("{name}, batch of {len}"));
            assert_eq!(outcome.norms.len(), len);
            assert_eq!(outcome.losses.len(), len);
            for (got, expected) in outcome.norms.iter().zip(&norms) {
                assert!((f64::from(*got) - expected).abs() <= 1e-5 * expected, "{name}");
            }
            let mut all = vec![f32::NAN; network.dim()];
            let plain = network.gradient_sum(&weights, &data, &batch, &mut all).unwrap();
            let mut same = vec![f32::NAN; network.dim()];
            network.clipped_sum(&weights, &data, &batch, &|_| 1.0, &mut same).unwrap();
            let same: Vec<f64> = same.iter().map(|&x| f64::from(x)).collect();
            assert_close(&all, &same, &format!("{name}, plain"));
            assert_eq!(plain.losses, outcome.losses);
            let evaluation = network.evaluate(&weights, &data, &batch).unwrap();
            assert_eq!((evaluation.correct, evaluation.count), (outcome.correct, len));
            assert_eq!(plain.correct, outcome.correct);
            let total: f64 = outcome.losses.iter().map(|&l| f64::from(l)).sum();
            assert!((evaluation.mean_loss * len as f64 - total).abs() <= 1e-6 * total.abs());
        }
    }
}

#[test]
fn weights_may_depend_on_the_place_in_the_batch() {
    for (name, spec) in models() {
        let (network, weights, data) = setup(&spec, 70);
        let batch: Vec<u32> = (0..139).map(|i| i * 37 % 70).collect();
        let chosen: Vec<u32> = batch.iter().copied().step_by(3).collect();
        let (expected, _) = one_by_one(&network, &weights, &data, &chosen);
        let third =
            |place: usize, norm: f64| if place.is_multiple_of(3) { clip(norm) } else { 0.0 };
        let mut sum = vec![f32::NAN; network.dim()];
        network.weighted_sum(&weights, &data, &batch, &third, &mut sum).unwrap();
        assert_close(&sum, &expected, name);
    }
}

#[test]
fn gradients_one_by_one_equal_batches_of_one() {
    for (name, spec) in models() {
        let (network, weights, data) = setup(&spec, 70);
        for count in [0, 1, 5, 16, 33, 70] {
            let batch: Vec<u32> = (0..count).map(|i| (i * 37 + 11) % 70).collect();
            let mut rows = vec![f32::NAN; batch.len() * network.dim()];
            network.sample_gradients(&weights, &data, &batch, &mut rows).unwrap();
            for (index, row) in batch.iter().zip(rows.chunks(network.dim())) {
                let mut expected = vec![f32::NAN; network.dim()];
                network.sample_gradient(&weights, &data, *index, &mut expected).unwrap();
                let expected: Vec<f64> = expected.iter().map(|g| f64::from(*g)).collect();
                assert_close(row, &expected, name);
            }
        }
        assert!(network.sample_gradients(&weights, &data, &[1], &mut [0.0]).is_err());
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    for (name, spec) in models() {
        let (network, weights, data) = setup(&spec, 90);
        let batch: Vec<u32> = (0..450).map(|i| i * 31 % 90).collect();
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut sum = vec![0.0; network.dim()];
            let outcome = pool
                .install(|| network.clipped_sum(&weights, &data, &batch, &clip, &mut sum))
                .unwrap();
            let bits: Vec<u32> = sum.iter().chain(&outcome.norms).map(|x| x.to_bits()).collect();
            (bits, outcome)
        };
        let one = run(1);
        assert!(one == run(2) && one == run(5), "{name}");
    }
}

#[test]
fn broken_samples_contribute_nothing() {
    for (name, spec) in models() {
        let (network, weights, mut data) = setup(&spec, 40);
        let good: Vec<u32> = (0..40).filter(|i| ![3, 17].contains(i)).collect();
        let mut expected = vec![0.0; network.dim()];
        network.clipped_sum(&weights, &data, &good, &clip, &mut expected).unwrap();
        data.inputs[3][5] = f32::NAN;
        data.inputs[17].fill(f32::MAX);
        let all: Vec<u32> = (0..40).collect();
        let mut sum = vec![0.0; network.dim()];
        let asked = |norm: f64| {
            assert!(norm.is_finite());
            clip(norm)
        };
        let outcome = network.clipped_sum(&weights, &data, &all, &asked, &mut sum).unwrap();
        assert!(!outcome.norms[3].is_finite(), "{name}: {}", outcome.norms[3]);
        if outcome.norms[17].is_finite() {
            // A huge input whose gradient is finite is clipped like any other.
            continue;
        }
        let expected: Vec<f64> = expected.iter().map(|&x| f64::from(x)).collect();
        assert_close(&sum, &expected, name);
        // Nor does one whose weight is not finite.
        network.clipped_sum(&weights, &data, &good, &|_| f64::NAN, &mut sum).unwrap();
        assert!(sum.iter().all(|&x| x == 0.0), "{name}");
    }
}

#[test]
fn broken_weights_give_zero_not_nan() {
    let (network, mut weights, data) = setup(&NetworkSpec::cnn(), 5);
    weights[17] = f32::INFINITY;
    let mut sum = vec![1.0; network.dim()];
    let outcome = network.clipped_sum(&weights, &data, &[0, 1, 2], &clip, &mut sum).unwrap();
    assert!(outcome.norms.iter().all(|norm| !norm.is_finite()));
    assert!(sum.iter().all(|&x| x == 0.0));
}

#[test]
fn wrong_calls_are_errors() {
    let (network, weights, mut data) = setup(&NetworkSpec::logistic(20, 5), 4);
    let mut sum = vec![7.0; network.dim()];
    let short = network.clipped_sum(&weights[1..], &data, &[0], &clip, &mut sum);
    assert_eq!(short, Err(Error::Length { what: "the weight vector", expected: 105, actual: 104 }));
    let index = network.clipped_sum(&weights, &data, &[0, 4], &clip, &mut sum);
    assert_eq!(index, Err(Error::Index { index: 4, samples: 4 }));
    data.labels[2] = 5;
    let label = network.gradient_sum(&weights, &data, &[1, 2], &mut sum);
    assert_eq!(label, Err(Error::Label { index: 2, label: 5, classes: 5 }));
    assert!(network.gradient_sum(&weights, &data, &[1], &mut sum[1..]).is_err());
    assert!(network.predict(&weights, &data, &[1], &mut [0.0; 4]).is_err());
    assert!(sum.iter().all(|&x| x == 7.0));
    let other = table(19, 5, 3, 1);
    assert!(network.evaluate(&weights, &other, &[0]).is_err());
}
