//! The verdicts: pure functions from numbers to words, each by the rule it states.

use super::evidence::Evidence;
use super::{geometry, training};

/// What may be said of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It holds under the released code's protocol, and not under the fair one.
    ReleasedOnly,
    /// It does not hold.
    DoesNotHold,
    /// It depends, and on what.
    Depends(String),
    /// Its numbers are not there yet: which experiment makes them.
    NotRun(&'static str),
}

/// A claim with its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// 1 to 9.
    pub number: u8,
    /// What the paper claims.
    pub claim: &'static str,
    /// By what the verdict is decided.
    pub rule: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers behind it.
    pub finding: String,
    /// The figure or table that shows them.
    pub figure: &'static str,
}

/// Judges every claim.
pub fn judge(evidence: &Evidence) -> Vec<Judged> {
    let all: [fn(&Evidence) -> Judged; 9] = [
        geometry::lemma1,
        geometry::unbiased,
        geometry::knobs,
        geometry::theorem1,
        geometry::losing,
        training::logistic,
        training::tables,
        training::runtime,
        training::guarantee,
    ];
    all.iter().map(|claim| claim(evidence)).collect()
}
