//! What can go wrong, each with the values that tell why.

use crate::InstructionSet;

/// Why a network could not be built or a batch not be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layer does not fit the output of the one before it.
    #[error("layer {layer}: {problem} (its input is {input})")]
    Layer {
        /// Its name, the names of the layers around it before it.
        layer: String,
        /// Shape of its input, as `1×28×28`.
        input: String,
        /// What does not fit, and what would.
        problem: String,
    },
    /// The network as a whole makes no sense.
    #[error("network: {0}")]
    Network(String),
    /// Instructions that this machine lacks.
    #[error("this machine has no {0:?}; InstructionSet::available() lists what it has")]
    NotOfThisMachine(InstructionSet),
    /// A slice has the wrong length.
    #[error("{what} has {actual} values, but {expected} are needed")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Needed length.
        expected: usize,
        /// Given length.
        actual: usize,
    },
    /// A bound on contributions that no grid can have.
    #[error("the bound is {0}, but must be a positive number within 2^-80 … 2^80")]
    Bound(String),
    /// More records than an exact sum can hold.
    #[error("the batch has {0} records, but exact sums hold fewer than 2^33: split it")]
    Batch(usize),
    /// A batch names a sample that does not exist.
    #[error("the batch names sample {index}, but there are {samples} samples")]
    Index {
        /// The index given.
        index: u32,
        /// Samples there are.
        samples: usize,
    },
    /// A label has no output of the network.
    #[error("sample {index} has label {label}, but the network knows {classes} classes")]
    Label {
        /// The sample's index.
        index: u32,
        /// Its label.
        label: u32,
        /// Classes of the network.
        classes: usize,
    },
}
