//! Noise on angles: `std` times standard normals, by Box and Muller's method, in blocks.
//!
//! n₁ = s·√(−2 ln u₁)·cos(2π u₂), n₂ = s·√(−2 ln u₁)·sin(2π u₂), of the same words as in `normal.rs`, by
//! the shorter polynomials and cuts of bits of `rounded.rs`. They are off by at most 2⁻⁴⁴ standard
//! deviations, which nothing of GeoDP can tell, and cost two thirds. Coordinates keep the longer ones:
//! their noise is pinned, and where it must be exact it is.
//!
//! Logarithms first, then roots, sines and cosines: in one loop the chain of operations on a pair would
//! be longer than what the processor looks ahead. No normal exceeds √(128 ln 2) = 9.42.

use super::multiversion;
use super::normal::{BLOCK, HALF, word};
use super::rounded::{ln, sin_cos, uniform};

multiversion!(
    /// Turns one block of little-endian random words into noise with standard deviation `std`.
    fill_block = fill_block_source; (words: &[u8; 8 * BLOCK], std: f64, out: &mut [f64; BLOCK])
);

#[inline(always)]
fn fill_block_source(words: &[u8; 8 * BLOCK], std: f64, out: &mut [f64; BLOCK]) {
    /// Half a quarter turn: what `sin_cos` takes off, so that u₂ = 0 is no turn.
    const HALF_A_QUARTER: u64 = 1 << 61;
    let (cosines, sines) = out.split_at_mut(HALF);
    for (i, square) in cosines.iter_mut().enumerate() {
        // The last bit is set, or a word of 0 would have no logarithm.
        *square = -2.0 * ln(uniform(word(words, i) | 1));
    }
    for (i, (cosine, sine)) in cosines.iter_mut().zip(sines).enumerate() {
        let radius = std * cosine.sqrt();
        let (s, c) = sin_cos(word(words, HALF + i).wrapping_add(HALF_A_QUARTER));
        (*cosine, *sine) = (radius * c, radius * s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Level, normal};
    use proptest::prelude::*;

    fn block(word: impl Fn(usize) -> u64) -> [u8; 8 * BLOCK] {
        let mut bytes = [0; 8 * BLOCK];
        for (i, bytes) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *bytes = word(i).to_le_bytes();
        }
        bytes
    }

    fn angles(level: Level, words: &[u8; 8 * BLOCK], std: f64) -> [f64; BLOCK] {
        let mut out = [f64::NAN; BLOCK];
        fill_block(level, words, std, &mut out);
        out
    }

    #[test]
    fn extreme_words_give_finite_noise() {
        for first in [0, 1, 2, u64::MAX, u64::MAX - 1, 1 << 63, (1 << 32) - 1] {
            for second in [0, 1, u64::MAX, 1 << 61, 1 << 62, 1 << 63, 3 << 62] {
                let words = block(|i| if i < HALF { first } else { second });
                let out = angles(Level::best(), &words, 1.0);
                assert!(out.iter().all(|n| n.abs() < 9.5), "{first} {second}: {out:?}");
            }
        }
    }

    proptest! {
        /// The same draws as on coordinates, but for their last bits.
        #[test]
        fn they_are_the_normals_of_their_words(seed: u64, std in 1e-6..1e3) {
            let step = |i: usize| (seed ^ i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
            let words = block(|i| step(i).wrapping_mul(0xbf58_476d_1ce4_e5b9));
            let mut normals = [0.0; BLOCK];
            normal::fill_block(Level::best(), &words, &mut normals);
            let expected = angles(Level::Portable, &words, std);
            for (angle, normal) in expected.iter().zip(normals) {
                prop_assert!((angle - std * normal).abs() <= std * super::super::rounded::ERROR);
            }
            for level in Level::available() {
                prop_assert_eq!(angles(level, &words, std), expected, "{:?}", level);
            }
        }
    }
}
