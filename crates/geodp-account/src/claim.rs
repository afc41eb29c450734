//! A claim about privacy: the one type that carries a printed ε, and its kind with it.
//!
//! | kind | says |
//! |---|---|
//! | certified | a theorem. Only an accountant makes one, and accountants refuse GeoDP's event |
//! | conditional | a theorem under an assumption that nothing enforces, in words |
//! | as published | the figure of the authors' own accounting, for comparison |
//! | no privacy | something was released without noise |
//!
//! Every claim names its neighbours ([`Adjacency`]) and its arithmetic ([`Arithmetic`]). Printed, ε is
//! rounded up.

use crate::{Accountant, Adjacency, Bracket, Error, Reason, rounded_up};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which kind an ε is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// A theorem that assumes nothing about the data.
    Certified,
    /// A theorem under an assumption that nothing enforces.
    Conditional,
    /// The figure of GeoDP's authors: magnitude and direction count as one release.
    #[serde(alias = "as published")]
    AsPublished,
    /// The figure of SUR's authors: accepted iterations are charged, rejected ones are not.
    #[serde(alias = "SUR as published (accepted steps only)")]
    AsPublishedSur,
    /// No noise: ε = ∞.
    #[serde(alias = "no privacy")]
    NotPrivate,
}

impl Kind {
    /// Whether it is a figure of the authors' own accounting.
    pub fn is_published(self) -> bool {
        matches!(self, Self::AsPublished | Self::AsPublishedSur)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Certified => "certified",
            Self::Conditional => "conditional",
            Self::AsPublished | Self::AsPublishedSur => "as published",
            Self::NotPrivate => "no privacy",
        })
    }
}

/// In which arithmetic a claim holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// Sums and noise are computed in floating point: the theorem is about real numbers, and rounding
    /// is not counted.
    #[default]
    FloatingPoint,
    /// Contributions are integers on a grid, their sum is exact, the noise is a Gaussian rounded to the
    /// grid: the theorem is about the bits released.
    Exact,
}

impl Arithmetic {
    /// The names, as files and flags spell them.
    pub const NAMES: &'static [&'static str] = &["exact", "floating-point"];

    /// τ: the probability that a draw of noise is not that of the theorem.
    ///
    /// Floating point cuts its normals at 9.49 deviations (2⁻⁶⁴ is the smallest uniform), beyond
    /// which a Gaussian has 2.4·10⁻²¹. Exact noise leaves 2⁻¹²⁸ undecided.
    pub fn left_over(self) -> f64 {
        match self {
            Self::FloatingPoint => 2.4e-21,
            Self::Exact => 2.0_f64.powi(-128),
        }
    }

    /// What holds, in one sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::FloatingPoint => {
                "Arithmetic: floating point. The theorem is about real numbers; that sums and noise are \
                 rounded is not counted."
            }
            Self::Exact => {
                "Arithmetic: exact. Contributions are whole numbers on a grid, their sum is exact and the \
                 noise is a Gaussian rounded to the grid, so the theorem is about the bits released."
            }
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FloatingPoint => "floating point",
            Self::Exact => "exact",
        })
    }
}

/// What a noisy sum is divided by, publicly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Denominator {
    /// The expected batch size.
    Batch(u64),
    /// The expected batch size, whatever it is: accounting by rates needs no number.
    ExpectedBatch,
    /// The expected number of candidates of the step, rounded: IS's control.
    Candidates,
}

/// What all claims about a run share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// Which change of the data the claims are about.
    pub adjacency: Adjacency,
    /// δ they are stated at.
    pub delta: f64,
    /// In which arithmetic they hold.
    pub arithmetic: Arithmetic,
    /// What sums are divided by.
    pub denominator: Denominator,
    /// Draws of noise, at most, of everything the claims are about; 0 where nobody has counted.
    /// Each may differ from the Gaussian of the theorem with [`Arithmetic::left_over`].
    pub noise_draws: u64,
}

/// One claim about what was released.
///
/// # Guarantee
/// In a program, a certified claim comes from an accountant alone. One that was read from a file is as
/// trustworthy as the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    kind: Kind,
    epsilon: Bracket,
    delta: f64,
    adjacency: Adjacency,
    arithmetic: Arithmetic,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    assumption: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delta_prime_at_most: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    selection: Option<Counted>,
}

/// Iterations that SUR kept, of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Kept.
    pub accepted: u64,
    /// Taken back.
    pub rejected: u64,
}

impl Claim {
    /// What an accountant certifies: the released weights are (ε, δ)-differentially private.
    ///
    /// # Errors
    /// A δ that the accountant refuses.
    pub fn certified(
        accountant: &(impl Accountant + ?Sized),
        delta: f64,
        arithmetic: Arithmetic,
    ) -> Result<Self, Error> {
        let epsilon = accountant.epsilon(delta)?;
        Ok(Self::of(Kind::Certified, epsilon, delta, arithmetic))
    }

    /// The claim under an assumption.
    pub(crate) fn conditional(epsilon: Bracket, terms: &Terms, assumption: String) -> Self {
        let claim = Self::of(Kind::Conditional, epsilon, terms.delta, terms.arithmetic);
        Self { assumption: Some(assumption), ..claim }
    }

    /// GeoDP's published figure, with δ′ up to 1 − β.
    pub(crate) fn as_published(epsilon: Bracket, terms: &Terms, delta_prime_at_most: f64) -> Self {
        let claim = Self::of(Kind::AsPublished, epsilon, terms.delta, terms.arithmetic);
        Self { delta_prime_at_most: Some(delta_prime_at_most), ..claim }
    }

    /// SUR's published figure.
    pub(crate) fn accepted_only(epsilon: Bracket, terms: &Terms, counted: Counted) -> Self {
        let claim = Self::of(Kind::AsPublishedSur, epsilon, terms.delta, terms.arithmetic);
        Self { selection: Some(counted), ..claim }
    }

    /// Something was released without noise.
    pub fn not_private(terms: &Terms) -> Self {
        let infinite = f64::INFINITY;
        let epsilon = Bracket::new(infinite, infinite, terms.adjacency, Some(Reason::NoPrivacy));
        Self::of(Kind::NotPrivate, epsilon, terms.delta, terms.arithmetic)
    }

    fn of(kind: Kind, epsilon: Bracket, delta: f64, arithmetic: Arithmetic) -> Self {
        let adjacency = epsilon.adjacency;
        let (assumption, delta_prime_at_most, selection) = (None, None, None);
        Self {
            kind,
            epsilon,
            delta,
            adjacency,
            arithmetic,
            assumption,
            delta_prime_at_most,
            selection,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether it claims any privacy.
    pub fn is_private(&self) -> bool {
        self.kind != Kind::NotPrivate
    }

    /// ε; its upper end is the claim.
    pub fn epsilon(&self) -> Bracket {
        self.epsilon
    }

    /// The upper end of ε: the number to report.
    pub fn upper(&self) -> f64 {
        self.epsilon.upper
    }

    /// The number to report, as it is printed: rounded up.
    pub fn epsilon_text(&self) -> String {
        rounded_up(self.epsilon.upper)
    }

    /// δ.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// δ as it is printed, with the terms that stand beside it.
    pub fn delta_text(&self) -> String {
        match (self.kind, self.delta_prime_at_most) {
            (Kind::Conditional, _) => format!("{:e} + δ″", self.delta),
            (_, Some(most)) => format!("{:e} + δ′, δ′ up to {most}", self.delta),
            _ => format!("{:e}", self.delta),
        }
    }

    /// Which change of the data it is about.
    pub fn adjacency(&self) -> Adjacency {
        self.adjacency
    }

    /// In which arithmetic it holds.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// What is assumed and not enforced; conditional claims only.
    pub fn assumption(&self) -> Option<&str> {
        self.assumption.as_deref()
    }

    /// 1 − β: the published guarantee is (ε, δ + δ′) with δ′ up to this; GeoDP as published only.
    pub fn delta_prime_at_most(&self) -> Option<f64> {
        self.delta_prime_at_most
    }

    /// "certified ε 1.8285": the number with its kind, for tables and progress.
    pub fn short(&self) -> String {
        format!("{} ε {}", self.kind, self.epsilon_text())
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_private() {
            return f.write_str("no privacy: no noise was added (ε = ∞)");
        }
        write!(f, "{} ε = {} at δ = {}", self.kind, self.epsilon_text(), self.delta_text())?;
        if let Some(Counted { accepted, rejected }) = self.selection {
            write!(f, " for the {accepted} accepted of {} iterations", accepted + rejected)?;
        }
        match self.epsilon.reason {
            Some(reason) if self.epsilon.upper.is_infinite() => write!(f, " ({reason})"),
            _ => Ok(()),
        }
    }
}
