//! Membership inference: does a model treat the records it was trained on differently?
//!
//! The target model is asked about members and non-members. Shadow models, trained by the same plan
//! on sets that hold a random half of these records each, say how a model would answer with and
//! without each of them. Scores ([`attacks`]) become a [`Roc`]. What counts is the share of members
//! found while hardly any non-member is accused: TPR at 1 % and 0.1 % FPR (Carlini et al. 2022,
//! [arXiv:2112.03570](https://arxiv.org/abs/2112.03570)).

mod attack;
pub mod attacks;
mod roc;
mod shadows;

pub use attack::{Attack, CONFIDENCE, strongest};
pub use attacks::{Evidence, Shadow};
pub use roc::Roc;
pub use shadows::{Pool, Shadows};

use crate::Error;
use geodp_nn::{Network, Samples};

/// ln(p/(1 − p)) of the right class, in f64 and without cancellation: 1 − p is the sum of the other
/// classes' probabilities, which stay apart where p itself rounds to 1.
///
/// # Errors
/// Records or weights that do not fit the network.
pub fn logits(
    network: &Network,
    weights: &[f32],
    samples: &dyn Samples,
    rows: &[u32],
) -> Result<Vec<f64>, Error> {
    let classes = network.classes();
    let mut probabilities = vec![0.0; rows.len() * classes];
    network.predict(weights, samples, rows, &mut probabilities)?;
    let logit = |(row, index): (&[f32], &u32)| {
        let label = samples.label(*index as usize) as usize;
        let others = row.iter().enumerate().filter(|(class, _)| *class != label);
        let others: f64 = others.map(|(_, p)| f64::from(*p)).sum();
        let right = f64::from(row[label]);
        // Probabilities below f32's range count as its smallest.
        let ln = |p: f64| p.max(f64::from(f32::MIN_POSITIVE)).ln();
        ln(right) - ln(others)
    };
    Ok(probabilities.chunks(classes).zip(rows).map(logit).collect())
}
