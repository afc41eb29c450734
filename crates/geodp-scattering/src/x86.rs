//! Eight images in an AVX register, sixteen in one of AVX-512.
//!
//! Unsafe is confined to the intrinsics. Values of these types are made only by code that `Level` starts
//! after it has seen `avx2` or `avx512f`. Their safe twin is [`Portable`](crate::lanes::Portable).
#![allow(unsafe_code, reason = "vector intrinsics")]

use std::arch::x86_64::*;
use std::ops::{Add, Mul, Sub};

use crate::lanes::Lanes;

#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Avx2(__m256);

#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Avx512(__m512);

/// Wraps one intrinsic expression.
macro_rules! intrinsic {
    ($body:expr) => {{
        // SAFETY: these types are used only on CPUs where their feature was detected, and pointers are
        // those of slices whose length was checked just before.
        unsafe { $body }
    }};
}

macro_rules! register {
    ($type:ident, $feature:literal, $lanes:literal, zero $zero:ident, splat $splat:ident,
     load $load:ident, store $store:ident, sqrt $sqrt:ident,
     $($trait:ident $method:ident $instruction:ident),*) => {
        impl Default for $type {
            #[inline(always)]
            fn default() -> Self {
                $type(intrinsic!($zero()))
            }
        }

        $(impl $trait for $type {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                $type(intrinsic!($instruction(self.0, other.0)))
            }
        })*

        impl Lanes for $type {
            const LANES: usize = $lanes;
            #[inline]
            fn run(job: impl FnOnce()) {
                #[target_feature(enable = $feature)]
                fn compiled(job: impl FnOnce()) {
                    job();
                }
                intrinsic!(compiled(job))
            }
            #[inline(always)]
            fn splat(value: f32) -> Self {
                $type(intrinsic!($splat(value)))
            }
            #[inline(always)]
            fn load(from: &[f32]) -> Self {
                let from = &from[..$lanes];
                $type(intrinsic!($load(from.as_ptr())))
            }
            #[inline(always)]
            fn store(self, to: &mut [f32]) {
                let to = &mut to[..$lanes];
                intrinsic!($store(to.as_mut_ptr(), self.0));
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $type(intrinsic!($sqrt(self.0)))
            }
        }
    };
}

register!(
    Avx2, "avx2", 8, zero _mm256_setzero_ps, splat _mm256_set1_ps,
    load _mm256_loadu_ps, store _mm256_storeu_ps, sqrt _mm256_sqrt_ps,
    Add add _mm256_add_ps, Sub sub _mm256_sub_ps, Mul mul _mm256_mul_ps
);
register!(
    Avx512, "avx512f", 16, zero _mm512_setzero_ps, splat _mm512_set1_ps,
    load _mm512_loadu_ps, store _mm512_storeu_ps, sqrt _mm512_sqrt_ps,
    Add add _mm512_add_ps, Sub sub _mm512_sub_ps, Mul mul _mm512_mul_ps
);
