//! The keystream of ChaCha20, sixteen cipher blocks side by side: one in each lane of a vector.
//!
//! The bytes are those of the `chacha20` crate, whose generator makes four blocks at once, two in a
//! vector, and copies them; drawing normals took most of its time there. Streams, positions and all
//! that reads a few words stay with the crate. Each lane is straight code without a loop or a branch,
//! which is what lets the loop over lanes become vectors.

use super::multiversion;
use super::normal::BLOCK;
use zeroize::Zeroize;

/// Cipher blocks side by side.
const LANES: usize = 16;
/// Words of 32 bits in a cipher block.
const WORDS: usize = 16;
/// Bytes of all lanes.
const BATCH: usize = 4 * WORDS * LANES;

/// The keystream of a key and a stream number from a cipher block on. It holds a key, so it is wiped after use
/// and not printed.
pub(crate) struct Position {
    pub(crate) key: [u8; 32],
    pub(crate) stream: u64,
    pub(crate) block: u64,
}

impl Drop for Position {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

multiversion!(
    /// Fills `out` with the keystream at a position.
    keystream = keystream_source; (position: &Position, out: &mut [u8; 8 * BLOCK])
);

multiversion!(
    /// The first 64 bits of the cipher block at a position, and of the block `apart` further on.
    two_words = two_words_source; (position: &Position, apart: u64) -> (u64, u64)
);

impl Position {
    /// What a cipher block is made of, but for its number.
    #[inline(always)]
    fn state(&self) -> [u32; WORDS] {
        let mut state = [0; WORDS];
        state[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
        for (word, bytes) in state[4..12].iter_mut().zip(self.key.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        (state[14], state[15]) = (self.stream as u32, (self.stream >> 32) as u32);
        state
    }
}

#[inline(always)]
fn keystream_source(position: &Position, out: &mut [u8; 8 * BLOCK]) {
    let state = position.state();
    for (batch, out) in (0..).zip(out.as_chunks_mut::<BATCH>().0) {
        batch_source(&state, position.block.wrapping_add(batch * LANES as u64), out);
    }
}

/// All lanes work, as they do for a batch: no quicker way is shorter.
#[inline(always)]
fn two_words_source(position: &Position, apart: u64) -> (u64, u64) {
    let state = position.state();
    let mut lanes = [[0; LANES]; WORDS];
    cipher_blocks(&state, position.block, apart, &mut lanes);
    let word = |lane: usize| u64::from(lanes[0][lane]) | u64::from(lanes[1][lane]) << 32;
    (word(0), word(1))
}

#[inline(always)]
fn batch_source(state: &[u32; WORDS], first_block: u64, out: &mut [u8; BATCH]) {
    let mut lanes = [[0; LANES]; WORDS];
    cipher_blocks(state, first_block, 1, &mut lanes);
    let (words, _) = out.as_chunks_mut::<8>();
    for lane in 0..LANES {
        for pair in 0..WORDS / 2 {
            let (low, high) = (lanes[2 * pair][lane], lanes[2 * pair + 1][lane]);
            words[WORDS / 2 * lane + pair] = (u64::from(low) | u64::from(high) << 32).to_le_bytes();
        }
    }
}

/// `lanes[word][lane]` of blocks `apart` from each other.
#[inline(always)]
fn cipher_blocks(
    state: &[u32; WORDS],
    first_block: u64,
    apart: u64,
    lanes: &mut [[u32; LANES]; WORDS],
) {
    for lane in 0..LANES {
        let block = first_block.wrapping_add((lane as u64).wrapping_mul(apart));
        let mut start = *state;
        (start[12], start[13]) = (block as u32, (block >> 32) as u32);
        let mut x = start;
        four_rounds(&mut x);
        four_rounds(&mut x);
        four_rounds(&mut x);
        four_rounds(&mut x);
        four_rounds(&mut x);
        for ((lanes, x), start) in lanes.iter_mut().zip(x).zip(start) {
            lanes[lane] = x.wrapping_add(start);
        }
    }
}

/// Twice four columns and four diagonals.
#[inline(always)]
fn four_rounds(x: &mut [u32; WORDS]) {
    double_round(x);
    double_round(x);
}

#[inline(always)]
fn double_round(x: &mut [u32; WORDS]) {
    quarter_round(x, 0, 4, 8, 12);
    quarter_round(x, 1, 5, 9, 13);
    quarter_round(x, 2, 6, 10, 14);
    quarter_round(x, 3, 7, 11, 15);
    quarter_round(x, 0, 5, 10, 15);
    quarter_round(x, 1, 6, 11, 12);
    quarter_round(x, 2, 7, 8, 13);
    quarter_round(x, 3, 4, 9, 14);
}

#[inline(always)]
fn quarter_round(x: &mut [u32; WORDS], a: usize, b: usize, c: usize, d: usize) {
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(16);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(12);
    x[a] = x[a].wrapping_add(x[b]);
    x[d] = (x[d] ^ x[a]).rotate_left(8);
    x[c] = x[c].wrapping_add(x[d]);
    x[b] = (x[b] ^ x[c]).rotate_left(7);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Level;
    use chacha20::ChaCha20Rng;
    use proptest::prelude::*;
    use rand_core::{Rng, SeedableRng};

    fn agrees(key: [u8; 32], stream: u64, block: u64) {
        let mut cipher = ChaCha20Rng::from_seed(key);
        cipher.set_stream(stream);
        cipher.set_block_pos(block);
        let mut expected = [0; 8 * BLOCK];
        cipher.fill_bytes(&mut expected);
        for level in Level::available() {
            let mut bytes = [0; 8 * BLOCK];
            keystream(level, &Position { key, stream, block }, &mut bytes);
            assert!(bytes == expected, "{level:?}, stream {stream}, block {block}");
            let word =
                |block: usize| u64::from_le_bytes(*expected[64 * block..].first_chunk().unwrap());
            let words = two_words(level, &Position { key, stream, block }, 9);
            assert_eq!(words, (word(0), word(9)), "{level:?}, stream {stream}, block {block}");
        }
    }

    proptest! {
        #[test]
        fn the_bytes_are_those_of_the_crate(key: [u8; 32], stream: u64, block: u64) {
            agrees(key, stream, block);
        }
    }

    /// The counter's halves carry in any lane, and it wraps.
    #[test]
    fn counters_carry() {
        for block in
            (0..34).flat_map(|back| [(1 << 32) - back, (1 << 40) - back, 0_u64.wrapping_sub(back)])
        {
            agrees([7; 32], 1 << 56, block);
        }
    }

    /// RFC 8439, appendix A.1, vectors 1 and 2: a key of zeros, blocks 0 and 1.
    #[test]
    fn the_standards_vectors() {
        let mut bytes = [0; 8 * BLOCK];
        keystream(Level::best(), &Position { key: [0; 32], stream: 0, block: 0 }, &mut bytes);
        assert_eq!(bytes[..8], [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]);
        assert_eq!(bytes[64..72], [0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a]);
    }
}
