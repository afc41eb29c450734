//! Per-sample gradients on a CPU: Σ_i w(‖g_i‖)·g_i over a batch, where g_i is the gradient of one
//! sample's loss and w a weight function of its norm that the caller chooses.
//!
//! This crate knows no privacy: clipping is such a w. It never stores the g_i of a batch; it works
//! on blocks of samples that fit the cache, one sample in each lane of a vector register, and adds
//! the weighted gradients up as it goes. Results are the same bits for any number of threads.
//!
//! [`Network::exact_sum`] adds integers instead: each record on a [`Grid`], no longer than its bound in
//! exact arithmetic, and the same bits on every CPU, for any order and any split of the batch.
//! [`Network::exact_unit_sum`] does so for units of several rows.
//!
//! | symbol | meaning |
//! |---|---|
//! | x, y | input and output of a layer, `[feature][lane]`, lane = sample |
//! | dx, dy | gradient of each sample's own loss with respect to x, y |
//! | block | as many samples as a vector has lanes |
//! | chunk | the blocks whose (x, dy) of linear layers are kept for one product |
//! | stripe | a fixed part of the batch with a sum of its own; stripes are added in order |

mod error;
mod grid;
pub mod half;
mod layers;
mod layout;
mod math;
mod network;
mod parameter;
mod passes;
mod presets;
mod simd;
mod spec;
mod split_mix;

pub use error::Error;
pub use grid::Grid;
pub use layers::LayerSpec;
pub use layers::avg_pool::AvgPoolSpec;
pub use layers::conv2d::Conv2dSpec;
pub use layers::cross_entropy::Loss;
pub use layers::group_norm::GroupNormSpec;
pub use layers::linear::LinearSpec;
pub use layers::max_pool::MaxPoolSpec;
pub use layers::residual::ResidualSpec;
pub use network::{BatchOutcome, Evaluation, Network, mean_loss};
pub use parameter::Parameter;
pub use presets::ResnetSpec;
pub use simd::InstructionSet;
pub use spec::NetworkSpec;
pub use split_mix::{SplitMix64, permutation};

/// A sample's input as it is stored, [`Samples::input_len`] values of it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum StoredInput<'a> {
    /// The input itself.
    Floats(&'a [f32]),
    /// The input in half precision, see [`half`].
    Halves(&'a [u16]),
    /// p·a + b of each byte p, rounded after each operation: one pair (a, b) for all, or one for each of
    /// as many parts of equal length.
    Bytes(&'a [u8], &'a [(f32, f32)]),
}

/// Where samples come from. Inputs are normalised already; reading must be cheap, as every sample
/// of a batch is read once for each pass.
pub trait Samples: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of one input.
    fn input_len(&self) -> usize;

    /// Writes the input of sample `index` into `out`, which has [`Self::input_len`] places.
    fn read_input(&self, index: usize, out: &mut [f32]);

    /// The same input as it is stored, for the engine to read by itself, which is faster. Without an
    /// answer, and that is the default, it calls [`Self::read_input`], which must give the same bits.
    fn stored_input(&self, _index: usize) -> Option<StoredInput<'_>> {
        None
    }

    /// (a, b), if every input is stored as bytes p that stand for p·a + b with this one pair: then
    /// [`Self::stored_input`] must say so of each, or an exact sum panics. In exact sums a linear first layer of one or two outputs
    /// multiplies such bytes as they are, with b/a rounded to 2⁻¹⁴ and weights to 2⁻²¹ of the largest. No answer by
    /// default.
    fn byte_scaling(&self) -> Option<(f32, f32)> {
        None
    }

    /// Its class, from 0.
    fn label(&self, index: usize) -> u32;

    /// The number to be learnt, where that is learnt and not a class.
    fn target(&self, _index: usize) -> f32 {
        0.0
    }
}
