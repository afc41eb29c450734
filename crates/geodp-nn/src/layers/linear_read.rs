//! A wide first linear layer with few outputs, forward from inputs as they are stored, `[record][input]`, in single or
//! half precision; and what exact sums want to know of them, Σ x² and max |x|, while they are at hand.
//!
//! Decision: features stand in the lanes here, as they do in memory. Turning a block round, so that records stand
//! in the lanes, takes longer than a linear layer of ten outputs. Every sum is sixteen chains, of the features
//! j mod 16, whatever a register holds, and they are added up in one order: the same bits on every
//! instruction set. Eight records pass at a time from their beginning to their end, a strip of each at once; weights come
//! from the L2 cache, once for the eight, and chains wait between strips. What limits such a layer is how many
//! lines of memory a core can wait for at once: so the first tile takes as many outputs as there are registers for, measures on the
//! way, and asks for the next strip line by line as it goes.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::linear::Linear;
use super::parts::parts_of;
use crate::simd::{FeatureLanes, Kernel, MOST_LANES, Stored};
use std::marker::PhantomData;

/// Chains of a sum.
pub(super) const CHAINS: usize = 16;
/// Features of a strip.
const STRIP: usize = 512;
/// Records that pass at a time: while they do, a strip of the weights stays in the L1 cache.
const RECORDS: usize = 8;
/// Bytes that come from memory at once.
const LINE: usize = 64;
/// Inputs from which on they are not kept in lanes: of fewer, a block's transposed copy fits the L2 cache, and
/// reading it is faster.
pub(crate) const WIDE_INPUTS: usize = 1024;
/// Outputs up to which a wide layer is read so.
const MOST_OUTPUTS: usize = 16;

/// Outputs of register tiles: twenty chains, or five where there are registers for them.
const fn tile_outputs<V: FeatureLanes>() -> &'static [usize] {
    if V::REGISTERS > 16 { &[10, 5, 2, 1] } else { &[5, 2, 1] }
}

/// Σ x² and max |x| of each record.
pub(crate) struct RowMeasure {
    pub(crate) squares: [f64; MOST_LANES],
    pub(crate) largest: [f32; MOST_LANES],
}

impl RowMeasure {
    pub(crate) fn new() -> Self {
        Self { squares: [0.0; MOST_LANES], largest: [0.0; MOST_LANES] }
    }
}

/// Whether a layer is read so, if its inputs stand in rows.
pub(crate) fn pays(layer: &Linear) -> bool {
    layer.inputs >= WIDE_INPUTS && layer.outputs <= MOST_OUTPUTS
}

/// Appends W, sixteen features of every output after sixteen of every output, the last filled up with zeros; from the
/// start of a line on, because what stands across two takes twice as long to load.
pub(crate) fn pack(layer: &Linear, weight: &[f32], packed: &mut Vec<f32>) {
    packed.reserve(packed_len(layer) + CHAINS);
    let end = packed.as_ptr().wrapping_add(packed.len());
    packed.resize(packed.len() + end.align_offset(LINE).min(CHAINS), 0.0);
    for first in (0..layer.inputs).step_by(CHAINS) {
        let features = first..layer.inputs.min(first + CHAINS);
        for row in weight.chunks_exact(layer.inputs) {
            packed.extend_from_slice(&row[features.clone()]);
            packed.resize(packed.len() + CHAINS - features.len(), 0.0);
        }
    }
}

/// Inputs filled up.
const fn padded(inputs: usize) -> usize {
    inputs.next_multiple_of(CHAINS)
}

/// Numbers that [`pack`] appends.
pub(crate) fn packed_len(layer: &Linear) -> usize {
    padded(layer.inputs) * layer.outputs
}

/// y = W·x + b of some records, `y[output][record]`, and their measure.
pub(crate) struct ReadRows<'a, V, T> {
    pub(crate) rows: &'a [&'a [T]],
    /// As [`pack`] left it.
    pub(crate) weights: &'a [f32],
    pub(crate) biases: &'a [f32],
    pub(crate) y: &'a mut [[f32; MOST_LANES]],
    pub(crate) measure: &'a mut RowMeasure,
    pub(crate) vector: PhantomData<V>,
}

/// What has been added up of one record.
#[derive(Clone, Copy)]
struct Waiting<V: FeatureLanes> {
    products: [[f32; CHAINS]; MOST_OUTPUTS],
    squares: [V::Sums; 2],
    largest: [V; 2],
}

impl<V: FeatureLanes> Waiting<V> {
    #[inline(always)]
    fn nothing() -> Self {
        Self {
            products: [[0.0; CHAINS]; MOST_OUTPUTS],
            squares: [V::sums_zero(); 2],
            largest: [V::zero(); 2],
        }
    }
}

impl<V: FeatureLanes, T: Stored> Kernel for ReadRows<'_, V, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let inputs = self.rows.first().map_or(0, |row| row.len());
        let mut last = [[T::ZERO; STRIP]; RECORDS];
        for (at, rows) in self.rows.chunks(RECORDS).enumerate() {
            let mut waiting = [Waiting::<V>::nothing(); RECORDS];
            // Of fewer records the last one passes more often.
            let row = |r: usize| rows[r.min(rows.len() - 1)];
            for first in (0..inputs).step_by(STRIP) {
                let strip = first..inputs.min(first + STRIP);
                if strip.len() % CHAINS != 0 {
                    for (r, last) in last.iter_mut().enumerate() {
                        last.fill(T::ZERO);
                        last[..strip.len()].copy_from_slice(&row(r)[strip.clone()]);
                    }
                }
                let (mut x, mut ahead) = ([&last[0][..0]; RECORDS], [&row(0)[..0]; RECORDS]);
                for r in 0..RECORDS {
                    x[r] = match strip.len() % CHAINS {
                        0 => &row(r)[strip.clone()],
                        _ => &last[r][..padded(strip.len())],
                    };
                    ahead[r] = match self.rows.get((at + 1) * RECORDS + r) {
                        Some(next) if strip.end == inputs => next,
                        _ => &row(r)[strip.end..],
                    };
                }
                let outputs = self.y.len();
                let weights = &self.weights[first * outputs..][..padded(strip.len()) * outputs];
                multiply(&x, &ahead, weights, outputs, &mut waiting);
            }
            for (record, waiting) in (at * RECORDS..).zip(&waiting[..rows.len()]) {
                for (o, y) in self.y.iter_mut().enumerate() {
                    y[record] = added_up(waiting.products[o]) + self.biases[o];
                }
                let (mut squares, mut largest) = ([0.0; CHAINS], [0.0f32; CHAINS]);
                for part in 0..CHAINS / V::LANES {
                    V::sums_store(waiting.squares[part], &mut squares[part * V::LANES..]);
                    waiting.largest[part].store(&mut largest[part * V::LANES..]);
                }
                self.measure.squares[record] = added_up(squares);
                self.measure.largest[record] = largest.into_iter().fold(0.0, f32::max);
            }
        }
    }
}

/// Adds a strip of all records.
#[inline(always)]
fn multiply<V: FeatureLanes, T: Stored>(
    x: &[&[T]; RECORDS],
    ahead: &[&[T]; RECORDS],
    weights: &[f32],
    outputs: usize,
    waiting: &mut [Waiting<V>; RECORDS],
) {
    let mut o = 0;
    for tile in parts_of(outputs, tile_outputs::<V>()) {
        macro_rules! tiles {
            ($records:literal, $outputs:literal, $parts:literal) => {
                for r in (0..RECORDS).step_by($records) {
                    let (x, ahead) = (&x[r..], &ahead[r..]);
                    let (waiting, place) = (&mut waiting[r..], (o, outputs));
                    if o == 0 {
                        add::<V, T, $records, $outputs, $parts, true>(
                            x, ahead, weights, place, waiting,
                        );
                    } else {
                        add::<V, T, $records, $outputs, $parts, false>(
                            x, ahead, weights, place, waiting,
                        );
                    }
                }
            };
        }
        match (V::LANES == CHAINS, tile) {
            (true, 10) if V::REGISTERS > 16 => tiles!(2, 10, 1),
            (true, 5) => tiles!(2, 5, 1),
            (true, 2) => tiles!(4, 2, 1),
            (true, _) => tiles!(4, 1, 1),
            (false, 5) => tiles!(1, 5, 2),
            (false, 2) => tiles!(1, 2, 2),
            (false, _) => tiles!(1, 1, 2),
        }
        o += tile;
    }
}

/// R records × O outputs from `first` on, P registers to each sum; the first tile also measures and asks for what comes.
#[inline(always)]
fn add<
    V: FeatureLanes,
    T: Stored,
    const R: usize,
    const O: usize,
    const P: usize,
    const FIRST: bool,
>(
    x: &[&[T]],
    ahead: &[&[T]],
    weights: &[f32],
    (first, outputs): (usize, usize),
    waiting: &mut [Waiting<V>],
) {
    let len = x[0].len();
    let (mut sums, mut measures) =
        ([[[V::zero(); P]; O]; R], [([V::sums_zero(); P], [V::zero(); P]); R]);
    let mut rows = [&x[0][..0]; R];
    for r in 0..R {
        rows[r] = &x[r][..len];
        for o in 0..O {
            for p in 0..P {
                sums[r][o][p] = V::load(&waiting[r].products[first + o][p * V::LANES..]);
            }
        }
        for p in 0..P {
            measures[r].0[p] = waiting[r].squares[p];
            measures[r].1[p] = waiting[r].largest[p];
        }
    }
    for (at, weights) in (0..len).step_by(CHAINS).zip(weights.chunks_exact(outputs * CHAINS)) {
        let weights = &weights[first * CHAINS..][..O * CHAINS];
        if FIRST && at % (LINE / size_of::<T>()) == 0 {
            for r in 0..R {
                if let Some(line) = ahead[r].get(at) {
                    V::prefetch(line);
                }
            }
        }
        for p in 0..P {
            let place = at + p * V::LANES;
            let mut values = [V::zero(); R];
            for r in 0..R {
                values[r] = T::load(&rows[r][place..]);
                if FIRST {
                    measures[r].0[p] = values[r].add_square(measures[r].0[p]);
                    measures[r].1[p] = measures[r].1[p].max_abs(values[r]);
                }
            }
            for o in 0..O {
                let weight = V::load(&weights[o * CHAINS + p * V::LANES..]);
                for r in 0..R {
                    sums[r][o][p] = weight.fma(values[r], sums[r][o][p]);
                }
            }
        }
    }
    for r in 0..R {
        for p in 0..P {
            for o in 0..O {
                sums[r][o][p].store(&mut waiting[r].products[first + o][p * V::LANES..]);
            }
            if FIRST {
                waiting[r].squares[p] = measures[r].0[p];
                waiting[r].largest[p] = measures[r].1[p];
            }
        }
    }
}

/// Sixteen chains: the second half to the first, and so on.
#[inline(always)]
pub(super) fn added_up<T: Copy + std::ops::Add<Output = T>>(mut chains: [T; CHAINS]) -> T {
    let mut half = CHAINS / 2;
    while half > 0 {
        for at in 0..half {
            chains[at] = chains[at] + chains[at + half];
        }
        half /= 2;
    }
    chains[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::half;
    use crate::simd::portable::Portable;
    #[cfg(target_arch = "x86_64")]
    use crate::simd::{InstructionSet, avx2::F32x8, avx512::F32x16};

    fn value(at: usize) -> f32 {
        (at as f32 * 0.731 + 0.2).sin()
    }

    /// Sixteen chains by themselves, one after another.
    fn chains<T: Copy>(count: usize, zero: T, add: impl Fn(usize, T) -> T) -> [T; CHAINS] {
        let mut chains = [zero; CHAINS];
        for at in 0..count.next_multiple_of(CHAINS) {
            chains[at % CHAINS] = add(at, chains[at % CHAINS]);
        }
        chains
    }

    fn read<V: FeatureLanes, T: Stored>(
        x: &[Vec<T>],
        weights: &[f32],
        biases: &[f32],
    ) -> (Vec<[f32; MOST_LANES]>, RowMeasure) {
        let rows: Vec<&[T]> = x.iter().map(Vec::as_slice).collect();
        let (mut y, mut measure) = (vec![[0.0; MOST_LANES]; biases.len()], RowMeasure::new());
        V::run(ReadRows::<V, T> {
            rows: &rows,
            weights,
            biases,
            y: &mut y,
            measure: &mut measure,
            vector: PhantomData,
        });
        (y, measure)
    }

    /// What the bits of released weights rest on: to the last one, whatever the register and however many
    /// records, outputs and strips.
    fn check<V: FeatureLanes>(inputs: usize, outputs: usize, records: usize) {
        let halves: Vec<Vec<u16>> = (0..records)
            .map(|record| (0..inputs).map(|at| half::encode(value(record * inputs + at))).collect())
            .collect();
        let x: Vec<Vec<f32>> = halves
            .iter()
            .map(|halves| halves.iter().map(|&half| half::decode(half)).collect())
            .collect();
        let weight: Vec<f32> = (0..inputs * outputs).map(|at| value(3 * at + 5)).collect();
        let biases: Vec<f32> = (0..outputs).map(|at| value(7 * at + 2)).collect();
        let layer = Linear { inputs, outputs, bias: true };
        let mut weights = vec![0.5; 3];
        pack(&layer, &weight, &mut weights);
        let weights = &weights[weights.len() - packed_len(&layer)..];
        let (y, measure) = read::<V, f32>(&x, weights, &biases);
        let (of_halves, measured) = read::<V, u16>(&halves, weights, &biases);
        assert_eq!((&y, measure.squares), (&of_halves, measured.squares));
        assert_eq!(measure.largest, measured.largest);
        for (record, x) in x.iter().enumerate() {
            let at = |at: usize| x.get(at).copied().unwrap_or(0.0);
            for (o, weight) in weight.chunks_exact(inputs).enumerate() {
                let weight = |at: usize| weight.get(at).copied().unwrap_or(0.0);
                let sums = chains(inputs, 0.0, |j, sum| weight(j).mul_add(at(j), sum));
                assert_eq!(y[o][record], added_up(sums) + biases[o], "{record}, {o}");
            }
            let squares = chains(inputs, 0.0, |j, sum| f64::from(at(j)).mul_add(at(j).into(), sum));
            assert_eq!(measure.squares[record], added_up(squares), "{record}");
            let largest = x.iter().fold(0.0f32, |most, x| most.max(x.abs()));
            assert_eq!(measure.largest[record], largest, "{record}");
        }
    }

    #[test]
    fn sums_are_sixteen_chains_everywhere() {
        for (inputs, outputs, records) in [(1, 1, 1), (16, 5, 4), (271, 7, 6), (1_029, 16, 13)] {
            check::<Portable>(inputs, outputs, records);
            #[cfg(target_arch = "x86_64")]
            if InstructionSet::available().contains(&InstructionSet::Avx2) {
                check::<F32x8>(inputs, outputs, records);
            }
            #[cfg(target_arch = "x86_64")]
            if InstructionSet::available().contains(&InstructionSet::Avx512) {
                check::<F32x16>(inputs, outputs, records);
            }
        }
    }
}
