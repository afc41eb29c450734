//! An answer that carries its own error: the truth lies in [lower, upper].
//!
//! `upper` is the claim. Where nothing certifies a number, `upper` is infinite
//! (for δ: 1) and `reason` says why. In JSON an infinite end is `null`.

use crate::Adjacency;
use crate::digits::rounded;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Why a bracket is wider than usual, one-sided or unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Reason {
    /// Something was released without noise.
    NoPrivacy,
    /// Rényi bounds, and releases that hold except with a small probability, bound from above only.
    OneSided,
    /// The Fourier composition could not certify; the Rényi bound answers.
    RenyiOnly,
    /// The finest lattice allowed still leaves the bracket wide.
    Resolution,
    /// The noise's own left-over is larger than δ allows at this ε.
    NoiseLeftOver,
    /// No method certifies a finite number here.
    Uncertified,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::NoPrivacy => "a release without noise has no privacy guarantee",
            Reason::OneSided => "bounded from above only",
            Reason::RenyiOnly => {
                "the upper end is the Rényi bound: composition by FFT cannot certify a tighter one"
            }
            Reason::Resolution => "the finest lattice allowed leaves the bracket wide",
            Reason::NoiseLeftOver => {
                "δ is below what can be certified: at so large an ε the noise's tail outweighs it"
            }
            Reason::Uncertified => "no method certifies a finite number for these parameters",
        })
    }
}

/// lower ≤ truth ≤ upper, for the named adjacency.
///
/// # Guarantee
/// `0 ≤ lower ≤ upper`, neither is NaN, and `upper` is a true upper bound:
/// discretisation, truncation, aliasing and rounding are bounded and added.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Unchecked")]
pub struct Bracket {
    /// No smaller value is true.
    #[serde(serialize_with = "finite_or_null")]
    pub lower: f64,
    /// No larger value is needed: the number to report.
    #[serde(serialize_with = "finite_or_null")]
    pub upper: f64,
    /// The neighbouring relation the answer is for.
    pub adjacency: Adjacency,
    /// Set where the bracket is not as tight as this crate promises.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

impl Bracket {
    /// A bracket whose two ends meet the type's invariant whatever is given:
    /// a NaN end opens its side.
    pub(crate) fn new(
        lower: f64,
        upper: f64,
        adjacency: Adjacency,
        reason: Option<Reason>,
    ) -> Self {
        let upper = if upper.is_nan() { f64::INFINITY } else { upper.max(0.0) };
        let lower = if lower.is_nan() { 0.0 } else { lower.clamp(0.0, upper) };
        Self { lower, upper, adjacency, reason }
    }

    /// upper − lower; infinite where the upper end is.
    pub fn width(&self) -> f64 {
        if self.upper.is_infinite() { f64::INFINITY } else { self.upper - self.lower }
    }

    /// Whether `value` lies in the bracket.
    pub fn contains(&self, value: f64) -> bool {
        self.lower <= value && value <= self.upper
    }
}

impl fmt::Display for Bracket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lower = rounded(self.lower, 6, false);
        write!(f, "[{lower}, {}] ({})", rounded(self.upper, 6, true), self.adjacency)?;
        match self.reason {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

fn finite_or_null<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    value.is_finite().then_some(*value).serialize(serializer)
}

/// What a file says, before it is held to the invariant. `null` is infinite.
#[derive(Deserialize)]
struct Unchecked {
    lower: Option<f64>,
    upper: Option<f64>,
    adjacency: Adjacency,
    #[serde(default)]
    reason: Option<Reason>,
}

impl From<Unchecked> for Bracket {
    fn from(Unchecked { lower, upper, adjacency, reason }: Unchecked) -> Self {
        let infinite = |end: Option<f64>| end.unwrap_or(f64::INFINITY);
        Self::new(infinite(lower), infinite(upper), adjacency, reason)
    }
}
