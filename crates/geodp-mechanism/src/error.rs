//! What can be wrong with a mechanism's input. Every message carries the offending value.

use thiserror::Error;

/// A refused input. Nothing was perturbed, and no noise was drawn.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Error {
    /// Hyper-spherical coordinates need at least two dimensions.
    #[error(
        "the gradient has {0} dimensions; hyper-spherical coordinates and GeoDP need at least 2"
    )]
    TooFewDimensions(usize),
    /// A gradient without coordinates.
    #[error("the gradient is empty; give at least one coordinate")]
    Empty,
    /// A coordinate that is NaN or infinite.
    #[error(
        "coordinate {index} of the gradient is {value}; gradients must be finite (a non-finite \
         per-sample gradient must be dropped before the sum)"
    )]
    NotFinite {
        /// Position of the first such coordinate, from 0.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// The Euclidean norm does not fit the number type.
    #[error("the gradient's norm overflows the number type; scale the gradient down")]
    NormOverflow,
    /// Two vectors that belong together differ in length.
    #[error("{what} has {actual} elements where {expected} were expected")]
    LengthMismatch {
        /// Which vector.
        what: &'static str,
        /// Length that fits.
        expected: usize,
        /// Length that was given.
        actual: usize,
    },
    /// A name that no mechanism has.
    #[error("there is no mechanism {0:?}; use {names}", names = crate::Mechanism::NAMES.join(", "))]
    UnknownMechanism(String),
    /// GeoDP without β.
    #[error("mechanism = \"geodp\" needs beta, its bounding factor in (0, 1]")]
    BetaMissing,
    /// β for a mechanism without one.
    #[error(
        "beta = {beta} is GeoDP's bounding factor; {mechanism} has none. Use mechanism = \"geodp\", \
         or leave beta out"
    )]
    BetaUnused {
        /// The mechanism, as people write it.
        mechanism: &'static str,
        /// The β given.
        beta: f64,
    },
    /// β outside (0, 1].
    #[error("the bounding factor β is {0}; it must be in (0, 1]")]
    Beta(f64),
    /// σ negative, NaN or infinite.
    #[error("the noise multiplier σ is {0}; it must be a finite number ≥ 0")]
    NoiseMultiplier(f64),
    /// C zero, negative, NaN or infinite.
    #[error("the clipping threshold C is {0}; it must be a finite number > 0")]
    ClipNorm(f64),
    /// The stabiliser of a clipping rule (γ of AUTO-S, r of PSAC) is out of range.
    #[error("the clipping rule's constant {name} is {value}; it must be in (0, 1)")]
    ClipConstant {
        /// γ or r.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A grid that sums or noise do not fit.
    #[error("the grid has 2^{0} units in C; the exponent must be from 8 to 36")]
    Grid(u32),
    /// σ·2ᴷ outside [1, 2⁴⁰].
    #[error(
        "the noise multiplier σ = {noise_multiplier} does not fit a grid of 2^{bits} units in C: \
         σ·2^{bits} must be 0 or in [1, 2^40]; choose another grid"
    )]
    NoiseOffGrid {
        /// σ.
        noise_multiplier: f64,
        /// K.
        bits: u32,
    },
    /// A parameter of the certified polar mechanism out of range.
    #[error(
        "{what} of certified GeoDP is {value}; t and κ (least_radius) must be > 0, a/L (most_ratio) > 1, \
         the share of δ (delta_share) in (0, 0.5]"
    )]
    Polar {
        /// Which one.
        what: &'static str,
        /// Its value.
        value: f64,
    },
    /// A setting of certified GeoDP beside another mechanism.
    #[error("{name} is a setting of certified GeoDP; {mechanism} has none. Leave it out")]
    PolarUnused {
        /// Which one.
        name: &'static str,
        /// The mechanism given.
        mechanism: &'static str,
    },
    /// B = 0.
    #[error("the expected batch size B is 0; it must be at least 1")]
    Batch,
    /// The position of a noise stream does not fit its address.
    #[error("noise address out of range: {part} {value} exceeds {limit}")]
    NoiseAddress {
        /// `step` or `chunk`.
        part: &'static str,
        /// Value asked for.
        value: u64,
        /// Largest value.
        limit: u64,
    },
    /// The operating system gave no randomness.
    #[error("the operating system's random generator failed: {0}; no noise can be drawn safely")]
    Entropy(String),
    /// A positive number was expected (a spread, a learning rate, a noise scale).
    #[error("{what} is {value}; it must be a finite number ≥ 0")]
    Negative {
        /// Which quantity.
        what: &'static str,
        /// Its value.
        value: f64,
    },
}
