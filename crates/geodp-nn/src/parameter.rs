//! Names, shapes and places of the parameters in the one flat vector, and their first values.

use crate::split_mix::SplitMix64;

/// One tensor of parameters inside the flat vector.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// As in PyTorch's `state_dict`: `conv1.weight`.
    pub name: String,
    /// As in PyTorch: `[outputs, inputs]` or `[outputs, channels, k, k]`.
    pub shape: Vec<usize>,
    /// Where its first value stands; the rest follows row by row.
    pub offset: usize,
    pub(crate) start: Start,
}

/// How a parameter starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Constant(u8),
    /// Uniform in ±1/√fan_in, which is what PyTorch does for linear layers and convolutions, for
    /// weights (`kaiming_uniform_` with a = √5) and biases alike.
    Uniform {
        fan_in: usize,
    },
}

impl Parameter {
    /// How many values.
    #[allow(clippy::len_without_is_empty, reason = "a parameter is never empty")]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Its part of the flat vector.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.len()
    }
}

/// First values of all parameters, in order.
pub(crate) fn start_values(parameters: &[Parameter], seed: u64) -> Vec<f32> {
    let mut random = SplitMix64::new(seed);
    let mut values = Vec::new();
    for parameter in parameters {
        match parameter.start {
            Start::Constant(value) => {
                values.resize(values.len() + parameter.len(), f32::from(value));
            }
            Start::Uniform { fan_in } => {
                let bound = 1.0 / (fan_in as f64).sqrt();
                values.extend((0..parameter.len()).map(|_| (bound * random.signed_unit()) as f32));
            }
        }
    }
    values
}
