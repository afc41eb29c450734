//! The privacy statement of a run: which ε of which kind, under which adjacency, with which noise.
//!
//! There is no field called just "epsilon": every number stands in a claim that names its kind. A
//! GeoDP run has no certified claim at all.

use crate::Error;
use crate::federated::CLIENT;
use crate::plan::{Plan, Protection};
use crate::sampler::Sampling;
use crate::select::Selection;
use geodp_account::{Account, Adjacency, Arithmetic, Claim, Event, Kind, rounded_up};
use geodp_mechanism::perturb::PolarSummary;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The mechanism whose statement says what a step releases.
const CERTIFIED_GEODP: &str = "geodp-certified";

/// What is protected where nothing else is said.
pub(crate) const RECORD: &str = "record";

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
    /// In which arithmetic the claims hold; absent without privacy.
    pub arithmetic: Option<Arithmetic>,
    /// What is protected: "record", or the name of a unit of several rows.
    pub unit: String,
    /// How batches were drawn.
    pub sampling: Sampling,
    /// Where the noise came from.
    pub noise: NoiseOrigin,
    /// The mechanism, as files and flags spell it.
    pub mechanism: &'static str,
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
    /// Steps of each kind; certified GeoDP only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polar: Option<PolarSummary>,
    /// What a reader must know: a δ too large, a seed.
    pub warnings: Vec<String>,
    /// Whether ranges or values of the schema were read from the records (`looked = true`): that was
    /// not private, and no claim covers it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub looked: bool,
    /// The noisy accuracy that was released; its cost is in the claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<ReleasedAccuracy>,
    /// All runs of the data set's ledger together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_set: Option<DataSetTotal>,
}

/// An accuracy on private records, with noise that was paid for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReleasedAccuracy {
    /// Share of right answers, with noise.
    pub accuracy: f64,
    /// Standard deviation of that noise.
    pub standard_error: f64,
    /// How many records were asked.
    pub records: u64,
    /// What it costs alone, at the claims' δ.
    pub epsilon: f64,
}

impl fmt::Display for ReleasedAccuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (accuracy, error) = (100.0 * self.accuracy, 100.0 * self.standard_error);
        write!(f, "{accuracy:.1} % ± {error:.1} (noisy)")
    }
}

/// What all runs of a data set's ledger cost together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DataSetTotal {
    /// Runs charged.
    pub runs: u64,
    /// Their composition.
    pub claim: Claim,
    /// What they may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
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
        let account = account_of(plan, steps_charged)?;
        Self::of(plan, &account, steps_charged, selection)
    }

    /// The claims of [`Statement::new`] in real numbers, that is without what the machine's noise leaves
    /// over: for trainings whose ε is too large to be stated otherwise, and never for a release.
    ///
    /// # Errors
    /// If the accountant refuses.
    pub fn in_real_numbers(
        plan: &Plan,
        steps_charged: u64,
        selection: Option<Selection>,
    ) -> Result<Self, Error> {
        let account = account_of(plan, steps_charged)?.in_real_numbers();
        Self::of(plan, &account, steps_charged, selection)
    }

    /// The statement of what was charged: its ε are those of the account's events, and of nothing
    /// else.
    pub(crate) fn of(
        plan: &Plan,
        account: &Account,
        steps_charged: u64,
        selection: Option<Selection>,
    ) -> Result<Self, Error> {
        let mut claims = account.claims()?;
        if let (Some(selection), Protection::Private { noise, accounting, .. }) =
            (selection, &plan.protection)
        {
            let Selection { accepted, rejected } = selection;
            claims.push(accounting.account(noise, accepted)?.accepted_only(accepted, rejected)?);
        }
        let private = plan.protection.accounting().map(|_| account.terms());
        Ok(Self {
            claims,
            adjacency: private.map(|terms| terms.adjacency),
            arithmetic: private.map(|terms| terms.arithmetic),
            unit: plan.unit.clone(),
            sampling: plan.sampling,
            noise: plan.seed.map_or(NoiseOrigin::OperatingSystem, NoiseOrigin::Seed),
            mechanism: plan.mechanism().name(),
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
            polar: None,
            warnings: plan.warnings().to_vec(),
            looked: false,
            accuracy: None,
            data_set: None,
        })
    }
}

/// The same with a capital at its start.
fn capitalised(sentence: String) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
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
        if self.looked {
            line += " (its schema was filled in from the records, which no ε covers)";
        }
        line
    }

    /// The statement in sentences.
    pub fn paragraphs(&self) -> Vec<String> {
        let mut all = Vec::new();
        for claim in &self.claims {
            all.push(capitalised(match claim.kind() {
                Kind::Certified => format!(
                    "{claim}. Whoever sees the weights learns at most this much about any one {}: \
                     {}. This is a theorem; it assumes nothing about the data.",
                    self.protected(),
                    self.change()
                ),
                Kind::Conditional => format!(
                    "{claim}. This holds if {}. It is not a guarantee: a record that moves the \
                     direction further is protected less than this says.",
                    claim.assumption().unwrap_or("its assumption does")
                ),
                Kind::AsPublished => format!(
                    "{claim}. This is what the paper's accounting gives: magnitude and direction \
                     count as one release, and δ′ is the chance that the direction leaves the region \
                     β describes. It stands here for comparison."
                ),
                Kind::AsPublishedSur => format!(
                    "{claim}. This is how SUR’s authors account: rejected iterations are not \
                     charged. They used the data too, and what they did shows; it stands here for \
                     comparison."
                ),
                _ => "No noise was added. The weights may reveal the training records; do not \
                     release them as private."
                    .to_owned(),
            }));
        }
        if self.looked {
            all.push(
                "Ranges and values of the schema were read from the records (looked = true). That was \
                 not private: the model's inputs are scaled by them, they are in the model file, and no \
                 ε above covers what they tell."
                    .to_owned(),
            );
        }
        if self.mechanism == CERTIFIED_GEODP {
            all.push(
                "What a step releases: either a noisy magnitude of the batch's sum and, where that is \
                 large enough, a noisy direction, or the sum with noise on every coordinate as in \
                 DP-SGD; which of the two depends on earlier releases alone. Both cost one Gaussian of \
                 σ. That a magnitude misleads about the direction's sensitivity has a probability, \
                 and δ includes it."
                    .to_owned(),
            );
        }
        if let Some(arithmetic) = self.arithmetic {
            all.push(arithmetic.sentence().to_owned());
            all.push(
                "It speaks of this run alone: other runs on the same records, and what was chosen by \
                 looking at them, are not in it."
                    .to_owned(),
            );
        }
        if let Some(accuracy) = &self.accuracy {
            all.push(format!(
                "Accuracy on {} held-back private records: {accuracy}. Alone it costs ε = {}, which is in \
                 the claims above.",
                accuracy.records,
                rounded_up(accuracy.epsilon)
            ));
        }
        if let Some(DataSetTotal { runs, claim, .. }) = &self.data_set {
            all.push(format!("All {runs} runs in the ledger of the data set together: {claim}."));
        }
        all.extend(self.warnings.iter().map(|warning| format!("Warning: {warning}.")));
        match self.noise {
            NoiseOrigin::Seed(seed) if self.noise_multiplier.is_some() => all.push(format!(
                "The noise was made from the seed {seed}. Against anyone who knows the seed nothing \
                 is private: this run is an experiment."
            )),
            _ => {}
        }
        all
    }

    /// "record", "client with all its data", or "patient with all rows".
    fn protected(&self) -> String {
        match self.unit.as_str() {
            RECORD => RECORD.to_owned(),
            CLIENT => format!("{CLIENT} with all its data"),
            unit => format!("{unit} with all rows"),
        }
    }

    /// "records", "clients", or "units (patient)".
    fn counted(&self) -> String {
        match self.unit.as_str() {
            unit @ (RECORD | CLIENT) => format!("{unit}s"),
            unit => format!("units ({unit})"),
        }
    }

    fn change(&self) -> String {
        match self.adjacency {
            Some(Adjacency::ReplaceOne) => {
                "whether it is this one or any other in its place".to_owned()
            }
            _ => {
                format!(
                    "whether it has its content or is blank and contributes nothing (zero-out; the \
                     number of {} N is public)",
                    self.counted()
                )
            }
        }
    }

    /// "certified ε" and the like.
    pub(crate) fn epsilon_label(&self) -> String {
        match self.claims.first() {
            Some(claim) if claim.is_private() => format!("{} ε", claim.kind()),
            _ => "privacy".to_owned(),
        }
    }

    /// The first claim's number.
    pub(crate) fn epsilon_text(&self) -> String {
        match self.claims.first() {
            Some(claim) if claim.is_private() => claim.epsilon_text(),
            _ => "none (ε = ∞)".to_owned(),
        }
    }

    /// δ of the first claim.
    pub(crate) fn delta_text(&self) -> String {
        let private = self.claims.first().filter(|claim| claim.is_private());
        private.map_or("–".to_owned(), Claim::delta_text)
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
                let (rate, sigma) = (rounded_up(rate), rounded_up(sigma));
                format!("{steps} steps at q = {rate}, σ = {sigma}{tests}{releases}")
            }
            (Some(sigma), Sampling::Shuffle) => {
                let (steps, sigma) = (self.steps_charged, rounded_up(sigma));
                format!("{steps} steps of shuffled epochs, σ = {sigma}")
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
                Adjacency::AddRemove => format!("one {} added or removed", self.protected()),
                Adjacency::ZeroOut => {
                    format!("zero-out: one {} made blank, N public", self.protected())
                }
                Adjacency::ReplaceOne => {
                    format!("replace-one: one {} replaced, N public", self.protected())
                }
            }),
        );
        add("arithmetic", self.arithmetic.map(|arithmetic| arithmetic.to_string()));
        add(
            "sampling",
            Some(format!(
                "{}, B = {} of N = {}{}",
                self.sampling,
                self.batch,
                self.records,
                if self.unit == RECORD { String::new() } else { format!(" {}", self.counted()) }
            )),
        );
        add("noise multiplier σ", self.noise_multiplier.map(rounded_up));
        add("bounding factor β", self.beta.map(|b| b.to_string()));
        add("clipping threshold C", self.clip_norm.map(|c| c.to_string()));
        add(
            "steps kept (SUR)",
            self.selection.map(|Selection { accepted, rejected }| {
                format!("{accepted} accepted, {rejected} rejected; all are charged")
            }),
        );
        add("steps by kind", self.polar.map(|polar| polar.to_string()));
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

/// What the plan charges for so many steps.
fn account_of(plan: &Plan, steps_charged: u64) -> Result<Account, Error> {
    match &plan.protection {
        Protection::None { .. } => {
            let mut account = Account::new(plan.protection.terms());
            account.charge(&Event::NoPrivacy, 1)?;
            Ok(account)
        }
        Protection::Private { noise, accounting, .. } => {
            Ok(accounting.account(noise, accounting.units(steps_charged))?)
        }
    }
}
