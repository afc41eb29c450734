//! Many words of a stream, one after the other, by the cipher of the noise.
//!
//! A word at a time, the `chacha20` crate makes four cipher blocks and copies them; here a block of noise's
//! 256 words is made at once and handed out. They are the same words, and where reading ends the stream
//! stands behind the last one that was handed out, as if they had been asked for one by one.

use super::Stream;
use crate::kernels::Level;
use crate::kernels::normal::{self, BLOCK};

/// A reader of words.
pub(super) struct Words<'a> {
    stream: &'a mut Stream,
    level: Level,
    words: [u8; 8 * BLOCK],
    /// Where the words at hand begin in the stream, in words of 32 bits.
    start: u128,
    /// Words at hand that were handed out.
    used: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(stream: &'a mut Stream) -> Self {
        let level = Level::best();
        let mut reader = Self { stream, level, words: [0; 8 * BLOCK], start: 0, used: 0 };
        reader.fill();
        reader
    }

    fn fill(&mut self) {
        self.start = self.stream.cipher.get_word_pos();
        self.stream.fill_words(self.level, &mut self.words);
        self.used = 0;
    }

    /// The stream's next word.
    #[inline]
    pub(super) fn word(&mut self) -> u64 {
        if self.used == BLOCK {
            self.fill();
        }
        self.used += 1;
        normal::word(&self.words, self.used - 1)
    }
}

impl Drop for Words<'_> {
    fn drop(&mut self) {
        self.stream.cipher.set_word_pos(self.start + 2 * self.used as u128);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{NoiseSource, Purpose};

    /// From the start of a cipher block and from within one, past the end of what is made at once, and then on
    /// by single words.
    #[test]
    fn words_and_what_follows_are_those_read_one_by_one() {
        for (before, many) in [(0, 0), (0, 3), (0, BLOCK), (0, 3 * BLOCK + 7), (5, 700), (8, 300)] {
            let stream = || NoiseSource::from_seed(9).stream(Purpose::Sampling, 4, 0).unwrap();
            let mut one_by_one = stream();
            let expected: Vec<u64> = (0..before + many + 9).map(|_| one_by_one.word()).collect();
            let mut stream = stream();
            let mut found: Vec<u64> = (0..before).map(|_| stream.word()).collect();
            let mut words = Words::new(&mut stream);
            found.extend((0..many).map(|_| words.word()));
            drop(words);
            found.extend((0..9).map(|_| stream.word()));
            assert_eq!(found, expected, "{before} words, then {many}");
        }
    }
}
