//! What cannot be transformed.

use crate::Level;

/// Sizes that have no transform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScatteringError {
    /// The image is smaller than the step of the coefficients.
    #[error(
        "images of {height} × {width} pixels are too small for scattering; at least 4 × 4 are needed"
    )]
    TooSmall {
        /// Rows of the image.
        height: usize,
        /// Columns of the image.
        width: usize,
    },
    /// A version whose instructions this machine lacks.
    #[error("this machine cannot run the version {level:?}; Level::available() lists those it can")]
    NotOfThisMachine {
        /// The version asked for.
        level: Level,
    },
    /// The groups of the normalisation do not divide the channels.
    #[error(
        "{channels} feature channels cannot be normalised in {groups} groups; the nearest number that divides them is {nearest}"
    )]
    Groups {
        /// Groups asked for.
        groups: usize,
        /// Channels of the features.
        channels: usize,
        /// The nearest divisor.
        nearest: usize,
    },
}
