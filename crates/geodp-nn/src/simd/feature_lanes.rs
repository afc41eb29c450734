//! What exact sums need of a register whose lanes are features of one record, as inputs are stored, and not
//! records: 16-bit factors of two records side by side, so that one instruction multiplies both and adds.
//!
//! Integers add up to the same whatever the order, so that it does not matter which of the two ways a
//! product goes.

use super::{ByteLanes, Vector};
use crate::half::decode;

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
    /// Room for the floats of a strip, where they are not as they stand.
    type Strip: Copy;
    const STRIP: Self::Strip;
    /// The first `V::LANES` of them.
    fn load<V: FeatureLanes>(from: &[Self]) -> V;
    /// At most [`MOST_STRIP`] of them as floats.
    fn floats<'a, V: FeatureLanes>(from: &'a [Self], room: &'a mut Self::Strip) -> &'a [f32];
}

/// Numbers of a strip at most.
pub(crate) const MOST_STRIP: usize = 80;

impl Stored for f32 {
    const ZERO: Self = 0.0;
    type Strip = ();
    const STRIP: () = ();
    #[inline(always)]
    fn load<V: FeatureLanes>(from: &[Self]) -> V {
        V::load(from)
    }
    #[inline(always)]
    fn floats<'a, V: FeatureLanes>(from: &'a [Self], (): &'a mut ()) -> &'a [f32] {
        from
    }
}

/// Half precision.
impl Stored for u16 {
    const ZERO: Self = 0;
    type Strip = [f32; MOST_STRIP];
    const STRIP: Self::Strip = [0.0; MOST_STRIP];
    #[inline(always)]
    fn load<V: FeatureLanes>(from: &[Self]) -> V {
        V::from_halves(from)
    }
    #[inline(always)]
    fn floats<'a, V: FeatureLanes>(from: &'a [Self], room: &'a mut Self::Strip) -> &'a [f32] {
        let room = &mut room[..from.len()];
        let whole = from.len() / V::LANES * V::LANES;
        let registers = from[..whole].chunks_exact(V::LANES);
        for (halves, to) in registers.zip(room.chunks_exact_mut(V::LANES)) {
            V::from_halves(halves).store(to);
        }
        for (&half, to) in from[whole..].iter().zip(&mut room[whole..]) {
            *to = decode(half);
        }
        room
    }
}
