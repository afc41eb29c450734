//! What one thread works in, made once and used again for every block.

use crate::layers::linear_read::RowMeasure;
use crate::layout::Layout;
use crate::simd::{Measuring, Vector};

pub(crate) struct Workspace<V: Vector> {
    /// Values and gradients of slots, see [`Layout`].
    pub(crate) values: Vec<Vec<V>>,
    pub(crate) buffers: Vec<Vec<V>>,
    pub(crate) scratch: Vec<V>,
    /// Per-sample gradients of one block, and their weighted sum over blocks, lanes still apart.
    pub(crate) lane_gradient: Vec<V>,
    pub(crate) lane_sum: Vec<V>,
    /// Gradients of all parameters, one unit in each lane; empty until there are units.
    pub(crate) unit_gradient: Vec<V>,
    /// x and dy of each linear layer for the blocks of a chunk, `[feature][block]`.
    pub(crate) linear: Vec<(Vec<V>, Vec<V>)>,
    /// Whether each linear layer has a bias: 1 or 0.
    pub(crate) linear_bias: Vec<u8>,
    /// Inputs of one block as they are read, `[lane][feature]`.
    pub(crate) rows: Vec<f32>,
    /// What `read` measured of the inputs, if it did.
    pub(crate) of_input: Option<OfInput<V>>,
    pub(crate) labels: Vec<u32>,
    pub(crate) targets: Vec<f32>,
}

/// Σ x² and max |x| of the inputs of a block, as they came: from the lanes or from rows.
#[allow(clippy::large_enum_variant, reason = "one in each workspace")]
pub(crate) enum OfInput<V: Vector> {
    Lanes(Measuring<V>),
    Rows(RowMeasure),
}

impl<V: Vector> OfInput<V> {
    #[inline(always)]
    pub(crate) fn store(&self, squares: &mut [f64], largest: &mut [f32]) {
        match self {
            Self::Lanes(measuring) => measuring.store(squares, largest),
            Self::Rows(rows) => {
                squares.copy_from_slice(&rows.squares);
                largest.copy_from_slice(&rows.largest);
            }
        }
    }
}

impl<V: Vector> Workspace<V> {
    pub(crate) fn new(layout: &Layout, chunk_blocks: usize) -> Self {
        let zeros = |len: usize| vec![V::zero(); len];
        Self {
            values: layout.slots.iter().map(|&len| zeros(len)).collect(),
            buffers: layout.buffers.iter().map(|&len| zeros(len)).collect(),
            scratch: zeros(layout.scratch),
            lane_gradient: zeros(layout.lane_dim),
            lane_sum: zeros(layout.lane_dim),
            unit_gradient: Vec::new(),
            linear: layout
                .linear_steps()
                .map(|(layer, _)| {
                    (zeros(layer.inputs * chunk_blocks), zeros(layer.outputs * chunk_blocks))
                })
                .collect(),
            linear_bias: layout.linear_steps().map(|(layer, _)| u8::from(layer.bias)).collect(),
            rows: vec![0.0; layout.input_len * V::LANES],
            of_input: None,
            labels: Vec::with_capacity(V::LANES),
            targets: Vec::with_capacity(V::LANES),
        }
    }
}
