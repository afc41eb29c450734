//! The paper's nine claims, each with a verdict computed from the numbers by a stated rule.

pub mod accuracy;
pub mod checks;
pub mod evidence;
mod geometry;
pub mod judge;
mod training;

use crate::Error;
use crate::direction::measure;
use crate::experiment::{Cell, Desk, Drawn, Experiment};
use crate::options::{Options, Size};
use crate::store::Store;
use checks::Effort;
use evidence::Evidence;
use geodp_report::{Table, Text, Tone, csv};
use judge::{Judged, Verdict, judge};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The claims, with three measurements of their own.
#[derive(Debug, Default)]
pub struct Claims;

const CHECKS: [&str; 3] = ["bias", "knobs", "identity"];

fn effort(size: Size) -> Effort {
    match size {
        Size::Full => Effort { dim: 2000, gradients: 16384, repeats: 1000 },
        Size::Quick => Effort { dim: 2000, gradients: 2048, repeats: 500 },
        Size::Tiny => Effort { dim: 50, gradients: 8, repeats: 10 },
    }
}

impl Experiment for Claims {
    fn id(&self) -> &'static str {
        "claims"
    }

    fn title(&self) -> &'static str {
        "The nine claims"
    }

    fn cells(&self, options: &Options) -> Vec<Cell> {
        let Effort { dim, gradients, repeats } = effort(options.size);
        let cell = |key: &str| Cell {
            key: key.to_owned(),
            config: json!({ "dim": dim, "gradients": gradients, "repeats": repeats }),
            seed: checks::SEED,
            expected_seconds: gradients as f64 / 2000.0 + 1.0,
        };
        CHECKS.iter().map(|key| cell(key)).collect()
    }

    fn run(&self, cell: &Cell, desk: &mut Desk<'_>) -> Result<Value, Error> {
        let effort = effort(desk.options.size);
        let records = measure::records(&desk.options.data_dir)?;
        let mut tick = |share: f64| desk.tick(share);
        let value = match cell.key.as_str() {
            "bias" => serde_json::to_value(checks::bias(effort, &records, &mut tick)?),
            "knobs" => serde_json::to_value(checks::knobs(effort, &records, &mut tick)?),
            _ => serde_json::to_value(checks::identity(effort, &records, &mut tick)?),
        };
        Ok(value.unwrap_or_default())
    }

    fn draw(&self, store: &Store) -> Result<Option<Drawn>, Error> {
        draw(store, &BTreeMap::new()).map(Some)
    }
}

/// The claims as a section; `labels` are those of the figures on the page, by name.
///
/// # Errors
/// A store that cannot be read.
pub fn draw(store: &Store, labels: &BTreeMap<String, String>) -> Result<Drawn, Error> {
    let judged = judge(&Evidence::gather(store)?);
    let mut drawn = Drawn::new("The nine claims");
    for key in CHECKS {
        drawn.missing += usize::from(store.read("claims", key)?.is_none());
    }
    let mut table = Table::new(["", "the paper’s claim", "verdict", "see"]);
    for claim in &judged {
        let see = match (claim.figure, labels.get(claim.figure)) {
            ("", _) => Text::default(),
            (name, Some(label)) => Text::default().link(label, format!("#{name}")),
            (name, None) => Text::from(name),
        };
        let number = Text::from(claim.number.to_string());
        table = table.row([number, Text::from(claim.claim), badge(&claim.verdict), see]);
    }
    drawn.files.push(("claims.csv".into(), to_csv(&judged)));
    Ok(drawn.with(|mut section| {
        section = section
            .paragraph(
                "Each verdict is computed from the numbers on this page by a rule, which stands with \
                 the numbers below. Every ε says of which kind it is.",
            )
            .table(table)
            .subheading("What was found, and by which rule it was judged");
        for claim in &judged {
            let finding = match &claim.verdict {
                Verdict::NotRun(needs) => format!("Not run: needs {needs}."),
                _ => claim.finding.clone(),
            };
            let text = Text::default().strong(format!("Claim {}. ", claim.number)).plain(finding);
            section = section.paragraph(text.plain(format!(" Rule: {}", claim.rule)));
        }
        section
    }))
}

impl Verdict {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::Holds => "holds".to_owned(),
            Self::ReleasedOnly => "holds under the released protocol only".to_owned(),
            Self::DoesNotHold => "does not hold".to_owned(),
            Self::Depends(on) => format!("depends: {on}"),
            Self::NotRun(_) => "not run".to_owned(),
        }
    }
}

fn badge(verdict: &Verdict) -> Text {
    match verdict {
        Verdict::Holds => Text::default().badge(Tone::Good, "holds"),
        Verdict::ReleasedOnly => Text::default().badge(Tone::Mixed, "released protocol only"),
        Verdict::DoesNotHold => Text::default().badge(Tone::Bad, "does not hold"),
        Verdict::Depends(on) => {
            Text::default().badge(Tone::Mixed, "depends").plain(format!(" {on}"))
        }
        Verdict::NotRun(_) => Text::default().badge(Tone::Plain, "not run"),
    }
}

fn to_csv(judged: &[Judged]) -> String {
    let rows = judged.iter().map(|claim| {
        vec![
            claim.number.to_string(),
            claim.claim.to_owned(),
            claim.verdict.words(),
            claim.finding.clone(),
            claim.rule.to_owned(),
            claim.figure.to_owned(),
        ]
    });
    csv::to_csv(["claim", "text", "verdict", "finding", "rule", "figure"], rows)
}
