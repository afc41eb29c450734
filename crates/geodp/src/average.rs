//! The average of the weights over a training, which is what is evaluated and released.
//!
//! a ← d·a + (1 − d)·w after every step, d = min(decay, (1 + t)/(10 + t)) at the t-th step. The last
//! weights carry the noise of the last steps; their average carries less. It is made of weights that
//! were released already, so it costs no privacy (De et al. 2022,
//! [arXiv:2204.13650](https://arxiv.org/abs/2204.13650), use it for the same reason).

/// An exponential moving average of weights.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WeightAverage {
    decay: f64,
    mean: Vec<f32>,
}

impl WeightAverage {
    /// Of a training that starts at `weights`.
    pub(crate) fn new(decay: f64, weights: &[f32]) -> Self {
        Self { decay, mean: weights.to_vec() }
    }

    /// Takes in the weights after the step numbered `step`, from 0.
    pub(crate) fn add(&mut self, step: u64, weights: &[f32]) {
        let seen = step as f64 + 1.0;
        let kept = self.decay.min((1.0 + seen) / (10.0 + seen));
        let new = (1.0 - kept) as f32;
        for (mean, weight) in self.mean.iter_mut().zip(weights) {
            *mean += new * (weight - *mean);
        }
    }

    /// The average so far.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.mean
    }

    /// Goes on from a stored average; `false` if it has another length.
    pub(crate) fn restore(&mut self, mean: Vec<f32>) -> bool {
        let fits = mean.len() == self.mean.len();
        if fits {
            self.mean = mean;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_the_start_quickly_and_then_at_its_decay() {
        let mut average = WeightAverage::new(0.5, &[8.0]);
        average.add(0, &[0.0]); // kept: 2/11
        assert!((average.weights()[0] - 16.0 / 11.0).abs() < 1e-6);
        average.add(1000, &[0.0]); // kept: 0.5
        assert!((average.weights()[0] - 8.0 / 11.0).abs() < 1e-6);
    }

    #[test]
    fn constant_weights_are_their_own_average() {
        let mut average = WeightAverage::new(0.9999, &[0.1, -3.0]);
        (0..50).for_each(|step| average.add(step, &[0.1, -3.0]));
        assert_eq!(average.weights(), [0.1, -3.0]);
    }

    #[test]
    fn an_average_of_another_model_is_refused() {
        let mut average = WeightAverage::new(0.9, &[1.0, 2.0]);
        assert!(!average.restore(vec![1.0]));
        assert!(average.restore(vec![3.0, 4.0]));
        assert_eq!(average.weights(), [3.0, 4.0]);
    }
}
