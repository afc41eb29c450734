//! The public face: a checked network, and what can be asked of it.

use crate::Samples;
use crate::error::Error;
use crate::grid::Grid;
use crate::layout::Layout;
use crate::parameter::{Parameter, start_values};
use crate::passes::batch::{Execute, Passes};
use crate::passes::exact::{ExactBatch, ExactGoal};
use crate::passes::{Goal, Pass};
use crate::simd::portable::Portable;
use crate::simd::{Isa, Vector, Wide};
#[cfg(target_arch = "x86_64")]
use crate::simd::{avx2::F32x8, avx512::F32x16};
use crate::spec::NetworkSpec;

mod units;

/// A network that has been checked and laid out. It holds no weights: those are one flat `f32`
/// vector, see [`Network::parameters`].
pub struct Network {
    layout: Layout,
    passes: Box<dyn Execute>,
}

/// What a pass over a batch showed of each sample.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct BatchOutcome {
    /// Norm of each sample's gradient, in the order of the batch; not finite if the gradient was
    /// not, in which case it was left out. Empty for a plain gradient.
    pub norms: Vec<f32>,
    /// Loss of each sample, in the order of the batch.
    pub losses: Vec<f32>,
    /// How many labels were the most probable class.
    pub correct: usize,
    /// How many labels there were: one for each sample, several for a unit of several rows.
    pub rows: usize,
}

/// How well weights do on a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// Mean of the losses; 0 of an empty batch.
    pub mean_loss: f64,
    /// How many labels were the most probable class.
    pub correct: usize,
    /// How many samples there were.
    pub count: usize,
}

impl Evaluation {
    /// Of losses and hits.
    fn of((losses, correct): (Vec<f32>, usize)) -> Self {
        Self { mean_loss: mean_loss(&losses), correct, count: losses.len() }
    }

    /// Share of labels that were the most probable class; 0 of an empty batch.
    pub fn accuracy(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.correct as f64 / self.count as f64 }
    }
}

/// The mean of losses, added in their order; 0 of none.
pub fn mean_loss(losses: &[f32]) -> f64 {
    let total: f64 = losses.iter().map(|&loss| f64::from(loss)).sum();
    total / losses.len().max(1) as f64
}

fn passes<V: Vector>(layout: &Layout) -> Box<dyn Execute> {
    if layout.runs_wide() {
        Box::new(Passes::<Wide<V>>::new())
    } else {
        Box::new(Passes::<V>::new())
    }
}

impl NetworkSpec {
    /// Checks every shape and lays the network out.
    ///
    /// # Errors
    /// [`Error::Layer`] names the first layer that does not fit; [`Error::Network`] says what is
    /// wrong with the whole.
    pub fn build(&self) -> Result<Network, Error> {
        self.build_for(Isa::detect())
    }

    pub(crate) fn build_for(&self, isa: Isa) -> Result<Network, Error> {
        let layout = Layout::new(self)?;
        let passes = match isa {
            Isa::Portable => passes::<Portable>(&layout),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => passes::<F32x8>(&layout),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => passes::<F32x16>(&layout),
        };
        Ok(Network { layout, passes })
    }
}

fn check_len(what: &'static str, actual: usize, expected: usize) -> Result<(), Error> {
    if actual == expected { Ok(()) } else { Err(Error::Length { what, expected, actual }) }
}

impl Network {
    /// Number of parameters d.
    pub fn dim(&self) -> usize {
        self.layout.dim
    }

    /// Values of one input.
    pub fn input_len(&self) -> usize {
        self.layout.input_len
    }

    /// Number of classes; 2 for one output with a sigmoid.
    pub fn classes(&self) -> usize {
        self.layout.classes
    }

    /// Names, shapes and places of the parameters in the flat vector.
    pub fn parameters(&self) -> &[Parameter] {
        &self.layout.parameters
    }

    /// Floating-point operations of one sample's forward and backward pass, a multiply-add being
    /// two; what normalisation, pooling and activations do is not counted.
    pub fn flops_per_sample(&self) -> u64 {
        2 * self.layout.multiply_adds
    }

    /// First weights, drawn from PyTorch's default distributions; the same for the same seed.
    pub fn init(&self, seed: u64) -> Vec<f32> {
        start_values(&self.layout.parameters, seed)
    }

    /// Σ_i w(‖g_i‖)·g_i over the samples named by `batch`, into `sum`, and each sample's norm and
    /// loss. A sample named twice counts twice.
    ///
    /// # Guarantee
    /// g_i is the gradient of sample i's loss alone, its norm is summed in double precision, and w
    /// is given that norm. A gradient that is not finite contributes exactly 0 and w is not asked;
    /// nor does one whose weight is not finite contribute. An empty batch gives 0. The bits do not
    /// depend on the number of threads.
    ///
    /// # Errors
    /// Wrong lengths, an index beyond the samples, a label beyond the classes; `sum` is untouched.
    pub fn clipped_sum(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        batch: &[u32],
        weight_of_norm: &(dyn Fn(f64) -> f64 + Sync),
        sum: &mut [f32],
    ) -> Result<BatchOutcome, Error> {
        self.weighted_sum(weights, samples, batch, &|_, norm| weight_of_norm(norm), sum)
    }

    /// [`Network::clipped_sum`] with a weight that may also depend on the sample's place in
    /// `batch`, for rules that toss a coin for each sample.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn weighted_sum(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        batch: &[u32],
        weight_of: &(dyn Fn(usize, f64) -> f64 + Sync),
        sum: &mut [f32],
    ) -> Result<BatchOutcome, Error> {
        let pass = self.check(weights, samples, batch)?;
        check_len("the sum", sum.len(), self.layout.dim)?;
        Ok(self.passes.gradient(pass, weights, batch, Goal::Weighted(weight_of), sum))
    }

    /// [`Network::weighted_sum`] in integers: Σ_i n_i, where n_i·[`Grid::step`] is w·g_i truncated to
    /// the grid, entry by entry.
    ///
    /// # Guarantee
    /// ‖n_i‖₂ ≤ 2^[`Grid::BITS`] for every record, so that no contribution is longer than the grid's
    /// bound C in exact arithmetic, whatever w answers: a weight beyond C/‖g_i‖ counts as C/‖g_i‖. A
    /// gradient whose norm is not finite contributes exactly 0 and w is not asked; nor does one whose
    /// weight is not finite contribute. n_i is a function of the weights, the record and its w alone,
    /// with the same bits on every CPU; the sum is exact, so that it does not depend on the order of
    /// the batch or the number of threads, and sums of parts of a batch add up to that of the whole.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn exact_sum(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        batch: &[u32],
        weight_of: &(dyn Fn(usize, f64) -> f64 + Sync),
        grid: Grid,
        sum: &mut [i64],
    ) -> Result<BatchOutcome, Error> {
        let pass = self.check(weights, samples, batch)?;
        self.check_exact(batch.len(), sum)?;
        let goal = ExactGoal { grid: &grid, weight_of };
        Ok(self.passes.exact(pass, weights, ExactBatch::Records(batch), goal, sum))
    }

    fn check_exact(&self, contributions: usize, sum: &[i64]) -> Result<(), Error> {
        check_len("the sum", sum.len(), self.layout.dim)?;
        // 2³³ contributions of norm 2³⁰ would fill an i64.
        if contributions as u64 >= 1 << 33 {
            return Err(Error::Batch(contributions));
        }
        Ok(())
    }

    /// Σ_i g_i, the ordinary gradient, which is not private. Gradients that are not finite count.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn gradient_sum(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        batch: &[u32],
        sum: &mut [f32],
    ) -> Result<BatchOutcome, Error> {
        let pass = self.check(weights, samples, batch)?;
        check_len("the sum", sum.len(), self.layout.dim)?;
        Ok(self.passes.gradient(pass, weights, batch, Goal::Gradient, sum))
    }

    /// The gradient of one sample's loss, as it is.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn sample_gradient(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        index: u32,
        gradient: &mut [f32],
    ) -> Result<BatchOutcome, Error> {
        self.gradient_sum(weights, samples, &[index], gradient)
    }

    /// The gradients of many samples' losses, as they are: `gradients[sample of the batch][parameter]`.
    /// For looking at single records; training never needs them apart.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn sample_gradients(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        batch: &[u32],
        gradients: &mut [f32],
    ) -> Result<(), Error> {
        let pass = self.check(weights, samples, batch)?;
        check_len("the gradients", gradients.len(), batch.len() * self.layout.dim)?;
        self.passes.sample_gradients(pass, weights, batch, gradients);
        Ok(())
    }

    /// Mean loss and hits.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn evaluate(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        batch: &[u32],
    ) -> Result<Evaluation, Error> {
        let pass = self.check(weights, samples, batch)?;
        Ok(Evaluation::of(self.passes.losses(pass, weights, batch, None)))
    }

    /// The loss of each sample of the batch.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn losses(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        batch: &[u32],
    ) -> Result<Vec<f32>, Error> {
        let pass = self.check(weights, samples, batch)?;
        Ok(self.passes.losses(pass, weights, batch, None).0)
    }

    /// Class probabilities, `[sample of the batch][class]`, and mean loss and hits.
    ///
    /// # Errors
    /// As [`Network::clipped_sum`].
    pub fn predict(
        &self,
        weights: &[f32],
        samples: &dyn Samples,
        batch: &[u32],
        probabilities: &mut [f32],
    ) -> Result<Evaluation, Error> {
        let pass = self.check(weights, samples, batch)?;
        check_len("probabilities", probabilities.len(), batch.len() * self.layout.classes)?;
        Ok(Evaluation::of(self.passes.losses(pass, weights, batch, Some(probabilities))))
    }

    fn check<'a>(
        &'a self,
        weights: &[f32],
        samples: &'a dyn Samples,
        batch: &[u32],
    ) -> Result<Pass<'a>, Error> {
        check_len("the weight vector", weights.len(), self.layout.dim)?;
        check_len("a sample's input", samples.input_len(), self.layout.input_len)?;
        let (count, classes) = (samples.len(), self.layout.classes);
        for &index in batch {
            if index as usize >= count {
                return Err(Error::Index { index, samples: count });
            }
            let label = samples.label(index as usize);
            if label as usize >= classes {
                return Err(Error::Label { index, label, classes });
            }
        }
        Ok(Pass { layout: &self.layout, samples, packed: Vec::new(), packed_of: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoredInput;
    use crate::layers::LayerSpec;
    use crate::presets::ResnetSpec;

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

    fn specs() -> [NetworkSpec; 5] {
        let resnet = ResnetSpec {
            input: [3, 17, 16],
            stem: 5,
            widths: [6, 7, 9],
            groups: Some(1),
            ..Default::default()
        };
        let mut tanh = NetworkSpec::mlp(50, &[33, 9], 3);
        tanh.layers[1] = LayerSpec::Tanh;
        [
            NetworkSpec::logistic(50, 2),
            tanh,
            NetworkSpec::logistic(31, 4),
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
                    let outcome =
                        network.exact_sum(&weights, &samples, &batch, &clip, grid, &mut sum);
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
            let expected = run(Isa::Portable);
            for isa in Isa::available() {
                assert!(run(isa) == expected, "{isa:?} differs from plain Rust: {spec:?}");
            }
        }
    }

    /// Bytes and floats handed out as they are stored, or by copying.
    struct Kept {
        bytes: Vec<u8>,
        floats: Vec<f32>,
        affine: Vec<(f32, f32)>,
        len: usize,
        by: By,
    }

    #[derive(Clone, Copy)]
    enum By {
        Copy,
        Floats,
        Bytes,
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
            match (self.by, index % 3) {
                (By::Copy, _) | (By::Turns, 0) => None,
                (By::Floats, _) | (By::Turns, 1) => Some(StoredInput::Floats(floats)),
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
        for spec in specs {
            let len = spec.build().unwrap().input_len();
            let channels = if spec.input.len() == 3 { spec.input[0] } else { 1 };
            let affine: Vec<(f32, f32)> =
                (0..channels).map(|c| (0.007 + 0.001 * c as f32, -0.3 - c as f32)).collect();
            let bytes: Vec<u8> = (0..70 * len).map(|at| (at * at * 31 + at) as u8).collect();
            let of = |(at, byte): (usize, &u8)| {
                let (a, b) = affine[at % len / (len / channels)];
                f32::from(*byte) * a + b
            };
            let floats: Vec<f32> = bytes.iter().enumerate().map(of).collect();
            let batch: Vec<u32> = (0..69).rev().collect();
            let run = |isa, by| {
                let network = spec.build_for(isa).unwrap();
                let (bytes, floats, affine) = (bytes.clone(), floats.clone(), affine.clone());
                let samples = Kept { bytes, floats, affine, len, by };
                let (grid, mut sum) = (Grid::new(0.3).unwrap(), vec![0; network.dim()]);
                let clip = |_: usize, norm: f64| (0.3 / norm).min(1.0);
                let weights = network.init(5);
                let outcome = network.exact_sum(&weights, &samples, &batch, &clip, grid, &mut sum);
                (sum, outcome.unwrap())
            };
            let expected = run(Isa::Portable, By::Copy);
            for isa in Isa::available() {
                for by in [By::Copy, By::Floats, By::Bytes, By::Turns] {
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
                let outcome =
                    network.clipped_sum(&weights, &samples, &batch, &clip, &mut sum).unwrap();
                (sum, outcome)
            };
            let (expected, outcome) = run(Isa::Portable);
            let norm = expected.iter().map(|x| x * x).sum::<f32>().sqrt();
            for isa in Isa::available() {
                let (sum, other) = run(isa);
                let off =
                    sum.iter().zip(&expected).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
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
}
