//! Samples per second of a training step on synthetic inputs, as one line of JSON:
//! `cargo run --release -p geodp --example throughput -- --model cnn --batch 1024 --private`.
//!
//! A private step is everything DP-SGD does in exact arithmetic, the default of training: forward,
//! backward, per-sample norms, clipping, the sum in integers, secure rounded noise, update; `--floating`
//! does the same in floating point. Without `--private` it is the plain gradient and the update. A model
//! is the name of one of ours or a file that describes one. `--instructions avx2` (portable, avx512) takes
//! others than the best that this machine has.

use geodp_mechanism::{Clip, ExactGaussian, Gaussian, NoiseSource, Perturb, PerturbSum};
use geodp_nn::{
    Grid, InstructionSet, Network, NetworkSpec, ResnetSpec, Samples, StoredInput, half,
};
use std::time::Instant;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Inputs as training keeps them, so that reading one costs what it costs there.
struct Synthetic {
    input_len: usize,
    labels: Vec<u32>,
    inputs: Inputs,
}

enum Inputs {
    /// Images of one or three channels, with a multiply-add on reading.
    Bytes(Vec<u8>),
    /// Scattering features: of 81 channels for each of the image.
    Halves(Vec<u16>),
    /// Everything else.
    Floats(Vec<f32>),
}

/// As many as the largest batch anyone asks for, always, so that peak memory compares; of long inputs
/// as many as fit 2²⁶ values.
const SAMPLES: usize = 16384;
const VALUES: usize = 1 << 26;
/// What images are scaled by.
const AFFINE: (f32, f32) = (1.0 / 255.0 / 0.3081, -0.1307 / 0.3081);

impl Synthetic {
    fn new(spec: &NetworkSpec, network: &Network, batch: usize) -> Self {
        let input_len = network.input_len();
        let len = (VALUES / input_len).min(SAMPLES).max(batch) * input_len;
        let step = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        let states = std::iter::successors(step(&1), step);
        let bytes = states.map(|state| (state >> 24) as u8).take(len);
        let image = matches!(spec.input[..], [1 | 3, _, _] | [784]);
        let floats = bytes.clone().map(|byte| f32::from(byte) / 128.0 - 1.0);
        let inputs = if image {
            Inputs::Bytes(bytes.collect())
        } else if spec.input[0].is_multiple_of(81) {
            Inputs::Halves(floats.map(half::encode).collect())
        } else {
            Inputs::Floats(floats.collect())
        };
        let classes = network.classes() as u32;
        let label = |index: u32| index.wrapping_mul(2_654_435_761) % classes;
        Self { input_len, labels: (0..(len / input_len) as u32).map(label).collect(), inputs }
    }
}

impl Samples for Synthetic {
    fn len(&self) -> usize {
        self.labels.len()
    }
    fn input_len(&self) -> usize {
        self.input_len
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        let place = index * self.input_len..(index + 1) * self.input_len;
        match &self.inputs {
            Inputs::Bytes(bytes) => {
                for (out, byte) in out.iter_mut().zip(&bytes[place]) {
                    *out = f32::from(*byte) * AFFINE.0 + AFFINE.1;
                }
            }
            Inputs::Halves(halves) => {
                for (out, &value) in out.iter_mut().zip(&halves[place]) {
                    *out = half::decode(value);
                }
            }
            Inputs::Floats(floats) => out.copy_from_slice(&floats[place]),
        }
    }
    fn stored_input(&self, index: usize) -> Option<StoredInput<'_>> {
        let place = index * self.input_len..(index + 1) * self.input_len;
        Some(match &self.inputs {
            Inputs::Bytes(bytes) => StoredInput::Bytes(&bytes[place], &[AFFINE]),
            Inputs::Halves(halves) => StoredInput::Halves(&halves[place]),
            Inputs::Floats(floats) => StoredInput::Floats(&floats[place]),
        })
    }
    fn byte_scaling(&self) -> Option<(f32, f32)> {
        matches!(self.inputs, Inputs::Bytes(_)).then_some(AFFINE)
    }
    fn label(&self, index: usize) -> u32 {
        self.labels[index]
    }
}

/// Peak resident memory in MiB where the system tells, else 0.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

/// A network by name, or from a file.
fn spec_of(model: &str) -> Result<NetworkSpec, AnyError> {
    Ok(match model {
        "cnn" => NetworkSpec::cnn(),
        "logistic" => NetworkSpec::logistic(784, 2),
        "softmax" => NetworkSpec::logistic(784, 10),
        "mlp" => NetworkSpec::mlp(784, &[128], 10),
        "resnet" => NetworkSpec::resnet(&ResnetSpec::default()),
        "scattering_head" => NetworkSpec::scattering_head(),
        file if file.ends_with(".toml") => toml::from_str(&std::fs::read_to_string(file)?)?,
        other => return Err(format!("unknown model {other}").into()),
    })
}

/// An instruction set of this machine by its name.
fn instructions_of(name: &str) -> Result<InstructionSet, AnyError> {
    let named = |set: &InstructionSet| format!("{set:?}").eq_ignore_ascii_case(name);
    let available = InstructionSet::available();
    let found = available.iter().copied().find(named);
    found.ok_or_else(|| format!("no instructions {name}; this machine has {available:?}").into())
}

/// What a step does beside the gradient.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Exact,
    Floating,
}

fn main() -> Result<(), AnyError> {
    let (mut model, mut batch, mut seconds) = ("cnn".to_owned(), 1024, 3.0);
    let (mut kind, mut threads, mut instructions) = (Kind::Plain, 0, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--model" => model = value()?,
            "--batch" => batch = value()?.parse::<usize>()?,
            "--seconds" => seconds = value()?.parse::<f64>()?,
            "--threads" => threads = value()?.parse::<usize>()?,
            "--instructions" => instructions = Some(instructions_of(&value()?)?),
            "--private" => kind = Kind::Exact,
            "--floating" => kind = Kind::Floating,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let spec = spec_of(&model)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let network = instructions.map_or_else(|| spec.build(), |set| spec.build_for(set))?;
    let data = Synthetic::new(&spec, &network, batch);
    let (mean, best) = pool.install(|| measure(&network, &data, batch, seconds, kind))?;
    let rate = batch as f64 / mean;
    println!(
        "{{\"model\":\"{model}\",\"dim\":{},\"batch\":{batch},\"private\":{},\
         \"threads\":{},\"samples_per_second\":{rate:.0},\"best_step\":{:.0},\"gflops\":{:.1},\
         \"mflop_per_sample\":{:.3},\"peak_memory_mib\":{:.1}}}",
        network.dim(),
        kind != Kind::Plain,
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
    data: &Synthetic,
    batch: usize,
    seconds: f64,
    kind: Kind,
) -> Result<(f64, f64), AnyError> {
    let mut weights = network.init(1);
    let (mut gradient, mut sum) = (vec![0.0; network.dim()], vec![0; network.dim()]);
    // Each step takes the records after those of the one before, and begins again where they end.
    let indices: Vec<u32> = (0..data.len() as u32).collect();
    let mut batches = indices.chunks_exact(batch).cycle();
    let clip = Clip::flat(0.1)?;
    let grid = Grid::new(clip.sensitivity().get())?;
    let of_noise = geodp_mechanism::Grid::new(Grid::BITS)?;
    let exact = ExactGaussian::new(clip.sensitivity(), 1.0, of_noise, batch as u64)?;
    let floating = Gaussian::new(clip.sensitivity(), 1.0, batch as u64)?;
    let noise = NoiseSource::from_os()?;
    let mut number = 0;
    let mut step = |weights: &mut [f32]| -> Result<(), AnyError> {
        let batch = batches.next().ok_or("more records than there are")?;
        match kind {
            Kind::Exact => {
                let weight = |_: usize, norm: f64| clip.weight(norm);
                network.exact_sum(weights, data, batch, &weight, grid, &mut sum)?;
                exact.release_into(&sum, &noise, number, &mut gradient)?;
            }
            Kind::Floating => {
                let weight = |norm: f64| clip.weight(norm);
                network.clipped_sum(weights, data, batch, &weight, &mut gradient)?;
                gradient.iter_mut().for_each(|g| *g /= batch.len() as f32);
                floating.perturb_in_place(&mut gradient, &noise, number)?;
            }
            Kind::Plain => {
                network.gradient_sum(weights, data, batch, &mut gradient)?;
                gradient.iter_mut().for_each(|g| *g /= batch.len() as f32);
            }
        }
        number += 1;
        weights.iter_mut().zip(&gradient).for_each(|(weight, g)| *weight -= 1e-3 * g);
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
