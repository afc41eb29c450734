//! Eight samples in one AVX register.
//!
//! Unsafe is confined to the intrinsics: this type is reached only through [`super::InstructionSet::available`],
//! which has seen `avx2`, `fma` and `f16c`. Its safe twin is [`super::portable::Portable`].
#![allow(unsafe_code, reason = "vector intrinsics")]

use super::{ByteLanes, FeatureLanes, Kernel, Quantise, Vector};
use core::arch::x86_64::*;

#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F32x8(__m256);

/// Wraps one intrinsic expression.
macro_rules! intrinsic {
    ($body:expr) => {{
        // SAFETY: values of this type exist only on CPUs where avx2, fma and f16c were detected, and the
        // pointers used are those of slices whose length was checked just before.
        unsafe { $body }
    }};
}

impl Vector for F32x8 {
    const LANES: usize = 8;
    const PARTS: usize = 1;
    const REGISTERS: usize = 16;
    type Sums = (__m256d, __m256d);
    type Part = Self;

    #[inline(always)]
    fn parts(values: &[Self]) -> &[Self] {
        values
    }

    #[inline]
    fn run<K: Kernel>(kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c")]
        fn compiled<K: Kernel>(kernel: K) -> K::Output {
            kernel.run()
        }
        intrinsic!(compiled(kernel))
    }

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(intrinsic!(_mm256_set1_ps(value)))
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        let from = &from[..8];
        Self(intrinsic!(_mm256_loadu_ps(from.as_ptr())))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        let to = &mut to[..8];
        intrinsic!(_mm256_storeu_ps(to.as_mut_ptr(), self.0));
    }
    #[inline(always)]
    fn prefetch<T>(from: &T) {
        intrinsic!(_mm_prefetch::<_MM_HINT_T0>((&raw const *from).cast()));
    }
    #[inline(always)]
    fn transpose(rows: &[&[f32]], step: usize, out: &mut [Self]) {
        let full = out.len().div_ceil(step) / 8 * 8;
        for column in (0..full).step_by(8) {
            let row = |lane: usize| Self::load(&rows[lane][column..]).0;
            let t = intrinsic!({
                let pair = |a, b| (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                let (a0, a1) = pair(row(0), row(1));
                let (a2, a3) = pair(row(2), row(3));
                let (a4, a5) = pair(row(4), row(5));
                let (a6, a7) = pair(row(6), row(7));
                let b = [
                    _mm256_shuffle_ps::<0x44>(a0, a2),
                    _mm256_shuffle_ps::<0xee>(a0, a2),
                    _mm256_shuffle_ps::<0x44>(a1, a3),
                    _mm256_shuffle_ps::<0xee>(a1, a3),
                    _mm256_shuffle_ps::<0x44>(a4, a6),
                    _mm256_shuffle_ps::<0xee>(a4, a6),
                    _mm256_shuffle_ps::<0x44>(a5, a7),
                    _mm256_shuffle_ps::<0xee>(a5, a7),
                ];
                [
                    _mm256_permute2f128_ps::<0x20>(b[0], b[4]),
                    _mm256_permute2f128_ps::<0x20>(b[1], b[5]),
                    _mm256_permute2f128_ps::<0x20>(b[2], b[6]),
                    _mm256_permute2f128_ps::<0x20>(b[3], b[7]),
                    _mm256_permute2f128_ps::<0x31>(b[0], b[4]),
                    _mm256_permute2f128_ps::<0x31>(b[1], b[5]),
                    _mm256_permute2f128_ps::<0x31>(b[2], b[6]),
                    _mm256_permute2f128_ps::<0x31>(b[3], b[7]),
                ]
            });
            for (out, value) in out[column * step..].iter_mut().step_by(step).zip(t) {
                *out = Self(value);
            }
        }
        let mut values = [0.0; 8];
        for (column, out) in out.iter_mut().step_by(step).enumerate().skip(full) {
            for (value, row) in values.iter_mut().zip(rows) {
                *value = row[column];
            }
            *out = Self::load(&values);
        }
    }
    const TRANSPOSES_BYTES: bool = true;
    /// Eight columns at a time, as bytes; the last eight overlap those before where eight do not divide them.
    #[inline(always)]
    fn transpose_bytes(rows: &[&[u8]], (a, b): (f32, f32), step: usize, out: &mut [Self]) {
        let rows: &[&[u8]; 8] = rows.first_chunk().expect("a row for each lane");
        let columns = out.len().div_ceil(step);
        let (a, b) = (Self::splat(a), Self::splat(b));
        let whole = (0..columns / 8).map(|eight| 8 * eight);
        for at in whole.chain((!columns.is_multiple_of(8)).then(|| columns - 8)) {
            let row = |lane: usize| -> i64 {
                i64::from_le_bytes(*rows[lane][at..].first_chunk().expect("rows are long enough"))
            };
            let pairs = intrinsic!({
                let pair = |lane| {
                    let (a, b) = (_mm_cvtsi64_si128(row(lane)), _mm_cvtsi64_si128(row(lane + 1)));
                    _mm_unpacklo_epi8(a, b)
                };
                let (a0, a1, a2, a3) = (pair(0), pair(2), pair(4), pair(6));
                let (b0, b1) = (_mm_unpacklo_epi16(a0, a1), _mm_unpackhi_epi16(a0, a1));
                let (b2, b3) = (_mm_unpacklo_epi16(a2, a3), _mm_unpackhi_epi16(a2, a3));
                // Two columns in each.
                [
                    _mm_unpacklo_epi32(b0, b2),
                    _mm_unpackhi_epi32(b0, b2),
                    _mm_unpacklo_epi32(b1, b3),
                    _mm_unpackhi_epi32(b1, b3),
                ]
            });
            let float = |bytes| Self(intrinsic!(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))));
            let out = &mut out[at * step..];
            for (pair, bytes) in pairs.into_iter().enumerate() {
                let second = intrinsic!(_mm_unpackhi_epi64(bytes, bytes));
                out[2 * pair * step] = float(bytes).mul(a).add(b);
                out[(2 * pair + 1) * step] = float(second).mul(a).add(b);
            }
        }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_add_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_sub_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_mul_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_div_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(intrinsic!(_mm256_sqrt_ps(self.0)))
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        Self(intrinsic!(_mm256_fmadd_ps(self.0, factor.0, addend.0)))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_max_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn where_positive(self, gate: Self) -> Self {
        Self(intrinsic!(_mm256_and_ps(
            _mm256_cmp_ps::<_CMP_GT_OQ>(gate.0, _mm256_setzero_ps()),
            self.0
        )))
    }
    #[inline(always)]
    fn split_where_equal(self, a: Self, b: Self) -> (Self, Self) {
        let (hit, rest) = intrinsic!({
            let equal = _mm256_cmp_ps::<_CMP_EQ_OQ>(a.0, b.0);
            (_mm256_and_ps(equal, self.0), _mm256_andnot_ps(equal, self.0))
        });
        (Self(hit), Self(rest))
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        intrinsic!({
            let four =
                _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        })
    }

    #[inline(always)]
    fn sums_zero() -> Self::Sums {
        intrinsic!((_mm256_setzero_pd(), _mm256_setzero_pd()))
    }
    #[inline(always)]
    fn add_square(&self, sums: Self::Sums) -> Self::Sums {
        intrinsic!({
            let low = _mm256_cvtps_pd(_mm256_castps256_ps128(self.0));
            let high = _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(self.0));
            (_mm256_fmadd_pd(low, low, sums.0), _mm256_fmadd_pd(high, high, sums.1))
        })
    }
    #[inline(always)]
    fn sums_add(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        intrinsic!((_mm256_add_pd(a.0, b.0), _mm256_add_pd(a.1, b.1)))
    }
    #[inline(always)]
    fn sums_store(sums: Self::Sums, to: &mut [f64]) {
        let to = &mut to[..8];
        intrinsic!({
            _mm256_storeu_pd(to.as_mut_ptr(), sums.0);
            _mm256_storeu_pd(to.as_mut_ptr().add(4), sums.1);
        });
    }
}

impl Quantise for F32x8 {
    const SHORTS: usize = 16;
    type Shorts = __m256i;
    type Pairs = __m256i;

    #[inline(always)]
    fn abs(self) -> Self {
        Self(intrinsic!(_mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0)))
    }
    #[inline(always)]
    fn max_abs(self, other: Self) -> Self {
        self.max(other.abs())
    }
    #[inline(always)]
    fn truncated_sums(values: [Self; 8]) -> [i32; 8] {
        let mut whole = [Self::pairs_zero(); 8];
        for (whole, value) in whole.iter_mut().zip(values) {
            *whole = intrinsic!(_mm256_cvttps_epi32(value.0));
        }
        sums_of_eight(whole)
    }
    #[inline(always)]
    fn store_shorts(self, to: &mut [i16]) {
        let to = &mut to[..8];
        intrinsic!({
            let wide = _mm256_cvttps_epi32(self.0);
            let (low, high) = (_mm256_castsi256_si128(wide), _mm256_extracti128_si256::<1>(wide));
            _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_packs_epi32(low, high));
        });
    }
    #[inline(always)]
    fn store_shorts_of_two(self, other: Self, to: &mut [i16]) {
        let to = &mut to[..16];
        intrinsic!({
            // Packs within halves: the order is 0–3, 8–11, 4–7, 12–15.
            let (a, b) = (_mm256_cvttps_epi32(self.0), _mm256_cvttps_epi32(other.0));
            _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_packs_epi32(a, b));
        });
    }
    #[inline(always)]
    fn shorts_load(from: &[i16]) -> Self::Shorts {
        let from = &from[..16];
        intrinsic!(_mm256_loadu_si256(from.as_ptr().cast()))
    }
    #[inline(always)]
    fn pairs_zero() -> Self::Pairs {
        intrinsic!(_mm256_setzero_si256())
    }
    #[inline(always)]
    fn multiply_add(a: Self::Shorts, b: Self::Shorts, sums: Self::Pairs) -> Self::Pairs {
        intrinsic!(_mm256_add_epi32(sums, _mm256_madd_epi16(a, b)))
    }
    #[inline(always)]
    fn pairs_sums(sums: [Self::Pairs; 4]) -> [i64; 4] {
        intrinsic!({
            // Four 64-bit sums of each, then a transposing addition.
            // Macros, not closures, which would be compiled without the features.
            macro_rules! wide {
                ($sum:expr) => {{
                    let low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128($sum));
                    let high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>($sum));
                    _mm256_add_epi64(low, high)
                }};
            }
            macro_rules! pair {
                ($a:expr, $b:expr) => {{
                    let (a, b) = (wide!($a), wide!($b));
                    _mm256_add_epi64(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b))
                }};
            }
            let (first, second) = (pair!(sums[0], sums[1]), pair!(sums[2], sums[3]));
            let total = _mm256_add_epi64(
                _mm256_permute2x128_si256::<0x20>(first, second),
                _mm256_permute2x128_si256::<0x31>(first, second),
            );
            let mut out = [0i64; 4];
            _mm256_storeu_si256(out.as_mut_ptr().cast(), total);
            out
        })
    }
}

impl FeatureLanes for F32x8 {
    #[inline(always)]
    fn side_by_side(self, other: Self) -> Self::Shorts {
        intrinsic!({
            let (low, high) = (_mm256_cvttps_epi32(self.0), _mm256_cvttps_epi32(other.0));
            _mm256_blend_epi16::<0xaa>(low, _mm256_slli_epi32::<16>(high))
        })
    }
    #[inline(always)]
    fn shorts_store(shorts: Self::Shorts, to: &mut [i16]) {
        let to = &mut to[..16];
        intrinsic!(_mm256_storeu_si256(to.as_mut_ptr().cast(), shorts));
    }
    #[inline(always)]
    fn shorts_splat(pair: i32) -> Self::Shorts {
        intrinsic!(_mm256_set1_epi32(pair))
    }
    #[inline(always)]
    fn pairs_add(sums: Self::Pairs, to: &mut [i64]) {
        let (low, high) = to[..8].split_at_mut(4);
        intrinsic!({
            let of_low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(sums));
            let of_high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256::<1>(sums));
            let of_low = _mm256_add_epi64(of_low, _mm256_loadu_si256(low.as_ptr().cast()));
            let of_high = _mm256_add_epi64(of_high, _mm256_loadu_si256(high.as_ptr().cast()));
            _mm256_storeu_si256(low.as_mut_ptr().cast(), of_low);
            _mm256_storeu_si256(high.as_mut_ptr().cast(), of_high);
        });
    }
    #[inline(always)]
    fn from_halves(from: &[u16]) -> Self {
        let from = &from[..8];
        Self(intrinsic!(_mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast()))))
    }
}

impl ByteLanes for F32x8 {
    const BYTES: usize = 32;
    type Bytes = __m256i;

    #[inline(always)]
    fn bytes_load(from: &[u8]) -> Self::Bytes {
        let from = &from[..32];
        intrinsic!(_mm256_loadu_si256(from.as_ptr().cast()))
    }
    #[inline(always)]
    fn bytes_and(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        intrinsic!(_mm256_and_si256(a, b))
    }
    #[inline(always)]
    fn add_products(p: Self::Bytes, digits: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        intrinsic!({
            // Two products fit 16 bits: 2·255·64 < 2¹⁵.
            let twos = _mm256_maddubs_epi16(p, digits);
            _mm256_add_epi32(sums, _mm256_madd_epi16(twos, _mm256_set1_epi16(1)))
        })
    }
    #[inline(always)]
    fn add_bytes(p: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        intrinsic!(_mm256_add_epi32(sums, _mm256_sad_epu8(p, _mm256_setzero_si256())))
    }
    #[inline(always)]
    fn add_centred_squares(p: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        intrinsic!({
            let (zero, centre) = (_mm256_setzero_si256(), _mm256_set1_epi16(128));
            let (low, high) = (_mm256_unpacklo_epi8(p, zero), _mm256_unpackhi_epi8(p, zero));
            let of_low = _mm256_madd_epi16(low, _mm256_sub_epi16(low, centre));
            let of_high = _mm256_madd_epi16(high, _mm256_sub_epi16(high, centre));
            _mm256_add_epi32(sums, _mm256_add_epi32(of_low, of_high))
        })
    }
    #[inline(always)]
    fn totals(sums: [Self::Pairs; 8]) -> [i32; 8] {
        sums_of_eight(sums)
    }
    /// Of each half q = 0…3 holds its bytes 4q to 4q + 3.
    #[inline(always)]
    fn byte_pairs(first: &[u8], second: &[u8]) -> [Self::Shorts; 4] {
        let (first, second) = (&first[..32], &second[..32]);
        intrinsic!({
            let zero = _mm256_setzero_si256();
            let first = _mm256_loadu_si256(first.as_ptr().cast());
            let second = _mm256_loadu_si256(second.as_ptr().cast());
            let low = _mm256_unpacklo_epi8(first, second);
            let high = _mm256_unpackhi_epi8(first, second);
            [
                _mm256_unpacklo_epi8(low, zero),
                _mm256_unpackhi_epi8(low, zero),
                _mm256_unpacklo_epi8(high, zero),
                _mm256_unpackhi_epi8(high, zero),
            ]
        })
    }
    #[inline(always)]
    fn byte_pairs_store(sums: [Self::Pairs; 4], to: &mut [i32]) {
        let (low, high) = to[..32].split_at_mut(16);
        for (q, sums) in sums.into_iter().enumerate() {
            let (low, high) = (&mut low[4 * q..4 * q + 4], &mut high[4 * q..4 * q + 4]);
            intrinsic!({
                let high_sums = _mm256_extracti128_si256::<1>(sums);
                _mm_storeu_si128(low.as_mut_ptr().cast(), _mm256_castsi256_si128(sums));
                _mm_storeu_si128(high.as_mut_ptr().cast(), high_sums);
            });
        }
    }
}

/// The sum over the lanes of each of eight, by additions that transpose.
#[inline(always)]
pub(super) fn sums_of_eight(v: [__m256i; 8]) -> [i32; 8] {
    intrinsic!({
        // Macros, not closures, which would be compiled without the features.
        macro_rules! of_two {
            ($a:expr, $b:expr) => {
                _mm256_add_epi32(_mm256_unpacklo_epi32($a, $b), _mm256_unpackhi_epi32($a, $b))
            };
        }
        macro_rules! of_four {
            ($at:literal) => {{
                let (a, b) = (of_two!(v[$at], v[$at + 1]), of_two!(v[$at + 2], v[$at + 3]));
                _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b))
            }};
        }
        let (first, second) = (of_four!(0), of_four!(4));
        let total = _mm256_add_epi32(
            _mm256_permute2x128_si256::<0x20>(first, second),
            _mm256_permute2x128_si256::<0x31>(first, second),
        );
        let mut out = [0i32; 8];
        _mm256_storeu_si256(out.as_mut_ptr().cast(), total);
        out
    })
}
