//! The mechanism of "Analyzing and Optimizing Perturbation of DP-SGD Geometrically", on flat slices.
//!
//! # Notation, the same in every crate
//!
//! | symbol | name in code | meaning |
//! |---|---|---|
//! | ε, δ | `epsilon`, `delta` | privacy budget |
//! | σ | `noise_multiplier` | noise standard deviation / sensitivity |
//! | C | `clip_norm` | per-sample clipping threshold |
//! | B | `batch` | expected batch size: public, fixed, the only denominator |
//! | β | `beta` | bounding factor of GeoDP, in (0, 1] |
//! | η | `learning_rate` | step size |
//! | d | `dim` | number of parameters |
//! | g, g̃ | gradient, clipped gradient | |
//! | θ | `angles` | d − 1 hyper-spherical angles: d − 2 in \[0, π\], the last in (−π, π\] |
