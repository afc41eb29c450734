//! Exact sums: no record longer than the bound in 128-bit integers, the same integers for any order,
//! partition and number of threads, and what truncation costs.
//!
//! `GEODP_NN_CASES` sets how many random cases are tried; a few by default.

use crate::common;

use common::{Random, Table, table};
use geodp_nn::{
    AvgPoolSpec, Conv2dSpec, Error, Grid, GroupNormSpec, LayerSpec, LinearSpec, Loss, MaxPoolSpec,
    Network, NetworkSpec, ResidualSpec, ResnetSpec, Samples,
};

const FULL: i128 = 1 << Grid::BITS;

fn cases(usual: u64) -> u64 {
    std::env::var("GEODP_NN_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn small_resnet() -> NetworkSpec {
    let spec = ResnetSpec { input: [3, 12, 12], stem: 4, widths: [4, 6, 8], ..Default::default() };
    NetworkSpec::resnet(&ResnetSpec { groups: Some(2), ..spec })
}

fn models() -> Vec<(&'static str, NetworkSpec)> {
    let mut tanh = NetworkSpec::mlp(12, &[9], 3);
    tanh.layers[1] = LayerSpec::Tanh;
    vec![
        ("tanh", tanh),
        ("logistic", NetworkSpec::logistic(20, 2)),
        ("one input", NetworkSpec::logistic(1, 2)),
        ("softmax", NetworkSpec::logistic(20, 5)),
        ("mlp", NetworkSpec::mlp(20, &[16, 8], 5)),
        ("cnn", NetworkSpec::cnn()),
        ("resnet", small_resnet()),
    ]
}

/// These, one whose inputs are too wide to be kept in lanes, and one wide enough to convolve by tiles.
fn models_and_wide() -> Vec<(&'static str, NetworkSpec)> {
    let mut models = models();
    models.push(("wide", NetworkSpec::logistic(1_030, 3)));
    let conv = |kernel, padding| {
        let (name, stride, bias) = (None, 1, true);
        LayerSpec::Conv2d(Conv2dSpec { name, outputs: 43, kernel, stride, padding, bias })
    };
    let mut tiles = NetworkSpec::cnn();
    tiles.input = vec![2, 5, 6];
    tiles.layers = vec![conv(1, 0), LayerSpec::Tanh, conv(3, 1), LayerSpec::Flatten];
    tiles.layers.extend(NetworkSpec::logistic(1, 3).layers);
    models.push(("tiles", tiles));
    models
}

fn setup(spec: &NetworkSpec, count: usize) -> (Network, Vec<f32>, Table) {
    let network = spec.build().unwrap();
    let data = table(network.input_len(), network.classes(), count, 7);
    let weights = network.init(3);
    (network, weights, data)
}

/// Exact sum of a batch, and its norms.
fn exact(
    network: &Network,
    weights: &[f32],
    data: &Table,
    batch: &[u32],
    weight_of: &(dyn Fn(usize, f64) -> f64 + Sync),
    bound: f64,
) -> (Vec<i64>, Vec<f32>) {
    let mut sum = vec![i64::MIN; network.dim()];
    let grid = Grid::new(bound).unwrap();
    let outcome = network.exact_sum(weights, data, batch, weight_of, grid, &mut sum).unwrap();
    (sum, outcome.norms)
}

fn squares(sum: &[i64]) -> i128 {
    sum.iter().map(|&n| i128::from(n) * i128::from(n)).sum()
}

fn flat(bound: f64) -> impl Fn(usize, f64) -> f64 + Sync {
    move |_, norm| (bound / norm).min(1.0)
}

#[test]
fn sums_are_those_of_the_records_one_by_one() {
    for (name, spec) in models_and_wide() {
        let (network, weights, data) = setup(&spec, 30);
        for len in [0usize, 1, 7, 8, 9, 33, 130] {
            let len = if network.dim() > 5_000 { len.min(33) } else { len };
            let batch: Vec<u32> = (0..len as u32).map(|i| i * 7 % 30).collect();
            let (sum, norms) = exact(&network, &weights, &data, &batch, &flat(0.5), 0.5);
            let mut expected = vec![0i64; network.dim()];
            for (index, norm) in batch.iter().zip(norms) {
                let (one, alone) = exact(&network, &weights, &data, &[*index], &flat(0.5), 0.5);
                assert_eq!(norm.to_bits(), alone[0].to_bits(), "{name}");
                expected.iter_mut().zip(one).for_each(|(sum, n)| *sum += n);
            }
            assert_eq!(sum, expected, "{name}, batch of {len}");
        }
    }
}

/// The truth: gradients as they are, weighted and added in double precision.
#[test]
fn sums_are_close_to_real_ones() {
    for (name, spec) in models_and_wide() {
        let (network, weights, data) = setup(&spec, 64);
        let batch: Vec<u32> = (0..64).collect();
        let bound = 0.3;
        let expected = common::weighed_sum(&network, &weights, &data, &batch, &flat(bound));
        let (sum, _) = exact(&network, &weights, &data, &batch, &flat(bound), bound);
        let off = common::distance(&sum, Grid::new(bound).unwrap(), &expected);
        assert!(off <= 1e-3, "{name}: off by {off} of its length");
    }
}

/// A weight by place and norm.
type Rule = Box<dyn Fn(usize, f64) -> f64 + Sync>;

/// Rules of weights, honest and not.
fn rules(bound: f64) -> Vec<(&'static str, Rule)> {
    vec![
        ("flat", Box::new(flat(bound))),
        ("normalised", Box::new(move |_, norm| bound / norm)),
        ("automatic", Box::new(move |_, norm| bound / (norm + 0.01))),
        ("a hair too long", Box::new(move |_, norm| bound / norm * (1.0 + 1e-9))),
        ("too long", Box::new(move |_, norm| 3.0 * bound / norm)),
        ("huge", Box::new(|_, _| 1e300)),
        ("negative", Box::new(move |_, norm| -bound / norm)),
    ]
}

#[test]
fn no_record_is_longer_than_the_bound() {
    let scales = [1e-42f32, 1e-30, 1e-8, 1.0, 1e4, 1e15, 1e30];
    for (name, spec) in models_and_wide() {
        let (network, weights, data) = setup(&spec, 6);
        let records = if network.dim() > 5_000 { 2 } else { 6 };
        let (mut longest, mut nonzero) = (0, 0);
        for (at, scale) in scales.iter().enumerate() {
            let mut scaled = table(network.input_len(), network.classes(), records, at as u64);
            scaled.inputs.iter_mut().flatten().for_each(|x| *x *= scale);
            // One value far above the rest.
            scaled.inputs[1][0] *= 1e6;
            let bound = [0.1, 1.0, 3e7, 1e-6][at % 4];
            for (rule, weight_of) in &rules(bound) {
                for index in 0..records as u32 {
                    let (sum, norms) =
                        exact(&network, &weights, &scaled, &[index], weight_of, bound);
                    let square = squares(&sum);
                    assert!(square <= FULL * FULL, "{name}, {rule}, scale {scale}: {square}");
                    assert!(norms[0].is_finite() || square == 0, "{name}, {rule}, scale {scale}");
                    longest = longest.max(square);
                    nonzero += i32::from(square > 0);
                }
            }
        }
        // The bound is reached but for truncation: otherwise this test would show nothing.
        assert!(longest as f64 >= 0.998 * (FULL * FULL) as f64, "{name}: {longest}");
        assert!(nonzero > 0 && !data.inputs.is_empty(), "{name}");
    }
}

#[test]
fn broken_records_contribute_exactly_nothing() {
    for (name, spec) in models_and_wide() {
        let (network, weights, mut data) = setup(&spec, 40);
        let good: Vec<u32> = (0..40).filter(|i| ![3, 17, 22].contains(i)).collect();
        let (expected, _) = exact(&network, &weights, &data, &good, &flat(0.5), 0.5);
        data.inputs[3][0] = f32::NAN;
        data.inputs[17].fill(f32::INFINITY);
        data.inputs[22][0] = f32::NEG_INFINITY;
        let all: Vec<u32> = (0..40).collect();
        let asked = |_: usize, norm: f64| {
            assert!(norm.is_finite());
            (0.5 / norm).min(1.0)
        };
        let (sum, norms) = exact(&network, &weights, &data, &all, &asked, 0.5);
        for broken in [3, 17, 22] {
            assert!(!norms[broken].is_finite(), "{name}: {}", norms[broken]);
        }
        assert_eq!(sum, expected, "{name}");
        for weight in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let (sum, _) = exact(&network, &weights, &data, &all, &|_, _| weight, 0.5);
            assert!(sum.iter().all(|&n| n == 0), "{name}: {weight}");
        }
    }
}

/// Records whose loss cannot fall have a gradient of exactly 0. One more of them, anywhere, moves the
/// sum by nothing, at every length of the batch; in floats it moves what is added to what.
#[test]
fn a_record_without_gradient_moves_nothing() {
    let network = NetworkSpec::logistic(8, 3).build().unwrap();
    let mut random = Random(9);
    let mut data = table(8, 3, 2_000, 5);
    // Orders that hurt floats: gradients of alternating sign over many orders of magnitude.
    for (at, input) in data.inputs.iter_mut().enumerate() {
        let size = 10f32.powi((at % 13) as i32 - 6);
        input.iter_mut().for_each(|x| *x *= size);
    }
    data.inputs.push(vec![1000.0; 8]);
    data.labels.push(0);
    let mut weights: Vec<f32> = network.init(3);
    weights[..8].fill(5.0);
    weights[8..24].fill(-5.0);
    let zero = 2_000;
    let (alone, norms) = exact(&network, &weights, &data, &[zero], &flat(1.0), 1.0);
    assert_eq!((norms[0], squares(&alone)), (0.0, 0));
    let mut float_moved = false;
    for len in (0..70).chain([127, 128, 129, 500, 1023, 2000]) {
        let batch: Vec<u32> = (0..len).collect();
        let (expected, _) = exact(&network, &weights, &data, &batch, &flat(1.0), 1.0);
        let mut floats = vec![0.0; network.dim()];
        network.weighted_sum(&weights, &data, &batch, &flat(1.0), &mut floats).unwrap();
        let places = [0, len as usize, (random.unit() * f64::from(len)) as usize];
        for place in places {
            let mut more = batch.clone();
            more.insert(place, zero);
            let (sum, _) = exact(&network, &weights, &data, &more, &flat(1.0), 1.0);
            assert_eq!(sum, expected, "{len} records, one more at {place}");
            let mut others = vec![0.0; network.dim()];
            network.weighted_sum(&weights, &data, &more, &flat(1.0), &mut others).unwrap();
            float_moved |= others != floats;
        }
    }
    assert!(float_moved, "the orders are too easy to show anything");
}

fn shuffled(mut batch: Vec<u32>, random: &mut Random) -> Vec<u32> {
    for at in (1..batch.len()).rev() {
        batch.swap(at, (random.unit() * (at + 1) as f64) as usize);
    }
    batch
}

/// A random network of every kind of layer.
fn random_spec(random: &mut Random) -> NetworkSpec {
    let mut below = |limit: usize| (random.unit() * limit as f64) as usize;
    let linear =
        |outputs| LayerSpec::Linear(LinearSpec { name: None, outputs, bias: outputs % 2 == 1 });
    let flat_input = below(3) == 0;
    let mut layers = Vec::new();
    if !flat_input {
        for place in 0..below(4) {
            let conv = |outputs, kernel, stride, padding| {
                let name = Some(format!("conv{place}{kernel}"));
                LayerSpec::Conv2d(Conv2dSpec { name, outputs, kernel, stride, padding, bias: true })
            };
            layers.push(match below(7) {
                0 => LayerSpec::Tanh,
                1 => LayerSpec::Relu,
                2 => LayerSpec::MaxPool(MaxPoolSpec { kernel: 2, stride: Some(1 + below(2)) }),
                3 => LayerSpec::AvgPool(AvgPoolSpec { kernel: 2, stride: Some(1) }),
                4 => LayerSpec::GroupNorm(GroupNormSpec { name: None, groups: 1 }),
                5 => LayerSpec::Residual(ResidualSpec {
                    name: None,
                    body: vec![conv(3, 3, 1, 1), LayerSpec::Relu],
                    shortcut: vec![conv(3, 1, 1, 0)],
                }),
                _ => conv(1 + below(9), 1 + below(5), 1 + below(3), below(3)),
            });
        }
        layers.push(LayerSpec::Flatten);
    }
    for _ in 0..below(3) {
        layers.push(linear(1 + below(30)));
        layers.push(if below(2) == 0 { LayerSpec::Relu } else { LayerSpec::Tanh });
    }
    layers.push(linear(2 + below(5)));
    let input = if flat_input { vec![1 + below(40)] } else { vec![1 + below(3), 6 + below(4), 5] };
    NetworkSpec { input, loss: Loss::SoftmaxCrossEntropy, layers }
}

/// Σ over any partition, in any order, on any number of threads, gives the same integers.
#[test]
fn any_order_and_partition_gives_the_same_integers() {
    let pools: Vec<_> = [1, 2, 3, 5]
        .map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap())
        .into();
    let mut tried = 0;
    for case in 0..cases(60) {
        let mut random = Random(case.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..5 {
            random.unit();
        }
        let spec = random_spec(&mut random);
        let Ok(network) = spec.build() else { continue };
        tried += 1;
        let mut data = table(network.input_len(), network.classes(), 20, case);
        for input in &mut data.inputs {
            let scale = 10f64.powf(random.unit() * 8.0 - 4.0) as f32;
            input.iter_mut().for_each(|x| *x *= scale);
        }
        let weights = network.init(case);
        let bound = 10f64.powf(random.unit() * 6.0 - 3.0);
        let rules = rules(bound);
        let rule = &*rules[(random.unit() * rules.len() as f64) as usize].1;
        let len = (random.unit() * 300.0) as u32;
        let batch: Vec<u32> = (0..len).map(|at| at * 7 % data.len() as u32).collect();
        let run = |batch: &[u32], pool: &rayon::ThreadPool| {
            pool.install(|| exact(&network, &weights, &data, batch, rule, bound)).0
        };
        let expected = run(&batch, &pools[0]);
        for pool in &pools {
            let order = shuffled(batch.clone(), &mut random);
            let cut = (random.unit() * f64::from(len + 1)) as usize;
            let (first, second) = (run(&order[..cut], pool), run(&order[cut..], pool));
            let total: Vec<i64> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
            assert_eq!(total, expected, "case {case}: {spec:?}");
        }
        for index in 0..data.len() as u32 {
            let square = squares(&run(&[index], &pools[0]));
            assert!(square <= FULL * FULL, "case {case}: {square}, {spec:?}");
        }
    }
    assert!(tried * 3 >= cases(60), "too few of the random networks are valid: {tried}");
}

/// Sums of 16-bit products and of truncated lanes are moved to 64 bits before they overflow.
#[test]
fn long_batches_of_the_longest_records_do_not_overflow() {
    let network = NetworkSpec::logistic(1, 2).build().unwrap();
    // All of the gradient is the bias's, or as good as all of it the weight's.
    let data = Table { inputs: vec![vec![0.0], vec![1e6]], labels: vec![1, 0] };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let weights = [0.0; 2];
    for record in [0, 1] {
        let (one, _) = exact(&network, &weights, &data, &[record], &|_, _| 1e9, 1.0);
        assert!(squares(&one) as f64 >= 0.99 * (FULL * FULL) as f64);
        let batch = vec![record; 70_000];
        let (sum, _) = pool.install(|| exact(&network, &weights, &data, &batch, &|_, _| 1e9, 1.0));
        assert_eq!(sum, one.iter().map(|n| n * 70_000).collect::<Vec<_>>());
        let rows = [record; 2];
        let units = vec![&rows[..]; 35_000];
        let run = |units: &[&[u32]]| {
            let (mut sum, grid) = (vec![0; 2], Grid::new(1.0).unwrap());
            let call =
                || network.exact_unit_sum(&weights, &data, units, &|_, _| 1e9, grid, &mut sum);
            pool.install(call).unwrap();
            sum
        };
        let expected: Vec<i64> = run(&units[..1]).iter().map(|n| n * 35_000).collect();
        assert_eq!(run(&units), expected);
    }
}

/// A record's integers are the same on every machine: these were written down on one with AVX2.
#[test]
fn the_bits_are_pinned() {
    let mut got = Vec::new();
    for (_, spec) in models_and_wide() {
        let (network, weights, data) = setup(&spec, 50);
        let batch: Vec<u32> = (0..50).collect();
        let (sum, norms) = exact(&network, &weights, &data, &batch, &flat(0.3), 0.3);
        let bytes = sum.iter().flat_map(|n| n.to_le_bytes());
        let bytes = bytes.chain(norms.iter().flat_map(|norm| norm.to_bits().to_le_bytes()));
        // FNV-1a.
        let start = 0xcbf2_9ce4_8422_2325u64;
        got.push(
            bytes.fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)),
        );
    }
    assert_eq!(got, PINNED, "{got:#x?}");
}

const PINNED: [u64; 9] = [
    17_183_356_750_383_748_834,
    11_101_231_476_209_808_528,
    14_049_025_114_694_327_600,
    12_434_208_775_919_771_652,
    4_198_266_824_442_499_705,
    8_733_670_173_663_501_811,
    17_833_531_623_342_988_835,
    7_014_842_248_923_398_619,
    18_166_064_000_113_262_706,
];

#[test]
fn concurrent_sums_do_not_meet() {
    let (network, weights, data) = setup(&NetworkSpec::mlp(20, &[16], 5), 60);
    let halves = [(0..30).collect::<Vec<u32>>(), (30..60).collect()];
    let expected =
        [0, 1].map(|at| exact(&network, &weights, &data, &halves[at], &flat(1.0), 1.0).0);
    std::thread::scope(|scope| {
        for round in 0..8 {
            let (network, weights, data) = (&network, &weights, &data);
            let (half, expected) = (&halves[round % 2], &expected[round % 2]);
            scope.spawn(move || {
                for _ in 0..50 {
                    assert_eq!(&exact(network, weights, data, half, &flat(1.0), 1.0).0, expected);
                }
            });
        }
    });
}

/// Nothing of a call that stopped half-way stands in a later sum.
#[test]
fn a_rule_that_panics_leaves_nothing_behind() {
    let (network, weights, data) = setup(&NetworkSpec::mlp(20, &[16], 5), 60);
    let batch: Vec<u32> = (0..60).collect();
    let (expected, _) = exact(&network, &weights, &data, &batch, &flat(1.0), 1.0);
    let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let rule = |place: usize, _: f64| if place == 40 { panic!("planted") } else { 1.0 };
        exact(&network, &weights, &data, &batch, &rule, 1.0)
    }));
    assert!(stopped.is_err());
    assert_eq!(exact(&network, &weights, &data, &batch, &flat(1.0), 1.0).0, expected);
}

#[test]
fn wrong_calls_are_errors() {
    for bound in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
        assert!(matches!(Grid::new(bound), Err(Error::Bound(_))), "{bound}");
    }
    let grid = Grid::new(3.0).unwrap();
    assert_eq!((grid.bound(), grid.step() * 2f64.powi(30)), (3.0, 3.0));
    let (network, weights, data) = setup(&NetworkSpec::logistic(20, 5), 4);
    let mut sum = vec![7; network.dim()];
    let rule = flat(1.0);
    assert!(network.exact_sum(&weights[1..], &data, &[0], &rule, grid, &mut sum).is_err());
    assert!(network.exact_sum(&weights, &data, &[4], &rule, grid, &mut sum).is_err());
    assert!(network.exact_sum(&weights, &data, &[1], &rule, grid, &mut sum[1..]).is_err());
    assert!(sum.iter().all(|&n| n == 7));
}
