//! Per-sample gradients against finite differences of an independent double-precision network:
//! every layer by itself, then random networks.

use crate::common;

use common::{Random, Table, loss, slope, table};
use geodp_nn::{
    AvgPoolSpec, Conv2dSpec, GroupNormSpec, LayerSpec, LinearSpec, Loss, MaxPoolSpec, Network,
    NetworkSpec, ResidualSpec, ResnetSpec,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn conv(outputs: usize, kernel: usize, stride: usize, padding: usize, bias: bool) -> LayerSpec {
    LayerSpec::Conv2d(Conv2dSpec { name: None, outputs, kernel, stride, padding, bias })
}

fn linear(outputs: usize) -> LayerSpec {
    LayerSpec::Linear(LinearSpec { name: None, outputs, bias: true })
}

fn norm(groups: usize) -> LayerSpec {
    LayerSpec::GroupNorm(GroupNormSpec { name: None, groups })
}

/// First weights moved a little, so that neither biases nor scales sit at special values.
fn weights_of(network: &Network, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    let moved = |w: f32| w + (0.2 * random.unit() - 0.1) as f32;
    network.init(seed).into_iter().map(moved).collect()
}

/// Losses, probabilities and `slopes` random gradient entries of a few samples.
fn check(spec: &NetworkSpec, slopes: usize, seed: u64) {
    let network = spec.build().expect("valid network");
    let data = table(network.input_len(), network.classes(), 3, seed);
    check_on(spec, &data, slopes, seed);
}

fn check_on(spec: &NetworkSpec, data: &Table, slopes: usize, seed: u64) {
    let network = spec.build().expect("valid network");
    let weights = weights_of(&network, seed);
    let exact: Vec<f64> = weights.iter().map(|&w| f64::from(w)).collect();
    let mut random = Random(seed ^ 0x5eed);
    let mut gradient = vec![0.0; network.dim()];
    let mut probabilities = vec![0.0; network.classes()];
    for sample in 0..3u32 {
        let (input, label) = (&data.inputs[sample as usize], data.labels[sample as usize]);
        let outcome = network.sample_gradient(&weights, data, sample, &mut gradient).unwrap();
        let (expected, of_class) = loss(spec, &exact, input, label);
        let got = f64::from(outcome.losses[0]);
        assert!((got - expected).abs() <= 1e-5 * (1.0 + expected.abs()), "{got} not {expected}");
        network.predict(&weights, data, &[sample], &mut probabilities).unwrap();
        for (got, expected) in probabilities.iter().zip(of_class) {
            assert!((f64::from(*got) - expected).abs() < 1e-5, "{got} not {expected}");
        }
        let scale = gradient.iter().fold(0.0f32, |top, g| top.max(g.abs()));
        for _ in 0..slopes {
            let at = (random.unit() * network.dim() as f64) as usize;
            if let Some(expected) = slope(spec, &exact, input, label, at) {
                let got = f64::from(gradient[at]);
                let allowed = 2e-5 * f64::from(scale) + 1e-4 * expected.abs() + 2e-6;
                let parameters = network.parameters();
                let name = &parameters.iter().find(|p| p.range().contains(&at)).unwrap().name;
                assert!((got - expected).abs() <= allowed, "{name}[{at}]: {got} not {expected}");
            }
        }
    }
}

fn images(channels: usize, height: usize, width: usize, mut layers: Vec<LayerSpec>) -> NetworkSpec {
    layers.extend([LayerSpec::Flatten, linear(3)]);
    NetworkSpec { input: vec![channels, height, width], loss: Loss::SoftmaxCrossEntropy, layers }
}

#[test]
fn linear_layers() {
    for hidden in [1, 3, 12, 13, 30] {
        check(&NetworkSpec::mlp(7, &[hidden, 5], 4), 60, hidden as u64);
    }
    check(&NetworkSpec::logistic(33, 2), 34, 1);
    check(&NetworkSpec::logistic(9, 10), 60, 2);
}

#[test]
fn convolutions_of_every_stride_and_padding() {
    for kernel in 1..=7 {
        for stride in 1..=3 {
            for padding in 0..=kernel / 2 + 1 {
                // Two in a row, so that the gradient with respect to the input is tested as well.
                let layers = vec![
                    conv(3, kernel, stride, padding, padding % 2 == 0),
                    LayerSpec::Tanh,
                    conv(1 + kernel % 3 * 4, kernel.min(3), stride, 1, true),
                ];
                check(&images(2, 9, 11, layers), 12, (kernel * 10 + stride) as u64);
            }
        }
    }
}

/// Taps that never see the image.
#[test]
fn convolutions_wider_than_their_input() {
    for (stride, width) in [(1, 1), (1, 2), (2, 1), (3, 2)] {
        let layers = vec![conv(3, 7, stride, 3, true), conv(9, 3, 1, 2, false)];
        check(&images(2, 2, width, layers), 10, width as u64);
    }
}

#[test]
fn convolutions_of_every_tile() {
    for outputs in 1..=13 {
        for width in 5..=9 {
            let layers = vec![conv(outputs, 3, 1, 1, true), conv(outputs % 7 + 1, 5, 1, 2, true)];
            check(&images(3, 5, width, layers), 10, outputs as u64);
        }
    }
}

/// Layers wide enough for tiles, of every size that tiles leave over, in every padding.
#[test]
fn wide_convolutions_by_tiles() {
    for (height, width) in [(8, 8), (4, 3), (5, 9), (10, 7), (1, 2), (13, 4)] {
        for padding in 0..=2 {
            if padding == 0 && height.min(width) < 3 {
                continue;
            }
            let layers = vec![
                conv(33, 1, 1, 0, true),
                LayerSpec::Tanh,
                conv(35, 3, 1, padding, padding != 1),
                LayerSpec::Tanh,
                conv(32, 3, 1, 2, true),
            ];
            check(&images(1, height, width, layers), 25, (height * 10 + padding) as u64);
        }
    }
}

#[test]
fn pools() {
    for (kernel, stride) in [(2, None), (3, None), (3, Some(2)), (2, Some(1)), (2, Some(3))] {
        for (height, width) in [(6, 6), (7, 6), (6, 7), (5, 9)] {
            let max = LayerSpec::MaxPool(MaxPoolSpec { kernel, stride });
            check(&images(2, height, width, vec![conv(3, 3, 1, 1, true), max]), 20, 3);
            let mean = LayerSpec::AvgPool(AvgPoolSpec { kernel, stride });
            check(&images(2, height, width, vec![conv(3, 3, 1, 1, true), mean]), 20, 4);
        }
    }
}

/// Images have flat backgrounds: where all of a window is equal, the gradient goes to one place.
#[test]
fn pools_of_equal_values() {
    for (kernel, stride) in [(2, None), (3, Some(2))] {
        let data = Table { inputs: vec![vec![0.7; 36]; 3], labels: vec![0, 1, 2] };
        let layers =
            vec![conv(2, 1, 1, 0, true), LayerSpec::MaxPool(MaxPoolSpec { kernel, stride })];
        check_on(&images(1, 6, 6, layers), &data, 40, 5);
    }
}

#[test]
fn group_normalisation() {
    for groups in [1, 2, 3, 6] {
        let layers = vec![conv(6, 3, 1, 1, true), norm(groups), LayerSpec::Relu];
        check(&images(2, 5, 6, layers), 60, groups as u64);
    }
    // As the first layer: no gradient goes further, but its own must be right.
    check(&images(4, 5, 6, vec![norm(2), LayerSpec::Tanh]), 60, 9);
}

/// A group of one value is its own mean: what is left is the shift, exactly, so that a ReLU behind
/// it sees no rounding error as a positive value.
#[test]
fn a_group_of_one_value_is_exactly_its_shift() {
    let layers = vec![norm(3), LayerSpec::Relu];
    let spec = images(3, 1, 1, layers);
    let network = spec.build().unwrap();
    let data = table(3, 3, 40, 11);
    let mut weights = weights_of(&network, 5);
    weights[3..6].fill(0.0);
    let of_linear = network.parameters().iter().find(|p| p.name == "3.weight").unwrap().range();
    let mut gradient = vec![0.0; network.dim()];
    for sample in 0..40 {
        network.sample_gradient(&weights, &data, sample, &mut gradient).unwrap();
        assert!(gradient[of_linear.clone()].iter().all(|&g| g == 0.0), "sample {sample}");
    }
}

#[test]
fn residual_branches() {
    let residual =
        |body, shortcut| LayerSpec::Residual(ResidualSpec { name: None, body, shortcut });
    let cases = [
        // An identity, and an activation at the head and at the end of a body.
        vec![conv(4, 3, 1, 1, true), residual(vec![conv(4, 3, 1, 1, true)], vec![])],
        vec![
            conv(4, 3, 1, 1, true),
            residual(vec![LayerSpec::Relu, conv(4, 3, 1, 1, true)], vec![]),
        ],
        vec![
            conv(4, 3, 1, 1, true),
            residual(vec![conv(4, 3, 1, 1, true), LayerSpec::Tanh], vec![]),
        ],
        // Only the shortcut has parameters; the input itself as shortcut; an empty body.
        vec![residual(vec![LayerSpec::Tanh], vec![conv(2, 3, 1, 1, true)])],
        vec![residual(vec![conv(2, 1, 1, 0, true)], vec![])],
        vec![conv(2, 3, 1, 1, true), residual(vec![], vec![])],
        // One in another, and one after another with an activation between.
        vec![
            conv(4, 3, 1, 1, true),
            residual(
                vec![residual(vec![LayerSpec::Tanh], vec![]), norm(2), conv(4, 3, 2, 1, true)],
                vec![conv(4, 1, 2, 0, true)],
            ),
            LayerSpec::Relu,
            residual(vec![conv(4, 3, 1, 1, false)], vec![LayerSpec::Relu]),
        ],
    ];
    for (seed, layers) in cases.into_iter().enumerate() {
        // Names of layers inside both branches must differ.
        let layers = layers.into_iter().map(rename_shortcut).collect();
        check(&images(2, 6, 5, layers), 60, seed as u64);
    }
}

fn rename_shortcut(mut layer: LayerSpec) -> LayerSpec {
    if let LayerSpec::Residual(ResidualSpec { shortcut, .. }) = &mut layer {
        for inner in shortcut {
            if let LayerSpec::Conv2d(Conv2dSpec { name, .. }) = inner {
                *name = Some("shortcut".into());
            }
        }
    }
    layer
}

#[test]
fn presets() {
    check(&NetworkSpec::cnn(), 40, 1);
    let mut small = ResnetSpec { stem: 4, widths: [4, 8, 8], ..ResnetSpec::default() };
    check(&NetworkSpec::resnet(&small), 15, 2);
    small.groups = Some(2);
    check(&NetworkSpec::resnet(&small), 15, 3);
    assert_eq!(NetworkSpec::cnn().build().unwrap().dim(), 21_840);
    assert_eq!(NetworkSpec::logistic(784, 2).build().unwrap().dim(), 785);
}

/// One random layer; whether it fits is for the shape check to say.
fn any_layer() -> impl Strategy<Value = LayerSpec> {
    prop_oneof![
        (1..8usize, 1..6usize, 1..4usize, 0..3usize, any::<bool>()).prop_map(
            |(outputs, kernel, stride, padding, bias)| conv(outputs, kernel, stride, padding, bias)
        ),
        (1..4usize, proptest::option::of(1..4usize))
            .prop_map(|(kernel, stride)| LayerSpec::MaxPool(MaxPoolSpec { kernel, stride })),
        (1..4usize, proptest::option::of(1..4usize))
            .prop_map(|(kernel, stride)| LayerSpec::AvgPool(AvgPoolSpec { kernel, stride })),
        Just(LayerSpec::Relu),
        Just(LayerSpec::Tanh),
        (1..3usize).prop_map(norm),
        (any::<bool>(), 1..4usize).prop_map(|(first, channels)| {
            let mut body = vec![conv(channels, 3, 1, 1, true)];
            body.insert(usize::from(!first), LayerSpec::Relu);
            let shortcut = vec![conv(channels, 1, 1, 0, true)];
            rename_shortcut(LayerSpec::Residual(ResidualSpec { name: None, body, shortcut }))
        }),
    ]
}

proptest! {
    // The same networks each time: of a hundred times as many one has a norm of values that hardly differ, whose
    // gradients no single precision tells to what is allowed.
    #![proptest_config(ProptestConfig {
        cases: 150, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default()
    })]

    #[test]
    fn random_networks(
        layers in proptest::collection::vec(any_layer(), 0..6),
        shape in (1..4usize, 3..11usize, 3..11usize),
        seed in any::<u64>(),
    ) {
        let spec = images(shape.0, shape.1, shape.2, layers);
        match spec.build() {
            Ok(_) => check(&spec, 8, seed),
            Err(error) => prop_assert!(error.to_string().contains("layer "), "{error}"),
        }
    }
}
