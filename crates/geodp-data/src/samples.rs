//! Datasets as what the engine trains on, and records as what it predicts on.

use geodp_nn::{Samples, StoredInput};

use crate::{Dataset, Records};

impl Samples for Dataset {
    fn len(&self) -> usize {
        self.len()
    }

    fn input_len(&self) -> usize {
        self.input_len()
    }

    fn read_input(&self, index: usize, out: &mut [f32]) {
        self.read_input(index, out);
    }

    fn stored_input(&self, index: usize) -> Option<StoredInput<'_>> {
        Some(self.records().stored_input(index))
    }

    fn byte_scaling(&self) -> Option<(f32, f32)> {
        one_scaling(self.records())
    }

    fn label(&self, index: usize) -> u32 {
        self.label(index)
    }

    fn target(&self, index: usize) -> f32 {
        self.targets().map_or(0.0, |targets| targets[index])
    }
}

/// Records whose labels nobody knows, for prediction: each says it is of class 0, so the
/// probabilities of a prediction mean something and its loss and hits do not.
#[derive(Clone, Copy, Debug)]
pub struct Unlabelled<'a>(pub &'a Records);

impl Samples for Unlabelled<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn input_len(&self) -> usize {
        self.0.input_len()
    }

    fn read_input(&self, index: usize, out: &mut [f32]) {
        self.0.read_input(index, out);
    }

    fn stored_input(&self, index: usize) -> Option<StoredInput<'_>> {
        Some(self.0.stored_input(index))
    }

    fn byte_scaling(&self) -> Option<(f32, f32)> {
        one_scaling(self.0)
    }

    fn label(&self, _index: usize) -> u32 {
        0
    }
}

/// What all bytes are scaled by, if channels do not differ.
fn one_scaling(records: &Records) -> Option<(f32, f32)> {
    match records.byte_scaling()? {
        [affine] => Some(*affine),
        _ => None,
    }
}
