//! Vectors whose lanes are samples, and the one way into code compiled for a CPU feature.
//!
//! Every activation, output gradient and per-sample weight gradient is stored as `[feature][lane]`,
//! lane = sample. A kernel is written once over [`Vector`]; each instruction set supplies the type.
//! Decision: samples in the lanes, because then nothing of a convolution has to be rearranged
//! (no im2col), odd image widths waste no lane, and a per-sample gradient is simply what stands in
//! the lanes. [`Wide`] puts four registers side by side, for networks of linear layers only, where
//! each weight should be used for more samples than one register holds.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod byte_lanes;
mod feature_lanes;
mod measuring;
pub(crate) mod portable;
mod quantise;
mod wide;

pub(crate) use byte_lanes::ByteLanes;
pub(crate) use feature_lanes::{FeatureLanes, MOST_STRIP, Stored};
pub(crate) use measuring::Measuring;
pub(crate) use quantise::Quantise;
pub(crate) use wide::Wide;

/// The most lanes any vector has: four registers of sixteen.
pub(crate) const MOST_LANES: usize = 64;

/// A piece of work over `V`. `run` must be `#[inline(always)]`, as must everything hot below it, so
/// that it is compiled with the features of the instruction set that runs it.
pub(crate) trait Kernel {
    type Output;
    fn run(self) -> Self::Output;
}

/// `LANES` single-precision values, one for each sample of a block.
pub(crate) trait Vector: Quantise + Copy + Send + Sync + 'static {
    /// Samples in one value.
    const LANES: usize;
    /// Machine registers one value fills, and how many there are: kernels size their register tiles by
    /// them.
    const PARTS: usize;
    const REGISTERS: usize;
    /// Double-precision sums, one for each lane.
    type Sums: Copy + Send;
    /// One machine register of it.
    type Part: FeatureLanes;

    fn parts(values: &[Self]) -> &[Self::Part];

    /// Runs `kernel` compiled for this instruction set.
    fn run<K: Kernel>(kernel: K) -> K::Output;

    fn splat(value: f32) -> Self;
    /// The first `LANES` values of a slice; panics if it is shorter.
    fn load(from: &[f32]) -> Self;
    fn store(self, to: &mut [f32]);
    /// `out[i·step]` from the values at `i` of `LANES` rows.
    fn transpose(rows: &[&[f32]], step: usize, out: &mut [Self]) {
        let mut column = [0.0f32; MOST_LANES];
        for (i, out) in out.iter_mut().step_by(step).enumerate() {
            for (to, row) in column.iter_mut().zip(&rows[..Self::LANES]) {
                *to = row[i];
            }
            *out = Self::load(&column);
        }
    }
    /// Whether it has a [`Self::transpose_bytes`].
    const TRANSPOSES_BYTES: bool = false;
    /// The same of p·a + b for bytes p, of sixteen columns or more.
    fn transpose_bytes(_: &[&[u8]], _affine: (f32, f32), _step: usize, _out: &mut [Self]) {
        unreachable!("only where TRANSPOSES_BYTES says so")
    }
    /// Asks for the cache line of `from` ahead of its use.
    #[inline(always)]
    fn prefetch<T>(_from: &T) {}
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    /// `self · factor + addend`.
    fn fma(self, factor: Self, addend: Self) -> Self;
    /// The larger; `other` where either is NaN.
    fn max(self, other: Self) -> Self;
    /// `self` where `gate > 0`, else 0.
    fn where_positive(self, gate: Self) -> Self;
    /// `(self where a = b else 0, 0 where a = b else self)`.
    fn split_where_equal(self, a: Self, b: Self) -> (Self, Self);
    /// Sum over lanes.
    fn sum(self) -> f32;

    fn sums_zero() -> Self::Sums;
    /// `sums + self²`, squared and added in double precision.
    fn add_square(&self, sums: Self::Sums) -> Self::Sums;
    fn sums_add(a: Self::Sums, b: Self::Sums) -> Self::Sums;
    fn sums_store(sums: Self::Sums, to: &mut [f64]);

    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
}

/// Asks for the group of values that a pass over them all will reach some 4 KiB later: gradients in lanes
/// are read from beyond the L2 cache, and the CPU's own prefetching ends with each page.
#[inline(always)]
pub(crate) fn prefetch_ahead<V: Vector, const N: usize>(groups: &[[V; N]], at: usize) {
    if let Some(ahead) = groups.get(at + (4096 / size_of::<[V; N]>()).max(1)) {
        for value in ahead {
            V::prefetch(value);
        }
    }
}

/// Σ x² for each lane in double precision; four chains hide the latency of the additions.
#[inline(always)]
pub(crate) fn sum_of_squares<V: Vector>(values: &[V]) -> V::Sums {
    let mut sums = [V::sums_zero(); 4];
    let (fours, rest) = values.as_chunks::<4>();
    for (at, four) in fours.iter().enumerate() {
        prefetch_ahead(fours, at);
        for (sum, value) in sums.iter_mut().zip(four) {
            *sum = value.add_square(*sum);
        }
    }
    for value in rest {
        sums[0] = value.add_square(sums[0]);
    }
    V::sums_add(V::sums_add(sums[0], sums[1]), V::sums_add(sums[2], sums[3]))
}

/// Instruction sets that the engine is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSet {
    /// Plain Rust; what the others are tested against.
    Portable,
    /// AVX2 with fused multiply-adds and conversions of half precision.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with its F, BW, DQ, VL and VNNI parts, which all but the first such CPUs have.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// The best of this machine.
    pub(crate) fn detect() -> Self {
        Self::available().pop().unwrap_or(Self::Portable)
    }

    /// All that this machine can run, the best last.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "other architectures add nothing")]
        let mut found = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
            {
                found.push(Self::Avx2);
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
                {
                    found.push(Self::Avx512);
                }
            }
        }
        found
    }
}
