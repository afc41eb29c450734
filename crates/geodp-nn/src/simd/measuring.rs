//! Σ x² in double precision and max |x| of each lane, of values that come piece by piece.
//!
//! The order of additions is that of [`super::sum_of_squares`]: four chains, which hide the latency of the
//! additions. Vectors of several registers are measured register by register, so that the chains of one
//! stay in registers.

use super::Vector;

pub(crate) struct Measuring<V: Vector> {
    /// As many as `V` has.
    parts: [Part<V::Part>; 4],
}

#[derive(Clone, Copy)]
struct Part<V: Vector> {
    sums: [V::Sums; 4],
    largest: [V; 2],
}

impl<V: Vector> Measuring<V> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let sums = [V::Part::sums_zero(); 4];
        Self { parts: [Part { sums, largest: [V::Part::zero(); 2] }; 4] }
    }

    /// Adds values; all pieces but the last must be multiples of four.
    #[inline(always)]
    pub(crate) fn add(&mut self, values: &[V]) {
        let values = V::parts(values);
        for (at, part) in self.parts[..V::PARTS].iter_mut().enumerate() {
            part.add(values.get(at..).unwrap_or(&[]), V::PARTS);
        }
    }

    #[inline(always)]
    pub(crate) fn store(&self, squares: &mut [f64], largest: &mut [f32]) {
        let lanes = V::Part::LANES;
        for (at, part) in self.parts[..V::PARTS].iter().enumerate() {
            let [a, b, c, d] = part.sums;
            let sum = V::Part::sums_add(V::Part::sums_add(a, b), V::Part::sums_add(c, d));
            V::Part::sums_store(sum, &mut squares[at * lanes..]);
            part.largest[0].max(part.largest[1]).store(&mut largest[at * lanes..]);
        }
    }
}

impl<V: Vector> Part<V> {
    /// Every `step`-th of `values`.
    #[inline(always)]
    fn add(&mut self, values: &[V], step: usize) {
        let count = values.len().div_ceil(step);
        let (mut sums, mut largest) = (self.sums, self.largest);
        for at in 0..count / 4 {
            let four = &values[4 * at * step..][..3 * step + 1];
            let (a, b, c, d) = (&four[0], &four[step], &four[2 * step], &four[3 * step]);
            sums[0] = a.add_square(sums[0]);
            sums[1] = b.add_square(sums[1]);
            sums[2] = c.add_square(sums[2]);
            sums[3] = d.add_square(sums[3]);
            largest[0] = largest[0].max_abs(*a).max_abs(*b);
            largest[1] = largest[1].max_abs(*c).max_abs(*d);
        }
        for at in count / 4 * 4..count {
            let value = &values[at * step];
            sums[0] = value.add_square(sums[0]);
            largest[0] = largest[0].max_abs(*value);
        }
        (self.sums, self.largest) = (sums, largest);
    }
}
