//! Small data for trainings in tests.

use geodp_mechanism::{NoiseSource, Purpose};
use geodp_nn::Samples;

/// Normal inputs with labels that have nothing to do with them: only memory can learn them.
pub(crate) struct Blobs {
    inputs: Vec<Vec<f32>>,
    labels: Vec<u32>,
}

impl Blobs {
    pub(crate) fn new(records: usize, features: usize, classes: u64, seed: u64) -> Self {
        let mut stream = NoiseSource::from_seed(seed).stream(Purpose::Audit, 99, 0).unwrap();
        let mut inputs = Vec::new();
        let mut labels = Vec::new();
        for _ in 0..records {
            let mut normals = vec![0.0; features];
            stream.fill_normals(&mut normals);
            inputs.push(normals.into_iter().map(|x| x as f32).collect());
            labels.push(stream.below(classes) as u32);
        }
        Self { inputs, labels }
    }
}

impl Samples for Blobs {
    fn len(&self) -> usize {
        self.labels.len()
    }
    fn input_len(&self) -> usize {
        self.inputs[0].len()
    }
    fn read_input(&self, index: usize, out: &mut [f32]) {
        out.copy_from_slice(&self.inputs[index]);
    }
    fn label(&self, index: usize) -> u32 {
        self.labels[index]
    }
}
