//! Losses of a number that is to be learnt: from one output z and a target t to loss, ∂loss/∂z and the
//! prediction, which is z itself.
//!
//! With r = z − t. Squared: loss = r²/2, dz = r. Huber: the same where |r| ≤ h, else h·(|r| − h/2) and
//! dz = ±h, so that a target far off pulls no harder than one at h. Targets are places in a declared
//! range, in \[0, 1\], so h is a share of that range. Lanes without a sample get dz = 0.

#![allow(clippy::needless_range_loop, reason = "several arrays share the index")]

use super::cross_entropy::Loss;
use crate::simd::{Kernel, MOST_LANES, Vector};

/// Huber's h: a tenth of the declared range.
const HUBER: f32 = 0.1;

/// One loss over one block.
pub(crate) struct SquaredError<'a, V> {
    pub(crate) loss: Loss,
    pub(crate) outputs: &'a [V],
    /// Of the lanes in use, which are the first.
    pub(crate) targets: &'a [f32],
    pub(crate) losses: &'a mut [f32],
    pub(crate) dz: &'a mut [V],
    /// `[lane]`, if wanted.
    pub(crate) predictions: Option<&'a mut [f32]>,
}

impl<V: Vector> Kernel for SquaredError<'_, V> {
    /// Hits: a number is never hit.
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let (mut z, mut dz) = ([0.0f32; MOST_LANES], [0.0f32; MOST_LANES]);
        self.outputs[0].store(&mut z);
        for lane in 0..self.targets.len() {
            let residual = z[lane] - self.targets[lane];
            let bounded = match self.loss {
                Loss::Huber => residual.clamp(-HUBER, HUBER),
                _ => residual,
            };
            dz[lane] = bounded;
            // r²/2 where bounded = r, and h·(|r| − h/2) where bounded = ±h.
            self.losses[lane] = bounded * (residual - 0.5 * bounded);
        }
        if let Some(predictions) = self.predictions {
            let lanes = self.targets.len();
            predictions[..lanes].copy_from_slice(&z[..lanes]);
        }
        self.dz[0] = V::load(&dz);
        0
    }
}
