//! Inputs that stay bytes: exact sums of a network whose first layer takes them as they are stored.
//!
//! Decision: whether they do is told by the network and by the store of all inputs, never by what is in a batch:
//! it decides the last bits of gradients, and those of one record must not depend on another.

use super::Pass;
use super::read::Load;
use super::workspace::{OfInput, Workspace};
use crate::layers::linear::Linear;
use crate::layers::linear_bytes::{self, ByteScaling, ByteWeights, ReadBytes};
use crate::layers::linear_read::RowMeasure;
use crate::layout::Layout;
use crate::simd::{MOST_LANES, Vector};
use crate::{Samples, StoredInput};
use std::marker::PhantomData;

/// How a first layer takes bytes as they are stored, and its weights for it.
pub(crate) struct OfBytes {
    pub(crate) scaling: ByteScaling,
    weights: ByteWeights,
}

impl OfBytes {
    /// Where network and inputs are made for it.
    pub(crate) fn new<V: Vector>(
        layout: &Layout,
        samples: &dyn Samples,
        weights: &[f32],
    ) -> Option<Self> {
        let (layer, step) = layout.input_linear()?;
        if !linear_bytes::fits(layer) || !layout.inputs_read_once() {
            return None;
        }
        let scaling = ByteScaling::new(samples.byte_scaling()?)?;
        let weight = &weights[step.parameters.clone()][..layer.inputs * layer.outputs];
        Some(Self { scaling, weights: ByteWeights::new::<V>(layer, weight) })
    }
}

impl<V: Vector> Workspace<V> {
    /// Takes bytes as they are stored through the first layer, whose outputs go to slot `output`.
    pub(super) fn read_as_bytes<'a>(
        &mut self,
        pass: &Pass<'a>,
        of_bytes: &OfBytes,
        batch: &[u32],
        (layer, output): (&Linear, usize),
    ) -> [&'a [u8]; MOST_LANES] {
        let mut rows = [&[][..]; MOST_LANES];
        for (row, &index) in rows.iter_mut().zip(batch) {
            *row = match pass.samples.stored_input(index as usize) {
                Some(StoredInput::Bytes(bytes, [affine]))
                    if bytes.len() == layer.inputs && *affine == of_bytes.scaling.affine =>
                {
                    bytes
                }
                _ => panic!("input {index} is not what Samples::byte_scaling promises"),
            };
        }
        let first = rows[0];
        rows[batch.len()..].fill(first);
        let packed = &pass.packed[pass.packed_of[0].clone()];
        let mut measure = RowMeasure::new();
        let mut y = [[0.0; MOST_LANES]; linear_bytes::MOST_OUTPUTS];
        let y = &mut y[..layer.outputs];
        V::run(ReadBytes::<V::Part> {
            rows: &rows[..batch.len().next_multiple_of(linear_bytes::RECORDS)],
            scaling: &of_bytes.scaling,
            weights: &of_bytes.weights,
            biases: &packed[layer.inputs * layer.outputs..][..layer.outputs],
            y,
            measure: &mut measure,
            vector: PhantomData,
        });
        V::run(Load { from: y, to: &mut self.values[output] });
        self.of_input = Some(OfInput::Rows(measure));
        rows
    }
}
