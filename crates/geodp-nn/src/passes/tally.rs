//! One thread's part of an exact sum: records truncated to the grid and added as integers.
//!
//! A block's gradients are measured, weighed and put on the grid while they are in the cache. The
//! lanes of each parameter are added to one `i32`, and those are folded into `i64` before they can
//! overflow. Factors of linear layers are collected for a chunk and multiplied at once; those of a layer
//! that reads wide inputs of the network, block by block, from where these are stored. Why no record can be
//! longer than the grid's bound: [`crate::grid`]. What is done to all lanes of a block: [`super::tally_kernels`].

use super::Pass;
use super::read::Inputs;
use super::tally_kernels::{
    AddTruncated, Cut, FactorScales, Fold, Lengths, Measure, Measured, Squares,
};
use super::weigh::blank;
use super::workspace::Workspace;
use crate::grid::{Grid, LANE_RECORDS};
use crate::layers::linear_bytes_gradient::AddBytes;
use crate::layers::linear_exact::Factors;
use crate::layers::linear_rows::RowFactors;
use crate::layout::Layout;
use crate::simd::{MOST_LANES, Vector};
use std::marker::PhantomData;

/// Records of a chunk, a multiple of the most lanes: the longer, the less adding up over lanes costs; of
/// wide layers fewer, so that their factors stay in the L2 cache.
const CHUNK_RECORDS: [usize; 2] = [256, 128];
/// Inputs from which on a layer is wide.
const WIDE_INPUTS: usize = 1024;

/// Sums of truncated gradients.
pub(crate) struct Tally<V: Vector> {
    /// Of parameters in lanes, then of the biases of linear layers.
    counts: Vec<i32>,
    /// Blocks in `counts`.
    blocks: usize,
    /// Of all parameters of units of several rows, and blocks in it; empty until there are some.
    unit_counts: Vec<i32>,
    unit_blocks: usize,
    factors: Vec<Factors>,
    /// Of the first layer, if it is linear and its inputs stand in rows.
    of_rows: Option<RowFactors>,
    /// ‖x‖ and ‖dy‖ of each linear layer for one block.
    measured: Vec<(Measured, Measured)>,
    sum: Vec<i64>,
    vector: PhantomData<V>,
}

impl<V: Vector> Tally<V> {
    /// Blocks that `counts` can hold.
    const MOST_BLOCKS: usize = LANE_RECORDS / V::LANES;

    pub(crate) fn new(layout: &Layout) -> Self {
        let biases: usize = layout.linear_steps().map(|(layer, _)| layer.biases()).sum();
        let wide = layout.linear_steps().any(|(layer, _)| layer.inputs >= WIDE_INPUTS);
        let chunk = CHUNK_RECORDS[usize::from(wide)];
        let linear = layout.linear_steps();
        let factors = linear.map(|(layer, _)| Factors::new(layer.inputs, layer.outputs, chunk));
        let measured = layout
            .linear_steps()
            .map(|(layer, _)| (Measured::new(layer.inputs), Measured::new(layer.outputs)));
        Self {
            counts: vec![0; layout.lane_dim + biases],
            blocks: 0,
            unit_counts: Vec::new(),
            unit_blocks: 0,
            factors: factors.collect(),
            of_rows: layout
                .input_linear()
                .map(|(layer, _)| RowFactors::new(layer.inputs, layer.outputs)),
            measured: measured.collect(),
            sum: vec![0; layout.dim],
            vector: PhantomData,
        }
    }

    /// Forgets everything added.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        self.unit_counts.fill(0);
        self.sum.fill(0);
        self.factors.iter_mut().for_each(Factors::clear);
        (self.blocks, self.unit_blocks) = (0, 0);
    }

    /// Adds the block whose gradients `backward` left in `workspace`, with the network's `inputs`, and
    /// writes its norms.
    ///
    /// # Guarantee
    /// Each record adds integers of norm at most 2³⁰, whatever `weight_of` answers: a weight beyond
    /// C/norm counts as C/norm. A gradient whose norm is not finite in single precision adds exactly
    /// 0 and `weight_of` is not asked; one whose weight is not finite adds 0 as well.
    pub(crate) fn add(
        &mut self,
        workspace: &mut Workspace<V>,
        inputs: &Inputs<'_>,
        pass: &Pass<'_>,
        grid: &Grid,
        weight_of: impl Fn(usize, f64) -> f64,
        norms: &mut [f32],
    ) {
        let squares = self.measure(workspace, pass);
        let (mut exact, mut weights) = ([0.0; MOST_LANES], [0.0; MOST_LANES]);
        let (mut broken, mut scales) = ([false; MOST_LANES], [0.0; MOST_LANES]);
        V::run(Lengths { squares: &squares, norms: &mut exact, broken: &mut broken });
        for (lane, norm) in norms.iter_mut().enumerate() {
            *norm = exact[lane] as f32;
            if !broken[lane] {
                weights[lane] = weight_of(lane, exact[lane]);
            }
        }
        V::run(Cut { grid, norms: &exact, weights: &mut weights, scales: &mut scales });
        if broken[..V::LANES].contains(&true) {
            // 0·NaN would not be 0. Of a product one factor is enough.
            blank(&mut workspace.lane_gradient, &broken);
            for ((layer, _), (_, dy)) in pass.layout.linear_steps().zip(&mut workspace.linear) {
                blank(&mut dy[..layer.outputs], &broken);
            }
        }
        self.add_lanes(workspace, pass, &scales);
        self.add_factors(workspace, inputs, pass, grid, &weights);
        if self.blocks == Self::MOST_BLOCKS {
            self.fold(pass.layout);
        }
    }

    /// Adds the units whose Σ_r g_r stand in the lanes of `workspace.unit_gradient`, of `sizes` rows,
    /// and writes the norms of their means.
    ///
    /// # Guarantee
    /// That of [`Tally::add`], of units: what is weighed and truncated is the mean over the unit's own
    /// rows.
    pub(crate) fn add_units(
        &mut self,
        workspace: &mut Workspace<V>,
        grid: &Grid,
        sizes: &[usize],
        weight_of: impl Fn(usize, f64) -> f64,
        norms: &mut [f32],
    ) {
        let gradient = &mut workspace.unit_gradient;
        let mut squares = [0.0; MOST_LANES];
        V::run(Squares { values: gradient, squares: &mut squares });
        let mut scales = [0.0f32; MOST_LANES];
        let broken = squares.map(|square| !(square.sqrt() as f32).is_finite());
        for (lane, norm) in norms.iter_mut().enumerate() {
            let rows = sizes[lane] as f64;
            let exact = squares[lane].sqrt() / rows;
            *norm = exact as f32;
            if !broken[lane] {
                scales[lane] = grid.lane_scale(grid.cut(weight_of(lane, exact), exact) / rows);
            } else {
                *norm = f32::NAN;
            }
        }
        if broken[..V::LANES].contains(&true) {
            blank(gradient.iter_mut(), &broken);
        }
        self.unit_counts.resize(gradient.len(), 0);
        let counts = &mut self.unit_counts[..];
        V::run(AddTruncated { values: gradient, scale: V::load(&scales), counts });
        self.unit_blocks += 1;
        if self.unit_blocks == Self::MOST_BLOCKS {
            self.fold_units();
        }
    }

    /// Σ squares of each lane's gradient; an order of additions that no vector changes.
    fn measure(&mut self, workspace: &Workspace<V>, pass: &Pass<'_>) -> [f64; MOST_LANES] {
        let mut squares = [0.0; MOST_LANES];
        V::run(Squares { values: &workspace.lane_gradient, squares: &mut squares });
        for (at, (layer, step)) in pass.layout.linear_steps().enumerate() {
            let (of_x, of_dy) = &mut self.measured[at];
            let known = workspace.of_input.as_ref().filter(|_| step.input == 0);
            V::run(Measure { values: &workspace.values[step.input], known, to: of_x });
            let dy = &workspace.linear[at].1[..layer.outputs];
            V::run(Measure { values: dy, known: None, to: of_dy });
            let bias = if layer.bias { 1.0 } else { 0.0 };
            for (lane, square) in squares[..V::LANES].iter_mut().enumerate() {
                *square += of_dy.squares[lane] * (of_x.squares[lane] + bias);
            }
        }
        squares
    }

    fn add_lanes(&mut self, workspace: &Workspace<V>, pass: &Pass<'_>, scales: &[f32; MOST_LANES]) {
        let scale = V::load(scales);
        let (lanes, mut biases) = self.counts.split_at_mut(pass.layout.lane_dim);
        V::run(AddTruncated { values: &workspace.lane_gradient, scale, counts: lanes });
        for ((layer, _), (_, dy)) in pass.layout.linear_steps().zip(&workspace.linear) {
            let (counts, rest) = biases.split_at_mut(layer.biases());
            V::run(AddTruncated { values: &dy[..layer.biases()], scale, counts });
            biases = rest;
        }
        self.blocks += 1;
    }

    fn add_factors(
        &mut self,
        workspace: &Workspace<V>,
        inputs: &Inputs<'_>,
        pass: &Pass<'_>,
        grid: &Grid,
        weights: &[f64; MOST_LANES],
    ) {
        for (at, (layer, step)) in pass.layout.linear_steps().enumerate() {
            let (of_x, of_dy) = &self.measured[at];
            let sum = &mut self.sum[step.parameters.clone()][..layer.inputs * layer.outputs];
            if let (0, Inputs::Bytes(rows), Some(of_bytes)) = (step.input, inputs, &pass.bytes) {
                let rows = &rows[..workspace.labels.len().next_multiple_of(2)];
                let dy = &workspace.linear[at].1[..layer.outputs];
                let scaling = &of_bytes.scaling;
                V::run(AddBytes { rows, scaling, dy, grid, weights, sum });
                continue;
            }
            let (mut a, mut b) = ([0.0; MOST_LANES], [0.0; MOST_LANES]);
            let mut products = [0; MOST_LANES];
            let products = &mut products[..V::LANES];
            V::run(FactorScales { grid, weights, of_x, of_dy, a: &mut a, b: &mut b, products });
            let dy = (&workspace.linear[at].1[..layer.outputs], V::load(&b));
            match (inputs, &mut self.of_rows) {
                (Inputs::Rows(stored), Some(factors)) if step.input == 0 => {
                    let mut rows = [&[][..]; MOST_LANES];
                    let own = workspace.rows.chunks_exact(layer.inputs);
                    for ((row, stored), own) in rows.iter_mut().zip(stored).zip(own) {
                        *row = stored.unwrap_or(own);
                    }
                    let products = &products[..workspace.labels.len()];
                    factors.add((&rows, &a), dy, products, sum);
                }
                (Inputs::Halves(rows), Some(factors)) if step.input == 0 => {
                    let products = &products[..workspace.labels.len()];
                    factors.add((rows, &a), dy, products, sum);
                }
                _ => {
                    let x = (&workspace.values[step.input][..], V::load(&a));
                    self.factors[at].store(x, dy, products, sum);
                }
            }
        }
    }

    /// Moves what stands in lanes to the sum.
    fn fold(&mut self, layout: &Layout) {
        let (lanes, mut biases) = self.counts.split_at_mut(layout.lane_dim);
        for step in layout.lane_steps() {
            let counts = &mut lanes[step.lanes..][..step.parameters.len()];
            V::run(Fold { counts, sum: &mut self.sum[step.parameters.clone()] });
        }
        for (layer, step) in layout.linear_steps() {
            let (counts, rest) = biases.split_at_mut(layer.biases());
            let sum = &mut self.sum[step.parameters.clone()][layer.inputs * layer.outputs..];
            V::run(Fold { counts, sum });
            biases = rest;
        }
        self.blocks = 0;
    }

    /// Moves the units in lanes to the sum.
    fn fold_units(&mut self) {
        V::run(Fold { counts: &mut self.unit_counts, sum: &mut self.sum });
        self.unit_blocks = 0;
    }

    /// Moves all that waits to the sum.
    pub(crate) fn finish(&mut self, layout: &Layout) {
        for ((layer, step), factors) in layout.linear_steps().zip(&mut self.factors) {
            let sum = &mut self.sum[step.parameters.clone()];
            factors.multiply::<V>(&mut sum[..layer.inputs * layer.outputs]);
        }
        self.fold(layout);
        self.fold_units();
    }

    /// Adds all of it to `sum`, once it is finished.
    pub(crate) fn add_to(&self, sum: &mut [i64]) {
        for (sum, part) in sum.iter_mut().zip(&self.sum) {
            *sum += part;
        }
    }
}
