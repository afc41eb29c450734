//! Sixteen samples in one AVX-512 register; otherwise as [`super::avx2`]. [`super::InstructionSet::available`] has seen
//! `avx512f`, `bw`, `dq`, `vl` and `vnni`, which all but the first such CPUs have.
#![allow(unsafe_code, reason = "vector intrinsics")]

use super::avx2::{F32x8, sums_of_eight};
use super::{ByteLanes, FeatureLanes, Kernel, Quantise, Vector};
use core::arch::x86_64::*;

#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F32x16(__m512);

/// Wraps one intrinsic expression.
macro_rules! intrinsic {
    ($body:expr) => {{
        // SAFETY: values of this type exist only on CPUs where avx2, fma, f16c and the features of AVX-512
        // named below were detected, and the pointers used are those of slices whose length was
        // checked just before.
        unsafe { $body }
    }};
}

impl Vector for F32x16 {
    const LANES: usize = 16;
    const PARTS: usize = 1;
    const REGISTERS: usize = 32;
    type Sums = (__m512d, __m512d);
    type Part = Self;

    #[inline(always)]
    fn parts(values: &[Self]) -> &[Self] {
        values
    }

    #[inline]
    fn run<K: Kernel>(kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
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
    fn prefetch<T>(from: &T) {
        intrinsic!(_mm_prefetch::<_MM_HINT_T0>((&raw const *from).cast()));
    }
    #[inline(always)]
    fn transpose(rows: &[&[f32]], step: usize, out: &mut [Self]) {
        let rows: &[&[f32]; 16] = rows.first_chunk().expect("a row for each lane");
        let columns = out.len().div_ceil(step);
        let mut short = [[0.0; 16]; 16];
        let mut values = short.each_ref();
        if columns < 16 {
            for (short, row) in short.iter_mut().zip(rows) {
                short[..columns].copy_from_slice(&row[..columns]);
            }
            values = short.each_ref();
        }
        // The last columns are done once more with those before them, because fewer take longer.
        for at in starts(columns) {
            if columns >= 16 {
                for (values, row) in values.iter_mut().zip(rows) {
                    *values = row[at..].first_chunk().expect("rows are long enough");
                }
            }
            let out = &mut out[at * step..];
            for four in 0..4 {
                for (column, value) in four_columns(values, four).into_iter().enumerate() {
                    if let Some(out) = out.get_mut((4 * four + column) * step) {
                        *out = value;
                    }
                }
            }
        }
    }
    const TRANSPOSES_BYTES: bool = true;
    /// Four bytes of a row are transposed as one value, which is a quarter of the work.
    #[inline(always)]
    fn transpose_bytes(rows: &[&[u8]], (a, b): (f32, f32), step: usize, out: &mut [Self]) {
        let rows: &[&[u8]; 16] = rows.first_chunk().expect("a row for each lane");
        let columns = out.len().div_ceil(step);
        let (a, b) = (Self::splat(a), Self::splat(b));
        for at in starts(columns) {
            let mut values = [&[0; 16]; 16];
            for (values, row) in values.iter_mut().zip(rows) {
                *values = row[at..].first_chunk().expect("rows are long enough");
            }
            let out = &mut out[at * step..];
            for (four, bytes) in columns_of_bytes(values).into_iter().enumerate() {
                let out = &mut out[4 * four * step..];
                for (column, value) in bytes.into_iter().enumerate() {
                    out[column * step] = value.mul(a).add(b);
                }
            }
        }
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
    fn add_square(&self, sums: Self::Sums) -> Self::Sums {
        intrinsic!({
            // Halves from memory, where they mostly are: taking a register apart costs more.
            let from: *const f32 = (&raw const self.0).cast();
            let low = _mm512_cvtps_pd(_mm256_loadu_ps(from));
            let high = _mm512_cvtps_pd(_mm256_loadu_ps(from.add(8)));
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

impl Quantise for F32x16 {
    const SHORTS: usize = 32;
    type Shorts = __m512i;
    type Pairs = __m512i;

    #[inline(always)]
    fn abs(self) -> Self {
        Self(intrinsic!(_mm512_abs_ps(self.0)))
    }
    #[inline(always)]
    fn max_abs(self, other: Self) -> Self {
        // The larger absolute value, without its sign.
        Self(intrinsic!(_mm512_range_ps::<0b1011>(self.0, other.0)))
    }
    #[inline(always)]
    fn truncated_sums(values: [Self; 8]) -> [i32; 8] {
        let mut halves = [<F32x8 as Quantise>::pairs_zero(); 8];
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
    fn store_shorts_of_two(self, other: Self, to: &mut [i16]) {
        let to = &mut to[..32];
        intrinsic!({
            // Packs within quarters: the order is 0–3, 16–19, 4–7, 20–23 and so on.
            let (a, b) = (_mm512_cvttps_epi32(self.0), _mm512_cvttps_epi32(other.0));
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_packs_epi32(a, b));
        });
    }
    #[inline(always)]
    fn shorts_load(from: &[i16]) -> Self::Shorts {
        let from = &from[..32];
        intrinsic!(_mm512_loadu_si512(from.as_ptr().cast()))
    }
    #[inline(always)]
    fn pairs_zero() -> Self::Pairs {
        intrinsic!(_mm512_setzero_si512())
    }
    #[inline(always)]
    fn multiply_add(a: Self::Shorts, b: Self::Shorts, sums: Self::Pairs) -> Self::Pairs {
        intrinsic!(_mm512_dpwssd_epi32(sums, a, b))
    }
    #[inline(always)]
    fn pairs_sums(sums: [Self::Pairs; 4]) -> [i64; 4] {
        intrinsic!({
            // Eight 64-bit sums of each, then transposing additions.
            // Macros, not closures, which would be compiled without the features.
            macro_rules! wide {
                ($sum:expr) => {{
                    let low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256($sum));
                    let high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>($sum));
                    _mm512_add_epi64(low, high)
                }};
            }
            macro_rules! pair {
                ($a:expr, $b:expr) => {{
                    let (a, b) = (wide!($a), wide!($b));
                    _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
                }};
            }
            let (first, second) = (pair!(sums[0], sums[1]), pair!(sums[2], sums[3]));
            let halves = _mm512_add_epi64(
                _mm512_shuffle_i64x2::<0x88>(first, second),
                _mm512_shuffle_i64x2::<0xdd>(first, second),
            );
            let (first, second) =
                (_mm512_castsi512_si256(halves), _mm512_extracti64x4_epi64::<1>(halves));
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

impl FeatureLanes for F32x16 {
    #[inline(always)]
    fn side_by_side(self, other: Self) -> Self::Shorts {
        intrinsic!({
            let (low, high) = (_mm512_cvttps_epi32(self.0), _mm512_cvttps_epi32(other.0));
            _mm512_mask_blend_epi16(0xaaaa_aaaa, low, _mm512_slli_epi32::<16>(high))
        })
    }
    #[inline(always)]
    fn shorts_store(shorts: Self::Shorts, to: &mut [i16]) {
        let to = &mut to[..32];
        intrinsic!(_mm512_storeu_si512(to.as_mut_ptr().cast(), shorts));
    }
    #[inline(always)]
    fn shorts_splat(pair: i32) -> Self::Shorts {
        intrinsic!(_mm512_set1_epi32(pair))
    }
    #[inline(always)]
    fn pairs_add(sums: Self::Pairs, to: &mut [i64]) {
        let (low, high) = to[..16].split_at_mut(8);
        intrinsic!({
            let of_low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(sums));
            let of_high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64::<1>(sums));
            let of_low = _mm512_add_epi64(of_low, _mm512_loadu_si512(low.as_ptr().cast()));
            let of_high = _mm512_add_epi64(of_high, _mm512_loadu_si512(high.as_ptr().cast()));
            _mm512_storeu_si512(low.as_mut_ptr().cast(), of_low);
            _mm512_storeu_si512(high.as_mut_ptr().cast(), of_high);
        });
    }
    #[inline(always)]
    fn from_halves(from: &[u16]) -> Self {
        let from = &from[..16];
        Self(intrinsic!(_mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast()))))
    }
}

impl ByteLanes for F32x16 {
    const BYTES: usize = 64;
    type Bytes = __m512i;

    #[inline(always)]
    fn bytes_load(from: &[u8]) -> Self::Bytes {
        let from = &from[..64];
        intrinsic!(_mm512_loadu_si512(from.as_ptr().cast()))
    }
    #[inline(always)]
    fn bytes_and(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        intrinsic!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn add_products(p: Self::Bytes, digits: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        intrinsic!(_mm512_dpbusd_epi32(sums, p, digits))
    }
    #[inline(always)]
    fn add_bytes(p: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        intrinsic!(_mm512_add_epi32(sums, _mm512_sad_epu8(p, _mm512_setzero_si512())))
    }
    #[inline(always)]
    fn add_centred_squares(p: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        // p − 128 as a signed byte is p with its highest bit turned.
        intrinsic!(_mm512_dpbusd_epi32(sums, p, _mm512_xor_si512(p, _mm512_set1_epi8(-128))))
    }
    #[inline(always)]
    fn totals(sums: [Self::Pairs; 8]) -> [i32; 8] {
        let mut halves = [<F32x8 as Quantise>::pairs_zero(); 8];
        for (halves, sums) in halves.iter_mut().zip(sums) {
            *halves = intrinsic!({
                let high = _mm512_extracti64x4_epi64::<1>(sums);
                _mm256_add_epi32(_mm512_castsi512_si256(sums), high)
            });
        }
        sums_of_eight(halves)
    }
    /// Of each quarter q = 0…3 holds its bytes 4q to 4q + 3.
    #[inline(always)]
    fn byte_pairs(first: &[u8], second: &[u8]) -> [Self::Shorts; 4] {
        let (first, second) = (&first[..64], &second[..64]);
        intrinsic!({
            let zero = _mm512_setzero_si512();
            let first = _mm512_loadu_si512(first.as_ptr().cast());
            let second = _mm512_loadu_si512(second.as_ptr().cast());
            let low = _mm512_unpacklo_epi8(first, second);
            let high = _mm512_unpackhi_epi8(first, second);
            [
                _mm512_unpacklo_epi8(low, zero),
                _mm512_unpackhi_epi8(low, zero),
                _mm512_unpacklo_epi8(high, zero),
                _mm512_unpackhi_epi8(high, zero),
            ]
        })
    }
    #[inline(always)]
    fn byte_pairs_store(sums: [Self::Pairs; 4], to: &mut [i32]) {
        let to = &mut to[..64];
        intrinsic!({
            // Quarters of four to fours of quarters.
            let [a, b, c, d] = sums;
            let (ab, ab_high) =
                (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b));
            let (cd, cd_high) =
                (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xee>(c, d));
            let rows = [
                _mm512_shuffle_i32x4::<0x88>(ab, cd),
                _mm512_shuffle_i32x4::<0xdd>(ab, cd),
                _mm512_shuffle_i32x4::<0x88>(ab_high, cd_high),
                _mm512_shuffle_i32x4::<0xdd>(ab_high, cd_high),
            ];
            for (at, row) in rows.into_iter().enumerate() {
                _mm512_storeu_si512(to[16 * at..].as_mut_ptr().cast(), row);
            }
        });
    }
}

/// Where pieces of sixteen columns start, the last so that it ends with the columns.
#[inline(always)]
fn starts(columns: usize) -> impl Iterator<Item = usize> {
    let last = columns.saturating_sub(16);
    (0..columns).step_by(16).map(move |at| at.min(last))
}

/// Transposes sixteen rows of four values of 32 bits: `$row!(n)` loads those of row n.
macro_rules! transposed {
    ($row:ident) => {{
        // Four rows are put together while they are loaded, so that what is left is to transpose
        // within quarters. Macros, not closures, which would be compiled without the features.
        macro_rules! rows_from {
            ($first:literal) => {{
                let all = _mm512_castps128_ps512($row!($first));
                let all = _mm512_insertf32x4::<1>(all, $row!($first + 4));
                let all = _mm512_insertf32x4::<2>(all, $row!($first + 8));
                _mm512_insertf32x4::<3>(all, $row!($first + 12))
            }};
        }
        let (a, b, c, d) = (rows_from!(0), rows_from!(1), rows_from!(2), rows_from!(3));
        let (ab, ab_high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let (cd, cd_high) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        [
            _mm512_shuffle_ps::<0x44>(ab, cd),
            _mm512_shuffle_ps::<0xee>(ab, cd),
            _mm512_shuffle_ps::<0x44>(ab_high, cd_high),
            _mm512_shuffle_ps::<0xee>(ab_high, cd_high),
        ]
    }};
}

/// Columns `4·four` to `4·four + 3`.
#[inline(always)]
fn four_columns(rows: [&[f32; 16]; 16], four: usize) -> [F32x16; 4] {
    intrinsic!({
        macro_rules! row {
            ($at:expr) => {
                _mm_loadu_ps(rows[$at][4 * four..4 * four + 4].as_ptr())
            };
        }
        let [a, b, c, d] = transposed!(row);
        [F32x16(a), F32x16(b), F32x16(c), F32x16(d)]
    })
}

/// The columns of sixteen rows of bytes, by fours.
#[inline(always)]
fn columns_of_bytes(rows: [&[u8; 16]; 16]) -> [[F32x16; 4]; 4] {
    intrinsic!({
        macro_rules! row {
            ($at:expr) => {
                _mm_loadu_ps(rows[$at].as_ptr().cast())
            };
        }
        let fours = transposed!(row);
        let mut columns = [[F32x16::zero(); 4]; 4];
        let low = _mm512_set1_epi32(0xff);
        for (columns, four) in columns.iter_mut().zip(fours) {
            let four = _mm512_castps_si512(four);
            *columns = [
                F32x16(_mm512_cvtepi32_ps(_mm512_and_si512(four, low))),
                F32x16(_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32::<8>(four), low))),
                F32x16(_mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32::<16>(four), low))),
                F32x16(_mm512_cvtepi32_ps(_mm512_srli_epi32::<24>(four))),
            ];
        }
        columns
    })
}
