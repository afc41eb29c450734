//! Training without privacy, to see what a network can reach: SGD with momentum and a falling
//! learning rate, over a folder of CIFAR-10 in its binary layout or of unpacked MNIST IDX files.
//! `cargo run --release -p geodp-nn --example train -- FOLDER --epochs 20 --rate 0.05`.

use geodp_nn::{Network, NetworkSpec, ResnetSpec, Samples};
use std::path::Path;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Images as bytes, with the mean and deviation of each channel.
struct Images {
    bytes: Vec<u8>,
    labels: Vec<u8>,
    channels: Vec<(f32, f32)>,
}

impl Samples for Images {
    fn len(&self) -> usize {
        self.labels.len()
    }
    fn input_len(&self) -> usize {
        self.bytes.len() / self.labels.len()
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        let len = self.input_len();
        let plane = len / self.channels.len();
        let bytes = self.bytes[index * len..][..len].chunks_exact(plane);
        for ((out, bytes), (mean, deviation)) in
            out.chunks_exact_mut(plane).zip(bytes).zip(&self.channels)
        {
            let (scale, shift) = (1.0 / (255.0 * deviation), mean / deviation);
            for (out, byte) in out.iter_mut().zip(bytes) {
                *out = f32::from(*byte) * scale - shift;
            }
        }
    }
    fn label(&self, index: usize) -> u32 {
        u32::from(self.labels[index])
    }
}

/// Training and test set.
fn load(folder: &Path) -> Result<[Images; 2]> {
    if folder.join("test_batch.bin").exists() {
        let channels = vec![(0.4914, 0.2470), (0.4822, 0.2435), (0.4465, 0.2616)];
        let read = |names: &[&str]| -> Result<Images> {
            let (mut bytes, mut labels) = (Vec::new(), Vec::new());
            for name in names {
                for record in std::fs::read(folder.join(name))?.chunks_exact(3073) {
                    labels.push(record[0]);
                    bytes.extend_from_slice(&record[1..]);
                }
            }
            Ok(Images { bytes, labels, channels: channels.clone() })
        };
        let parts: Vec<String> = (1..=5).map(|part| format!("data_batch_{part}.bin")).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        return Ok([read(&parts)?, read(&["test_batch.bin"])?]);
    }
    let read = |kind: &str| -> Result<Images> {
        let bytes = std::fs::read(folder.join(format!("{kind}-images-idx3-ubyte")))?[16..].to_vec();
        let labels = std::fs::read(folder.join(format!("{kind}-labels-idx1-ubyte")))?[8..].to_vec();
        Ok(Images { bytes, labels, channels: vec![(0.1307, 0.3081)] })
    };
    Ok([read("train")?, read("t10k")?])
}

struct Settings {
    epochs: usize,
    batch: usize,
    rate: f32,
    momentum: f32,
    resnet: ResnetSpec,
}

fn numbers<const N: usize>(text: &str) -> Result<[usize; N]> {
    let values = text.split(',').map(str::parse).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(values.try_into().map_err(|_| format!("{text}: {N} numbers are needed"))?)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let mut settings = Settings {
        epochs: 20,
        batch: 64,
        rate: 0.05,
        momentum: 0.9,
        resnet: ResnetSpec::default(),
    };
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--epochs" => settings.epochs = value.parse()?,
            "--batch" => settings.batch = value.parse()?,
            "--rate" => settings.rate = value.parse()?,
            "--momentum" => settings.momentum = value.parse()?,
            "--stem" => settings.resnet.stem = value.parse()?,
            "--stem-stride" => settings.resnet.stem_stride = value.parse()?,
            "--widths" => settings.resnet.widths = numbers(&value)?,
            "--strides" => settings.resnet.strides = numbers(&value)?,
            "--groups" => settings.resnet.groups = Some(value.parse()?),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let [train, test] = load(Path::new(&folder))?;
    let spec = match train.input_len() {
        784 => NetworkSpec::cnn(),
        _ => NetworkSpec::resnet(&settings.resnet),
    };
    run(&spec.build()?, &train, &test, &settings)
}

fn run(network: &Network, train: &Images, test: &Images, settings: &Settings) -> Result<()> {
    println!("{} parameters, {} flop a sample", network.dim(), network.flops_per_sample());
    let mut weights = network.init(1);
    let mut velocity = vec![0.0f32; network.dim()];
    let mut sum = vec![0.0f32; network.dim()];
    let mut order: Vec<u32> = (0..train.len() as u32).collect();
    let everything: Vec<u32> = (0..test.len() as u32).collect();
    let steps = settings.epochs * train.len().div_ceil(settings.batch);
    let (mut state, mut step) = (1u64, 0);
    let start = Instant::now();
    for epoch in 1..=settings.epochs {
        for at in (1..order.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(at, (state >> 33) as usize % (at + 1));
        }
        let mut loss = 0.0;
        for batch in order.chunks(settings.batch) {
            let outcome = network.gradient_sum(&weights, train, batch, &mut sum)?;
            loss += outcome.losses.iter().map(|&loss| f64::from(loss)).sum::<f64>();
            // Warm up over a tenth of the steps, then fall in a straight line to zero.
            let done = step as f32 / steps as f32;
            let rate = settings.rate * (done * 10.0).min((1.0 - done) / 0.9);
            let rate = rate / batch.len() as f32;
            for ((weight, velocity), gradient) in weights.iter_mut().zip(&mut velocity).zip(&sum) {
                *velocity = settings.momentum * *velocity + gradient;
                *weight -= rate * *velocity;
            }
            step += 1;
        }
        let result = network.evaluate(&weights, test, &everything)?;
        println!(
            "epoch {epoch}: training loss {:.4}, test accuracy {:.2} %, {:.0} s",
            loss / train.len() as f64,
            100.0 * result.accuracy(),
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
