//! What a dataset is, in one digest that processes can make together.
//!
//! Units (records, where each is its own) are cut into at most 4,096 blocks, by their number alone. The
//! fingerprint is the digest of a head (shape, classes, preprocessing, number of units) and of each
//! block's digest. A [`share`] is a run of whole blocks, so whoever holds one can make its part of the
//! fingerprint without the rest, and all parts together give the bits that one process would.

use std::ops::Range;

use rayon::prelude::*;

use crate::Dataset;
use crate::digest::{FieldHasher, Fingerprint};

const MOST_BLOCKS: usize = 4096;

/// Units of a block, where there are `units` in all.
fn block_len(units: usize) -> usize {
    units.div_ceil(MOST_BLOCKS).max(1)
}

/// The units of `rank`, of `total` units over `size` processes: whole blocks, as evenly as they go.
pub fn share(total: usize, rank: usize, size: usize) -> Range<usize> {
    let len = block_len(total);
    let blocks = total.div_ceil(len) as u128;
    let start = |rank: usize| (blocks * rank as u128 / size as u128) as usize * len;
    start(rank).min(total)..start(rank + 1).min(total)
}

/// What a share knows of the whole's fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintPart {
    /// Of what all shares have in common.
    pub head: Fingerprint,
    /// Of each of its blocks, in order.
    pub blocks: Vec<Fingerprint>,
}

impl FingerprintPart {
    /// The fingerprint of the whole, of all its parts in order.
    pub fn join<'a>(head: Fingerprint, parts: impl IntoIterator<Item = &'a Self>) -> Fingerprint {
        let mut hasher = FieldHasher::new("geodp dataset 2");
        hasher.field(head.as_bytes());
        let blocks = parts.into_iter().flat_map(|part| &part.blocks);
        blocks.for_each(|block| hasher.field(block.as_bytes()));
        hasher.finish()
    }

    /// This part of a dataset of `units` units, whose [`share`] `data` is.
    pub fn of(data: &Dataset, units: usize) -> Self {
        let (len, own) = (block_len(units), data.unit_count());
        let block = |at: usize| {
            let start = at * len;
            let mut hasher = FieldHasher::new("geodp block 2");
            for unit in start..own.min(start + len) {
                match data.units() {
                    None => data.feed(unit, &mut hasher),
                    Some(column) => {
                        let rows = column.units().rows(unit as u32);
                        hasher.number(rows.len() as u64);
                        rows.iter().for_each(|&row| data.feed(row as usize, &mut hasher));
                    }
                }
            }
            hasher.finish()
        };
        Self {
            head: data.head(units),
            blocks: (0..own.div_ceil(len)).into_par_iter().map(block).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Records, Shape, UnitColumn};

    #[test]
    fn shares_are_even_and_whole() {
        for (total, size) in [(10, 3), (2, 5), (0, 2), (60_000, 7), (4097, 2)] {
            let all: Vec<_> = (0..size).flat_map(|rank| share(total, rank, size)).collect();
            assert!(all.into_iter().eq(0..total));
            let even = |rank| share(total, rank, size).len().abs_diff(total / size);
            assert!((0..size).all(|rank| even(rank) <= block_len(total)));
        }
    }

    fn data(records: usize, units: Option<usize>) -> Dataset {
        let values = (0..2 * records).map(|at| at as f32).collect();
        let values = Records::from_floats(Shape::features(2), values, "made").unwrap();
        let labels = (0..records as u32).map(|at| at % 2).collect();
        let data = Dataset::new("d", values, labels, vec!["a".into(), "b".into()]).unwrap();
        let Some(units) = units else { return data };
        let of: Vec<u32> = (0..records).map(|at| (at * 7 % units) as u32).collect();
        data.with_units(UnitColumn::new("who", 3, &of).unwrap()).unwrap()
    }

    #[test]
    fn parts_of_any_number_of_shares_give_the_whole() {
        for (records, units) in [(1, None), (9, None), (9000, None), (50, Some(8))] {
            let whole = data(records, units);
            let total = whole.unit_count();
            for size in [1, 2, 3, 12] {
                let part = |rank| {
                    FingerprintPart::of(&whole.share(share(total, rank, size)).unwrap(), total)
                };
                let parts: Vec<_> = (0..size).map(part).collect();
                assert!(parts.iter().all(|part| part.head == parts[0].head));
                let joined = FingerprintPart::join(parts[0].head, &parts);
                assert_eq!(joined, whole.fingerprint(), "{records} records over {size}");
            }
        }
    }
}
