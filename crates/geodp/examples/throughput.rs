//! Samples per second of a training step on synthetic inputs, as one line of JSON:
//! `cargo run --release -p geodp --example throughput -- --model cnn --batch 1024 --private`.
//!
//! A private step is everything DP-SGD does: forward, backward, per-sample norms, clipping, sum,
//! secure noise, update. Without `--private` it is the plain gradient and the update.

use geodp_mechanism::{Clip, Gaussian, NoiseSource, Perturb};
use geodp_nn::{Network, NetworkSpec, ResnetSpec, Samples};
use std::time::Instant;

/// Inputs kept as bytes, as image sets are, so that reading one costs what it costs in training.
struct Synthetic {
    input_len: usize,
    classes: u32,
    bytes: Vec<u8>,
}

/// As many as the largest batch anyone asks for, always, so that peak memory compares.
const SAMPLES: usize = 16384;

impl Samples for Synthetic {
    fn len(&self) -> usize {
        SAMPLES
    }
    fn input_len(&self) -> usize {
        self.input_len
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        let bytes = &self.bytes[index * self.input_len..][..self.input_len];
        for (out, byte) in out.iter_mut().zip(bytes) {
            *out = (f32::from(*byte) / 255.0 - 0.1307) / 0.3081;
        }
    }
    fn label(&self, index: usize) -> u32 {
        (index as u32).wrapping_mul(2_654_435_761) % self.classes
    }
}

/// Peak resident memory in MiB where the system tells, else 0.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut model, mut batch, mut seconds, mut private) = ("cnn".to_owned(), 1024, 3.0, false);
    let mut threads = 0;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--model" => model = value()?,
            "--batch" => batch = value()?.parse::<usize>()?.min(SAMPLES),
            "--seconds" => seconds = value()?.parse::<f64>()?,
            "--threads" => threads = value()?.parse::<usize>()?,
            "--private" => private = true,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let spec = match model.as_str() {
        "cnn" => NetworkSpec::cnn(),
        "logistic" => NetworkSpec::logistic(784, 2),
        "softmax" => NetworkSpec::logistic(784, 10),
        "mlp" => NetworkSpec::mlp(784, &[128], 10),
        "resnet" => NetworkSpec::resnet(&ResnetSpec::default()),
        other => return Err(format!("unknown model {other}").into()),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let network = spec.build()?;
    let (mean, best) = pool
        .install(|| measure(&network, batch, seconds, private))
        .map_err(|error| error.to_string())?;
    let rate = batch as f64 / mean;
    println!(
        "{{\"model\":\"{model}\",\"dim\":{},\"batch\":{batch},\"private\":{private},\
         \"threads\":{},\"samples_per_second\":{rate:.0},\"best_step\":{:.0},\"gflops\":{:.1},\
         \"mflop_per_sample\":{:.3},\"peak_memory_mib\":{:.1}}}",
        network.dim(),
        pool.current_num_threads(),
        batch as f64 / best,
        rate * network.flops_per_sample() as f64 / 1e9,
        network.flops_per_sample() as f64 / 1e6,
        peak_memory(),
    );
    Ok(())
}

/// Mean and least seconds of a step; the least is what the machine can do undisturbed.
fn measure(
    network: &Network,
    batch: usize,
    seconds: f64,
    private: bool,
) -> Result<(f64, f64), Box<dyn std::error::Error + Send + Sync>> {
    let input_len = network.input_len();
    let mut state = 1u32;
    let bytes = (0..SAMPLES * input_len).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let data = Synthetic { input_len, classes: network.classes() as u32, bytes: bytes.collect() };
    let mut weights = network.init(1);
    let mut sum = vec![0.0; network.dim()];
    let mut indices: Vec<u32> = (0..SAMPLES as u32).collect();
    let clip = Clip::flat(0.1)?;
    let mechanism = Gaussian::new(clip.sensitivity(), 1.0, batch as u64)?;
    let noise = NoiseSource::from_os()?;
    let mut number = 0;
    let mut step = |weights: &mut [f32]| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        indices.rotate_left(batch % SAMPLES);
        let batch = &indices[..batch];
        if private {
            let weight = |norm: f64| clip.weight(norm);
            network.clipped_sum(weights, &data, batch, &weight, &mut sum)?;
        } else {
            network.gradient_sum(weights, &data, batch, &mut sum)?;
        }
        sum.iter_mut().for_each(|g| *g /= batch.len() as f32);
        if private {
            mechanism.perturb_in_place(&mut sum, &noise, number)?;
            number += 1;
        }
        weights.iter_mut().zip(&sum).for_each(|(weight, g)| *weight -= 1e-3 * g);
        Ok(())
    };
    step(&mut weights)?;
    let start = Instant::now();
    let (mut steps, mut best, mut last) = (0, f64::INFINITY, 0.0);
    while last < seconds {
        step(&mut weights)?;
        let now = start.elapsed().as_secs_f64();
        best = best.min(now - last);
        (steps, last) = (steps + 1, now);
    }
    Ok((last / f64::from(steps), best))
}
