//! Losses, from logits z to per-sample loss, ∂loss/∂z, class probabilities and hits.
//!
//! Softmax: loss = ln Σ e^z − z_label, dz = softmax z − onehot(label).
//! Sigmoid (one logit, labels 0 and 1): loss = ln(1 + e^z) − label·z, dz = σ(z) − label.
//! Lanes without a sample get dz = 0, so that they add nothing to any gradient. So do classes whose
//! probability is [`NEGLIGIBLE`]: carried on through the layers it would end in subnormal numbers, with
//! which CPUs compute a hundred times slower, and a network that is sure of most records would train at a
//! tenth of its speed.

#![allow(clippy::needless_range_loop, reason = "several arrays share the index")]

use crate::math;
use crate::simd::{Kernel, MOST_LANES, Vector};
use serde::{Deserialize, Serialize};

/// What the last layer's outputs are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loss {
    /// Softmax cross-entropy over as many classes as there are outputs.
    SoftmaxCrossEntropy,
    /// Sigmoid cross-entropy of one output; the labels are 0 and 1.
    SigmoidCrossEntropy,
    /// Half the square of one output's distance from the target.
    Squared,
    /// The same near the target, and linear from a tenth of the range on.
    Huber,
}

impl Loss {
    /// Whether a number is learnt, and not a class.
    pub fn is_regression(self) -> bool {
        matches!(self, Loss::Squared | Loss::Huber)
    }
}

/// 2⁻⁶⁴: |dz| below it counts as 0. The step of the grid on which gradients are added is some 10¹² times
/// as large.
const NEGLIGIBLE: f32 = 1.0 / 18_446_744_073_709_551_616.0;

/// `dz`, or 0 if that is as good. NaN stays.
#[inline(always)]
fn felt(dz: f32) -> f32 {
    if dz.abs() < NEGLIGIBLE { 0.0 } else { dz }
}

/// One loss over one block.
pub(crate) struct CrossEntropy<'a, V> {
    pub(crate) loss: Loss,
    pub(crate) logits: &'a [V],
    /// Of the lanes in use, which are the first.
    pub(crate) labels: &'a [u32],
    pub(crate) losses: &'a mut [f32],
    pub(crate) dz: &'a mut [V],
    /// `[lane][class]`, if wanted.
    pub(crate) probabilities: Option<&'a mut [f32]>,
}

impl<V: Vector> Kernel for CrossEntropy<'_, V> {
    /// How many labels were the most probable class.
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        match self.loss {
            Loss::SoftmaxCrossEntropy => self.softmax(),
            _ => self.sigmoid(),
        }
    }
}

impl<V: Vector> CrossEntropy<'_, V> {
    #[inline(always)]
    fn softmax(mut self) -> usize {
        let lanes = self.labels.len();
        let classes = self.logits.len();
        let top = self.logits.iter().fold(self.logits[0], |top, z| top.max(*z));
        // The first class to reach the top wins, as in PyTorch's argmax.
        let mut winner = [u32::MAX; MOST_LANES];
        let (mut tops, mut row) = ([0.0f32; MOST_LANES], [0.0f32; MOST_LANES]);
        let mut at_label = [0.0f32; MOST_LANES];
        top.store(&mut tops);
        let mut total = V::zero();
        for (class, (z, dz)) in self.logits.iter().zip(self.dz.iter_mut()).enumerate() {
            z.store(&mut row);
            for lane in 0..lanes {
                if row[lane] == tops[lane] && winner[lane] == u32::MAX {
                    winner[lane] = class as u32;
                }
                if self.labels[lane] as usize == class {
                    at_label[lane] = row[lane];
                }
            }
            for lane in 0..V::LANES {
                row[lane] = math::exp(row[lane] - tops[lane]);
            }
            *dz = V::load(&row);
            total = total.add(*dz);
        }
        total.store(&mut row);
        for lane in 0..lanes {
            self.losses[lane] = math::ln(row[lane]) - (at_label[lane] - tops[lane]);
        }
        let inverse = V::splat(1.0).div(total);
        for (class, dz) in self.dz.iter_mut().enumerate() {
            dz.mul(inverse).store(&mut row);
            if let Some(probabilities) = &mut self.probabilities {
                for lane in 0..lanes {
                    probabilities[lane * classes + class] = row[lane];
                }
            }
            for lane in 0..lanes {
                row[lane] = felt(row[lane] - f32::from(self.labels[lane] as usize == class));
            }
            row[lanes..].fill(0.0);
            *dz = V::load(&row);
        }
        hits(self.labels, &winner)
    }

    #[inline(always)]
    fn sigmoid(self) -> usize {
        let lanes = self.labels.len();
        let (mut z, mut dz) = ([0.0f32; MOST_LANES], [0.0f32; MOST_LANES]);
        let (mut labels, mut losses) = ([0.0f32; MOST_LANES], [0.0f32; MOST_LANES]);
        self.logits[0].store(&mut z);
        for (to, label) in labels.iter_mut().zip(self.labels) {
            *to = *label as f32;
        }
        // Of all lanes, without branches: in vectors.
        for lane in 0..V::LANES {
            let (z, label) = (z[lane], labels[lane]);
            let small = math::exp(-z.abs());
            losses[lane] = z.max(0.0) - z * label + math::ln_1p(small);
            dz[lane] = (if z >= 0.0 { 1.0 } else { small }) / (1.0 + small) - label;
        }
        dz[lanes..].fill(0.0);
        self.losses.copy_from_slice(&losses[..lanes]);
        let mut winner = [u32::MAX; MOST_LANES];
        for (winner, z) in winner[..lanes].iter_mut().zip(z) {
            if !z.is_nan() {
                *winner = u32::from(z > 0.0);
            }
        }
        if let Some(probabilities) = self.probabilities {
            for (lane, pair) in
                probabilities.as_chunks_mut::<2>().0.iter_mut().take(lanes).enumerate()
            {
                let of_one = dz[lane] + self.labels[lane] as f32;
                *pair = [1.0 - of_one, of_one];
            }
        }
        self.dz[0] = V::load(&dz.map(felt));
        hits(self.labels, &winner)
    }
}

fn hits(labels: &[u32], winner: &[u32]) -> usize {
    labels.iter().zip(winner).filter(|(label, winner)| label == winner).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::portable::Portable;

    /// dz of a lane's logits, of which the first is the label's.
    fn dz_of(loss: Loss, logits: &[f32]) -> Vec<f32> {
        let logits: Vec<Portable> = logits.iter().map(|&z| Portable::splat(z)).collect();
        let mut dz = vec![Portable::zero(); logits.len()];
        let mut losses = [0.0];
        let (labels, probabilities) = (&[0][..], None);
        CrossEntropy {
            loss,
            logits: &logits,
            labels,
            losses: &mut losses,
            dz: &mut dz,
            probabilities,
        }
        .run();
        dz.into_iter().map(first).collect()
    }

    fn first(value: Portable) -> f32 {
        let mut lanes = [0.0; MOST_LANES];
        value.store(&mut lanes);
        lanes[0]
    }

    #[test]
    fn a_class_beyond_doubt_pulls_no_more_and_nothing_subnormal_is_passed_on() {
        let softmax = Loss::SoftmaxCrossEntropy;
        // e^-40 is above 2^-64, e^-50 and e^-100 are not.
        assert_eq!(dz_of(softmax, &[0.0, -50.0, -100.0]), [0.0, 0.0, 0.0]);
        let near = dz_of(softmax, &[0.0, -40.0]);
        assert!((near[1] / (-40.0f32).exp() - 1.0).abs() < 1e-6 && near[0] == 0.0, "{near:?}");
        let sigmoid = Loss::SigmoidCrossEntropy;
        assert_eq!(dz_of(sigmoid, &[-95.0]), [0.0]);
        assert!(dz_of(sigmoid, &[-40.0])[0] > 0.0);
        assert!(dz_of(softmax, &[f32::NAN, 0.0]).iter().all(|dz| dz.is_nan()));
    }
}
