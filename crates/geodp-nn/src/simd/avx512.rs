//! Sixteen samples in one AVX-512 register; otherwise as [`super::avx2`].
#![allow(unsafe_code, reason = "vector intrinsics")]

use super::avx2::{F32x8, sums_of_eight};
use super::{Kernel, Quantise, Vector};
use core::arch::x86_64::*;

#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F32x16(__m512);

/// Wraps one intrinsic expression.
macro_rules! intrinsic {
    ($body:expr) => {{
        // SAFETY: values of this type exist only on CPUs where avx2, fma and avx512f were detected,
        // and the pointers used are those of slices whose length was checked just before.
        unsafe { $body }
    }};
}

impl Vector for F32x16 {
    const LANES: usize = 16;
    const PARTS: usize = 1;
    type Sums = (__m512d, __m512d);
    type Part = Self;

    #[inline(always)]
    fn parts(values: &[Self]) -> &[Self] {
        values
    }

    #[inline]
    fn run<K: Kernel>(kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,avx512f")]
        fn compiled<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        intrinsic!(compiled(kernel))
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(intrinsic!(_mm512_set1_ps(value)))
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        let from = &from[..16];
        Self(intrinsic!(_mm512_loadu_ps(from.as_ptr())))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        let to = &mut to[..16];
        intrinsic!(_mm512_storeu_ps(to.as_mut_ptr(), self.0));
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_add_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_sub_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_mul_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_div_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(intrinsic!(_mm512_sqrt_ps(self.0)))
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        Self(intrinsic!(_mm512_fmadd_ps(self.0, factor.0, addend.0)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_max_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn where_positive(self, gate: Self) -> Self {
        Self(intrinsic!({
            let positive = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(gate.0, _mm512_setzero_ps());
            _mm512_maskz_mov_ps(positive, self.0)
        }))
    }
    #[inline(always)]
    fn split_where_equal(self, a: Self, b: Self) -> (Self, Self) {
        let (hit, rest) = intrinsic!({
            let equal = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a.0, b.0);
            (_mm512_maskz_mov_ps(equal, self.0), _mm512_maskz_mov_ps(!equal, self.0))
        });
        (Self(hit), Self(rest))
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        intrinsic!(_mm512_reduce_add_ps(self.0))
    }

    #[inline(always)]
    fn sums_zero() -> Self::Sums {
        intrinsic!((_mm512_setzero_pd(), _mm512_setzero_pd()))
    }
    #[inline(always)]
    fn add_square(self, sums: Self::Sums) -> Self::Sums {
        intrinsic!({
            let low = _mm512_cvtps_pd(_mm512_castps512_ps256(self.0));
            let swapped = _mm512_shuffle_f32x4::<0x4e>(self.0, self.0);
            let high = _mm512_cvtps_pd(_mm512_castps512_ps256(swapped));
            (_mm512_fmadd_pd(low, low, sums.0), _mm512_fmadd_pd(high, high, sums.1))
        })
    }
    #[inline(always)]
    fn sums_add(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        intrinsic!((_mm512_add_pd(a.0, b.0), _mm512_add_pd(a.1, b.1)))
    }
    #[inline(always)]
    fn sums_store(sums: Self::Sums, to: &mut [f64]) {
        let to = &mut to[..16];
        intrinsic!({
            _mm512_storeu_pd(to.as_mut_ptr(), sums.0);
            _mm512_storeu_pd(to.as_mut_ptr().add(8), sums.1);
        });
    }
}

/// Factors are 256 bits wide: 512 would need another feature, and their products are few beside the
/// rest.
impl Quantise for F32x16 {
    type Shorts = <F32x8 as Quantise>::Shorts;
    type Pairs = <F32x8 as Quantise>::Pairs;

    #[inline(always)]
    fn abs(self) -> Self {
        Self(intrinsic!(_mm512_abs_ps(self.0)))
    }
    #[inline(always)]
    fn truncated_sums(values: [Self; 8]) -> [i32; 8] {
        let mut halves = [F32x8::pairs_zero(); 8];
        for (halves, value) in halves.iter_mut().zip(values) {
            *halves = intrinsic!({
                let whole = _mm512_cvttps_epi32(value.0);
                let high = _mm512_extracti64x4_epi64::<1>(whole);
                _mm256_add_epi32(_mm512_castsi512_si256(whole), high)
            });
        }
        sums_of_eight(halves)
    }
    #[inline(always)]
    fn store_shorts(self, to: &mut [i16]) {
        let to = &mut to[..16];
        intrinsic!({
            let short = _mm512_cvtsepi32_epi16(_mm512_cvttps_epi32(self.0));
            _mm256_storeu_si256(to.as_mut_ptr().cast(), short);
        });
    }
    #[inline(always)]
    fn shorts_load(from: &[i16]) -> Self::Shorts {
        F32x8::shorts_load(from)
    }
    #[inline(always)]
    fn pairs_zero() -> Self::Pairs {
        F32x8::pairs_zero()
    }
    #[inline(always)]
    fn multiply_add(a: Self::Shorts, b: Self::Shorts, sums: Self::Pairs) -> Self::Pairs {
        F32x8::multiply_add(a, b, sums)
    }
    #[inline(always)]
    fn pairs_sums(sums: [Self::Pairs; 4]) -> [i64; 4] {
        F32x8::pairs_sums(sums)
    }
}
