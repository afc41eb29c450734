//! Eight samples in plain arrays: any CPU, and the twin that the intrinsics are tested against.

use super::{Kernel, Vector};

#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Portable([f32; 8]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(core::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

/// `a·b + c`, fused where the target always has the instruction: elsewhere it is a slow call.
#[inline(always)]
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        a.mul_add(b, c)
    } else {
        a * b + c
    }
}

impl Vector for Portable {
    const LANES: usize = 8;
    const PARTS: usize = 1;
    type Sums = [f64; 8];
    type Part = Self;

    #[inline(always)]
    fn parts(values: &[Self]) -> &[Self] {
        values
    }

    #[inline]
    fn run<K: Kernel>(kernel: K) -> K::Output {
        kernel.run()
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; 8])
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        Self(core::array::from_fn(|lane| from[lane]))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        to[..8].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(self.0.map(f32::sqrt))
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        Self(core::array::from_fn(|lane| {
            multiply_add(self.0[lane], factor.0[lane], addend.0[lane])
        }))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn where_positive(self, gate: Self) -> Self {
        self.zip(gate, |value, gate| if gate > 0.0 { value } else { 0.0 })
    }
    #[inline(always)]
    fn split_where_equal(self, a: Self, b: Self) -> (Self, Self) {
        let equal: [bool; 8] = core::array::from_fn(|lane| a.0[lane] == b.0[lane]);
        let keep = |wanted: bool| {
            Self(core::array::from_fn(
                |lane| if equal[lane] == wanted { self.0[lane] } else { 0.0 },
            ))
        };
        (keep(true), keep(false))
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let v = self.0;
        let four = [v[0] + v[4], v[1] + v[5], v[2] + v[6], v[3] + v[7]];
        (four[0] + four[2]) + (four[1] + four[3])
    }

    #[inline(always)]
    fn sums_zero() -> Self::Sums {
        [0.0; 8]
    }
    #[inline(always)]
    fn add_square(self, sums: Self::Sums) -> Self::Sums {
        core::array::from_fn(|lane| sums[lane] + f64::from(self.0[lane]) * f64::from(self.0[lane]))
    }
    #[inline(always)]
    fn sums_add(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        core::array::from_fn(|lane| a[lane] + b[lane])
    }
    #[inline(always)]
    fn sums_store(sums: Self::Sums, to: &mut [f64]) {
        to[..8].copy_from_slice(&sums);
    }
}
