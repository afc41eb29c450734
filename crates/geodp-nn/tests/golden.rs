//! PyTorch's values for all models; `golden/make_golden.py` made them.

use crate::common;

use common::Table;
use geodp_nn::{BatchOutcome, Grid, Network, NetworkSpec, ResnetSpec};
use serde_json::Value;

const CLIP: f64 = 0.5;
const SAMPLES: usize = 11;
const UNITS: [&[u32]; 4] = [&[0, 1, 2], &[3, 4], &[5, 6, 7, 8], &[9, 10]];

/// The hash of `make_golden.py`.
fn hashed(at: usize) -> f64 {
    let mut x = (at as u32).wrapping_mul(2_654_435_761);
    x ^= x >> 15;
    x = x.wrapping_mul(2_246_822_519);
    x ^= x >> 13;
    f64::from(x) / f64::from(1u32 << 31) - 1.0
}

fn spec(model: &str) -> NetworkSpec {
    let resnet = ResnetSpec {
        input: [3, 16, 16],
        stem: 6,
        widths: [6, 8, 12],
        strides: [1, 2, 2],
        ..Default::default()
    };
    match model {
        "logistic" => NetworkSpec::logistic(25, 2),
        "softmax" => NetworkSpec::logistic(25, 7),
        "mlp" => NetworkSpec::mlp(30, &[17, 12], 5),
        "cnn" => NetworkSpec::cnn(),
        "tanh_cnn" => NetworkSpec::tanh_cnn(28, 28, 10),
        "resnet" => NetworkSpec::resnet(&resnet),
        "resnet_norm" => NetworkSpec::resnet(&ResnetSpec { groups: Some(2), ..resnet }),
        other => panic!("no model {other}"),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[track_caller]
fn assert_near(got: f64, expected: f64, scale: f64, what: &str) {
    assert!((got - expected).abs() <= 1e-4 * scale.abs(), "{what}: {got} not {expected}");
}

#[test]
fn pytorch_gives_the_same() {
    let text = include_str!("golden/golden.json");
    for golden in serde_json::from_str::<Vec<Value>>(text).unwrap() {
        let model = golden["model"].as_str().unwrap();
        let network = spec(model).build().unwrap();
        let mut weights = Vec::new();
        let parameters = golden["parameters"].as_array().unwrap();
        assert_eq!(parameters.len(), network.parameters().len(), "{model}");
        for (ours, theirs) in network.parameters().iter().zip(parameters) {
            assert_eq!(ours.name, theirs["name"].as_str().unwrap(), "{model}");
            let shape: Vec<f64> = ours.shape.iter().map(|&side| side as f64).collect();
            assert_eq!(shape, numbers(&theirs["shape"]), "{model}, {}", ours.name);
            let (base, scale) =
                (theirs["base"].as_f64().unwrap(), theirs["scale"].as_f64().unwrap());
            weights.extend(ours.range().map(|at| (base + scale * hashed(at)) as f32));
        }
        let (features, classes) = (network.input_len(), network.classes());
        let input = |sample: usize| {
            (0..features)
                .map(|at| (1.5 * hashed(1_000_003 + sample * features + at)) as f32)
                .collect()
        };
        let data = Table {
            inputs: (0..SAMPLES).map(input).collect(),
            labels: (0..SAMPLES).map(|sample| (sample * 7 % classes) as u32).collect(),
        };
        let batch: Vec<u32> = (0..SAMPLES as u32).collect();
        let mut sum = vec![0.0; network.dim()];
        let clip = |norm: f64| (CLIP / norm).min(1.0);
        let outcome = network.clipped_sum(&weights, &data, &batch, &clip, &mut sum).unwrap();
        let sum: Vec<f64> = sum.iter().map(|&g| f64::from(g)).collect();
        assert_same(&golden, "", &network, &outcome, &sum);
        let (mut sum, grid) = (vec![0; network.dim()], Grid::new(CLIP).unwrap());
        let clip = |_: usize, norm: f64| (CLIP / norm).min(1.0);
        let outcome = network.exact_unit_sum(&weights, &data, &UNITS, &clip, grid, &mut sum);
        let sum: Vec<f64> = sum.iter().map(|&n| n as f64 * grid.step()).collect();
        assert_same(&golden, "unit_", &network, &outcome.unwrap(), &sum);
        let mut sum = vec![0.0; network.dim()];
        let outcome = network.weighted_unit_sum(&weights, &data, &UNITS, &clip, &mut sum).unwrap();
        let sum: Vec<f64> = sum.iter().map(|&g| f64::from(g)).collect();
        assert_same(&golden, "unit_", &network, &outcome, &sum);
        let mut probabilities = vec![0.0; SAMPLES * classes];
        network.predict(&weights, &data, &batch, &mut probabilities).unwrap();
        let rows = golden["probabilities"].as_array().unwrap().iter();
        for (got, expected) in probabilities.iter().zip(rows.flat_map(numbers)) {
            assert_near(f64::from(*got), expected, expected + 0.01, model);
        }
    }
}

/// Norms, losses and the clipped sum, those of records or those of units.
fn assert_same(
    golden: &Value,
    prefix: &str,
    network: &Network,
    outcome: &BatchOutcome,
    sum: &[f64],
) {
    let of = |value: &Value, key: &str| value[format!("{prefix}{key}")].clone();
    let model = golden["model"].as_str().unwrap();
    for (got, expected) in outcome.norms.iter().zip(numbers(&of(golden, "norms"))) {
        assert_near(f64::from(*got), expected, expected, model);
    }
    for (got, expected) in outcome.losses.iter().zip(numbers(&of(golden, "losses"))) {
        assert_near(f64::from(*got), expected, expected + 0.1, model);
    }
    let parameters = golden["parameters"].as_array().unwrap();
    for (ours, theirs) in network.parameters().iter().zip(parameters) {
        let what = format!("{model}, {prefix}{}", ours.name);
        let sum = &sum[ours.range()];
        let norm = sum.iter().map(|g| g * g).sum::<f64>().sqrt();
        let expected = of(theirs, "norm").as_f64().unwrap();
        assert_near(norm, expected, expected, &what);
        let product: f64 = sum.iter().enumerate().map(|(at, g)| g * hashed(77 + at)).sum();
        assert_near(product, of(theirs, "product").as_f64().unwrap(), expected, &what);
        for (got, entry) in sum.iter().zip(numbers(&of(theirs, "first"))) {
            assert_near(*got, entry, expected, &what);
        }
    }
}
