//! Units of several rows: the mean gradient of a unit is weighed and bounded, not its rows'.

use crate::common;

use common::{Random, Table, table};
use geodp_nn::{BatchOutcome, Grid, Network, NetworkSpec, ResnetSpec};

const FULL: i128 = 1 << Grid::BITS;
type Rule = dyn Fn(usize, f64) -> f64 + Sync;

fn models() -> Vec<(&'static str, NetworkSpec)> {
    let resnet = ResnetSpec { input: [3, 9, 9], stem: 4, widths: [4, 6, 8], ..Default::default() };
    let resnet = NetworkSpec::resnet(&ResnetSpec { groups: Some(2), ..resnet });
    vec![
        ("logistic", NetworkSpec::logistic(20, 2)),
        ("softmax", NetworkSpec::logistic(20, 5)),
        ("mlp", NetworkSpec::mlp(20, &[16, 8], 5)),
        ("resnet", resnet),
    ]
}

fn setup(spec: &NetworkSpec, count: usize) -> (Network, Vec<f32>, Table) {
    let network = spec.build().unwrap();
    let data = table(network.input_len(), network.classes(), count, 7);
    let weights = network.init(3);
    (network, weights, data)
}

fn flat(bound: f64) -> impl Fn(usize, f64) -> f64 + Sync {
    move |_, norm| (bound / norm).min(1.0)
}

fn exact(
    network: &Network,
    weights: &[f32],
    data: &Table,
    units: &[&[u32]],
    rule: &Rule,
    bound: f64,
) -> (Vec<i64>, BatchOutcome) {
    let (mut sum, grid) = (vec![i64::MAX; network.dim()], Grid::new(bound).unwrap());
    let outcome = network.exact_unit_sum(weights, data, units, rule, grid, &mut sum).unwrap();
    (sum, outcome)
}

/// ḡ of a unit from the rows' own gradients.
fn mean_gradient(network: &Network, weights: &[f32], data: &Table, unit: &[u32]) -> Vec<f64> {
    let mut rows = vec![0.0; unit.len() * network.dim()];
    network.sample_gradients(weights, data, unit, &mut rows).unwrap();
    let mut mean = vec![0.0; network.dim()];
    for row in rows.chunks(network.dim()) {
        for (mean, &g) in mean.iter_mut().zip(row) {
            *mean += f64::from(g) / unit.len() as f64;
        }
    }
    mean
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Units of 0 to 9 rows, in an order of their own, sharing no row.
fn some_units(rows: u32) -> Vec<Vec<u32>> {
    let (mut units, mut next) = (Vec::new(), 0);
    for size in [2u32, 1, 5, 0, 3, 3, 9, 1, 2, 4, 6, 2].iter().cycle() {
        if next + size > rows {
            return units;
        }
        units.push((next..next + size).collect());
        next += size;
    }
    units
}

fn slices(units: &[Vec<u32>]) -> Vec<&[u32]> {
    units.iter().map(Vec::as_slice).collect()
}

fn floating(
    network: &Network,
    weights: &[f32],
    data: &Table,
    units: &[&[u32]],
    rule: &Rule,
) -> (Vec<f64>, BatchOutcome) {
    let mut sum = vec![f32::NAN; network.dim()];
    let outcome = network.weighted_unit_sum(weights, data, units, rule, &mut sum).unwrap();
    (sum.iter().map(|&g| f64::from(g)).collect(), outcome)
}

/// Would fail if rows were clipped instead of units, or if anything but a unit's own number of rows
/// divided its gradient.
#[test]
fn sums_are_those_of_clipped_mean_gradients() {
    for (name, spec) in models() {
        let (network, weights, data) = setup(&spec, 120);
        let units = some_units(120);
        let bound = 0.4;
        let (sum, outcome) = exact(&network, &weights, &data, &slices(&units), &flat(bound), bound);
        let mut expected = vec![0.0; network.dim()];
        let mut correct = 0;
        for (unit, (&got, &loss)) in units.iter().zip(outcome.norms.iter().zip(&outcome.losses)) {
            let mean = mean_gradient(&network, &weights, &data, unit);
            let length = norm(&mean);
            assert!((f64::from(got) - length).abs() <= 1e-5 * length, "{name}: {got}, {length}");
            let weight = if length > 0.0 { flat(bound)(0, length) } else { 0.0 };
            expected.iter_mut().zip(&mean).for_each(|(sum, g)| *sum += weight * g);
            let evaluation = network.evaluate(&weights, &data, unit).unwrap();
            assert!((f64::from(loss) - evaluation.mean_loss).abs() <= 1e-5, "{name}");
            correct += evaluation.correct;
        }
        assert_eq!((outcome.correct, outcome.rows), (correct, units.concat().len()), "{name}");
        let step = Grid::new(bound).unwrap().step();
        let got: Vec<f64> = sum.iter().map(|&n| n as f64 * step).collect();
        let off: Vec<f64> = got.iter().zip(&expected).map(|(a, b)| a - b).collect();
        assert!(norm(&off) <= 1e-3 * norm(&expected), "{name}: off by {}", norm(&off));
        let (sum, float) = floating(&network, &weights, &data, &slices(&units), &flat(bound));
        let off: Vec<f64> = sum.iter().zip(&expected).map(|(a, b)| a - b).collect();
        assert!(norm(&off) <= 1e-5 * norm(&expected), "{name}: floats off by {}", norm(&off));
        let pairs = float.norms.iter().zip(&outcome.norms);
        for (a, b) in pairs.chain(float.losses.iter().zip(&outcome.losses)) {
            assert!((a - b).abs() <= 1e-5 * (a.abs() + 1e-3), "{name}: {a} and {b}");
        }
        assert_eq!((float.correct, float.rows), (outcome.correct, outcome.rows), "{name}");
    }
}

/// The bits of a floating sum do not depend on the number of threads either.
#[test]
fn floating_sums_are_the_same_for_any_number_of_threads() {
    let (network, weights, data) = setup(&NetworkSpec::mlp(20, &[16, 8], 5), 400);
    let units = some_units(400);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| floating(&network, &weights, &data, &slices(&units), &flat(0.3)))
    };
    let expected = run(1);
    assert!([2, 3].into_iter().all(|threads| run(threads) == expected));
}

/// The factor is that of the mean's norm: rows that cancel leave a short mean, which is not clipped.
#[test]
fn rows_that_cancel_are_not_clipped() {
    let network = NetworkSpec::logistic(6, 2).build().unwrap();
    let input: Vec<f32> = (0..6).map(|at| 3.0 + at as f32).collect();
    let data = Table { inputs: vec![input; 2], labels: vec![0, 1] };
    // At weights of 0 both classes are as probable: the two rows' gradients are opposite.
    let mut weights = vec![0.0; network.dim()];
    weights[0] = 0.001;
    let mean = mean_gradient(&network, &weights, &data, &[0, 1]);
    let (length, bound) = (norm(&mean), 0.5);
    let mut rows = vec![0.0; network.dim()];
    network.sample_gradient(&weights, &data, 0, &mut rows).unwrap();
    assert!(length < bound && rows[5] > 2.0, "the rows are long, their mean is not: {length}");
    let (sum, _) = exact(&network, &weights, &data, &[&[0, 1]], &flat(bound), bound);
    let step = Grid::new(bound).unwrap().step();
    for (got, expected) in sum.iter().map(|&n| n as f64 * step).zip(&mean) {
        assert!((got - expected).abs() <= 1e-6, "{got} not {expected}");
    }
}

#[test]
fn no_unit_is_longer_than_the_bound() {
    for (name, spec) in models() {
        let (network, weights, mut data) = setup(&spec, 60);
        for (at, input) in data.inputs.iter_mut().enumerate() {
            let scale = [1e-38f32, 1e-12, 1.0, 30.0, 1e12][at / 12];
            input.iter_mut().for_each(|x| *x *= scale);
        }
        let bound = 0.7;
        let rules: [Box<Rule>; 4] = [
            Box::new(flat(bound)),
            Box::new(move |_, norm| bound / norm),
            Box::new(|_, _| 1e250),
            Box::new(move |_, norm| -2.0 * bound / norm),
        ];
        let mut longest = 0;
        // Views of one record are equal rows: then the unit is as long as a record.
        let equal: Vec<u32> = vec![24; 7];
        for unit in some_units(60).iter().chain([&equal]) {
            for rule in &rules {
                let (sum, _) = exact(&network, &weights, &data, &[unit], rule, bound);
                let square: i128 = sum.iter().map(|&n| i128::from(n) * i128::from(n)).sum();
                assert!(square <= FULL * FULL, "{name}, {unit:?}: {square}");
                longest = longest.max(square);
            }
        }
        assert!(longest as f64 >= 0.998 * (FULL * FULL) as f64, "{name}: {longest}");
    }
}

#[test]
fn any_order_and_partition_gives_the_same_integers() {
    for (name, spec) in models() {
        let (network, weights, data) = setup(&spec, 200);
        let units = some_units(200);
        let mut units = slices(&units);
        let rule = flat(0.3);
        let (expected, _) = exact(&network, &weights, &data, &units, &rule, 0.3);
        let mut random = Random(4);
        for threads in [1, 2, 3] {
            for at in (1..units.len()).rev() {
                units.swap(at, (random.unit() * (at + 1) as f64) as usize);
            }
            let cut = (random.unit() * units.len() as f64) as usize;
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let run = |units: &[&[u32]]| {
                pool.install(|| exact(&network, &weights, &data, units, &rule, 0.3)).0
            };
            let (first, second) = (run(&units[..cut]), run(&units[cut..]));
            let total: Vec<i64> = first.iter().zip(&second).map(|(a, b)| a + b).collect();
            assert_eq!(total, expected, "{name}, {threads} threads");
        }
    }
}

#[test]
fn units_of_one_row_are_records() {
    for (name, spec) in models() {
        let (network, weights, data) = setup(&spec, 50);
        let rows: Vec<u32> = (0..50).map(|at| at * 7 % 50).collect();
        let units: Vec<&[u32]> = rows.chunks(1).collect();
        let third = |place: usize, norm: f64| {
            if place.is_multiple_of(3) { (0.3 / norm).min(1.0) } else { 0.0 }
        };
        let (sum, outcome) = exact(&network, &weights, &data, &units, &third, 0.3);
        let (mut expected, grid) = (vec![0; network.dim()], Grid::new(0.3).unwrap());
        let records = network.exact_sum(&weights, &data, &rows, &third, grid, &mut expected);
        assert_eq!((sum, outcome), (expected, records.unwrap()), "{name}");
    }
}

#[test]
fn a_broken_row_breaks_its_unit_alone() {
    for (name, spec) in models() {
        let (network, weights, mut data) = setup(&spec, 60);
        let units = some_units(60);
        let broken = units.iter().position(|unit| unit.len() == 5).unwrap();
        let mut good = slices(&units);
        good.remove(broken);
        let (expected, _) = exact(&network, &weights, &data, &good, &flat(0.5), 0.5);
        data.inputs[units[broken][3] as usize][0] = f32::NAN;
        let asked = |_: usize, norm: f64| {
            assert!(norm.is_finite());
            (0.5 / norm).min(1.0)
        };
        let (sum, outcome) = exact(&network, &weights, &data, &slices(&units), &asked, 0.5);
        assert_eq!(sum, expected, "{name}");
        assert!(!outcome.norms[broken].is_finite(), "{name}");
        let (sum, outcome) = floating(&network, &weights, &data, &slices(&units), &asked);
        let (expected, _) = floating(&network, &weights, &data, &good, &asked);
        let off: Vec<f64> = sum.iter().zip(&expected).map(|(a, b)| a - b).collect();
        assert!(norm(&off) <= 1e-5 * norm(&expected) && !outcome.norms[broken].is_finite());
    }
}

#[test]
fn predictions_of_units_are_means_over_rows() {
    let (network, weights, data) = setup(&NetworkSpec::mlp(20, &[16], 5), 3000);
    let units: Vec<Vec<u32>> = (0..1400).map(|unit| vec![2 * unit + 1, 2 * unit]).collect();
    let mut means = vec![f32::NAN; units.len() * 5];
    let evaluation = network.predict_units(&weights, &data, &slices(&units), &mut means).unwrap();
    let (mut loss, mut hits) = (0.0, 0);
    for (unit, mean) in units.iter().zip(means.chunks(5)) {
        let mut rows = vec![0.0; 10];
        network.predict(&weights, &data, unit, &mut rows).unwrap();
        for (class, mean) in mean.iter().enumerate() {
            assert!((mean - (rows[class] + rows[5 + class]) / 2.0).abs() < 1e-6);
        }
        let label = data.labels[unit[0] as usize] as usize;
        loss -= f64::from(mean[label]).ln() / 1400.0;
        hits += usize::from(mean.iter().all(|p| *p <= mean[label]));
    }
    assert!((evaluation.mean_loss - loss).abs() < 1e-6);
    assert_eq!((evaluation.correct, evaluation.count), (hits, 1400));
}

#[test]
fn wrong_calls_are_errors() {
    let (network, weights, data) = setup(&NetworkSpec::logistic(20, 5), 4);
    let (mut sum, grid, rule) = (vec![7; network.dim()], Grid::new(1.0).unwrap(), flat(1.0));
    assert!(network.exact_unit_sum(&weights, &data, &[&[0, 4]], &rule, grid, &mut sum).is_err());
    let short = network.exact_unit_sum(&weights[1..], &data, &[], &rule, grid, &mut sum);
    assert!(short.is_err());
    assert!(sum.iter().all(|&n| n == 7));
    network.exact_unit_sum(&weights, &data, &[], &rule, grid, &mut sum).unwrap();
    assert!(sum.iter().all(|&n| n == 0));
}
