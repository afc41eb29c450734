//! What exact sums need of a register whose lanes are features of one record, as inputs are stored, and not
//! records: 16-bit factors of two records side by side, so that one instruction multiplies both and adds.
//!
//! Integers add up to the same whatever the order, so that it does not matter which of the two ways a
//! product goes.

use super::Vector;

/// One machine register; [`super::Quantise::Pairs`] has as many sums as it has lanes.
pub(crate) trait FeatureLanes: Vector {
    /// Both toward zero, lane by lane side by side. Of a value that an `i16` cannot hold, anything.
    fn side_by_side(self, other: Self) -> Self::Shorts;
    fn shorts_store(shorts: Self::Shorts, to: &mut [i16]);
    /// The same two factors in all lanes, the first in the lower half of `pair`.
    fn shorts_splat(pair: i32) -> Self::Shorts;
    /// `to += sums`, of each lane.
    fn pairs_add(sums: Self::Pairs, to: &mut [i64]);

    /// The first `LANES` bytes as numbers.
    fn from_bytes(from: &[u8]) -> Self;
    /// The first [`super::Quantise::SHORTS`] bytes.
    fn shorts_from_bytes(from: &[u8]) -> Self::Shorts;
    /// The first 4·`LANES` bytes of two records side by side, in an order of their own.
    fn byte_pairs(first: &[u8], second: &[u8]) -> [Self::Shorts; 4];
    /// Sums of products of [`Self::byte_pairs`] in the order of the bytes.
    fn byte_pairs_store(sums: [Self::Pairs; 4], to: &mut [i32]);
}
