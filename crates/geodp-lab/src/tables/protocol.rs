//! Two readings of the tables' B, which the paper calls the batch size.
//!
//! | protocol | records in a step | noise on their mean | steps in 20 epochs of MNIST |
//! |---|---|---|---|
//! | as-stated | B, expected | σ·C/B | 73 at B = 16384 |
//! | small-steps | 128, expected | σ·C/B | 9375 |
//!
//! Under the first, twenty epochs are too few steps for the published accuracies without noise. Under
//! the second they come out, B stands where the paper's formulas have it, in the noise, and what a step
//! really spends is σ·128/B: the ε of such a training is far above the published one.

use serde::{Deserialize, Serialize};

/// Expected records of a small step.
pub const SMALL_STEP: u64 = 128;

/// How B is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// B records in a step.
    AsStated,
    /// 128 records in a step, noise as if they were B.
    SmallSteps,
}

impl Protocol {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::AsStated => "as-stated",
            Self::SmallSteps => "small-steps",
        }
    }

    /// Expected records in a step at a stated B; small forms of the experiment divide B.
    pub fn step_batch(self, stated_batch: u64, divide: u64) -> u64 {
        match self {
            Self::AsStated => stated_batch / divide,
            Self::SmallSteps => SMALL_STEP,
        }
    }

    /// The noise multiplier of a step: the σ that puts noise of the stated σ·C/B on its mean.
    pub fn step_noise_multiplier(self, sigma: f64, stated_batch: u64) -> f64 {
        match self {
            Self::AsStated => sigma,
            Self::SmallSteps => sigma * SMALL_STEP as f64 / stated_batch as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use geodp_mechanism::{Clip, Gaussian, Geometric};

    /// Under both readings the noise on the mean gradient is that of the stated σ, C and B, for
    /// coordinates, magnitude and angles alike.
    #[test]
    fn noise_is_that_of_the_stated_batch() {
        let sensitivity = Clip::flat(0.1).unwrap().sensitivity();
        for (sigma, stated) in [(10.0, 8192), (1.0, 16384), (0.01, 16384)] {
            let batch = Protocol::SmallSteps.step_batch(stated, 1);
            let multiplier = Protocol::SmallSteps.step_noise_multiplier(sigma, stated);
            assert_eq!(batch, 128);
            let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{a} {b}");
            let dp = |sigma, batch| Gaussian::new(sensitivity, sigma, batch).unwrap();
            close(dp(multiplier, batch).coordinate_std(), dp(sigma, stated).coordinate_std());
            let geodp = |sigma, batch| Geometric::new(sensitivity, sigma, batch, 0.1).unwrap();
            let (small, large) = (geodp(multiplier, batch), geodp(sigma, stated));
            close(small.angle_std(1000), large.angle_std(1000));
        }
        assert_eq!(Protocol::AsStated.step_batch(8192, 8), 1024);
        assert_eq!(Protocol::AsStated.step_noise_multiplier(3.0, 8192), 3.0);
    }
}
