//! Defaults that depend on data and model.
//!
//! Those of the private CNN were chosen on 10,000 training records of MNIST held back for it
//! (`--holdout 10000`), never on the test set, at (ε = 3, δ = 1e-5), C = 0.1, momentum 0.9: accuracy
//! 92.2, 94.3, 95.6, 95.9 % for learning rates 0.5, 1, 2, 4 (B = 1024, 20 epochs); 95.9, 95.6 % for 4
//! and 8 (B = 2048, 40 epochs); 96.2 % for 4 (B = 4096, 80 epochs). One run each. 60 epochs keep the
//! training short. Logistic regression and MLP: the best of 1, 2, 4 or 5 on the held-back tenth of
//! `examples/tabular`. The other rows are starting points, not tuned.

use crate::config::{DataConfig, ModelConfig, RunConfig};
use crate::importance::DEFAULT_NOISE_MULTIPLIER;
use crate::optimizer::OptimizerKind;
use crate::plan::{DEFAULT_CLIP_NORM, DEFAULT_EPSILON};

impl RunConfig {
    /// Fills in what was left open. A config that is complete stays as it is.
    pub fn complete(&mut self) {
        let private = self.privacy.mechanism.is_private();
        let start = Start::of(&self.data, &self.model, private);
        let (privacy, train) = (&mut self.privacy, &mut self.train);
        if private {
            privacy.clip_norm.get_or_insert(DEFAULT_CLIP_NORM);
            if privacy.epsilon.is_none() && privacy.noise_multiplier.is_none() {
                privacy.epsilon = Some(DEFAULT_EPSILON);
            }
            privacy.delta.get_or_insert(crate::plan::DEFAULT_DELTA);
            if let Some(importance) = &mut privacy.importance {
                importance.noise_multiplier.get_or_insert(DEFAULT_NOISE_MULTIPLIER);
            }
        }
        if train.epochs.is_none() && train.steps.is_none() {
            train.epochs = Some(start.epochs);
        }
        train.batch.get_or_insert(start.batch);
        let optimizer = *train.optimizer.get_or_insert(start.optimizer);
        train.learning_rate.get_or_insert(match optimizer {
            // Adam's steps have the length of the rate, whatever the gradient's.
            OptimizerKind::Adam(_) | OptimizerKind::AdamBc(_) => 0.002,
            _ => start.learning_rate,
        });
    }
}

/// Where a training of this kind starts from.
struct Start {
    batch: u64,
    epochs: u64,
    learning_rate: f64,
    optimizer: OptimizerKind,
}

impl Start {
    fn of(data: &DataConfig, model: &ModelConfig, private: bool) -> Self {
        let momentum = OptimizerKind::Momentum { momentum: 0.9 };
        let start = |batch, epochs, learning_rate, optimizer| Self {
            batch,
            epochs,
            learning_rate,
            optimizer,
        };
        // Private rates belong to C = 0.1: clipped gradients are short, so rates are large.
        match (data, model, private) {
            (_, ModelConfig::Cnn, true) => start(4096, 60, 4.0, momentum),
            (_, ModelConfig::Cnn, false) => start(256, 10, 0.02, momentum),
            (_, ModelConfig::Resnet, true) => start(2048, 30, 1.0, momentum),
            (_, ModelConfig::Resnet, false) => start(128, 20, 0.03, momentum),
            (_, ModelConfig::Logistic, true) => start(256, 20, 5.0, momentum),
            (_, _, true) => start(256, 20, 4.0, momentum),
            (_, _, false) => start(128, 20, 0.05, momentum),
        }
    }
}
