//! Optimisers: how a private gradient moves the weights. Post-processing only: they see the noisy
//! gradient and nothing else, so their state may be stored and shown.
//!
//! | optimiser | state | step |
//! |---|---|---|
//! | SGD | | w ← w − η·g |
//! | momentum (PyTorch's convention) | v ← μ·v + g | w ← w − η·v |
//! | DP-Adam | m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g² | w ← w − η·m̂/(√v̂ + ε) |
//! | DP-AdamBC (Tang et al. 2024, [arXiv:2312.14334](https://arxiv.org/abs/2312.14334)) | the same, Φ ← β₂Φ + (1−β₂)·s² | w ← w − η·m̂/√max(v̂ − Φ̂, γ′) |
//!
//! m̂, v̂, Φ̂ are divided by 1 − β^t. s² is the variance of the noise on a coordinate of that step's
//! gradient: averaged as v is, it is exactly the noise in v̂, also where s changes between steps.

use serde::{Deserialize, Serialize};

/// Which optimiser, with its constants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum OptimizerKind {
    /// Plain steps.
    Sgd,
    /// Steps along a decaying sum of gradients.
    Momentum {
        /// μ, in [0, 1); 0.9 if absent.
        #[serde(default = "default_momentum")]
        momentum: f64,
    },
    /// Adam on noisy gradients.
    Adam(Moments),
    /// Adam whose second moment is corrected for the noise in it. DP only.
    AdamBc(Moments),
}

/// μ where none is given.
pub const DEFAULT_MOMENTUM: f64 = 0.9;

fn default_momentum() -> f64 {
    DEFAULT_MOMENTUM
}

/// Constants of Adam and AdamBC.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Moments {
    /// β₁: memory of the mean.
    pub beta1: f64,
    /// β₂: memory of the square.
    pub beta2: f64,
    /// ε of Adam, γ′ of AdamBC: what keeps the denominator from 0.
    pub floor: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, floor: 1e-8 }
    }
}

impl std::fmt::Display for OptimizerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sgd => f.write_str("SGD"),
            Self::Momentum { momentum } => write!(f, "SGD with momentum {momentum}"),
            Self::Adam(Moments { beta1, beta2, .. }) => {
                write!(f, "DP-Adam with β₁ {beta1}, β₂ {beta2}")
            }
            Self::AdamBc(Moments { beta1, beta2, floor }) => {
                write!(f, "DP-AdamBC with β₁ {beta1}, β₂ {beta2}, γ′ {floor:e}")
            }
        }
    }
}

impl OptimizerKind {
    /// The names, as files and flags spell them.
    pub const NAMES: &'static [&'static str] = &["sgd", "momentum", "adam", "adam-bc"];

    /// What is wrong with the constants, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let share = |name: &str, value: f64| {
            (!(0.0..1.0).contains(&value))
                .then(|| format!("{name} is {value}; it must be in [0, 1)"))
        };
        match self {
            Self::Sgd => None,
            Self::Momentum { momentum } => share("momentum", *momentum),
            Self::Adam(Moments { beta1, beta2, floor })
            | Self::AdamBc(Moments { beta1, beta2, floor }) => {
                let positive = floor.is_finite() && *floor > 0.0;
                let floor = || format!("floor is {floor}; it must be finite and > 0");
                share("beta1", *beta1)
                    .or_else(|| share("beta2", *beta2))
                    .or_else(|| (!positive).then(floor))
            }
        }
    }
}

/// An optimiser and its state.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    kind: OptimizerKind,
    learning_rate: f64,
    /// Vectors of the weights' length: none for SGD, v for momentum, m and v for Adam.
    state: Vec<Vec<f32>>,
    scalars: OptimizerScalars,
}

/// The numbers of an optimiser's state.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct OptimizerScalars {
    /// t: steps taken (and not taken back).
    pub(crate) steps: u64,
    /// Φ before its correction by 1 − β₂^t.
    pub(crate) noise_variance: f64,
}

impl Optimizer {
    /// With a fresh state for `dim` weights.
    pub fn new(kind: OptimizerKind, learning_rate: f64, dim: usize) -> Self {
        let vectors = match kind {
            OptimizerKind::Sgd => 0,
            OptimizerKind::Momentum { .. } => 1,
            OptimizerKind::Adam(_) | OptimizerKind::AdamBc(_) => 2,
        };
        Self {
            kind,
            learning_rate,
            state: vec![vec![0.0; dim]; vectors],
            scalars: OptimizerScalars::default(),
        }
    }

    /// η of the steps that follow.
    pub(crate) fn set_learning_rate(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
    }

    /// Moves `weights` by one step along the private gradient, each coordinate of which has noise
    /// of `noise_variance`.
    pub fn step(&mut self, weights: &mut [f32], private_gradient: &[f32], noise_variance: f64) {
        self.scalars.steps += 1;
        let rate = self.learning_rate as f32;
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
            OptimizerKind::Adam(moments) => {
                self.adam(weights, private_gradient, moments, |square| {
                    square.sqrt() + moments.floor
                });
            }
            OptimizerKind::AdamBc(moments) => {
                let scalars = &mut self.scalars;
                scalars.noise_variance =
                    moments.beta2 * scalars.noise_variance + (1.0 - moments.beta2) * noise_variance;
                let noise = scalars.noise_variance / forgotten(moments.beta2, scalars.steps);
                self.adam(weights, private_gradient, moments, |square| {
                    (square - noise).max(moments.floor).sqrt()
                });
            }
        }
    }

    /// w ← w − η·m̂/denominator(v̂), in double precision but for what is kept.
    fn adam(
        &mut self,
        weights: &mut [f32],
        gradient: &[f32],
        Moments { beta1, beta2, .. }: Moments,
        denominator: impl Fn(f64) -> f64,
    ) {
        let (of_mean, of_square) =
            (forgotten(beta1, self.scalars.steps), forgotten(beta2, self.scalars.steps));
        let [mean, square] = self.state.as_mut_slice() else { return };
        for (((w, g), m), v) in weights.iter_mut().zip(gradient).zip(mean).zip(square) {
            let g = f64::from(*g);
            let new_mean = beta1 * f64::from(*m) + (1.0 - beta1) * g;
            let new_square = beta2 * f64::from(*v) + (1.0 - beta2) * g * g;
            let step = new_mean / of_mean / denominator(new_square / of_square);
            *w -= (self.learning_rate * step) as f32;
            (*m, *v) = (new_mean as f32, new_square as f32);
        }
    }

    /// The state's vectors, for a checkpoint.
    pub fn state(&self) -> &[Vec<f32>] {
        &self.state
    }

    pub(crate) fn scalars(&self) -> OptimizerScalars {
        self.scalars
    }

    /// Takes a state back; `false` if it has another shape.
    pub(crate) fn restore(&mut self, state: Vec<Vec<f32>>, scalars: OptimizerScalars) -> bool {
        let fits = state.len() == self.state.len()
            && state.iter().zip(&self.state).all(|(a, b)| a.len() == b.len());
        if fits {
            self.state = state;
            self.scalars = scalars;
        }
        fits
    }
}

/// 1 − β^t: the weight that an average with memory β has gathered after t steps.
fn forgotten(memory: f64, steps: u64) -> f64 {
    1.0 - memory.powf(steps as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sgd_and_momentum_by_hand() {
        let mut weights = [1.0, -1.0];
        let mut sgd = Optimizer::new(OptimizerKind::Sgd, 0.5, 2);
        sgd.step(&mut weights, &[2.0, 4.0], 0.0);
        assert_eq!(weights, [0.0, -3.0]);

        let mut weights = [0.0];
        let mut momentum = Optimizer::new(OptimizerKind::Momentum { momentum: 0.5 }, 1.0, 1);
        momentum.step(&mut weights, &[1.0], 0.0);
        momentum.step(&mut weights, &[1.0], 0.0);
        // v: 1, then 1.5.
        assert_eq!(weights, [-2.5]);
        assert_eq!(momentum.state(), [[1.5]]);
    }

    #[test]
    fn a_state_of_another_shape_is_refused() {
        let mut momentum = Optimizer::new(OptimizerKind::Momentum { momentum: 0.9 }, 1.0, 2);
        assert!(momentum.restore(vec![vec![1.0, 2.0]], OptimizerScalars::default()));
        assert!(!momentum.restore(vec![vec![1.0]], OptimizerScalars::default()));
        assert!(!momentum.restore(vec![], OptimizerScalars::default()));
        assert_eq!(momentum.state(), [[1.0, 2.0]]);
    }

    /// The closed form of the bias-corrected averages, Σ (1−β)β^(t−k)·x_k / (1−β^t), against the
    /// recursion, for noise whose variance changes.
    #[test]
    fn adam_and_adam_bc_by_their_closed_form() {
        let gradients = [0.5, -0.25, 1.0, 0.125];
        let variances = [0.01, 0.04, 0.09, 0.01];
        let average = |memory: f64, values: &[f64]| {
            let ages = (0..values.len()).rev();
            let weigh = |age: usize| (1.0 - memory) * memory.powi(age as i32);
            let sum: f64 = ages.zip(values).map(|(age, x)| weigh(age) * x).sum();
            sum / (1.0 - memory.powi(values.len() as i32))
        };
        let moments = Moments { beta1: 0.8, beta2: 0.95, floor: 1e-3 };
        for corrected in [false, true] {
            let kind = if corrected {
                OptimizerKind::AdamBc(moments)
            } else {
                OptimizerKind::Adam(moments)
            };
            let mut adam = Optimizer::new(kind, 0.1, 1);
            let (mut weights, mut expected) = ([2.0_f32], 2.0_f64);
            for t in 1..=gradients.len() {
                adam.step(&mut weights, &[gradients[t - 1] as f32], variances[t - 1]);
                let squares: Vec<f64> = gradients[..t].iter().map(|g| g * g).collect();
                let mean = average(0.8, &gradients[..t]);
                let square = average(0.95, &squares);
                let noise = average(0.95, &variances[..t]);
                expected -= 0.1 * mean
                    / if corrected {
                        (square - noise).max(1e-3).sqrt()
                    } else {
                        square.sqrt() + 1e-3
                    };
                assert!((f64::from(weights[0]) - expected).abs() < 1e-5, "step {t}");
            }
        }
    }

    #[test]
    fn constants_out_of_range_are_named() {
        let of = |beta1, beta2, floor| {
            OptimizerKind::Adam(Moments { beta1, beta2, floor }).fault().unwrap_or_default()
        };
        assert!(of(1.0, 0.9, 1e-8).contains("beta1"));
        assert!(of(0.9, f64::NAN, 1e-8).contains("beta2"));
        assert!(of(0.9, 0.9, 0.0).contains("floor"));
        assert_eq!(of(0.9, 0.999, 1e-8), "");
        assert!(OptimizerKind::Momentum { momentum: -0.1 }.fault().is_some());
    }
}
