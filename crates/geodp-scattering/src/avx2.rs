//! Eight images in one AVX register.
//!
//! Unsafe is confined to the intrinsics. A value of this type is made only by code that `Level` starts
//! after it has seen `avx2`. Its safe twin is [`Portable`](crate::lanes::Portable).
#![allow(unsafe_code, reason = "vector intrinsics")]

use std::arch::x86_64::*;
use std::ops::{Add, Mul, Sub};

use crate::lanes::{LANES, Lanes};

#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Avx2(__m256);

/// Wraps one intrinsic expression.
macro_rules! intrinsic {
    ($body:expr) => {{
        // SAFETY: this type is used only on CPUs where avx2 was detected; arrays are of eight values.
        unsafe { $body }
    }};
}

impl Default for Avx2 {
    #[inline(always)]
    fn default() -> Self {
        Avx2(intrinsic!(_mm256_setzero_ps()))
    }
}

macro_rules! lane_by_lane {
    ($($trait:ident $method:ident $instruction:ident),*) => {$(
        impl $trait for Avx2 {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Avx2(intrinsic!($instruction(self.0, other.0)))
            }
        }
    )*};
}
lane_by_lane!(Add add _mm256_add_ps, Sub sub _mm256_sub_ps, Mul mul _mm256_mul_ps);

impl Lanes for Avx2 {
    #[inline]
    fn run(job: impl FnOnce()) {
        #[target_feature(enable = "avx2")]
        fn compiled(job: impl FnOnce()) {
            job();
        }
        intrinsic!(compiled(job))
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Avx2(intrinsic!(_mm256_set1_ps(value)))
    }
    #[inline(always)]
    fn from_array(values: [f32; LANES]) -> Self {
        Avx2(intrinsic!(_mm256_loadu_ps(values.as_ptr())))
    }
    #[inline(always)]
    fn to_array(self) -> [f32; LANES] {
        let mut values = [0.0; LANES];
        intrinsic!(_mm256_storeu_ps(values.as_mut_ptr(), self.0));
        values
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Avx2(intrinsic!(_mm256_sqrt_ps(self.0)))
    }
}
