//! The paper's synthetic set: gradients of a CNN trained without privacy at batch 1, as a stream.
//!
//! g_t = ∇ℓ(w_t; x_t), w_{t+1} = w_t − η·g_t, with the samples in a new random order every epoch. The
//! paper collects 450,000 gradients (9 epochs of CIFAR-10) and picks dimensions of them at random; kept,
//! they would be 36 GB, so each is made when it is asked for and then overwritten. The network is the
//! paper's CNN on the dataset's shape: d = 31,340 on CIFAR-10, 21,840 on MNIST.
//! η = 0.005 unless said otherwise: measured over the first 20,000 gradients on CIFAR-10, the loss falls
//! fastest there (2.02 → 1.58; 1.63 at 0.001, 1.99 at 0.02), and at 0.05 it hardly falls at all.
//!
//! Everything follows from the seed (and the CPU's vector width, in the last bits). Gradients of real
//! records: not private, for experiments only.

use crate::Error;
use geodp_data::Dataset;
use geodp_nn::{LayerSpec, LinearSpec, Network, NetworkSpec, SplitMix64, permutation};

/// How a stream is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StreamOptions {
    /// Step size η of the training that makes the gradients.
    pub(crate) learning_rate: f32,
    /// Decides the first weights and the order of the samples.
    pub(crate) seed: u64,
}

impl Default for StreamOptions {
    fn default() -> Self {
        StreamOptions { learning_rate: 0.005, seed: 0 }
    }
}

/// An endless, repeatable stream of gradients.
pub(crate) struct GradientStream {
    network: Network,
    data: Dataset,
    options: StreamOptions,
    weights: Vec<f32>,
    gradient: Vec<f32>,
    /// Order of the samples in the running epoch.
    order: Vec<usize>,
    step: u64,
}

impl GradientStream {
    /// Gradients on a dataset of images.
    ///
    /// # Errors
    /// An empty dataset, one that is not of images, a learning rate that is none.
    pub(crate) fn new(data: Dataset, options: StreamOptions) -> Result<Self, Error> {
        if data.is_empty() {
            return Err(Error::Stream(format!("{} has no records", data.name())));
        }
        if !(options.learning_rate.is_finite() && options.learning_rate >= 0.0) {
            return Err(Error::Stream(format!(
                "learning rate {} of a gradient stream must be 0 or more",
                options.learning_rate
            )));
        }
        let network = network_for(&data)?;
        let weights = network.init(options.seed);
        let gradient = vec![0.0; network.dim()];
        Ok(GradientStream { network, data, options, weights, gradient, order: Vec::new(), step: 0 })
    }

    /// Dimensions of a whole gradient.
    pub(crate) fn dim(&self) -> usize {
        self.network.dim()
    }

    /// `count` different dimensions, in ascending order, that the seed decides.
    ///
    /// # Errors
    /// More than there are.
    pub(crate) fn random_dimensions(&self, count: usize, seed: u64) -> Result<Vec<usize>, Error> {
        let dim = self.dim();
        if count > dim {
            return Err(Error::Stream(format!(
                "{count} dimensions were asked for, but a gradient has {dim}"
            )));
        }
        let mut chosen = permutation(dim, seed);
        chosen.truncate(count);
        chosen.sort_unstable();
        Ok(chosen)
    }

    /// Makes the next gradient and takes the step that follows from it.
    ///
    /// # Errors
    /// A training that diverged.
    pub(crate) fn next_gradient(&mut self) -> Result<&[f32], Error> {
        let epoch_len = self.data.len() as u64;
        let (epoch, place) = (self.step / epoch_len, (self.step % epoch_len) as usize);
        if place == 0 {
            self.order = permutation(self.data.len(), epoch_seed(self.options.seed, epoch));
        }
        // A dataset's row numbers are u32, so this cannot be cut.
        let sample = self.order[place] as u32;
        self.network
            .sample_gradient(&self.weights, &self.data, sample, &mut self.gradient)
            .map_err(|error| Error::Stream(error.to_string()))?;
        if !self.gradient.iter().all(|value| value.is_finite()) {
            return Err(Error::Stream(format!(
                "training diverged after {} gradients at learning rate {}; choose a smaller one",
                self.step, self.options.learning_rate
            )));
        }
        for (weight, gradient) in self.weights.iter_mut().zip(&self.gradient) {
            *weight -= self.options.learning_rate * gradient;
        }
        self.step += 1;
        Ok(&self.gradient)
    }

    /// Makes the next gradient and writes the given dimensions of it to `out`.
    ///
    /// # Errors
    /// Dimensions that a gradient lacks, or not one place for each; a training that diverged.
    pub(crate) fn next_into(&mut self, dimensions: &[usize], out: &mut [f32]) -> Result<(), Error> {
        let dim = self.dim();
        if out.len() != dimensions.len() || dimensions.iter().any(|&dimension| dimension >= dim) {
            return Err(Error::Stream(format!(
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
fn network_for(data: &Dataset) -> Result<Network, Error> {
    let shape = data.shape();
    let mut spec = NetworkSpec::cnn();
    spec.input = vec![shape.channels, shape.height, shape.width];
    if let Some(LayerSpec::Linear(LinearSpec { outputs, .. })) = spec.layers.last_mut() {
        *outputs = data.classes();
    }
    spec.build().map_err(|error| Error::Stream(error.to_string()))
}

/// A seed for each epoch's order, unrelated to the others.
fn epoch_seed(seed: u64, epoch: u64) -> u64 {
    SplitMix64::new(seed ^ SplitMix64::new(epoch).next_u64()).next_u64()
}

#[cfg(test)]
mod tests;
