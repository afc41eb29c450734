//! A hard stop: asks before each release whether it still fits.
//!
//! The Rényi bound answers in microseconds and is mostly far from the limit; only
//! near the limit is the tight accountant asked.

use crate::error::{check_delta, check_epsilon};
use crate::{Accountant, Adjacency, Bracket, Error, Event, PldAccountant, RdpAccountant};

/// A target (ε, δ) and what has been spent of it.
#[derive(Clone, Debug)]
pub struct Budget {
    epsilon: f64,
    delta: f64,
    tight: PldAccountant,
    quick: RdpAccountant,
}

impl Budget {
    /// A budget of which nothing is spent.
    pub fn new(epsilon: f64, delta: f64, adjacency: Adjacency) -> Result<Self, Error> {
        check_epsilon(epsilon)?;
        check_delta(delta)?;
        let (tight, quick) = (PldAccountant::new(adjacency), RdpAccountant::new(adjacency));
        Ok(Self { epsilon, delta, tight, quick })
    }

    /// Whether `event`, `count` times, still fits. Spends nothing.
    pub fn fits(&self, event: &Event, count: u64) -> Result<bool, Error> {
        let mut quick = self.quick.clone();
        quick.compose(event, count)?;
        if quick.epsilon(self.delta)?.upper <= self.epsilon {
            return Ok(true);
        }
        let mut tight = self.tight.clone();
        tight.compose(event, count)?;
        Ok(tight.epsilon(self.delta)?.upper <= self.epsilon)
    }

    /// Spends `event`, `count` times, if it fits; says whether it did.
    ///
    /// # Guarantee
    /// ε at δ of everything spent is never above the target.
    pub fn spend(&mut self, event: &Event, count: u64) -> Result<bool, Error> {
        if !self.fits(event, count)? {
            return Ok(false);
        }
        self.quick.compose(event, count)?;
        self.tight.compose(event, count)?;
        Ok(true)
    }

    /// ε of everything spent, at the budget's δ.
    pub fn spent(&self) -> Result<Bracket, Error> {
        self.tight.epsilon(self.delta)
    }
}
