//! Secure noise: ChaCha20 streams addressed by (purpose, step, chunk).
//!
//! A source is a 256-bit key, from the operating system unless a seed is given. The address is
//! the cipher's 64-bit stream number: 8 bits of purpose, 32 of step, 24 of chunk. Any piece of
//! noise can be drawn at any time in any order, so results do not depend on the number of
//! threads, and a resumed run draws what the interrupted one would have drawn.
//!
//! Distinct addresses are distinct keystreams of one key: independent against anyone who does
//! not know the key. A seeded source is for experiments: whoever knows the seed knows the noise.

mod coins;
mod words;

pub use coins::{Coins, most_left_over};

use crate::Error;
use crate::exact::{RoundedNormal, Uniform, round_pair};
use crate::kernels::normal::{BLOCK, HALF};
use crate::kernels::{Level, angles, cipher, normal, rounded};
use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use zeroize::Zeroize;

/// What a stream of randomness is for. Streams of different purposes never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Purpose {
    /// Noise on the coordinates of a gradient (DP).
    Coordinates = 1,
    /// Noise on a gradient's magnitude (GeoDP).
    Magnitude = 2,
    /// Noise on a gradient's angles (GeoDP).
    Angles = 3,
    /// Which records take part in a step.
    Sampling = 4,
    /// Initial weights.
    Initialisation = 5,
    /// Noise on the acceptance test of selective updates (SUR).
    Selection = 6,
    /// Which records take part in the acceptance test (SUR).
    SelectionSampling = 7,
    /// Coins and noisy sums of importance sampling (IS).
    Importance = 8,
    /// Canaries and coins of audits.
    Audit = 9,
    /// Order of records when batches are shuffled.
    Shuffling = 10,
    /// Keys of derived sources.
    Derivation = 11,
    /// Noise on a released accuracy.
    Accuracy = 12,
    /// Which rows of a unit take part in a step.
    Rows = 13,
    /// Noise on votes for a clipping threshold.
    Quantile = 14,
}

/// Where a source's key came from; every report must say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The operating system's generator: nobody knows the key.
    OperatingSystem,
    /// A given seed: repeatable, and not private against anyone who knows the seed.
    Seed(u64),
}

/// A key from which all randomness of a run is drawn.
#[derive(Clone)]
pub struct NoiseSource {
    key: [u8; 32],
    origin: Origin,
}

impl Drop for NoiseSource {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

/// Largest step number of an address.
pub const MAX_STEP: u64 = (1 << 32) - 1;
/// Largest chunk number of an address.
pub const MAX_CHUNK: u64 = (1 << 24) - 1;

impl NoiseSource {
    /// A fresh key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the system has no randomness to give.
    pub fn from_os() -> Result<Self, Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|e| Error::Entropy(e.to_string()))?;
        Ok(Self { key, origin: Origin::OperatingSystem })
    }

    /// A key made of `seed` alone: for experiments only.
    pub fn from_seed(seed: u64) -> Self {
        let mut key = *b"--------geodp key made of a seed";
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self { key, origin: Origin::Seed(seed) }
    }

    /// A source as it was stored by [`secret_key`](Self::secret_key).
    pub fn from_secret_key(key: [u8; 32], origin: Origin) -> Self {
        Self { key, origin }
    }

    /// The key itself, for a run that must be resumable. Whoever reads it can subtract the noise:
    /// store it where only the data's owner can, and delete it when the run is done.
    pub fn secret_key(&self) -> [u8; 32] {
        self.key
    }

    /// Where the key came from.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// A source with a key of its own, made of this one's: as many as are wanted, each independent of
    /// this one and of the others against anyone who does not know this one's key.
    ///
    /// # Errors
    /// [`Error::NoiseAddress`] for a number beyond [`MAX_STEP`].
    pub fn derive(&self, number: u64) -> Result<Self, Error> {
        let mut key = [0; 32];
        self.stream(Purpose::Derivation, number, 0)?.cipher.fill_bytes(&mut key);
        Ok(Self { key, origin: self.origin })
    }

    /// The stream at an address.
    ///
    /// # Errors
    /// [`Error::NoiseAddress`] beyond [`MAX_STEP`] or [`MAX_CHUNK`]: two addresses never share a
    /// stream silently.
    pub fn stream(&self, purpose: Purpose, step: u64, chunk: u64) -> Result<Stream, Error> {
        for (part, value, limit) in [("step", step, MAX_STEP), ("chunk", chunk, MAX_CHUNK)] {
            if value > limit {
                return Err(Error::NoiseAddress { part, value, limit });
            }
        }
        let mut cipher = ChaCha20Rng::from_seed(self.key);
        cipher.set_stream(u64::from(purpose as u8) << 56 | step << 24 | chunk);
        Ok(Stream { cipher })
    }
}

impl std::fmt::Debug for NoiseSource {
    /// Never shows the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NoiseSource").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Words of 32 bits in a cipher block.
const BLOCK_WORDS: u128 = 16;

/// One addressed stream of randomness, read from its start.
#[derive(Debug)]
pub struct Stream {
    cipher: ChaCha20Rng,
}

impl Stream {
    /// The stream's next bytes, by the quickest way to them.
    fn fill_words(&mut self, level: Level, words: &mut [u8; 8 * BLOCK]) {
        let position = self.cipher.get_word_pos();
        // Without wide vectors the crate knows its machine better.
        if level == Level::Portable || !position.is_multiple_of(BLOCK_WORDS) {
            return self.cipher.fill_bytes(words);
        }
        cipher::keystream(level, &self.position((position / BLOCK_WORDS) as u64), words);
        self.cipher.set_word_pos(position + 2 * BLOCK as u128);
    }

    /// The two words of the first normal of a stream that was not read yet.
    fn first_pair(&mut self) -> (u64, u64) {
        const APART: u64 = 2 * HALF as u64 / BLOCK_WORDS as u64;
        let level = Level::best();
        if level != Level::Portable {
            return cipher::two_words(level, &self.position(0), APART);
        }
        let first = self.cipher.next_u64();
        // Positions count words of 32 bits.
        self.cipher.set_word_pos(2 * HALF as u128);
        (first, self.cipher.next_u64())
    }

    /// A cipher block of this stream.
    fn position(&self, block: u64) -> cipher::Position {
        let (key, stream) = (self.cipher.get_seed(), self.cipher.get_stream());
        cipher::Position { key, stream, block }
    }

    /// Fills `out` with standard normals. The normals come in blocks of 256 words, so drawing
    /// n at once is the prefix of drawing more, but two draws are not one long draw.
    pub fn fill_normals(&mut self, out: &mut [f64]) {
        let level = Level::best();
        let mut words = [0; 8 * normal::BLOCK];
        let (blocks, rest) = out.as_chunks_mut::<{ normal::BLOCK }>();
        for block in blocks {
            self.fill_words(level, &mut words);
            normal::fill_block(level, &words, block);
        }
        if !rest.is_empty() {
            let mut block = [0.0; normal::BLOCK];
            self.fill_words(level, &mut words);
            normal::fill_block(level, &words, &mut block);
            rest.copy_from_slice(&block[..rest.len()]);
        }
    }

    /// Fills `out` with noise on angles: `std` times what [`fill_normals`](Self::fill_normals) draws of the
    /// same stream, but for errors of 2⁻⁴⁴ standard deviations.
    pub fn fill_angles(&mut self, std: f64, out: &mut [f64]) {
        let level = Level::best();
        let mut words = [0; 8 * BLOCK];
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        for block in blocks {
            self.fill_words(level, &mut words);
            angles::fill_block(level, &words, std, block);
        }
        if !rest.is_empty() {
            let mut block = [0.0; BLOCK];
            self.fill_words(level, &mut words);
            angles::fill_block(level, &words, std, &mut block);
            rest.copy_from_slice(&block[..rest.len()]);
        }
    }

    /// Fills `out` with rounded normals: integers nearest to S·Z. In blocks of 256 words, as
    /// [`fill_normals`](Self::fill_normals); both must not read the same stretch of a stream.
    pub fn fill_rounded(&mut self, law: RoundedNormal, out: &mut [i64]) {
        if law.scale() == 0.0 {
            return out.fill(0);
        }
        let (blocks, rest) = out.as_chunks_mut::<BLOCK>();
        for block in blocks {
            self.rounded_block(law, block);
        }
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            self.rounded_block(law, &mut block);
            rest.copy_from_slice(&block[..rest.len()]);
        }
    }

    /// The first rounded normal of a stream that was not read yet: what
    /// [`fill_rounded`](Self::fill_rounded) gives first, without the 255 others of its block.
    pub(crate) fn first_rounded(mut self, law: RoundedNormal) -> i64 {
        let (scale, margin) = (law.scale(), law.margin());
        if scale == 0.0 {
            return 0;
        }
        let (first, second) = self.first_pair();
        let decided = rounded::round_first(Level::best(), first, second, scale, margin);
        decided.unwrap_or_else(|| {
            self.cipher.set_word_pos(0);
            let mut draw = [0];
            self.fill_rounded(law, &mut draw);
            draw[0]
        })
    }

    fn rounded_block(&mut self, law: RoundedNormal, out: &mut [i64; BLOCK]) {
        let level = Level::best();
        let (scale, margin) = (law.scale(), law.margin());
        let first_word = (self.cipher.get_word_pos() / 2) as u64;
        let mut words = [0; 8 * BLOCK];
        self.fill_words(level, &mut words);
        if !rounded::round_block(level, &words, scale, margin, out) {
            return;
        }
        let mut suspects = [false; HALF];
        rounded::suspects(level, &words, scale, margin, &mut suspects);
        for i in (0..HALF).filter(|i| suspects[*i]) {
            let [first, second] = self.uniforms(&words, first_word, i);
            let [cosine, sine] = round_pair(&first, &second, scale);
            (out[i], out[HALF + i]) = (cosine.value, sine.value);
        }
    }

    /// The two uniforms of pair `i` with all their bits: its words in a block that begins with word
    /// `first_word` of the stream, and four more words for each. Those are a cipher block of the
    /// pair's own, 2⁴⁰ blocks or more behind what is ever read in order.
    pub(crate) fn uniforms(
        &self,
        words: &[u8; 8 * BLOCK],
        first_word: u64,
        i: usize,
    ) -> [Uniform; 2] {
        const FAR: u64 = 1 << 40;
        let mut cipher = ChaCha20Rng::from_seed(self.cipher.get_seed());
        cipher.set_stream(self.cipher.get_stream());
        cipher.set_block_pos(FAR + first_word + i as u64);
        [i, HALF + i].map(|word| {
            let mut bits = [normal::word(words, word); 5];
            bits[1..].iter_mut().for_each(|more| *more = cipher.next_u64());
            bits
        })
    }

    /// One standard normal: the first of a block, of which only the pair of words is drawn.
    pub fn normal(&mut self) -> f64 {
        // Positions count words of 32 bits.
        let position = self.cipher.get_word_pos();
        let first = self.cipher.next_u64();
        self.cipher.set_word_pos(position + 2 * HALF as u128);
        let second = self.cipher.next_u64();
        self.cipher.set_word_pos(position + 2 * BLOCK as u128);
        normal::pair(Level::best(), first, second).0
    }

    /// The first standard normal of a stream that was not read yet, as [`normal`](Self::normal) gives it,
    /// without finding the place behind its block.
    pub(crate) fn first_normal(mut self) -> f64 {
        let (first, second) = self.first_pair();
        normal::pair(Level::best(), first, second).0
    }

    /// A uniform 64-bit word.
    pub fn word(&mut self) -> u64 {
        self.cipher.next_u64()
    }

    /// A uniform number in [0, 1) with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform integer below `bound` (0 for a bound of 0), without modulo bias (Lemire 2019).
    pub fn below(&mut self, bound: u64) -> u64 {
        let threshold = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
        loop {
            let product = u128::from(self.word()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Brings `items` into a random order (Fisher–Yates from the end).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// `count` different numbers below `of` in random order (Fisher–Yates from the start, cut short);
    /// all of them if there are fewer.
    pub fn choose(&mut self, count: usize, of: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..of).collect();
        let count = count.min(order.len());
        for at in 0..count {
            let other = at + self.below((order.len() - at) as u64) as usize;
            order.swap(at, other);
        }
        order.truncate(count);
        order
    }
}
