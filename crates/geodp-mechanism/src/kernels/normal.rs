//! Standard normals from uniform 64-bit words by Box and Muller's method, in blocks.
//!
//! z₁ = √(−2 ln u₁)·cos(2π u₂), z₂ = √(−2 ln u₁)·sin(2π u₂).
//! One block takes [`BLOCK`] words: the first half gives u₁, the second half u₂. Box–Muller was
//! chosen over a ziggurat because it has no branch and no rejection: it fills vector lanes, and
//! normal number i depends on a fixed pair of words, which makes noise addressable.
//!
//! u₁ = (word + ½)·2⁻⁶⁴ keeps all 64 bits, so tails reach √(130 ln 2) = 9.49 standard deviations;
//! a true normal exceeds that with probability 2.4e-21.

use super::{elementary, multiversion};
use crate::real::Real;

/// Normals (and words) in one block.
pub(crate) const BLOCK: usize = 256;
/// Pairs in one block.
pub(crate) const HALF: usize = BLOCK / 2;

multiversion!(
    /// Turns one block of little-endian random words into standard normals.
    fill_block = fill_block_source; (words: &[u8; 8 * BLOCK], normals: &mut [f64; BLOCK])
);

multiversion!(
    /// The two normals of a pair of words: what a block makes of it.
    pair = pair_source; (first: u64, second: u64) -> (f64, f64)
);

multiversion!(
    /// Adds `std` times its normal to each value.
    add_to<R: Real> = add_to_source; (values: &mut [R], normals: &[f64], std: f64)
);

#[inline(always)]
fn add_to_source<R: Real>(values: &mut [R], normals: &[f64], std: f64) {
    for (value, normal) in values.iter_mut().zip(normals) {
        *value = R::from_f64(value.to_f64() + std * normal);
    }
}

/// An integer below 2³² as a float, through the mantissa: vectorises without a conversion
/// instruction.
#[inline(always)]
fn float_of_u32(value: u64) -> f64 {
    const TWO_52: u64 = 0x4330_0000_0000_0000;
    f64::from_bits(TWO_52 | value) - f64::from_bits(TWO_52)
}

/// The word at `index` of a block.
#[inline(always)]
pub(crate) fn word(words: &[u8; 8 * BLOCK], index: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&words[8 * index..8 * index + 8]);
    u64::from_le_bytes(bytes)
}

#[inline(always)]
fn fill_block_source(words: &[u8; 8 * BLOCK], normals: &mut [f64; BLOCK]) {
    let (cosines, sines) = normals.split_at_mut(HALF);
    for i in 0..HALF {
        (cosines[i], sines[i]) = pair_source(word(words, i), word(words, HALF + i));
    }
}

/// z₁ and z₂ of two words.
#[inline(always)]
fn pair_source(first: u64, second: u64) -> (f64, f64) {
    const TWO_32: f64 = 4_294_967_296.0;
    const TWO_MINUS_64: f64 = 1.0 / (TWO_32 * TWO_32);
    let (high, low) = (float_of_u32(first >> 32), float_of_u32(first & 0xffff_ffff));
    let u1 = f64::mul_add(high, TWO_32, low + 0.5) * TWO_MINUS_64;
    // 53 bits of the second word as a position in [0, 4) quarter turns.
    let (high, low) = (float_of_u32(second >> 32), float_of_u32((second >> 11) & 0x1f_ffff));
    let quarter_turns = f64::mul_add(high, 2_097_152.0, low) * (1.0 / (1u64 << 51) as f64);

    // ln(1) may come out as −0 or a rounding below it: never take the root of a negative.
    let radius = (-2.0 * elementary::ln(u1)).max(0.0).sqrt();
    let (sine, cosine) = elementary::sin_cos_quarter_turns(quarter_turns);
    (radius * cosine, radius * sine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Level;

    fn words(first: u64, second: u64) -> [u8; 8 * BLOCK] {
        let mut bytes = [0; 8 * BLOCK];
        for i in 0..BLOCK {
            let w = if i < HALF { first } else { second };
            bytes[8 * i..8 * i + 8].copy_from_slice(&w.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn extreme_words_give_finite_normals() {
        for first in [0, 1, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 32) - 1] {
            for second in [0, 1, u64::MAX, 1 << 62, 1 << 63, 3 << 62] {
                let mut normals = [f64::NAN; BLOCK];
                fill_block(Level::best(), &words(first, second), &mut normals);
                assert!(normals.iter().all(|z| z.abs() < 9.5), "{first} {second}: {normals:?}");
            }
        }
        let mut normals = [0.0; BLOCK];
        fill_block(Level::best(), &words(0, 0), &mut normals);
        assert!((normals[0] - (130.0 * std::f64::consts::LN_2).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn follows_the_formula() {
        let (first, second) = (0x0123_4567_89ab_cdef_u64, 0xfedc_ba98_7654_3210_u64);
        let mut normals = [0.0; BLOCK];
        fill_block(Level::best(), &words(first, second), &mut normals);
        let u1 = first as f64 / 2f64.powi(64);
        let turn = std::f64::consts::TAU * (second as f64 / 2f64.powi(64));
        let radius = (-2.0 * u1.ln()).sqrt();
        assert!((normals[0] - radius * turn.cos()).abs() < 1e-14);
        assert!((normals[HALF] - radius * turn.sin()).abs() < 1e-14);
    }

    #[test]
    fn every_level_gives_the_same_bits() {
        let mut bytes = [0; 8 * BLOCK];
        let mut state = 1u64;
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        let mut expected = [0.0; BLOCK];
        fill_block(Level::Portable, &bytes, &mut expected);
        for level in Level::available() {
            let mut normals = [0.0; BLOCK];
            fill_block(level, &bytes, &mut normals);
            assert_eq!(normals, expected, "{level:?}");
        }
    }
}
