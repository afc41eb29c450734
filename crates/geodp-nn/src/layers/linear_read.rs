//! A wide first linear layer with few outputs, forward from inputs as they are stored: `[record][input]`; and
//! what exact sums want to know of them, Σ x² and max |x|, while they are at hand.
//!
//! Decision: features stand in the lanes here, as they do in memory. Turning a block round, so that records stand
//! in the lanes, takes longer than a linear layer of ten outputs. Every sum is sixteen chains, of the features
//! j mod 16, whatever a register holds, and they are added up in one order: the same bits on every
//! instruction set. Eight records pass at a time from their beginning to their end, a strip of them for all outputs,
//! the next one asked for; weights come from the L2 cache, once for the eight, and chains wait between strips.

#![allow(clippy::needless_range_loop, reason = "iterators over tiles keep them out of registers")]

use super::linear::Linear;
use super::parts::parts_of;
use crate::simd::{FeatureLanes, Kernel, MOST_LANES};
use std::marker::PhantomData;

/// Chains of a sum.
pub(super) const CHAINS: usize = 16;
/// Features of a strip: 8 KiB of eight records.
const STRIP: usize = 256;
/// Records that pass at a time: while they do, a strip of the weights stays in the L1 cache.
const RECORDS: usize = 8;
/// Outputs of a register tile; records beside them where there are registers.
const OUTPUTS: usize = 5;
const TILE: usize = 4;
/// Floats that come from memory at once.
const LINE: usize = 16;
/// Inputs from which on they are not kept in lanes: of fewer, a block's transposed copy fits the L2 cache, and
/// reading it is faster.
pub(crate) const WIDE_INPUTS: usize = 1024;
/// Outputs up to which a wide layer is read so.
const MOST_OUTPUTS: usize = 16;

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

/// Whether a layer is read so, if its inputs stand in rows of floats.
pub(crate) fn pays(layer: &Linear) -> bool {
    layer.inputs >= WIDE_INPUTS && layer.outputs <= MOST_OUTPUTS
}

/// Appends W as it stands, each row filled up with zeros to whole registers.
pub(crate) fn pack(layer: &Linear, weight: &[f32], packed: &mut Vec<f32>) {
    for row in weight.chunks_exact(layer.inputs) {
        packed.extend_from_slice(row);
        packed.resize(packed.len() + padded(layer.inputs) - layer.inputs, 0.0);
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
pub(crate) struct ReadRows<'a, V> {
    pub(crate) rows: &'a [&'a [f32]],
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

impl<V: FeatureLanes> Kernel for ReadRows<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let inputs = self.rows.first().map_or(0, |row| row.len());
        let mut last = [[0.0; STRIP]; RECORDS];
        for (at, rows) in self.rows.chunks(RECORDS).enumerate() {
            let mut waiting = [Waiting::<V>::nothing(); RECORDS];
            let waiting = &mut waiting[..rows.len()];
            for first in (0..inputs).step_by(STRIP) {
                let strip = first..inputs.min(first + STRIP);
                let mut x = [&[][..]; RECORDS];
                if strip.len() % CHAINS == 0 {
                    for (x, row) in x.iter_mut().zip(rows) {
                        *x = &row[strip.clone()];
                    }
                } else {
                    for (last, row) in last.iter_mut().zip(rows) {
                        last.fill(0.0);
                        last[..strip.len()].copy_from_slice(&row[strip.clone()]);
                    }
                    for (x, last) in x.iter_mut().zip(&last) {
                        *x = &last[..padded(strip.len())];
                    }
                }
                let weights = Weights { from: &self.weights[first..], row: padded(inputs) };
                multiply(&x[..rows.len()], weights, self.y.len(), waiting);
                for (r, waiting) in waiting.iter_mut().enumerate() {
                    let next = if strip.end < inputs {
                        &rows[r][strip.end..]
                    } else {
                        self.rows.get((at + 1) * RECORDS + r).unwrap_or(&rows[r])
                    };
                    for line in next.iter().take(STRIP).step_by(LINE) {
                        V::prefetch(line);
                    }
                    measure(x[r], waiting);
                }
            }
            for (record, waiting) in (at * RECORDS..).zip(waiting) {
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

/// A strip of the weights, each row `row` after the one before.
#[derive(Clone, Copy)]
struct Weights<'a> {
    from: &'a [f32],
    row: usize,
}

/// Adds a strip of some records.
#[inline(always)]
fn multiply<V: FeatureLanes>(
    x: &[&[f32]],
    weights: Weights<'_>,
    outputs: usize,
    waiting: &mut [Waiting<V>],
) {
    let mut o = 0;
    for tile in parts_of(outputs, &[OUTPUTS, 2, 1]) {
        macro_rules! tiles {
            ($records:literal, $parts:literal) => {{
                let groups = x.chunks_exact($records);
                for (x, waiting) in groups.zip(waiting.chunks_exact_mut($records)) {
                    match tile {
                        OUTPUTS => add::<V, $records, OUTPUTS, $parts>(x, weights, o, waiting),
                        2 => add::<V, $records, 2, $parts>(x, weights, o, waiting),
                        _ => add::<V, $records, 1, $parts>(x, weights, o, waiting),
                    }
                }
            }};
        }
        match (V::LANES == CHAINS, x.len().is_multiple_of(TILE)) {
            (true, true) => tiles!(4, 1),
            (true, false) => tiles!(1, 1),
            (false, _) => tiles!(1, 2),
        }
        o += tile;
    }
}

/// R records × O outputs, P registers to each sum.
#[inline(always)]
fn add<V: FeatureLanes, const R: usize, const O: usize, const P: usize>(
    x: &[&[f32]],
    weights: Weights<'_>,
    first: usize,
    waiting: &mut [Waiting<V>],
) {
    let mut sums = [[[V::zero(); P]; O]; R];
    let (mut rows, mut of_outputs) = ([&x[0][..0]; R], [&weights.from[..0]; O]);
    for r in 0..R {
        rows[r] = &x[r][..x[0].len()];
        for o in 0..O {
            for p in 0..P {
                sums[r][o][p] = V::load(&waiting[r].products[first + o][p * V::LANES..]);
            }
        }
    }
    for o in 0..O {
        of_outputs[o] = &weights.from[(first + o) * weights.row..][..x[0].len()];
    }
    for at in (0..x[0].len()).step_by(CHAINS) {
        for p in 0..P {
            let place = at + p * V::LANES;
            let mut values = [V::zero(); R];
            for r in 0..R {
                values[r] = V::load(&rows[r][place..]);
            }
            for o in 0..O {
                let weight = V::load(&of_outputs[o][place..]);
                for r in 0..R {
                    sums[r][o][p] = weight.fma(values[r], sums[r][o][p]);
                }
            }
        }
    }
    for r in 0..R {
        for o in 0..O {
            for p in 0..P {
                sums[r][o][p].store(&mut waiting[r].products[first + o][p * V::LANES..]);
            }
        }
    }
}

/// Adds a strip of one record.
#[inline(always)]
fn measure<V: FeatureLanes>(x: &[f32], waiting: &mut Waiting<V>) {
    let Waiting { mut squares, mut largest, .. } = *waiting;
    for x in x.as_chunks::<CHAINS>().0 {
        for (part, x) in x.chunks_exact(V::LANES).enumerate() {
            let x = V::load(x);
            squares[part] = x.add_square(squares[part]);
            largest[part] = largest[part].max_abs(x);
        }
    }
    (waiting.squares, waiting.largest) = (squares, largest);
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

    /// What the bits of released weights rest on: to the last one, whatever the register and however many
    /// records, outputs and strips.
    fn check<V: FeatureLanes>(inputs: usize, outputs: usize, records: usize) {
        let x: Vec<Vec<f32>> = (0..records)
            .map(|record| (0..inputs).map(|at| value(record * inputs + at)).collect())
            .collect();
        let weight: Vec<f32> = (0..inputs * outputs).map(|at| value(3 * at + 5)).collect();
        let biases: Vec<f32> = (0..outputs).map(|at| value(7 * at + 2)).collect();
        let layer = Linear { inputs, outputs, bias: true };
        let mut weights = Vec::new();
        pack(&layer, &weight, &mut weights);
        assert_eq!(weights.len(), packed_len(&layer));
        let rows: Vec<&[f32]> = x.iter().map(Vec::as_slice).collect();
        let mut y = vec![[0.0; MOST_LANES]; outputs];
        let mut measure = RowMeasure::new();
        V::run(ReadRows::<V> {
            rows: &rows,
            weights: &weights,
            biases: &biases,
            y: &mut y,
            measure: &mut measure,
            vector: PhantomData,
        });
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
