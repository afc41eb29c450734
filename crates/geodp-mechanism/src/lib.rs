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
//!
//! # The flow
//!
//! [`clip`] weighs per-sample gradients and hands out a [`clip::Sensitivity`]; [`perturb`] takes
//! the clipped mean, that sensitivity, σ, B (and β) and releases a noisy gradient, with noise
//! drawn from [`noise`]. [`sphere`] has the coordinates, [`movement`] says how far a record moves
//! them, [`analysis`] has the paper's quantities.
//!
//! ```
//! use geodp_mechanism::{Clip, Gaussian, Geometric, NoiseSource, Perturb};
//!
//! let clip = Clip::flat(0.1)?;
//! let records = [[0.3_f32, -0.1, 0.2], [0.0, 0.5, -0.5]];
//! let batch = 2;
//! let mut mean = [0.0_f32; 3];
//! for g in &records {
//!     let norm = g.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
//!     let weight = clip.weight(norm) as f32;
//!     mean.iter_mut().zip(g).for_each(|(m, x)| *m += weight * x / batch as f32);
//! }
//! let noise = NoiseSource::from_os()?;
//! let dp = Gaussian::new(clip.sensitivity(), 1.0, batch)?.perturb(&mean, &noise, 0)?;
//! let geodp = Geometric::new(clip.sensitivity(), 1.0, batch, 0.1)?.perturb(&mean, &noise, 1)?;
//! assert_eq!((dp.len(), geodp.len()), (3, 3));
//! # Ok::<(), geodp_mechanism::Error>(())
//! ```

pub mod analysis;
pub mod clip;
mod error;
pub mod exact;
mod kernels;
mod mechanism;
pub mod movement;
pub mod noise;
pub mod perturb;
mod real;
pub mod sphere;

pub use clip::{Clip, ClipNorm, ClipRule, Sensitivity};
pub use error::Error;
pub use exact::{Grid, RoundedNormal};
pub use mechanism::Mechanism;
pub use movement::{Direction, Movement};
pub use noise::{NoiseSource, Origin, Purpose, Stream};
pub use perturb::{
    CertifiedPolar, ExactGaussian, ExactMean, Gaussian, Geometric, Perturb, PerturbSum,
    PolarParams, PolarRelease, PolarSettings, PolarState, Spread, StepKind,
};
pub use real::Real;
