//! Numbers to be learnt: losses and gradients against values by hand, PyTorch and finite differences, exact
//! sums against a batch of one.

use geodp_nn::{Grid, LayerSpec, LinearSpec, Loss, NetworkSpec, Samples};
use serde_json::Value;

/// Points with a number each.
struct Points {
    inputs: Vec<[f32; 3]>,
    targets: Vec<f32>,
}

impl Samples for Points {
    fn len(&self) -> usize {
        self.inputs.len()
    }

    fn input_len(&self) -> usize {
        3
    }

    fn read_input(&self, index: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.inputs[index]);
    }

    fn label(&self, _: usize) -> u32 {
        0
    }

    fn target(&self, index: usize) -> f32 {
        self.targets[index]
    }
}

fn points(count: usize) -> Points {
    let wave = |at: usize, step: f32| (at as f32 * step).sin();
    Points {
        inputs: (0..count).map(|at| [wave(at, 1.3), wave(at, 0.7), wave(at, 2.1)]).collect(),
        targets: (0..count).map(|at| 0.5 + 0.5 * wave(at, 0.37)).collect(),
    }
}

const LOSSES: [Loss; 2] = [Loss::Squared, Loss::Huber];

/// z = 2·1 + 1 = 3 against t = 1 and t = 2.95: residuals 2 and 0.05.
#[test]
fn values_by_hand() {
    let samples = Points { inputs: vec![[1.0, 0.0, 0.0]; 2], targets: vec![1.0, 2.95] };
    let weights = [2.0, 0.0, 0.0, 1.0];
    let mut gradient = [0.0f32; 4];
    for (loss, losses, steps) in [
        (Loss::Squared, [2.0, 0.00125], [2.0, 0.05]),
        // h = 0.1: 0.1·(2 − 0.05), and within h as the square.
        (Loss::Huber, [0.195, 0.00125], [0.1, 0.05]),
    ] {
        let network = NetworkSpec::regression(3, &[], loss).build().unwrap();
        for sample in 0..2 {
            let outcome =
                network.gradient_sum(&weights, &samples, &[sample], &mut gradient).unwrap();
            let at = sample as usize;
            assert!((outcome.losses[0] - losses[at]).abs() < 1e-6, "{loss:?} {:?}", outcome.losses);
            assert_eq!(outcome.correct, 0);
            for (found, expected) in gradient.iter().zip([1.0, 0.0, 0.0, 1.0]) {
                assert!((found - expected * steps[at]).abs() < 1e-6, "{loss:?} {gradient:?}");
            }
        }
        let mut predictions = [0.0; 2];
        network.predict(&weights, &samples, &[0, 1], &mut predictions).unwrap();
        assert_eq!(predictions, [3.0, 3.0]);
    }
}

/// PyTorch's losses and gradients of every record; `golden/make_regression.py` made them.
#[test]
fn pytorch_gives_the_same() {
    let golden: Value = serde_json::from_str(include_str!("golden/regression.json")).unwrap();
    let numbers = |value: &Value| -> Vec<f32> {
        value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
    };
    let rows = |value: &Value| value.as_array().unwrap().iter().map(numbers).collect::<Vec<_>>();
    let inputs = rows(&golden["inputs"]).into_iter().map(|row| row.try_into().unwrap());
    let samples = Points { inputs: inputs.collect(), targets: numbers(&golden["targets"]) };
    let mut beyond = 0;
    for case in golden["cases"].as_array().unwrap() {
        let loss = if case["loss"] == "huber" { Loss::Huber } else { Loss::Squared };
        let hidden: Vec<usize> = numbers(&case["hidden"]).iter().map(|&n| n as usize).collect();
        let network = NetworkSpec::regression(3, &hidden, loss).build().unwrap();
        let (weights, losses) = (numbers(&case["weights"]), numbers(&case["losses"]));
        let mut gradient = vec![0.0f32; network.dim()];
        for (sample, expected) in rows(&case["gradients"]).iter().enumerate() {
            let batch = [sample as u32];
            let outcome = network.gradient_sum(&weights, &samples, &batch, &mut gradient).unwrap();
            let what = format!("{loss:?} {hidden:?} {sample}");
            assert!((outcome.losses[0] - losses[sample]).abs() < 1e-6, "{what}");
            for (found, expected) in gradient.iter().zip(expected) {
                assert!((found - expected).abs() < 2e-6, "{what}: {found} not {expected}");
            }
            beyond += usize::from(loss == Loss::Huber && losses[sample] > 0.005);
        }
    }
    // Of 24 records under Huber's loss, some lie within h and some beyond.
    assert!((4..=22).contains(&beyond), "{beyond}");
}

/// Each record's gradient against central differences of its loss, through a hidden layer; a Huber loss
/// has no second derivative where |r| = h, so those records are as near as the step.
#[test]
fn gradients_are_those_of_the_loss() {
    let samples = points(20);
    for loss in LOSSES {
        let network = NetworkSpec::regression(3, &[4], loss).build().unwrap();
        let weights = network.init(5);
        let mut gradient = vec![0.0f32; network.dim()];
        for sample in 0..20u32 {
            network.gradient_sum(&weights, &samples, &[sample], &mut gradient).unwrap();
            for at in 0..network.dim() {
                let loss_at = |step: f32| {
                    let mut moved = weights.clone();
                    moved[at] += step;
                    network.evaluate(&moved, &samples, &[sample]).unwrap().mean_loss
                };
                let difference = (loss_at(1e-2) - loss_at(-1e-2)) / 2e-2;
                let error = (difference - f64::from(gradient[at])).abs();
                assert!(error < 2e-3, "{loss:?} sample {sample} weight {at}: {error}");
            }
        }
    }
}

/// The exact sum of a batch is the sum of its records' exact sums, each within the bound.
#[test]
fn exact_sums_are_those_of_single_records() {
    let samples = points(37);
    let all: Vec<u32> = (0..37).collect();
    for loss in LOSSES {
        let network = NetworkSpec::regression(3, &[4], loss).build().unwrap();
        let weights = network.init(3);
        let grid = Grid::new(0.01).unwrap();
        let clip = |_: usize, norm: f64| (0.01 / norm).min(1.0);
        let mut whole = vec![0i64; network.dim()];
        network.exact_sum(&weights, &samples, &all, &clip, grid, &mut whole).unwrap();
        let mut singles = vec![0i64; network.dim()];
        let mut own = vec![0i64; network.dim()];
        for sample in &all {
            network.exact_sum(&weights, &samples, &[*sample], &clip, grid, &mut own).unwrap();
            let square: f64 = own.iter().map(|&n| (n as f64).powi(2)).sum();
            assert!(square.sqrt() <= f64::from(1u32 << Grid::BITS), "{loss:?}");
            singles.iter_mut().zip(&own).for_each(|(sum, n)| *sum += n);
        }
        assert_eq!(whole, singles, "{loss:?}");
    }
}

#[test]
fn a_number_needs_one_output() {
    let two = NetworkSpec {
        input: vec![3],
        loss: Loss::Squared,
        layers: vec![LayerSpec::Linear(LinearSpec { name: None, outputs: 2, bias: true })],
    };
    let refused = two.build().err().unwrap().to_string();
    assert!(refused.contains("one output"), "{refused}");
}
