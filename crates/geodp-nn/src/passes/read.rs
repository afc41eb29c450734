//! The inputs of one block, from where they are stored into the lanes, and through the first layer.
//!
//! Decision: inputs that are stored as floats are read where they stand, bytes are transposed before they
//! become floats, and only what a [`Samples`] hands out by copying goes through rows of the workspace.
//! Where the first layer is linear, it takes the inputs a strip at a time while they are in the L1 cache,
//! and so does measuring them: a linear model spends most of its time on moving its inputs. Of wide ones
//! no transposed copy is kept, which would not fit the L2 cache: an exact sum reads them again where they are
//! stored ([`Inputs`]); and with few outputs they are never turned round ([`crate::layers::linear_read`]).

use super::Pass;
use super::workspace::{OfInput, Workspace};
use crate::layers::linear::Linear;
use crate::layers::linear_read::{self, ReadRows, RowMeasure, WIDE_INPUTS};
use crate::simd::{Kernel, MOST_LANES, MOST_STRIP, Measuring, Stored, Vector};
use crate::{Samples, StoredInput};
use std::marker::PhantomData;
use std::ops::Range;

/// Features of a strip: a third of the L1 cache with the widest vectors. A multiple of four, see
/// [`Measuring`].
const STRIP: usize = 64;
/// What is left is put to the last strip if it is less: few columns take as long to transpose as many.
const LEAST: usize = MOST_STRIP - STRIP;

/// Where the inputs of a block stand once they are read.
#[allow(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub(crate) enum Inputs<'a> {
    /// In slot 0.
    Lanes,
    /// As floats, in rows of the workspace where it is none.
    Rows([Option<&'a [f32]>; MOST_LANES]),
    /// In half precision; places without a record have another's.
    Halves([&'a [u16]; MOST_LANES]),
    /// As bytes, see [`super::bytes`]; places without a record have another's.
    Bytes([&'a [u8]; MOST_LANES]),
}

impl<V: Vector> Workspace<V> {
    /// Reads the samples of `batch`, at most one for each lane, and says where they stand and how many
    /// steps of the network it has run on the way. They go to slot 0, unless they are measured and the
    /// first layer, which is linear, has taken them already. Lanes without a sample hold finite values,
    /// which the loss keeps out of every gradient.
    pub(super) fn read<'a>(
        &mut self,
        pass: &Pass<'a>,
        batch: &[u32],
        measure: bool,
    ) -> (Inputs<'a>, usize) {
        let samples = pass.samples;
        self.labels.clear();
        self.targets.clear();
        for &index in batch {
            self.labels.push(samples.label(index as usize));
        }
        if pass.layout.loss.is_regression() {
            self.targets.extend(batch.iter().map(|&index| samples.target(index as usize)));
        }
        let linear = pass.layout.input_linear();
        if let (true, Some(of_bytes), Some((layer, step))) = (measure, &pass.bytes, linear) {
            let rows = self.read_as_bytes(pass, of_bytes, batch, (layer, step.output));
            return (Inputs::Bytes(rows), 1);
        }
        let mut measuring = (measure && linear.is_some()).then(Measuring::new);
        self.of_input = None;
        let mut y = linear.map(|(_, step)| std::mem::take(&mut self.values[step.output]));
        let first = linear.zip(y.as_deref_mut()).map(|((layer, _), y)| FirstLayer {
            layer,
            packed: &pass.packed[pass.packed_of[0].clone()],
            y,
        });
        let wide = pass.layout.input_len >= WIDE_INPUTS && pass.layout.inputs_read_once();
        let keep = measuring.is_none() || !wide;
        let mut through = Through { first, measuring: measuring.as_mut(), keep };
        let inputs = if let Some(halves) = self.read_halves(samples, batch, &mut through) {
            halves
        } else if !through.reads_rows() && self.read_bytes(samples, batch, &mut through) {
            Inputs::Lanes
        } else {
            self.read_rows(samples, batch, &mut through)
        };
        if let (Some(y), Some((_, step))) = (y, linear) {
            self.values[step.output] = y;
        }
        if self.of_input.is_none() {
            self.of_input = measuring.map(OfInput::Lanes);
        }
        (if keep { Inputs::Lanes } else { inputs }, usize::from(linear.is_some()))
    }

    /// Reads bytes that are all to be scaled alike, or says that it did not.
    fn read_bytes(
        &mut self,
        samples: &dyn Samples,
        batch: &[u32],
        through: &mut Through<'_, V>,
    ) -> bool {
        let mut rows = [&[][..]; MOST_LANES];
        let mut scaling: &[(f32, f32)] = &[];
        for (row, &index) in rows.iter_mut().zip(batch) {
            let Some(StoredInput::Bytes(bytes, affine)) = samples.stored_input(index as usize)
            else {
                return false;
            };
            if !scaling.is_empty() && scaling != affine {
                return false;
            }
            (*row, scaling) = (bytes, affine);
        }
        let first = rows[0];
        rows[batch.len()..].fill(first);
        let (rows, out) = (&rows[..V::LANES], &mut self.values[0]);
        V::run(TransposeBytes { rows, affine: scaling, out, through })
    }

    /// Reads inputs that are all in half precision, or says that it did not.
    fn read_halves<'a>(
        &mut self,
        samples: &'a dyn Samples,
        batch: &[u32],
        through: &mut Through<'_, V>,
    ) -> Option<Inputs<'a>> {
        let mut rows = [&[][..]; MOST_LANES];
        for (row, &index) in rows.iter_mut().zip(batch) {
            let Some(StoredInput::Halves(halves)) = samples.stored_input(index as usize) else {
                return None;
            };
            *row = halves;
        }
        let first = rows[0];
        rows[batch.len()..].fill(first);
        self.of_input = through.take(&rows, batch.len(), &mut self.values[0]);
        Some(Inputs::Halves(rows))
    }

    fn read_rows<'a>(
        &mut self,
        samples: &'a dyn Samples,
        batch: &[u32],
        through: &mut Through<'_, V>,
    ) -> Inputs<'a> {
        let len = self.values[0].len();
        let mut stored = [None; MOST_LANES];
        let mut rows = [&[][..]; MOST_LANES];
        for (lane, (row, own)) in rows.iter_mut().zip(self.rows.chunks_exact_mut(len)).enumerate() {
            let Some(index) = batch.get(lane).map(|&index| index as usize) else {
                own.fill(0.0);
                *row = own;
                continue;
            };
            *row = match samples.stored_input(index) {
                Some(StoredInput::Floats(values)) => {
                    stored[lane] = Some(values);
                    values
                }
                Some(StoredInput::Bytes(bytes, affine)) => {
                    V::run(Scale { bytes, affine, to: own });
                    own
                }
                // Halves among others.
                Some(StoredInput::Halves(_)) | None => {
                    samples.read_input(index, own);
                    own
                }
            };
        }
        self.of_input = through.take(&rows, batch.len(), &mut self.values[0]);
        Inputs::Rows(stored)
    }
}

/// What inputs go through strip by strip.
struct Through<'a, V: Vector> {
    first: Option<FirstLayer<'a, V>>,
    measuring: Option<&'a mut Measuring<V>>,
    /// Whether anyone wants them afterwards in slot 0; bytes always stay there.
    keep: bool,
}

/// A network's first layer, if it is linear.
struct FirstLayer<'a, V> {
    layer: &'a Linear,
    packed: &'a [f32],
    y: &'a mut [V],
}

impl<V: Vector> Through<'_, V> {
    #[inline(always)]
    fn forward(&mut self, strip: Range<usize>, x: &[V]) {
        if let Some(FirstLayer { layer, packed, y }) = &mut self.first {
            layer.forward_part(strip, packed, x, y);
        }
    }

    /// Whether the first layer takes its inputs from rows as they stand, however they are stored: where that is
    /// quicker and they need not be kept.
    fn reads_rows(&self) -> bool {
        !self.keep && self.first.as_ref().is_some_and(|first| linear_read::pays(first.layer))
    }

    /// The whole first layer so.
    fn read_rows<T: Stored>(&mut self, rows: &[&[T]]) -> Option<RowMeasure> {
        if !self.reads_rows() {
            return None;
        }
        let FirstLayer { layer, packed, y } = self.first.as_mut()?;
        let mut measure = RowMeasure::new();
        let mut lanes = vec![[0.0; MOST_LANES]; layer.outputs];
        V::run(ReadRows::<V::Part, T> {
            rows,
            weights: &packed[packed.len() - linear_read::packed_len(layer)..],
            biases: &packed[layer.inputs * layer.outputs..][..layer.outputs],
            y: &mut lanes,
            measure: &mut measure,
            vector: PhantomData,
        });
        V::run(Load { from: &lanes, to: y });
        Some(measure)
    }

    /// Rows, of which the first `records` are records, as they stand or into their lanes.
    fn take<T: Stored>(
        &mut self,
        rows: &[&[T]; MOST_LANES],
        records: usize,
        lanes: &mut [V],
    ) -> Option<OfInput<V>> {
        let measured = self.read_rows(&rows[..records]);
        if measured.is_none() {
            V::run(Transpose { rows: &rows[..V::LANES], out: lanes, through: self });
        }
        measured.map(OfInput::Rows)
    }

    #[inline(always)]
    fn measure(&mut self, x: &[V]) {
        if let Some(measuring) = &mut self.measuring {
            measuring.add(x);
        }
    }
}

/// Records' values into their lanes.
pub(super) struct Load<'a, V> {
    pub(super) from: &'a [[f32; MOST_LANES]],
    pub(super) to: &'a mut [V],
}

impl<V: Vector> Kernel for Load<'_, V> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (to, from) in self.to.iter_mut().zip(self.from) {
            *to = V::load(from);
        }
    }
}

/// Strips of so many features.
#[inline(always)]
fn strips(len: usize) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let first = next;
        next = if len - first < STRIP + LEAST { len } else { first + STRIP };
        (first < len).then_some(first..next)
    })
}

/// The places of a strip: its own, or the first, which stay in the L1 cache, if it need not be kept.
#[inline(always)]
fn places<V>(out: &mut [V], strip: Range<usize>, keep: bool) -> &mut [V] {
    if keep { &mut out[strip] } else { &mut out[..strip.len()] }
}

/// `out[feature]` from `rows[lane][feature]`.
struct Transpose<'a, 'b, V: Vector, T> {
    rows: &'a [&'a [T]],
    out: &'a mut [V],
    through: &'a mut Through<'b, V>,
}

impl<V: Vector, T: Stored> Kernel for Transpose<'_, '_, V, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut room = [T::STRIP; MOST_LANES];
        for strip in strips(self.out.len()) {
            let mut rows = [&[][..]; MOST_LANES];
            for ((to, row), room) in rows.iter_mut().zip(self.rows).zip(&mut room) {
                *to = T::floats::<V::Part>(&row[strip.clone()], room);
            }
            let (next, third) = (strip.end, V::LANES.div_ceil(3));
            fetch::<V, T>(&self.rows[..third], next);
            let out = places(self.out, strip.clone(), self.through.keep);
            V::transpose(&rows[..V::LANES], 1, out);
            fetch::<V, T>(&self.rows[third..2 * third], next);
            self.through.forward(strip, out);
            fetch::<V, T>(&self.rows[2 * third..V::LANES], next);
            self.through.measure(out);
        }
    }
}

/// Asks for the strip of some rows that starts at `next`, so that it comes while another is worked on. A few
/// rows at a time: beyond what the CPU can wait for at once, asking is waiting.
#[inline(always)]
fn fetch<V: Vector, T>(rows: &[&[T]], next: usize) {
    for row in rows {
        for line in row[next..].iter().take(STRIP).step_by(64 / size_of::<T>()) {
            V::prefetch(line);
        }
    }
}

/// `out[feature]` from `rows[lane][feature]·a + b`, part by part, where the vector can; else `false`.
struct TransposeBytes<'a, 'b, V: Vector> {
    rows: &'a [&'a [u8]],
    affine: &'a [(f32, f32)],
    out: &'a mut [V],
    through: &'a mut Through<'b, V>,
}

impl<V: Vector> Kernel for TransposeBytes<'_, '_, V> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let part = self.out.len() / self.affine.len().max(1);
        if !V::TRANSPOSES_BYTES || part < LEAST || self.affine.is_empty() {
            return false;
        }
        // Pieces that go on must be multiples of four.
        let whole = self.affine.len() > 1;
        let mut rows = [&[][..]; MOST_LANES];
        for (at, &affine) in self.affine.iter().enumerate() {
            for strip in strips(part) {
                let strip = at * part + strip.start..at * part + strip.end;
                for (to, row) in rows.iter_mut().zip(self.rows) {
                    *to = &row[strip.clone()];
                    if let Some(next) = row.get(strip.end) {
                        V::prefetch(next);
                    }
                }
                let out = &mut self.out[strip.clone()];
                V::transpose_bytes(&rows[..V::LANES], affine, 1, out);
                if !whole {
                    self.through.forward(strip, out);
                    self.through.measure(out);
                }
            }
        }
        if whole {
            self.through.forward(0..self.out.len(), self.out);
            self.through.measure(self.out);
        }
        true
    }
}

/// `to = bytes·a + b`, part by part.
struct Scale<'a> {
    bytes: &'a [u8],
    affine: &'a [(f32, f32)],
    to: &'a mut [f32],
}

impl Kernel for Scale<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let part = self.to.len() / self.affine.len();
        let parts = self.bytes.chunks_exact(part).zip(self.to.chunks_exact_mut(part));
        for ((bytes, to), &(a, b)) in parts.zip(self.affine) {
            for (to, &byte) in to.iter_mut().zip(bytes) {
                *to = f32::from(byte) * a + b;
            }
        }
    }
}
