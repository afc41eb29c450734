//! What exact sums need of a register whose lanes are features of one record, as inputs are stored, and not
//! records: 16-bit factors of two records side by side, so that one instruction multiplies both and adds.
//!
//! Integers add up to the same whatever the order, so that it does not matter which of the two ways a
//! product goes.

use super::{ByteLanes, Vector};

/// One machine register; [`super::Quantise::Pairs`] has as many sums as it has lanes.
pub(crate) trait FeatureLanes: Vector + ByteLanes {
    /// Both toward zero, lane by lane side by side. Of a value that an `i16` cannot hold, anything.
    fn side_by_side(self, other: Self) -> Self::Shorts;
    fn shorts_store(shorts: Self::Shorts, to: &mut [i16]);
    /// The same two factors in all lanes, the first in the lower half of `pair`.
    fn shorts_splat(pair: i32) -> Self::Shorts;
    /// `to += sums`, of each lane.
    fn pairs_add(sums: Self::Pairs, to: &mut [i64]);

    /// The first `LANES` numbers in half precision.
    fn from_halves(from: &[u16]) -> Self;
}

/// A number as inputs may be stored.
pub(crate) trait Stored: Copy + Sync {
    const ZERO: Self;
    /// The first `V::LANES` of them.
    fn load<V: FeatureLanes>(from: &[Self]) -> V;
}

impl Stored for f32 {
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn load<V: FeatureLanes>(from: &[Self]) -> V {
        V::load(from)
    }
}

/// Half precision.
impl Stored for u16 {
    const ZERO: Self = 0;
    #[inline(always)]
    fn load<V: FeatureLanes>(from: &[Self]) -> V {
        V::from_halves(from)
    }
}
