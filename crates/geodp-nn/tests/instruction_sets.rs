//! Every instruction set, and every way of storing inputs, gives what plain Rust on copies gives.

use geodp_nn::{
    Conv2dSpec, Grid, InstructionSet, LayerSpec, LinearSpec, NetworkSpec, ResidualSpec, ResnetSpec,
    Samples, StoredInput, half,
};

struct Waves(usize);

impl Samples for Waves {
    fn len(&self) -> usize {
        100
    }
    fn input_len(&self) -> usize {
        self.0
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        for (at, out) in out.iter_mut().enumerate() {
            *out = ((index * 131 + at * at * 7 + at) as f32).sin();
        }
    }
    fn label(&self, index: usize) -> u32 {
        index as u32 % 2
    }
}

/// A wide linear layer whose inputs another branch reads too, where `shared`.
fn wide(shared: bool) -> NetworkSpec {
    let mut spec = NetworkSpec::logistic(1_061, 3);
    if shared {
        let linear = LinearSpec { name: None, outputs: 1_061, bias: false };
        let body = vec![LayerSpec::Linear(linear)];
        spec.layers
            .insert(0, LayerSpec::Residual(ResidualSpec { name: None, body, shortcut: vec![] }));
    }
    spec
}

fn specs() -> [NetworkSpec; 7] {
    let resnet = ResnetSpec {
        input: [3, 17, 16],
        stem: 5,
        widths: [6, 7, 9],
        groups: Some(1),
        ..Default::default()
    };
    let mut tanh = NetworkSpec::mlp(50, &[33, 9], 3);
    tanh.layers[1] = LayerSpec::Tanh;
    // Wide enough for tiles, of which some reach beyond their planes.
    let conv = |outputs, kernel, padding| {
        let (name, stride, bias) = (None, 1, true);
        LayerSpec::Conv2d(Conv2dSpec { name, outputs, kernel, stride, padding, bias })
    };
    let tiles = NetworkSpec {
        input: vec![2, 9, 7],
        layers: vec![
            conv(33, 1, 0),
            LayerSpec::Tanh,
            conv(37, 3, 1),
            conv(32, 3, 2),
            LayerSpec::Flatten,
        ]
        .into_iter()
        .chain(NetworkSpec::logistic(1, 3).layers)
        .collect(),
        ..NetworkSpec::cnn()
    };
    [
        tiles,
        NetworkSpec::logistic(50, 2),
        tanh,
        NetworkSpec::logistic(31, 4),
        wide(false),
        NetworkSpec::cnn(),
        NetworkSpec::resnet(&resnet),
    ]
}

/// Whole trainings on exact sums: the same weights, norms and losses to the last bit, and the same
/// probabilities of what was trained.
#[test]
fn exact_trainings_have_the_same_bits_everywhere() {
    for spec in specs() {
        let run = |isa| {
            let network = spec.build_for(isa).unwrap();
            let samples = Waves(network.input_len());
            let (mut weights, grid) = (network.init(5), Grid::new(0.3).unwrap());
            let mut sum = vec![0; network.dim()];
            let mut seen = Vec::new();
            for step in 0..4 {
                let batch: Vec<u32> = (step * 20..step * 20 + 19).collect();
                let clip = |_: usize, norm: f64| (0.3 / norm).min(1.0);
                let outcome = network.exact_sum(&weights, &samples, &batch, &clip, grid, &mut sum);
                let outcome = outcome.unwrap();
                for (weight, &n) in weights.iter_mut().zip(&sum) {
                    *weight -= (n as f64 * grid.step() / 19.0) as f32;
                }
                seen.extend(outcome.norms.iter().chain(&outcome.losses).map(|x| x.to_bits()));
                seen.push(outcome.correct as u32);
            }
            seen.extend(weights.iter().map(|weight| weight.to_bits()));
            let rows: Vec<u32> = (0..70).collect();
            let units: Vec<&[u32]> = rows.chunks(3).collect();
            let rule = |_: usize, norm: f64| 0.3 / norm;
            network.exact_unit_sum(&weights, &samples, &units, &rule, grid, &mut sum).unwrap();
            let mut probabilities = vec![0.0; rows.len() * network.classes()];
            let looked = network.predict(&weights, &samples, &rows, &mut probabilities);
            seen.extend(probabilities.iter().map(|p| p.to_bits()));
            (seen, sum, looked.unwrap())
        };
        let expected = run(InstructionSet::Portable);
        for isa in InstructionSet::available() {
            assert!(run(isa) == expected, "{isa:?} differs from plain Rust: {spec:?}");
        }
    }
}

/// Register tiles differ from one instruction set to the next; norms and sums do not, by a bit.
#[test]
fn convolutions_have_the_same_bits_everywhere() {
    let batch: Vec<u32> = (0..19).collect();
    let cases = (1..=5).flat_map(|kernel| (0..9).map(move |at| (kernel, 1 + at / 3, at % 3)));
    for (kernel, stride, padding) in cases {
        let conv = |outputs| {
            LayerSpec::Conv2d(Conv2dSpec {
                name: None,
                outputs,
                kernel,
                stride,
                padding,
                bias: true,
            })
        };
        let mut spec = NetworkSpec::cnn();
        spec.input = vec![2, 18, 19 + kernel];
        spec.layers = vec![conv(13), LayerSpec::Tanh];
        if stride == 1 {
            spec.layers.push(conv(7 + kernel));
        }
        spec.layers.extend([LayerSpec::Flatten, NetworkSpec::logistic(1, 3).layers[0].clone()]);
        let run = |isa| {
            let network = spec.build_for(isa).unwrap();
            let (weights, samples) = (network.init(5), Waves(network.input_len()));
            let (grid, mut sum) = (Grid::new(0.3).unwrap(), vec![0; network.dim()]);
            let clip = |_: usize, norm: f64| (0.3 / norm).min(1.0);
            let outcome = network.exact_sum(&weights, &samples, &batch, &clip, grid, &mut sum);
            (sum, outcome.unwrap())
        };
        let expected = run(InstructionSet::Portable);
        for isa in InstructionSet::available() {
            assert!(run(isa) == expected, "{isa:?}: kernel {kernel}, {stride}, {padding}");
        }
    }
}

/// Bytes, floats and halves handed out as they are stored, or by copying.
struct Kept {
    bytes: Vec<u8>,
    floats: Vec<f32>,
    halves: Vec<u16>,
    affine: Vec<(f32, f32)>,
    len: usize,
    by: By,
}

#[derive(Clone, Copy)]
enum By {
    Copy,
    Floats,
    Bytes,
    Halves,
    Turns,
}

impl Samples for Kept {
    fn len(&self) -> usize {
        self.floats.len() / self.len
    }
    fn input_len(&self) -> usize {
        self.len
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.floats[index * self.len..][..self.len]);
    }
    fn stored_input(&self, index: usize) -> Option<StoredInput<'_>> {
        let bytes = &self.bytes[index * self.len..][..self.len];
        let floats = &self.floats[index * self.len..][..self.len];
        let halves = &self.halves[index * self.len..][..self.len];
        match (self.by, index % 4) {
            (By::Copy, _) | (By::Turns, 0) => None,
            (By::Floats, _) | (By::Turns, 1) => Some(StoredInput::Floats(floats)),
            (By::Halves, _) | (By::Turns, 2) => Some(StoredInput::Halves(halves)),
            _ => Some(StoredInput::Bytes(bytes, &self.affine)),
        }
    }
    fn label(&self, index: usize) -> u32 {
        index as u32 % 2
    }
}

#[test]
fn stored_inputs_are_those_that_copying_gives() {
    let specs = specs().into_iter().chain([3, 16, 18].map(|n| NetworkSpec::logistic(n, 2)));
    let specs = specs.chain([wide(true)]);
    for spec in specs {
        let len = spec.build().unwrap().input_len();
        let channels = if spec.input.len() == 3 { spec.input[0] } else { 1 };
        // What they give has eight bits, so that halves hold it.
        let affine: Vec<(f32, f32)> =
            (0..channels).map(|c| (2f32.powi(-7 - c as i32), -0.25 * c as f32)).collect();
        let bytes: Vec<u8> = (0..70 * len).map(|at| (at * at * 31 + at) as u8).collect();
        let of = |(at, byte): (usize, &u8)| {
            let (a, b) = affine[at % len / (len / channels)];
            f32::from(*byte) * a + b
        };
        let floats: Vec<f32> = bytes.iter().enumerate().map(of).collect();
        let halves: Vec<u16> = floats.iter().map(|&value| half::encode(value)).collect();
        let batch: Vec<u32> = (0..69).rev().collect();
        let run = |isa, by| {
            let network = spec.build_for(isa).unwrap();
            let (bytes, floats, halves) = (bytes.clone(), floats.clone(), halves.clone());
            let samples = Kept { bytes, floats, halves, affine: affine.clone(), len, by };
            let (grid, mut sum) = (Grid::new(0.3).unwrap(), vec![0; network.dim()]);
            let clip = |_: usize, norm: f64| (0.3 / norm).min(1.0);
            let weights = network.init(5);
            let outcome = network.exact_sum(&weights, &samples, &batch, &clip, grid, &mut sum);
            (sum, outcome.unwrap())
        };
        let expected = run(InstructionSet::Portable, By::Copy);
        for isa in InstructionSet::available() {
            for by in [By::Copy, By::Floats, By::Bytes, By::Halves, By::Turns] {
                assert!(run(isa, by) == expected, "{isa:?}, {}: {spec:?}", by as u8);
            }
        }
    }
}

/// Every instruction set of this machine against plain Rust.
#[test]
fn instruction_sets_agree() {
    let specs = specs();
    let batch: Vec<u32> = (0..77).collect();
    for spec in &specs {
        let run = |isa| {
            let network = spec.build_for(isa).unwrap();
            let (weights, samples) = (network.init(5), Waves(network.input_len()));
            let mut sum = vec![0.0; network.dim()];
            let clip = |norm: f64| (0.3 / norm).min(1.0);
            let outcome = network.clipped_sum(&weights, &samples, &batch, &clip, &mut sum).unwrap();
            (sum, outcome)
        };
        let (expected, outcome) = run(InstructionSet::Portable);
        let norm = expected.iter().map(|x| x * x).sum::<f32>().sqrt();
        for isa in InstructionSet::available() {
            let (sum, other) = run(isa);
            let off = sum.iter().zip(&expected).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
            assert!(off <= 1e-5 * norm, "{isa:?}: off by {off} of {norm}");
            let pairs = outcome.norms.iter().zip(&other.norms);
            let pairs = pairs.chain(outcome.losses.iter().zip(&other.losses));
            for (a, b) in pairs {
                assert!((a - b).abs() <= 1e-5 * (a.abs() + 1e-3), "{isa:?}: {a} and {b}");
            }
            assert_eq!(outcome.correct, other.correct);
        }
    }
}
