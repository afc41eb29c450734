//! Eight samples in plain arrays: any CPU, and the twin that the intrinsics are tested against.

use super::{ByteLanes, FeatureLanes, Kernel, Quantise, Vector};

#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Portable([f32; 8]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(core::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

/// `a·b + c` rounded once, as every other instruction set does it. Where it is not an instruction it is
/// a call, so that kernels stay small.
#[inline(always)]
fn multiply_add(a: Portable, b: Portable, c: Portable) -> Portable {
    if cfg!(any(target_feature = "fma", target_arch = "aarch64")) {
        Portable(core::array::from_fn(|lane| a.0[lane].mul_add(b.0[lane], c.0[lane])))
    } else {
        fused_lanes(a, b, c)
    }
}

#[inline(never)]
fn fused_lanes(a: Portable, b: Portable, c: Portable) -> Portable {
    Portable(core::array::from_fn(|lane| fused(a.0[lane], b.0[lane], c.0[lane])))
}

/// `a·b + c` without the instruction: the product is exact in double precision, the sum is rounded to
/// odd there, and rounding that to single precision is rounding once
/// ([Boldo & Melquiond 2008](https://doi.org/10.1109/TC.2007.70819)).
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // The error of the sum, exactly (Knuth's two-sum).
    let of_c = sum - product;
    let error = (product - (sum - of_c)) + (c - of_c);
    let bits = sum.to_bits();
    // Toward the error if that makes the last bit odd; an odd one is right already.
    let inexact = error.abs() > 0.0 && sum.abs() < f64::INFINITY && bits & 1 == 0;
    let away = (error > 0.0) == (sum > 0.0);
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact { odd } else { bits }) as f32
}

impl Vector for Portable {
    const LANES: usize = 8;
    const PARTS: usize = 1;
    const REGISTERS: usize = 16;
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
        multiply_add(self, factor, addend)
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
    fn add_square(&self, sums: Self::Sums) -> Self::Sums {
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

impl Quantise for Portable {
    const SHORTS: usize = 16;
    type Shorts = [i16; 16];
    type Pairs = [i32; 8];

    #[inline(always)]
    fn abs(self) -> Self {
        Self(self.0.map(f32::abs))
    }
    #[inline(always)]
    fn max_abs(self, other: Self) -> Self {
        self.max(other.abs())
    }
    #[inline(always)]
    fn truncated_sums(values: [Self; 8]) -> [i32; 8] {
        values.map(|value| value.0.iter().map(|&lane| lane as i32).sum())
    }
    #[inline(always)]
    fn store_shorts(self, to: &mut [i16]) {
        for (to, value) in to[..8].iter_mut().zip(self.0) {
            *to = value as i16;
        }
    }
    #[inline(always)]
    fn shorts_load(from: &[i16]) -> Self::Shorts {
        core::array::from_fn(|at| from[at])
    }
    #[inline(always)]
    fn pairs_zero() -> Self::Pairs {
        [0; 8]
    }
    #[inline(always)]
    fn multiply_add(a: Self::Shorts, b: Self::Shorts, sums: Self::Pairs) -> Self::Pairs {
        let product = |at: usize| i32::from(a[at]) * i32::from(b[at]);
        core::array::from_fn(|pair| sums[pair] + (product(2 * pair) + product(2 * pair + 1)))
    }
    #[inline(always)]
    fn pairs_sums(sums: [Self::Pairs; 4]) -> [i64; 4] {
        sums.map(|sums| sums.iter().map(|&sum| i64::from(sum)).sum())
    }
}

impl FeatureLanes for Portable {
    #[inline(always)]
    fn side_by_side(self, other: Self) -> Self::Shorts {
        core::array::from_fn(|at| {
            let from = if at.is_multiple_of(2) { self } else { other };
            from.0[at / 2] as i16
        })
    }
    #[inline(always)]
    fn shorts_store(shorts: Self::Shorts, to: &mut [i16]) {
        to[..16].copy_from_slice(&shorts);
    }
    #[inline(always)]
    fn shorts_splat(pair: i32) -> Self::Shorts {
        core::array::from_fn(|at| (pair >> (16 * (at % 2))) as i16)
    }
    #[inline(always)]
    fn pairs_add(sums: Self::Pairs, to: &mut [i64]) {
        for (to, sum) in to[..8].iter_mut().zip(sums) {
            *to += i64::from(sum);
        }
    }
    #[inline(always)]
    fn from_halves(from: &[u16]) -> Self {
        Self(core::array::from_fn(|lane| crate::half::decode(from[lane])))
    }
}

impl ByteLanes for Portable {
    const BYTES: usize = 32;
    type Bytes = [u8; 32];

    #[inline(always)]
    fn bytes_load(from: &[u8]) -> Self::Bytes {
        core::array::from_fn(|at| from[at])
    }
    #[inline(always)]
    fn bytes_and(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes {
        core::array::from_fn(|at| a[at] & b[at])
    }
    #[inline(always)]
    fn add_products(p: Self::Bytes, digits: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        add_fours(p, digits.map(|digit| i32::from(digit as i8)), sums)
    }
    #[inline(always)]
    fn add_bytes(p: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        add_fours(p, [1; 32], sums)
    }
    #[inline(always)]
    fn add_centred_squares(p: Self::Bytes, sums: Self::Pairs) -> Self::Pairs {
        add_fours(p, p.map(|p| i32::from(p) - 128), sums)
    }
    #[inline(always)]
    fn totals(sums: [Self::Pairs; 8]) -> [i32; 8] {
        sums.map(|sums| sums.iter().sum())
    }
    #[inline(always)]
    fn byte_pairs(first: &[u8], second: &[u8]) -> [Self::Shorts; 4] {
        let of = |at: usize| if at.is_multiple_of(2) { first } else { second }[at / 2];
        core::array::from_fn(|q| core::array::from_fn(|at| i16::from(of(16 * q + at))))
    }
    #[inline(always)]
    fn byte_pairs_store(sums: [Self::Pairs; 4], to: &mut [i32]) {
        to[..32].copy_from_slice(sums.as_flattened());
    }
}

/// `sums + Σ p·factor` of neighbouring fours.
#[inline(always)]
fn add_fours(p: [u8; 32], factors: [i32; 32], sums: [i32; 8]) -> [i32; 8] {
    let product = |at: usize| i32::from(p[at]) * factors[at];
    core::array::from_fn(|four| sums[four] + (0..4).map(|at| product(4 * four + at)).sum::<i32>())
}

#[cfg(test)]
mod tests {
    use super::fused;

    /// Against the standard library's, which is exact, on numbers of every size.
    #[test]
    fn fused_rounds_once() {
        let mut state = 1u64;
        let mut number = |spread: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bits = (state >> 32) as u32;
            f32::from_bits(bits & 0x807f_ffff | (127 - spread / 2 + bits % spread) << 23)
        };
        for spread in [2, 40, 254] {
            for _ in 0..200_000 {
                let (a, b) = (number(spread), number(spread));
                // Near −a·b too, where cancellation leaves only the rounding.
                for c in [number(spread), -(a * b), f32::from_bits((-(a * b)).to_bits() ^ 1)] {
                    let (got, expected) = (fused(a, b, c), a.mul_add(b, c));
                    assert!(
                        got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(),
                        "{a}·{b} + {c}: {got} not {expected}"
                    );
                }
            }
        }
    }
}
