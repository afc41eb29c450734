//! The privacy statement of a run: which ε of which kind, under which adjacency, with which noise.
//!
//! There is no field called just "epsilon": every number stands in a claim that names its kind. A
//! GeoDP run has no certified claim at all.

use crate::Error;
use crate::budget::{Accounting, Kind};
use crate::plan::{Noise, Plan, Protection};
use crate::sampler::Sampling;
use crate::select::Selection;
use geodp_account::{
    Adjacency, AsPublished, Bracket, Certified, Conditional, GeoDpStatement, Method,
};
use serde::Serialize;
use std::fmt;

/// One claim about the released weights.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Claim {
    /// The weights are (ε, δ)-differentially private.
    Certified(Certified),
    /// The weights are (ε, δ)-differentially private if an assumption holds.
    Conditional(Conditional),
    /// The figure the paper's own accounting gives.
    AsPublished(AsPublished),
    /// The figure that SUR's own accounting gives.
    #[serde(rename = "as-published-sur")]
    AcceptedOnly(AcceptedOnly),
    /// No noise was added: there is no privacy.
    NotPrivate,
}

/// SUR as published: accepted iterations are charged, rejected ones are not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AcceptedOnly {
    /// ε of the accepted iterations alone.
    pub epsilon: Bracket,
    /// Its δ.
    pub delta: f64,
    /// Steps kept and taken back.
    pub selection: Selection,
}

impl Claim {
    /// ε and δ, unless there is no privacy.
    pub fn numbers(&self) -> Option<(Bracket, f64)> {
        match self {
            Self::Certified(claim) => Some((claim.epsilon(), claim.delta())),
            Self::Conditional(claim) => Some((claim.epsilon, claim.delta)),
            Self::AsPublished(claim) => Some((claim.epsilon, claim.delta)),
            Self::AcceptedOnly(claim) => Some((claim.epsilon, claim.delta)),
            Self::NotPrivate => None,
        }
    }

    /// The word that stands before every ε of this kind.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Certified(_) => "certified",
            Self::Conditional(_) => "conditional",
            Self::AsPublished(_) | Self::AcceptedOnly(_) => "as published",
            Self::NotPrivate => "no privacy",
        }
    }
}

/// Where the noise came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "origin", content = "seed")]
pub enum NoiseOrigin {
    /// The operating system's generator.
    OperatingSystem,
    /// A seed: whoever knows it knows the noise, and nothing is private against them.
    Seed(u64),
}

/// What privacy a run bought.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statement {
    /// Every claim, the strongest first.
    pub claims: Vec<Claim>,
    /// Which change of the data the claims are about; absent without privacy.
    pub adjacency: Option<Adjacency>,
    /// How batches were drawn.
    pub sampling: Sampling,
    /// Where the noise came from.
    pub noise: NoiseOrigin,
    /// σ; absent without privacy.
    pub noise_multiplier: Option<f64>,
    /// β; GeoDP only.
    pub beta: Option<f64>,
    /// C; absent where nothing is clipped.
    pub clip_norm: Option<f64>,
    /// B.
    pub batch: u64,
    /// N.
    pub records: u64,
    /// Steps charged in the ledger.
    pub steps_charged: u64,
    /// The rate that steps are charged at; IS only, else it is B/N.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate_rate: Option<f64>,
    /// Steps kept and taken back; SUR only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<Selection>,
}

impl Statement {
    /// The statement of `plan` after `steps_charged` steps, with the outcome of SUR where it
    /// selects.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn new(
        plan: &Plan,
        steps_charged: u64,
        selection: Option<Selection>,
    ) -> Result<Self, Error> {
        let accounting = plan.protection.accounting();
        let claims = match &plan.protection {
            Protection::None { .. } => vec![Claim::NotPrivate],
            Protection::Private { noise, accounting, .. } => {
                claims(noise, accounting, accounting.units(steps_charged), selection)?
            }
        };
        Ok(Self {
            claims,
            adjacency: accounting.map(Accounting::adjacency),
            sampling: plan.sampling,
            noise: plan.seed.map_or(NoiseOrigin::OperatingSystem, NoiseOrigin::Seed),
            noise_multiplier: plan.noise_multiplier(),
            beta: plan.mechanism().beta(),
            clip_norm: plan.clip_norm(),
            batch: plan.batch,
            records: plan.facts.records,
            steps_charged,
            candidate_rate: plan
                .strategies
                .importance
                .as_ref()
                .map(|importance| importance.candidate_rate),
            selection,
        })
    }
}

fn claims(
    noise: &Noise,
    accounting: &Accounting,
    units: u64,
    selection: Option<Selection>,
) -> Result<Vec<Claim>, Error> {
    let (delta, adjacency) = (accounting.delta, accounting.adjacency());
    let mut claims = match noise.kind() {
        Kind::Certified => {
            let accountant = accounting.account(noise.event(accounting.draw), units)?;
            vec![Claim::Certified(Certified::by(&accountant, delta)?)]
        }
        Kind::Conditional => {
            let event = noise.event(accounting.draw);
            let both = GeoDpStatement::new(&event, 1, delta, adjacency, Method::Rdp)?;
            let (epsilon, published) = (
                accounting.epsilon_of(noise, units)?,
                accounting.published_epsilon_of(noise, units)?,
            );
            let conditional = Conditional { epsilon, ..both.conditional };
            let as_published = AsPublished { epsilon: published, ..both.as_published };
            vec![Claim::Conditional(conditional), Claim::AsPublished(as_published)]
        }
    };
    if let Some(selection) = selection {
        let epsilon = accounting.published_epsilon_of(noise, selection.accepted)?;
        claims.push(Claim::AcceptedOnly(AcceptedOnly { epsilon, delta, selection }));
    }
    Ok(claims)
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((epsilon, delta)) = self.numbers() else {
            return f.write_str("no privacy: no noise was added (ε = ∞)");
        };
        write!(f, "{} ε = {} at δ = {delta:e}", self.word(), round_up(epsilon.upper))?;
        match self {
            Self::AsPublished(claim) => write!(f, " + δ′, δ′ up to {}", claim.delta_prime_at_most),
            Self::AcceptedOnly(claim) => {
                let Selection { accepted, rejected } = claim.selection;
                write!(f, " for the {accepted} accepted of {} iterations", accepted + rejected)
            }
            _ => Ok(()),
        }
    }
}

/// The same with a capital at its start.
fn capitalised(sentence: String) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// An ε with four decimals, rounded up: what is printed still bounds.
fn round_up(epsilon: f64) -> String {
    if epsilon.is_infinite() {
        return "∞".to_owned();
    }
    format!("{:.4}", (epsilon * 1e4).ceil() / 1e4)
}

impl Statement {
    /// The first claim in one line.
    pub fn headline(&self) -> String {
        let mut line = self.claims.first().map_or(String::new(), Claim::to_string);
        if let NoiseOrigin::Seed(seed) = self.noise
            && self.noise_multiplier.is_some()
        {
            line += &format!(" (seeded noise, seed {seed}: for experiments)");
        }
        line
    }

    /// The statement in sentences.
    pub fn paragraphs(&self) -> Vec<String> {
        let mut all = Vec::new();
        for claim in &self.claims {
            all.push(capitalised(match claim {
                Claim::Certified(_) => format!(
                    "{claim}. Whoever sees the weights learns at most this much about whether any \
                     one record was {}. This is a theorem; it assumes nothing about the data.",
                    self.change()
                ),
                Claim::Conditional(conditional) => format!(
                    "{claim}. This holds if {}. It is not a guarantee: a record that moves the \
                     direction further is protected less than this says.",
                    conditional.assumption
                ),
                Claim::AsPublished(_) => format!(
                    "{claim}. This is what the paper's accounting gives: magnitude and direction \
                     count as one release, and δ′ is the chance that the direction leaves the region \
                     β describes. It stands here for comparison."
                ),
                Claim::AcceptedOnly(_) => format!(
                    "{claim}. This is how SUR’s authors account: rejected iterations are not \
                     charged. They used the data too, and what they did shows; it stands here for \
                     comparison."
                ),
                Claim::NotPrivate => "No noise was added. The weights may reveal the training \
                     records; do not release them as private."
                    .to_owned(),
            }));
        }
        match self.noise {
            NoiseOrigin::Seed(seed) if self.noise_multiplier.is_some() => all.push(format!(
                "The noise was made from the seed {seed}. Against anyone who knows the seed nothing \
                 is private: this run is an experiment."
            )),
            _ => {}
        }
        all
    }

    fn change(&self) -> &'static str {
        match self.adjacency {
            Some(Adjacency::ReplaceOne) => "replaced by another",
            _ => "there or not",
        }
    }

    /// "certified ε" and the like.
    pub(crate) fn epsilon_label(&self) -> String {
        match self.claims.first() {
            Some(claim) if claim.numbers().is_some() => format!("{} ε", claim.word()),
            _ => "privacy".to_owned(),
        }
    }

    /// The first claim's number.
    pub(crate) fn epsilon_text(&self) -> String {
        match self.claims.first().and_then(Claim::numbers) {
            Some((epsilon, _)) => round_up(epsilon.upper),
            None => "none (ε = ∞)".to_owned(),
        }
    }

    /// δ of the first claim.
    pub(crate) fn delta_text(&self) -> String {
        let numbers = self.claims.first().and_then(Claim::numbers);
        numbers.map_or("–".to_owned(), |(_, delta)| format!("{delta:e}"))
    }

    /// What the ledger was charged with.
    pub(crate) fn charged_text(&self) -> String {
        let rate = self.candidate_rate.unwrap_or(self.batch as f64 / self.records as f64);
        let tests = if self.selection.is_some() { ", each with its test" } else { "" };
        let releases = if self.candidate_rate.is_some() { ", and releases of K" } else { "" };
        match (self.noise_multiplier, self.sampling) {
            (None, _) => format!("{} steps without privacy", self.steps_charged),
            (Some(sigma), Sampling::Poisson) => {
                let steps = self.steps_charged;
                format!("{steps} steps at q = {rate:.6}, σ = {sigma:.4}{tests}{releases}")
            }
            (Some(sigma), Sampling::Shuffle) => {
                format!("{} steps of shuffled epochs, σ = {sigma:.4}", self.steps_charged)
            }
        }
    }

    /// Names and values for a table.
    pub fn facts(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            facts.extend(value.map(|value| (name.to_owned(), value)));
        };
        add(
            "neighbouring data sets",
            self.adjacency.map(|a| match a {
                Adjacency::AddRemove => "one record added or removed".to_owned(),
                Adjacency::ReplaceOne => "one record replaced".to_owned(),
            }),
        );
        add(
            "sampling",
            Some(format!("{}, B = {} of N = {}", self.sampling, self.batch, self.records)),
        );
        add("noise multiplier σ", self.noise_multiplier.map(|s| format!("{s:.4}")));
        add("bounding factor β", self.beta.map(|b| b.to_string()));
        add("clipping threshold C", self.clip_norm.map(|c| c.to_string()));
        add(
            "steps kept (SUR)",
            self.selection.map(|Selection { accepted, rejected }| {
                format!("{accepted} accepted, {rejected} rejected; all are charged")
            }),
        );
        add(
            "noise from",
            self.noise_multiplier.map(|_| match self.noise {
                NoiseOrigin::OperatingSystem => {
                    "the operating system’s secure generator".to_owned()
                }
                NoiseOrigin::Seed(seed) => format!("seed {seed} (not private against its knowers)"),
            }),
        );
        facts
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for paragraph in self.paragraphs() {
            writeln!(f, "{paragraph}")?;
        }
        for (name, value) in self.facts() {
            writeln!(f, "  {name}: {value}")?;
        }
        Ok(())
    }
}
