//! Four registers side by side, so that a weight once loaded serves four times as many samples.

use super::{Kernel, Quantise, Vector};

/// The same for each part. Not `array::from_fn`: its closure is compiled without the features of the
/// instruction set, and then every intrinsic in it is a call.
macro_rules! each {
    ($part:ident => $body:expr) => {
        [
            {
                let $part = 0;
                $body
            },
            {
                let $part = 1;
                $body
            },
            {
                let $part = 2;
                $body
            },
            {
                let $part = 3;
                $body
            },
        ]
    };
}

/// A plain array, so that a slice of them is also a slice of registers.
pub(crate) type Wide<V> = [V; 4];

impl<V: Vector> Vector for Wide<V> {
    const LANES: usize = 4 * V::LANES;
    const PARTS: usize = 4;
    const REGISTERS: usize = V::REGISTERS;
    type Sums = [V::Sums; 4];
    type Part = V::Part;

    #[inline(always)]
    fn parts(values: &[Self]) -> &[V::Part] {
        V::parts(values.as_flattened())
    }

    #[inline]
    fn run<K: Kernel>(kernel: K) -> K::Output {
        V::run(kernel)
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        [V::splat(value); 4]
    }
    #[inline(always)]
    fn load(from: &[f32]) -> Self {
        each!(part => V::load(&from[part * V::LANES..]))
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        for (part, to) in self.iter().zip(to.chunks_exact_mut(V::LANES)) {
            part.store(to);
        }
    }
    #[inline(always)]
    fn prefetch<T>(from: &T) {
        V::prefetch(from);
    }
    #[inline(always)]
    fn transpose(rows: &[&[f32]], step: usize, out: &mut [Self]) {
        // Part by part: no more rows are read at a time than the CPU sees coming.
        let out = out.as_flattened_mut();
        for (part, rows) in rows.chunks_exact(V::LANES).enumerate() {
            V::transpose(rows, 4 * step, &mut out[part..]);
        }
    }
    const TRANSPOSES_BYTES: bool = V::TRANSPOSES_BYTES;
    #[inline(always)]
    fn transpose_bytes(rows: &[&[u8]], affine: (f32, f32), step: usize, out: &mut [Self]) {
        let out = out.as_flattened_mut();
        for (part, rows) in rows.chunks_exact(V::LANES).enumerate() {
            V::transpose_bytes(rows, affine, 4 * step, &mut out[part..]);
        }
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        each!(part => self[part].add(other[part]))
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        each!(part => self[part].sub(other[part]))
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        each!(part => self[part].mul(other[part]))
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        each!(part => self[part].div(other[part]))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        each!(part => self[part].sqrt())
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        each!(part => self[part].fma(factor[part], addend[part]))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        each!(part => self[part].max(other[part]))
    }
    #[inline(always)]
    fn where_positive(self, gate: Self) -> Self {
        each!(part => self[part].where_positive(gate[part]))
    }
    #[inline(always)]
    fn split_where_equal(self, a: Self, b: Self) -> (Self, Self) {
        let split = each!(part => self[part].split_where_equal(a[part], b[part]));
        (each!(part => split[part].0), each!(part => split[part].1))
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        self[0].add(self[1]).add(self[2].add(self[3])).sum()
    }

    #[inline(always)]
    fn sums_zero() -> Self::Sums {
        [V::sums_zero(); 4]
    }
    #[inline(always)]
    fn add_square(&self, sums: Self::Sums) -> Self::Sums {
        each!(part => self[part].add_square(sums[part]))
    }
    #[inline(always)]
    fn sums_add(a: Self::Sums, b: Self::Sums) -> Self::Sums {
        each!(part => V::sums_add(a[part], b[part]))
    }
    #[inline(always)]
    fn sums_store(sums: Self::Sums, to: &mut [f64]) {
        for (part, to) in sums.iter().zip(to.chunks_exact_mut(V::LANES)) {
            V::sums_store(*part, to);
        }
    }
}

impl<V: Vector> Quantise for Wide<V> {
    const SHORTS: usize = V::SHORTS;
    type Shorts = V::Shorts;
    type Pairs = V::Pairs;

    #[inline(always)]
    fn abs(self) -> Self {
        each!(part => self[part].abs())
    }
    #[inline(always)]
    fn max_abs(self, other: Self) -> Self {
        each!(part => self[part].max_abs(other[part]))
    }
    #[inline(always)]
    fn truncated_sums(values: [Self; 8]) -> [i32; 8] {
        let of_part = each!(part => V::truncated_sums(values.map(|value| value[part])));
        core::array::from_fn(|at| of_part.iter().map(|sums| sums[at]).sum())
    }
    #[inline(always)]
    fn store_shorts(self, to: &mut [i16]) {
        let (first, second) = to.split_at_mut(2 * V::LANES);
        self[0].store_shorts_of_two(self[1], first);
        self[2].store_shorts_of_two(self[3], second);
    }
    #[inline(always)]
    fn shorts_load(from: &[i16]) -> Self::Shorts {
        V::shorts_load(from)
    }
    #[inline(always)]
    fn pairs_zero() -> Self::Pairs {
        V::pairs_zero()
    }
    #[inline(always)]
    fn multiply_add(a: Self::Shorts, b: Self::Shorts, sums: Self::Pairs) -> Self::Pairs {
        V::multiply_add(a, b, sums)
    }
    #[inline(always)]
    fn pairs_sums(sums: [Self::Pairs; 4]) -> [i64; 4] {
        V::pairs_sums(sums)
    }
}
