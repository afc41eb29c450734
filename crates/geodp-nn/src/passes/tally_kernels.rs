//! What [`super::tally`] does to all lanes of a block at once: measures and cuts records, puts them on the grid and
//! adds them. Each is compiled for the instruction set it runs on; none has a branch that depends on a record.

use super::workspace::OfInput;
use crate::grid::{Factor, Grid, LANE_SHIFT, largest_product};
use crate::simd::{Kernel, MOST_LANES, Measuring, Vector, prefetch_ahead, sum_of_squares};

/// Σ squares and the largest absolute value of each lane.
#[derive(Clone)]
pub(super) struct Measured {
    pub(super) squares: [f64; MOST_LANES],
    pub(super) largest: [f32; MOST_LANES],
    pub(super) len: usize,
}

impl Measured {
    pub(super) fn new(len: usize) -> Self {
        Self { squares: [0.0; MOST_LANES], largest: [0.0; MOST_LANES], len }
    }

    #[inline(always)]
    fn lane(&self, lane: usize) -> Factor {
        let (squares, largest) = (self.squares[lane], f64::from(self.largest[lane]));
        Factor { squares, largest, len: self.len }
    }
}

/// Σ x² of each lane.
pub(super) struct Squares<'a, V> {
    pub(super) values: &'a [V],
    pub(super) squares: &'a mut [f64],
}

impl<V: Vector> Kernel for Squares<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        V::sums_store(sum_of_squares(self.values), self.squares);
    }
}

/// Σ x² and max |x| of each lane, unless they are known.
pub(super) struct Measure<'a, V: Vector> {
    pub(super) values: &'a [V],
    pub(super) known: Option<&'a OfInput<V>>,
    pub(super) to: &'a mut Measured,
}

impl<V: Vector> Kernel for Measure<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Measured { squares, largest, .. } = self.to;
        match self.known {
            Some(known) => known.store(squares, largest),
            None => {
                let mut measuring = Measuring::<V>::new();
                measuring.add(self.values);
                measuring.store(squares, largest);
            }
        }
    }
}

/// Norms of all lanes, and which of them are none in single precision.
pub(super) struct Lengths<'a> {
    pub(super) squares: &'a [f64; MOST_LANES],
    pub(super) norms: &'a mut [f64; MOST_LANES],
    pub(super) broken: &'a mut [bool; MOST_LANES],
}

impl Kernel for Lengths<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for lane in 0..MOST_LANES {
            self.norms[lane] = self.squares[lane].sqrt();
            self.broken[lane] = !(self.norms[lane] as f32).is_finite();
        }
    }
}

/// Weights that leave no record longer than the bound, and the scales of what stands in lanes.
pub(super) struct Cut<'a> {
    pub(super) grid: &'a Grid,
    pub(super) norms: &'a [f64; MOST_LANES],
    pub(super) weights: &'a mut [f64; MOST_LANES],
    pub(super) scales: &'a mut [f32; MOST_LANES],
}

impl Kernel for Cut<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for lane in 0..MOST_LANES {
            let weight = self.grid.cut(self.weights[lane], self.norms[lane]);
            (self.weights[lane], self.scales[lane]) = (weight, self.grid.lane_scale(weight));
        }
    }
}

/// a, b and a bound of |u·y| for each lane.
pub(super) struct FactorScales<'a> {
    pub(super) grid: &'a Grid,
    pub(super) weights: &'a [f64; MOST_LANES],
    pub(super) of_x: &'a Measured,
    pub(super) of_dy: &'a Measured,
    pub(super) a: &'a mut [f32; MOST_LANES],
    pub(super) b: &'a mut [f32; MOST_LANES],
    pub(super) products: &'a mut [u64],
}

impl Kernel for FactorScales<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (lane, product) in self.products.iter_mut().enumerate().take(MOST_LANES) {
            let (x, dy) = (self.of_x.lane(lane), self.of_dy.lane(lane));
            let scales = self.grid.factor_scales(self.weights[lane], &x, &dy);
            (self.a[lane], self.b[lane]) = scales;
            *product = largest_product(scales, &x, &dy);
        }
    }
}

/// `counts += Σ_lanes truncate(values·scale)`.
pub(super) struct AddTruncated<'a, V: Vector> {
    pub(super) values: &'a [V],
    pub(super) scale: V,
    pub(super) counts: &'a mut [i32],
}

impl<V: Vector> Kernel for AddTruncated<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (values, last) = self.values.as_chunks::<8>();
        let (counts, last_counts) = self.counts.as_chunks_mut::<8>();
        for (at, counts) in counts.iter_mut().enumerate().take(values.len()) {
            prefetch_ahead(values, at);
            let values = &values[at];
            let mut scaled = *values;
            for value in &mut scaled {
                *value = value.mul(self.scale);
            }
            for (count, sum) in counts.iter_mut().zip(V::truncated_sums(scaled)) {
                *count += sum;
            }
        }
        let mut scaled = [V::zero(); 8];
        for (scaled, value) in scaled.iter_mut().zip(last) {
            *scaled = value.mul(self.scale);
        }
        for (count, sum) in last_counts.iter_mut().zip(V::truncated_sums(scaled)) {
            *count += sum;
        }
    }
}

/// `sum += 2⁸·counts`, `counts = 0`.
pub(super) struct Fold<'a> {
    pub(super) counts: &'a mut [i32],
    pub(super) sum: &'a mut [i64],
}

impl Kernel for Fold<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (sum, count) in self.sum.iter_mut().zip(self.counts) {
            *sum += i64::from(*count) << LANE_SHIFT;
            *count = 0;
        }
    }
}
