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
use crate::simd::{InstructionSet, Vector, Wide};
#[cfg(target_arch = "x86_64")]
use crate::simd::{avx2::F32x8, avx512::F32x16};
use crate::spec::NetworkSpec;

mod outcome;
mod units;

pub use outcome::{BatchOutcome, Evaluation, mean_loss};

/// A network that has been checked and laid out. It holds no weights: those are one flat `f32`
/// vector, see [`Network::parameters`].
pub struct Network {
    layout: Layout,
    passes: Box<dyn Execute>,
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
        self.build_for(InstructionSet::detect())
    }

    /// The same for one instruction set of this machine: for comparing them.
    ///
    /// # Errors
    /// Those of [`build`](Self::build), and [`Error::NotOfThisMachine`].
    pub fn build_for(&self, instructions: InstructionSet) -> Result<Network, Error> {
        if !InstructionSet::available().contains(&instructions) {
            return Err(Error::NotOfThisMachine(instructions));
        }
        let layout = Layout::new(self)?;
        let passes = match instructions {
            InstructionSet::Portable => passes::<Portable>(&layout),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => passes::<F32x8>(&layout),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => passes::<F32x16>(&layout),
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

    /// [`Network::weighted_sum`] in integers: Σ_i n_i, where n_i·[`Grid::step`] is w·g_i put on
    /// the grid, entry by entry.
    ///
    /// # Guarantee
    /// ‖n_i‖₂ ≤ 2^[`Grid::BITS`] for every record, so that no contribution is longer than the grid's
    /// bound C in exact arithmetic, whatever w answers: a weight beyond C/‖g_i‖ counts as C/‖g_i‖. A
    /// gradient whose norm is not finite contributes exactly 0 and w is not asked; nor does one whose
    /// weight is not finite contribute. n_i is a function of the weights, the record, its w, and of how
    /// all samples are stored ([`Samples::byte_scaling`]), with the same bits on every CPU; the sum is
    /// exact, so that it does not depend on the order of the batch or the number of threads, and sums of
    /// parts of a batch add up to that of the whole.
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
        Ok(Pass {
            layout: &self.layout,
            samples,
            packed: Vec::new(),
            packed_of: Vec::new(),
            bytes: None,
        })
    }
}
