//! Learning-rate schedules: the rate of step t of T is η·f(t), with f from 0 up to 1 and down again.
//!
//! | decay | f after the warm-up, p the share of the steps behind it |
//! |---|---|
//! | constant | 1 |
//! | linear | 1 − (1 − last)·p |
//! | cosine | last + (1 − last)·(1 + cos πp)/2 |
//!
//! Warm-up: f grows in equal parts to 1 over the first share of the steps. T is public and so is η,
//! so a schedule costs no privacy. Noise that enters late has few steps to be averaged out; a rate
//! that falls to 0 leaves less of it in the weights.

use serde::{Deserialize, Serialize};

/// How the learning rate falls after the warm-up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decay {
    /// It stays.
    #[default]
    Constant,
    /// In a straight line.
    Linear,
    /// Along half a wave.
    Cosine,
}

impl Decay {
    /// The names, as files and flags spell them.
    pub const NAMES: &'static [&'static str] = &["constant", "linear", "cosine"];
}

impl std::fmt::Display for Decay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Constant => "constant",
            Self::Linear => "linear",
            Self::Cosine => "cosine",
        })
    }
}

/// How the learning rate changes over a training.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Schedule {
    /// How the rate falls.
    pub decay: Decay,
    /// Share of the steps over which it first grows, in [0, 1).
    pub warmup: f64,
    /// Share of η that is left at the end, in [0, 1]; of no meaning for a constant rate.
    pub last: f64,
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.decay)?;
        if self.warmup > 0.0 {
            write!(f, " after a warm-up of {} % of the steps", 100.0 * self.warmup)?;
        }
        Ok(())
    }
}

impl Schedule {
    /// A straight line down to 0.
    pub const LINEAR: Self = Self { decay: Decay::Linear, warmup: 0.0, last: 0.0 };

    /// What is wrong with the numbers, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        if !(0.0..1.0).contains(&self.warmup) {
            return Some(format!("schedule.warmup is {}; it must be in [0, 1)", self.warmup));
        }
        (!(0.0..=1.0).contains(&self.last))
            .then(|| format!("schedule.last is {}; it must be in [0, 1]", self.last))
    }

    /// f of step `step` (from 0) of `steps`.
    pub(crate) fn factor(&self, step: u64, steps: u64) -> f64 {
        let (step, steps) = (step as f64, steps as f64);
        let grown = self.warmup * steps;
        if step < grown {
            return ((step + 1.0) / grown).min(1.0);
        }
        let passed = ((step - grown) / (steps - grown)).clamp(0.0, 1.0);
        match self.decay {
            Decay::Constant => 1.0,
            Decay::Linear => 1.0 - (1.0 - self.last) * passed,
            Decay::Cosine => {
                // `libm`, so that a training has the same bits on every system.
                let wave = libm::cos(std::f64::consts::PI * passed);
                self.last + (1.0 - self.last) * 0.5 * (1.0 + wave)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factors(schedule: Schedule) -> Vec<f64> {
        (0..8).map(|step| schedule.factor(step, 8)).collect()
    }

    #[test]
    fn rates_by_hand() {
        assert_eq!(factors(Schedule::default()), [1.0; 8]);
        let linear = factors(Schedule::LINEAR);
        assert_eq!(linear, [1.0, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]);
        let warm = Schedule { decay: Decay::Linear, warmup: 0.5, last: 0.2 };
        let expected = [0.25, 0.5, 0.75, 1.0, 1.0, 0.8, 0.6, 0.4];
        for (factor, expected) in factors(warm).iter().zip(expected) {
            assert!((factor - expected).abs() < 1e-12);
        }
        let cosine = factors(Schedule { decay: Decay::Cosine, ..Schedule::default() });
        assert_eq!(
            (cosine[0], cosine[4]),
            (1.0, 0.5 * (1.0 + libm::cos(std::f64::consts::FRAC_PI_2)))
        );
        assert!(cosine.windows(2).all(|pair| pair[1] < pair[0]));
    }

    #[test]
    fn every_factor_is_a_share_of_the_rate() {
        for decay in [Decay::Constant, Decay::Linear, Decay::Cosine] {
            for warmup in [0.0, 0.01, 0.5, 0.999] {
                let schedule = Schedule { decay, warmup, last: 0.1 };
                for steps in [1, 2, 7, 1000] {
                    for step in 0..steps {
                        let factor = schedule.factor(step, steps);
                        assert!(factor > 0.0 && factor <= 1.0, "{schedule:?} {step}/{steps}");
                    }
                }
            }
        }
    }

    #[test]
    fn numbers_out_of_range_are_named() {
        let fault = |warmup, last| {
            Schedule { warmup, last, ..Schedule::LINEAR }.fault().unwrap_or_default()
        };
        assert!(fault(1.0, 0.0).contains("warmup"));
        assert!(fault(f64::NAN, 0.0).contains("warmup"));
        assert!(fault(0.0, 1.5).contains("last"));
        assert_eq!(fault(0.0, 0.0), "");
    }
}
