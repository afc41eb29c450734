//! The paper's synthetic set: gradients of a CNN trained without privacy at batch 1, as a stream.
//!
//! g_t = ∇ℓ(w_t; x_t), w_{t+1} = w_t − η·g_t, with the samples in a new random order every epoch. The
//! paper collects 450,000 gradients (9 epochs of CIFAR-10) and picks dimensions of them at random; kept,
//! they would be 36 GB, so each is made when it is asked for and then overwritten. The network is the
//! paper's CNN on the dataset's shape: d = 31,340 on CIFAR-10, 21,840 on MNIST.
//! η = 0.005 unless said otherwise: measured over the first 20,000 gradients on CIFAR-10, the loss falls
//! fastest there (2.02 → 1.58; 1.63 at 0.001, 1.99 at 0.02), and at 0.05 it hardly falls at all.
//!
//! Everything follows from the seed (and the CPU's vector width, in the last bits). Gradients of real records: not private, for experiments only.

use std::path::Path;

use geodp_nn::{LayerSpec, LinearSpec, Network, NetworkSpec};
use serde::Serialize;

use crate::shuffle::{SplitMix64, permutation};
use crate::{DataError, Dataset, cifar10, mnist};

/// How a stream is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamOptions {
    /// Step size η of the training that makes the gradients.
    pub learning_rate: f32,
    /// Decides the first weights and the order of the samples.
    pub seed: u64,
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions { learning_rate: 0.005, seed: 0 }
    }
}

/// What a stream was made of, for reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StreamMetadata {
    /// Name of the dataset; MNIST where CIFAR-10 was not on the machine.
    pub dataset: String,
    /// Fingerprint of the dataset.
    pub fingerprint: String,
    /// Dimensions of a whole gradient.
    pub dim: usize,
    /// Gradients in an epoch.
    pub epoch: usize,
    /// Step size η.
    pub learning_rate: f32,
    /// Seed of weights and order.
    pub seed: u64,
}

/// An endless, repeatable stream of gradients.
pub struct GradientStream {
    network: Network,
    data: Dataset,
    options: StreamOptions,
    weights: Vec<f32>,
    gradient: Vec<f32>,
    /// Order of the samples in the running epoch.
    order: Vec<usize>,
    step: u64,
    loss: f32,
}

impl GradientStream {
    /// Gradients on CIFAR-10 if the data folder has it, else on MNIST;
    /// [`metadata`](Self::metadata) says which.
    pub fn open(data_dir: &Path, options: StreamOptions) -> Result<Self, DataError> {
        let data = if cifar10::is_present(data_dir) {
            cifar10::open(data_dir, &cifar10::standard_scaling())?.train
        } else {
            mnist::load_train(&mnist::standard_scaling())?
        };
        Self::new(data, options)
    }

    /// Gradients on a dataset of images.
    pub fn new(data: Dataset, options: StreamOptions) -> Result<Self, DataError> {
        if data.is_empty() {
            return Err(DataError::Empty { file: data.name().to_owned() });
        }
        if !(options.learning_rate.is_finite() && options.learning_rate >= 0.0) {
            return Err(DataError::Argument(format!(
                "learning rate {} of a gradient stream must be 0 or more",
                options.learning_rate
            )));
        }
        let network = network_for(&data)?;
        let weights = network.init(options.seed);
        let gradient = vec![0.0; network.dim()];
        Ok(GradientStream {
            network,
            data,
            options,
            weights,
            gradient,
            order: Vec::new(),
            step: 0,
            loss: f32::NAN,
        })
    }

    /// Dimensions of a whole gradient.
    pub fn dim(&self) -> usize {
        self.network.dim()
    }

    /// How many gradients have been made.
    pub fn position(&self) -> u64 {
        self.step
    }

    /// Loss of the sample of the last gradient, before the step; not a number before the first.
    pub fn last_loss(&self) -> f32 {
        self.loss
    }

    /// What the stream is made of.
    pub fn metadata(&self) -> StreamMetadata {
        StreamMetadata {
            dataset: self.data.name().to_owned(),
            fingerprint: self.data.fingerprint().to_string(),
            dim: self.dim(),
            epoch: self.data.len(),
            learning_rate: self.options.learning_rate,
            seed: self.options.seed,
        }
    }

    /// `count` different dimensions, in ascending order, that the seed decides.
    pub fn random_dimensions(&self, count: usize, seed: u64) -> Result<Vec<usize>, DataError> {
        let dim = self.dim();
        if count > dim {
            return Err(DataError::Argument(format!(
                "{count} dimensions were asked for, but a gradient has {dim}"
            )));
        }
        let mut chosen = permutation(dim, seed);
        chosen.truncate(count);
        chosen.sort_unstable();
        Ok(chosen)
    }

    /// Makes the next gradient and takes the step that follows from it.
    pub fn next_gradient(&mut self) -> Result<&[f32], DataError> {
        let epoch_len = self.data.len() as u64;
        let (epoch, place) = (self.step / epoch_len, (self.step % epoch_len) as usize);
        if place == 0 {
            self.order = permutation(self.data.len(), epoch_seed(self.options.seed, epoch));
        }
        // A dataset's row numbers are u32, so this cannot be cut.
        let sample = self.order[place] as u32;
        let outcome = self
            .network
            .sample_gradient(&self.weights, &self.data, sample, &mut self.gradient)
            .map_err(|error| DataError::Stream(error.to_string()))?;
        if !self.gradient.iter().all(|value| value.is_finite()) {
            return Err(DataError::Stream(format!(
                "training diverged after {} gradients at learning rate {}; choose a smaller one",
                self.step, self.options.learning_rate
            )));
        }
        for (weight, gradient) in self.weights.iter_mut().zip(&self.gradient) {
            *weight -= self.options.learning_rate * gradient;
        }
        self.loss = outcome.losses.first().copied().unwrap_or(f32::NAN);
        self.step += 1;
        Ok(&self.gradient)
    }

    /// Makes the next gradient and writes the given dimensions of it to `out`.
    pub fn next_into(&mut self, dimensions: &[usize], out: &mut [f32]) -> Result<(), DataError> {
        let dim = self.dim();
        if out.len() != dimensions.len() || dimensions.iter().any(|&dimension| dimension >= dim) {
            return Err(DataError::Argument(format!(
                "{} dimensions below {dim} were to be written to {} places",
                dimensions.len(),
                out.len()
            )));
        }
        let gradient = self.next_gradient()?;
        for (value, &dimension) in out.iter_mut().zip(dimensions) {
            *value = gradient[dimension];
        }
        Ok(())
    }
}

/// The paper's CNN, on inputs and classes of this dataset.
fn network_for(data: &Dataset) -> Result<Network, DataError> {
    let shape = data.shape();
    let mut spec = NetworkSpec::cnn();
    spec.input = vec![shape.channels, shape.height, shape.width];
    if let Some(LayerSpec::Linear(LinearSpec { outputs, .. })) = spec.layers.last_mut() {
        *outputs = data.classes();
    }
    spec.build().map_err(|error| DataError::Stream(error.to_string()))
}

/// A seed for each epoch's order, unrelated to the others.
fn epoch_seed(seed: u64, epoch: u64) -> u64 {
    SplitMix64::new(seed ^ SplitMix64::new(epoch).next_u64()).next_u64()
}
