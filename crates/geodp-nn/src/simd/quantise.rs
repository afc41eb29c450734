//! What exact sums need of a vector: truncation to integers, and products of 16-bit factors.
//!
//! Integers add up to the same whatever the order, so here, and only here, records may be added
//! across lanes in any arrangement: `Shorts` holds [`Quantise::SHORTS`] records of one feature in an
//! order of its own, the same for both factors of a product.

/// The integers beside a [`super::Vector`].
pub(crate) trait Quantise: Copy {
    /// Records in one register of 16-bit factors.
    const SHORTS: usize;
    /// [`Self::SHORTS`] 16-bit factors, and sums of products of them, two records to each `i32`.
    type Shorts: Copy;
    type Pairs: Copy;

    fn abs(self) -> Self;
    /// The larger of a value that is not negative and |other|; any if either is NaN.
    fn max_abs(self, other: Self) -> Self;
    /// Each lane of each value truncated toward zero, and the sum over its lanes, which must fit as
    /// each of them must; no NaN.
    fn truncated_sums(values: [Self; 8]) -> [i32; 8];

    /// Stores the lanes toward zero as `i16`, in their order if they fill one register, else in an order of
    /// their own within each [`Self::SHORTS`]; a value beyond them becomes the nearest.
    fn store_shorts(self, to: &mut [i16]);
    /// The same of twice as many lanes.
    #[inline(always)]
    fn store_shorts_of_two(self, other: Self, to: &mut [i16]) {
        let (first, second) = to.split_at_mut(to.len() / 2);
        self.store_shorts(first);
        other.store_shorts(second);
    }
    fn shorts_load(from: &[i16]) -> Self::Shorts;
    fn pairs_zero() -> Self::Pairs;
    /// `sums + a·b`, products of neighbouring records added.
    fn multiply_add(a: Self::Shorts, b: Self::Shorts, sums: Self::Pairs) -> Self::Pairs;
    /// The total of each of four.
    fn pairs_sums(sums: [Self::Pairs; 4]) -> [i64; 4];
}
