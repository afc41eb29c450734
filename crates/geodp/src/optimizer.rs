//! Optimisers: how a private gradient moves the weights. Post-processing only: they see the noisy
//! gradient and nothing else, so their state may be stored and shown.
//!
//! SGD: w ← w − η·g. Momentum: v ← μ·v + g, w ← w − η·v (PyTorch's convention).

use serde::{Deserialize, Serialize};

/// Which optimiser, with its constants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimizerKind {
    /// Plain steps.
    Sgd,
    /// Steps along a decaying sum of gradients.
    Momentum {
        /// μ, in [0, 1).
        momentum: f64,
    },
}

impl std::fmt::Display for OptimizerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sgd => f.write_str("SGD"),
            Self::Momentum { momentum } => write!(f, "SGD with momentum {momentum}"),
        }
    }
}

/// An optimiser and its state.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    kind: OptimizerKind,
    learning_rate: f32,
    /// One vector of the weights' length for momentum, none for SGD.
    state: Vec<Vec<f32>>,
}

impl Optimizer {
    /// With a fresh state for `dim` weights.
    pub fn new(kind: OptimizerKind, learning_rate: f64, dim: usize) -> Self {
        let vectors = match kind {
            OptimizerKind::Sgd => 0,
            OptimizerKind::Momentum { .. } => 1,
        };
        Self { kind, learning_rate: learning_rate as f32, state: vec![vec![0.0; dim]; vectors] }
    }

    /// Moves `weights` by one step along the private gradient.
    pub fn step(&mut self, weights: &mut [f32], private_gradient: &[f32]) {
        let rate = self.learning_rate;
        match self.kind {
            OptimizerKind::Sgd => {
                for (w, g) in weights.iter_mut().zip(private_gradient) {
                    *w -= rate * g;
                }
            }
            OptimizerKind::Momentum { momentum } => {
                let velocity = &mut self.state[0];
                for ((w, g), v) in weights.iter_mut().zip(private_gradient).zip(velocity) {
                    *v = momentum as f32 * *v + g;
                    *w -= rate * *v;
                }
            }
        }
    }

    /// The state, for a checkpoint.
    pub fn state(&self) -> &[Vec<f32>] {
        &self.state
    }

    /// Takes a state back; `false` if it has another shape.
    pub(crate) fn restore(&mut self, state: Vec<Vec<f32>>) -> bool {
        let fits = state.len() == self.state.len()
            && state.iter().zip(&self.state).all(|(a, b)| a.len() == b.len());
        if fits {
            self.state = state;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sgd_and_momentum_by_hand() {
        let mut weights = [1.0, -1.0];
        let mut sgd = Optimizer::new(OptimizerKind::Sgd, 0.5, 2);
        sgd.step(&mut weights, &[2.0, 4.0]);
        assert_eq!(weights, [0.0, -3.0]);

        let mut weights = [0.0];
        let mut momentum = Optimizer::new(OptimizerKind::Momentum { momentum: 0.5 }, 1.0, 1);
        momentum.step(&mut weights, &[1.0]);
        momentum.step(&mut weights, &[1.0]);
        // v: 1, then 1.5.
        assert_eq!(weights, [-2.5]);
        assert_eq!(momentum.state(), [[1.5]]);
    }

    #[test]
    fn a_state_of_another_shape_is_refused() {
        let mut momentum = Optimizer::new(OptimizerKind::Momentum { momentum: 0.9 }, 1.0, 2);
        assert!(momentum.restore(vec![vec![1.0, 2.0]]));
        assert!(!momentum.restore(vec![vec![1.0]]));
        assert!(!momentum.restore(vec![]));
        assert_eq!(momentum.state(), [[1.0, 2.0]]);
    }
}
