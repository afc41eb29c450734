//! The scattering transform of images (order 2, J = 2, L = 8), as [kymatio](https://www.kymat.io)
//! 0.3 defines it ([Andreux et al. 2020](https://jmlr.org/papers/v21/19-047.html)), on all CPUs with
//! the same bits.
//!
//! Wavelets at two scales and eight angles, moduli, and a low-pass: 81 coefficients for every 4 × 4
//! pixels of a channel, of which nothing is learnt. A linear model on them is what private training
//! does best with ([Tramèr and Boneh 2021](https://arxiv.org/abs/2011.11660)), and since they are a
//! function of one record alone they cost no privacy. [`group_norm`] brings them to one scale, record
//! by record.
//!
//! | file | what |
//! |---|---|
//! | `filters.rs` | the wavelets in closed form |
//! | `low_pass.rs` | smoothing, subsampling and cropping as one small matrix |
//! | `fft.rs`, `butterflies.rs` | the Fourier transform of many images at once |
//! | `cascade.rs` | the transform itself |
//! | `matrices.rs` | the same as plain matrices, for ONNX |
//! | `lanes.rs`, `x86.rs`, `level.rs` | eight or sixteen images in a vector; the version for this CPU |
//!
//! Eight images stand in the lanes of a vector, with AVX-512 sixteen. The operations are the same in every version and each
//! is rounded on its own, so neither the CPU nor the number of threads can be seen in the result.

mod butterflies;
mod cascade;
mod error;
mod fft;
mod filters;
mod group_norm;
mod lanes;
mod level;
mod low_pass;
mod matrices;
mod scattering;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use error::ScatteringError;
pub use group_norm::{check_groups, group_norm};
pub use level::Level;
pub use matrices::{Axis, Matrices, Matrix};
pub use scattering::{Scattering, Scratch};
