//! How the records of a batch are weighed: a function of a record's place and its gradient's norm, and
//! the same as data where another process must follow it.
//!
//! Any closure weighs. The weights of a private step are one of three rules ([`WeightRule`]); an engine
//! whose records are on several machines sends the rule, not the weights, because a weight depends on a
//! norm that only the machine with the record knows.

/// Weighs the records of a batch.
pub trait Weigh: Sync {
    /// The weight of the record at `place`, whose gradient has this norm.
    fn weight(&self, place: usize, norm: f64) -> f64;
    /// The rule, where it is one that can be sent; `None` of a closure.
    fn rule(&self) -> Option<WeightRule<'_>> {
        None
    }
}

impl<F: Fn(usize, f64) -> f64 + Sync> Weigh for F {
    fn weight(&self, place: usize, norm: f64) -> f64 {
        self(place, norm)
    }
}

/// A rule of weights, as data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WeightRule<'a> {
    /// The same weight for all.
    Constant(f64),
    /// The plan's clipping rule.
    Clipped,
    /// Importance sampling: a record is kept if its number is below w(n)·n/C of the plan's clipping
    /// rule, and then contributes a vector of this length.
    Kept {
        /// K̃/N.
        length: f64,
        /// A uniform number for each place.
        uniforms: &'a [f64],
    },
}

/// The same weight for all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Constant(pub f64);

impl Weigh for Constant {
    fn weight(&self, _place: usize, _norm: f64) -> f64 {
        self.0
    }
    fn rule(&self) -> Option<WeightRule<'_>> {
        Some(WeightRule::Constant(self.0))
    }
}
