//! What exactness costs: the sum of a batch in integers against the same in floats.
//! `cargo bench -p geodp-nn --bench exact -- [rounds] [part of a name]`.
//!
//! Both routes take turns, so that a busy machine slows them alike; medians are compared, of the time
//! that threads were running where the system tells it (a busy machine's clock says little), else of
//! the clock. Beside the
//! ratio stands the error that truncation adds to the mean gradient, relative to its norm, against
//! sums of the untruncated gradients in double precision.

use geodp_nn::{Grid, Network, NetworkSpec, ResnetSpec, Samples};
use std::time::Instant;

/// Byte images with a flat background and a bright stroke, as digits have; scaled on reading.
struct Strokes {
    pixels: Vec<u8>,
    len: usize,
    classes: u32,
}

impl Strokes {
    fn new(len: usize, classes: u32) -> Self {
        let (side, mut state) = ((len as f64).sqrt(), 1u64);
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 40) as f64 / (1u64 << 24) as f64
        };
        let mut pixels = Vec::with_capacity(COUNT * len);
        for _ in 0..COUNT {
            let (centre, slope, width) =
                (unit() * side, unit() * 2.0 - 1.0, 1.0 + unit() * side / 8.0);
            for at in 0..len {
                let (row, column) = ((at as f64 / side).floor(), at as f64 % side);
                let off = (column - centre - slope * (row - side / 2.0)) / width;
                pixels.push((255.0 * (-off * off).exp() * (0.9 + 0.1 * unit())) as u8);
            }
        }
        Self { pixels, len, classes }
    }
}

const COUNT: usize = 4096;

impl Samples for Strokes {
    fn len(&self) -> usize {
        COUNT
    }
    fn input_len(&self) -> usize {
        self.len
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        let pixels = &self.pixels[index * self.len..][..self.len];
        for (out, &pixel) in out.iter_mut().zip(pixels) {
            *out = f32::from(pixel) * (1.0 / 255.0 / 0.3081) - 0.1307 / 0.3081;
        }
    }
    fn label(&self, index: usize) -> u32 {
        index as u32 % self.classes
    }
}

/// Seconds that all threads of this process have run, or that have passed.
fn seconds(start: Instant) -> f64 {
    let of_thread = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds: f64 = tasks.filter_map(|task| of_thread(task.path())).sum();
    if nanoseconds > 0.0 { 1e-9 * nanoseconds } else { start.elapsed().as_secs_f64() }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let rounds = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(21);
    let wanted = arguments.iter().find(|argument| argument.parse::<usize>().is_err());
    let normalised = ResnetSpec { groups: Some(4), ..Default::default() };
    let cases = [
        ("CNN", NetworkSpec::cnn(), 1024),
        ("ResNet", NetworkSpec::resnet(&ResnetSpec::default()), 1024),
        ("ResNet with GroupNorm", NetworkSpec::resnet(&normalised), 1024),
        ("logistic regression, 10 classes", NetworkSpec::logistic(784, 10), 4096),
        ("logistic regression, 2 classes", NetworkSpec::logistic(784, 2), 4096),
        ("MLP 784-256-10", NetworkSpec::mlp(784, &[256], 10), 1024),
        ("MLP 30-64-2", NetworkSpec::mlp(30, &[64], 2), 1024),
        ("scattering and linear 3969-10", NetworkSpec::logistic(3969, 10), 4096),
        ("CIFAR-10 head", NetworkSpec::scattering_head(), 1024),
    ];
    for (name, spec, batch) in cases {
        if wanted.is_some_and(|part| !name.contains(part.as_str())) {
            continue;
        }
        compare(name, &spec.build().expect("a valid network"), batch, rounds);
    }
}

fn compare(name: &str, network: &Network, batch: u32, rounds: usize) {
    let samples = Strokes::new(network.input_len(), network.classes() as u32);
    let batch: Vec<u32> = (0..batch).collect();
    let weights = network.init(1);
    let grid = Grid::new(0.1).expect("a valid bound");
    let clip = |_: usize, norm: f64| (0.1 / norm).min(1.0);
    let mut floats = vec![0.0f32; network.dim()];
    let mut integers = vec![0i64; network.dim()];
    let (mut floating, mut exact) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for _ in 0..rounds {
        let before = seconds(start);
        network.weighted_sum(&weights, &samples, &batch, &clip, &mut floats).expect("a valid call");
        let between = seconds(start);
        network
            .exact_sum(&weights, &samples, &batch, &clip, grid, &mut integers)
            .expect("a valid call");
        floating.push(between - before);
        exact.push(seconds(start) - between);
    }
    let (floating, exact) = (median(floating), median(exact));
    let error = truncation_error(network, &samples, &weights, &batch, &integers, grid);
    println!(
        "{name}, B = {}: floating {:.2} ms, exact {:.2} ms, ratio {:.3}; truncation {error:.1e}",
        batch.len(),
        1e3 * floating,
        1e3 * exact,
        exact / floating
    );
}

fn truncation_error(
    network: &Network,
    samples: &Strokes,
    weights: &[f32],
    batch: &[u32],
    integers: &[i64],
    grid: Grid,
) -> f64 {
    let dim = network.dim();
    let mut truth = vec![0.0f64; dim];
    let mut rows = vec![0.0f32; 64 * dim];
    for batch in batch.chunks(64) {
        let rows = &mut rows[..batch.len() * dim];
        network.sample_gradients(weights, samples, batch, rows).expect("a valid call");
        for row in rows.chunks_exact(dim) {
            let norm = row.iter().map(|&g| f64::from(g).powi(2)).sum::<f64>().sqrt();
            let weight = (grid.bound() / norm).min(1.0);
            for (truth, &g) in truth.iter_mut().zip(row) {
                *truth += weight * f64::from(g);
            }
        }
    }
    let pairs = truth.iter().zip(integers);
    let off: f64 = pairs.map(|(t, &n)| (t - n as f64 * grid.step()).powi(2)).sum();
    (off / truth.iter().map(|t| t * t).sum::<f64>()).sqrt()
}
