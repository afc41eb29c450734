//! Independent coins for many records, in time that grows with those chosen and not with all.
//!
//! Where few records are chosen, the gaps between them are drawn instead of a coin for each. A gap is
//! geometric: P(G = g) = q·r^g, r = 1 − q. With g in binary, r^g is a product over its bits, so **the
//! bits of a gap are independent**: bit j is one with probability r^(2ʲ)/(1 + r^(2ʲ)), and G ≥ 2ᴶ, which
//! is the end where 2ᴶ records or fewer are left, with probability r^(2ᴶ). That is J + 1 coins for a
//! chosen record, no logarithm, and the same batch on every machine.
//!
//! # Error
//! A coin is compared with 128 bits of its chance, truncated; the second word is drawn only where the
//! first cannot decide. Powers of r are squared in 192-bit fractions, so that r^(2ʲ) is right to
//! 2ʲ⁺¹·2⁻¹⁹² ≤ 2⁻¹⁵⁸ and a coin to 2⁻¹²⁷. [`Coins::left_over`] bounds, in units of 2⁻¹²⁸, what that
//! adds up to over one selection.

use super::Stream;
use super::words::Words;
use crate::exact::fixed::Fixed;

/// The chance of a record, and the quickest way of tossing for many.
#[derive(Debug, Clone)]
pub struct Coins {
    /// ⌊q·2⁶⁴⌋; `None` for q = 1.
    threshold: Option<u64>,
    records: u32,
    /// Where gaps cost less than a coin for each record.
    gaps: Option<Gaps>,
}

impl Coins {
    /// For `records` records, each chosen with chance `chosen/records` rounded down by less than 2⁻⁶⁴.
    pub fn of_count(chosen: u32, records: u32) -> Self {
        let all = chosen >= records;
        let ratio = (u128::from(chosen) << 64).checked_div(u128::from(records));
        Self::of_threshold((!all).then_some(ratio.unwrap_or(0) as u64), records)
    }

    /// For `records` records, each chosen with chance `rate` rounded down by less than 2⁻⁶⁴.
    pub fn of_rate(rate: f64, records: u32) -> Self {
        // 2⁶⁴·rate is exact, and the cast rounds down.
        Self::of_threshold((rate < 1.0).then_some((rate * 2f64.powi(64)) as u64), records)
    }

    fn of_threshold(threshold: Option<u64>, records: u32) -> Self {
        let gaps = threshold.filter(|&threshold| {
            // Expected words by gaps against one word a record; halved, so that gaps clearly pay.
            let words = expected(threshold, records) * u64::from(bits_for(records) + 1);
            2 * words < u64::from(records)
        });
        Self { threshold, records, gaps: gaps.map(|threshold| Gaps::new(threshold, records)) }
    }

    /// Adds the chosen records to `batch`, in ascending order.
    pub fn select(&self, stream: &mut Stream, batch: &mut Vec<u32>) {
        match (self.threshold, &self.gaps) {
            (None, _) => batch.extend(0..self.records),
            (Some(_), Some(gaps)) => gaps.select(&mut Words::new(stream), self.records, batch),
            (Some(threshold), None) => {
                let mut words = Words::new(stream);
                batch.extend((0..self.records).filter(|_| words.word() < threshold));
            }
        }
    }

    /// Bounds the distance, in total variation, of one selection from independent coins of chance
    /// ⌊q·2⁶⁴⌋/2⁶⁴, in units of 2⁻¹²⁸: two for each coin that is expected. At most [`most_left_over`].
    pub fn left_over(&self) -> u64 {
        let (Some(threshold), Some(gaps)) = (self.threshold, &self.gaps) else { return 0 };
        let chosen = expected(threshold, self.records);
        2 * (chosen + 1) * (gaps.ones.len() as u64 + 1)
    }
}

/// [`Coins::left_over`] at any chance: gaps are drawn only where their coins are fewer than half the
/// records.
pub fn most_left_over(records: u64) -> u64 {
    records.saturating_add(4 * 33)
}

/// The expected number of chosen records, rounded up.
fn expected(threshold: u64, records: u32) -> u64 {
    let product = u128::from(threshold) * u128::from(records);
    (product >> 64) as u64 + 1
}

/// J with 2ᴶ ≥ `records`.
fn bits_for(records: u32) -> u32 {
    u32::BITS - records.saturating_sub(1).leading_zeros()
}

/// Chances of the bits of a gap, as 128-bit fractions.
#[derive(Debug, Clone)]
struct Gaps {
    /// Of bit j to be one.
    ones: Vec<u128>,
    /// Of a gap beyond all records.
    beyond: u128,
}

impl Gaps {
    fn new(threshold: u64, records: u32) -> Self {
        // r = 1 − q, exact.
        let mut power = Fixed::ONE.minus(Fixed([0, 0, threshold, 0]));
        let mut ones = Vec::new();
        for _ in 0..bits_for(records) {
            ones.push(fraction(power.over(power.add(Fixed::ONE))));
            power = power.times(power);
        }
        Self { ones, beyond: fraction(power) }
    }

    fn select(&self, words: &mut Words<'_>, records: u32, batch: &mut Vec<u32>) {
        let mut next = 0;
        loop {
            next += match self.gap(words) {
                Some(gap) => gap,
                None => return,
            };
            if next >= u64::from(records) {
                return;
            }
            batch.push(next as u32);
            next += 1;
        }
    }

    /// The number of records passed over; `None` where it is beyond all of them.
    fn gap(&self, words: &mut Words<'_>) -> Option<u64> {
        if falls_below(words, self.beyond) {
            return None;
        }
        let bit = |(j, &one): (usize, &u128)| u64::from(falls_below(words, one)) << j;
        Some(self.ones.iter().enumerate().map(bit).sum())
    }
}

/// The first 128 fraction bits of a number below one; all ones for one itself, which is r for q = 0.
fn fraction(value: Fixed) -> u128 {
    match value.0 {
        [_, low, high, 0] => u128::from(high) << 64 | u128::from(low),
        _ => u128::MAX,
    }
}

/// A coin of this chance. The one branch is almost never taken: one on the coin itself would be guessed wrongly
/// every other time.
fn falls_below(words: &mut Words<'_>, chance: u128) -> bool {
    let (high, low) = ((chance >> 64) as u64, chance as u64);
    let word = words.word();
    if word == high {
        return words.word() < low;
    }
    word < high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{NoiseSource, Purpose};

    fn stream(step: u64) -> Stream {
        NoiseSource::from_seed(3).stream(Purpose::Sampling, step, 0).unwrap()
    }

    fn threshold(q: f64) -> u64 {
        (q * 2f64.powi(64)) as u64
    }

    /// Σ P(G = g) over g < 2ᴶ is q·Π(1 + r^(2ʲ)) = 1 − r^(2ᴶ): in 192-bit fractions, where 1 + r^(2ʲ) is
    /// 1/(1 − P(bit j)).
    #[test]
    fn chances_of_the_bits_make_a_geometric_law() {
        for (q, records) in [(1e-6, u32::MAX), (0.003, 70_000), (0.3, 5), (1.0 / 1024.0, 1024)] {
            let gaps = Gaps::new(threshold(q), records);
            assert!(1_u64 << gaps.ones.len() >= u64::from(records));
            let of = |chance: u128| Fixed([0, chance as u64, (chance >> 64) as u64, 0]);
            let mut zeros = Fixed::ONE;
            for one in &gaps.ones {
                zeros = zeros.times(Fixed::ONE.minus(of(*one)));
            }
            let below = Fixed::ONE.minus(of(gaps.beyond));
            // P(G = 0) given G < 2ᴶ, in two ways.
            let (left, right) = (zeros.times(below), Fixed([0, 0, threshold(q), 0]));
            let off = if left.minus(right) == Fixed::ZERO {
                right.minus(left)
            } else {
                left.minus(right)
            };
            // Truncations to 128 bits: of less than 34 factors, each at most one.
            assert!(off.0[2] == 0 && off.0[3] == 0 && off.0[1] <= 34, "{q}: {off:?}");
        }
    }

    /// All 2⁴ subsets of four records against their probabilities. χ² with 15 degrees of freedom exceeds
    /// 60 with probability 2e-7.
    #[test]
    fn subsets_come_as_often_as_with_a_coin_for_each() {
        let (q, draws) = (0.3, 200_000);
        let gaps = Gaps::new(threshold(q), 4);
        let mut counts = [0.0; 16];
        let (mut stream, mut batch) = (stream(0), Vec::new());
        for _ in 0..draws {
            batch.clear();
            gaps.select(&mut Words::new(&mut stream), 4, &mut batch);
            assert!(batch.is_sorted_by(|a, b| a < b));
            counts[batch.iter().fold(0, |set, record| set | 1 << record)] += 1.0;
        }
        let chi_square: f64 = (0_u32..16)
            .map(|set| {
                let chosen = set.count_ones() as i32;
                let expected = f64::from(draws) * q.powi(chosen) * (1.0 - q).powi(4 - chosen);
                (counts[set as usize] - expected).powi(2) / expected
            })
            .sum();
        assert!(chi_square < 60.0, "{chi_square}: {counts:?}");
    }

    /// The quick way is taken where few are chosen, and every record has its chance there: the first and
    /// the last as any. 5.5 standard errors have a false-alarm rate of 4e-8 each.
    #[test]
    fn every_record_has_its_chance_by_gaps() {
        let (records, draws) = (1000_u32, 40_000_u32);
        let coins = Coins::of_count(5, records);
        assert!(coins.gaps.is_some() && Coins::of_count(500, records).gaps.is_none());
        let mut counts = vec![0.0; records as usize];
        let (mut stream, mut batch) = (stream(1), Vec::new());
        for _ in 0..draws {
            batch.clear();
            coins.select(&mut stream, &mut batch);
            batch.iter().for_each(|record| counts[*record as usize] += 1.0);
        }
        let (mean, bound) =
            (0.005 * f64::from(draws), 5.5 * (0.005 * 0.995 * f64::from(draws)).sqrt());
        assert!(counts.iter().all(|count| (count - mean).abs() < bound), "{counts:?}");
    }

    #[test]
    fn the_second_word_decides_where_the_first_cannot() {
        let mut first = stream(2);
        let (word, next) = (first.word(), first.word());
        let chance = |low: u64| u128::from(word) << 64 | u128::from(low);
        assert!(!falls_below(&mut Words::new(&mut stream(2)), chance(next)));
        assert!(falls_below(&mut Words::new(&mut stream(2)), chance(next + 1)));
    }

    #[test]
    fn edges() {
        let select = |coins: Coins| {
            let mut batch = Vec::new();
            coins.select(&mut stream(4), &mut batch);
            batch
        };
        assert_eq!(select(Coins::of_count(3, 3)), [0, 1, 2]);
        assert_eq!(select(Coins::of_rate(1.0, 2)), [0, 1]);
        assert!(select(Coins::of_rate(0.0, 1000)).is_empty());
        assert!(select(Coins::of_count(0, 0)).is_empty());
        assert!(select(Coins::of_rate(0.0, u32::MAX)).is_empty());
        assert_eq!(Coins::of_count(3, 3).left_over(), 0);
        assert_eq!(Coins::of_count(2, 3).threshold, Some(0xaaaa_aaaa_aaaa_aaaa), "rounded down");
        for (chosen, records) in [(1, 40), (1, 300), (256, 1_000_000), (29, 1000), (1, u32::MAX)] {
            let left_over = Coins::of_count(chosen, records).left_over();
            assert!(
                0 < left_over && left_over <= most_left_over(u64::from(records)),
                "{left_over}"
            );
        }
    }
}
