//! What inputs that stay bytes need of a register: sums of products of bytes with small whole numbers, which are exact
//! and hence the same on every instruction set, however a register puts them together.

use super::Quantise;

/// One machine register; [`Quantise::Pairs`] has a sum for every four bytes of it.
pub(crate) trait ByteLanes: Quantise {
    const BYTES: usize;
    type Bytes: Copy;

    /// The first [`Self::BYTES`] bytes.
    fn bytes_load(from: &[u8]) -> Self::Bytes;
    fn bytes_and(a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// `sums + Σ p·digit` of neighbouring fours; digits are signed, from −64 to 63.
    fn add_products(p: Self::Bytes, digits: Self::Bytes, sums: Self::Pairs) -> Self::Pairs;
    /// `sums + Σ p`, each byte somewhere.
    fn add_bytes(p: Self::Bytes, sums: Self::Pairs) -> Self::Pairs;
    /// `sums + Σ p·(p − 128)` of neighbouring fours.
    fn add_centred_squares(p: Self::Bytes, sums: Self::Pairs) -> Self::Pairs;
    /// The total of each of eight.
    fn totals(sums: [Self::Pairs; 8]) -> [i32; 8];

    /// The first [`Self::BYTES`] bytes of two records side by side as 16-bit factors, in an order of their own.
    fn byte_pairs(first: &[u8], second: &[u8]) -> [Self::Shorts; 4];
    /// Sums of products of [`Self::byte_pairs`] in the order of the bytes.
    fn byte_pairs_store(sums: [Self::Pairs; 4], to: &mut [i32]);
}
