//! The paper's nine claims, each with a verdict computed from the numbers by a stated rule.

pub mod accuracy;
pub mod checks;
pub mod evidence;
mod geometry;
pub mod judge;
mod training;

use crate::Error;
use crate::direction::measure;
use crate::experiment::{Cell, CellContext, Drawn, Experiment, FinishedOf, PageContext};
use crate::options::{Options, Size};
use crate::tables::protocol::Protocol;
use checks::{Bias, Effort, Identity, Knobs};
use evidence::Evidence;
use geodp_report::{Section, Table, Text, Tone, csv};
pub use judge::Verdict;
use judge::{Judged, judge};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The claims, with three measurements of their own.
#[derive(Debug, Default)]
pub struct Claims;

/// One of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// For Claim 2.
    Bias,
    /// For Claim 3.
    Knobs,
    /// For Claim 4.
    Identity,
}

/// What a measurement found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Checked {
    /// Of [`Check::Bias`].
    Bias(Bias),
    /// Of [`Check::Knobs`].
    Knobs(Knobs),
    /// Of [`Check::Identity`].
    Identity(Identity),
}

fn effort(size: Size) -> Effort {
    match size {
        Size::Full => Effort { dim: 2000, gradients: 16384, repeats: 1000 },
        Size::Quick => Effort { dim: 2000, gradients: 2048, repeats: 500 },
        Size::Tiny => Effort { dim: 50, gradients: 8, repeats: 10 },
    }
}

impl Experiment for Claims {
    type Job = Check;
    type Result = Checked;

    /// Most claims are judged by the cells of other experiments.
    const DRAWN_WITHOUT_CELLS: bool = true;

    fn id(&self) -> &'static str {
        "claims"
    }

    fn title(&self) -> &'static str {
        "The nine claims"
    }

    fn jobs(&self, _: &Options) -> Vec<Check> {
        vec![Check::Bias, Check::Knobs, Check::Identity]
    }

    fn cell(&self, check: &Check, options: &Options) -> Cell {
        let Effort { dim, gradients, repeats } = effort(options.size);
        let key = match check {
            Check::Bias => "bias",
            Check::Knobs => "knobs",
            Check::Identity => "identity",
        };
        Cell {
            key: key.to_owned(),
            config: json!({ "dim": dim, "gradients": gradients, "repeats": repeats }),
            seed: checks::SEED,
            expected_seconds: gradients as f64 / 2000.0 + 1.0,
        }
    }

    fn run(&self, check: &Check, context: &mut CellContext<'_>) -> Result<Checked, Error> {
        let effort = effort(context.options.size);
        let records = measure::records(&context.options.data_dir)?;
        let mut tick = |share: f64| context.tick(share);
        Ok(match check {
            Check::Bias => Checked::Bias(checks::bias(effort, &records, &mut tick)?),
            Check::Knobs => Checked::Knobs(checks::knobs(effort, &records, &mut tick)?),
            Check::Identity => Checked::Identity(checks::identity(effort, &records, &mut tick)?),
        })
    }

    fn draw(&self, finished: &FinishedOf<Self>, page: &PageContext<'_>) -> Result<Drawn, Error> {
        let under = |protocol: Protocol| -> Result<Vec<Judged>, Error> {
            let judged = judge(&Evidence::gather(finished, protocol, page.store)?);
            Ok(judged.into_iter().map(|claim| with_figure_under(protocol, claim)).collect())
        };
        let judged = under(Protocol::AsStated)?;
        let mut others = Vec::new();
        for protocol in [Protocol::SmallSteps, Protocol::Trained] {
            let judged = under(protocol)?;
            if judged.iter().any(of_tables_and_run) {
                others.push((protocol, judged));
            }
        }
        let mut drawn = Drawn::new(self.title());
        drawn.leads = true;
        drawn.files.push(("claims.csv".into(), to_csv(&judged, &others)));
        Ok(drawn.with(|section| {
            let section = section
                .paragraph(
                    "Each verdict is computed from the numbers on this page by a rule, which stands \
                     with the numbers below. Every ε says of which kind it is.",
                )
                .table(verdict_table(&judged, page))
                .subheading("What was found, and by which rule it was judged");
            fn explain(section: Section, claim: &Judged) -> Section {
                section.paragraph(explanation(claim))
            }
            let section = judged.iter().fold(section, explain);
            others.into_iter().fold(section, |section, (protocol, judged)| {
                let own: Vec<Judged> = judged.into_iter().filter(of_tables_and_run).collect();
                let section = section
                    .subheading(format!("The same rules where the tables are run as “{}”", protocol.name()))
                    .paragraph(
                        "Claims 1 to 6 and 8 do not depend on the tables: their verdicts are those above.",
                    )
                    .table(verdict_table(&own, page));
                own.iter().fold(section, explain)
            })
        }))
    }
}

/// Whether a claim is judged by Tables 2 and 3, and they were run.
fn of_tables_and_run(claim: &Judged) -> bool {
    [7, 9].contains(&claim.number) && !matches!(claim.verdict, Verdict::NotRun(_))
}

/// Claim 7 stands on another figure under each protocol.
fn with_figure_under(protocol: Protocol, claim: Judged) -> Judged {
    let figure = match (claim.number, protocol) {
        (7, Protocol::SmallSteps) => "table2-small-steps-sigma1",
        (7, Protocol::Trained) => "table3-trained-sigma0.1",
        _ => claim.figure,
    };
    Judged { figure, ..claim }
}

/// Every claim with its verdict and a link to the figure that shows its numbers.
fn verdict_table(judged: &[Judged], page: &PageContext<'_>) -> Table {
    let mut table = Table::new(["", "the paper’s claim", "verdict", "see"]);
    for claim in judged {
        let see = match (claim.figure, page.labels.get(claim.figure)) {
            ("", _) => Text::default(),
            (name, Some(label)) => Text::default().link(label, format!("#{name}")),
            (name, None) => Text::from(name),
        };
        let number = Text::from(claim.number.to_string());
        table = table.row([number, Text::from(claim.claim), badge(&claim.verdict), see]);
    }
    table
}

/// What was found, and the rule.
fn explanation(claim: &Judged) -> Text {
    let finding = match &claim.verdict {
        Verdict::NotRun(needs) => format!("Not run: needs {needs}."),
        _ => claim.finding.clone(),
    };
    let text = Text::default().strong(format!("Claim {}. ", claim.number)).plain(finding);
    text.plain(format!(" Rule: {}", claim.rule))
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

pub(crate) fn badge(verdict: &Verdict) -> Text {
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

/// Every verdict with the protocol of the tables under which it was computed.
fn to_csv(as_stated: &[Judged], others: &[(Protocol, Vec<Judged>)]) -> String {
    let of = |protocol: Protocol, judged: &[Judged]| -> Vec<Vec<String>> {
        let row = |claim: &Judged| {
            vec![
                claim.number.to_string(),
                protocol.name().to_owned(),
                claim.claim.to_owned(),
                claim.verdict.words(),
                claim.finding.clone(),
                claim.rule.to_owned(),
                claim.figure.to_owned(),
            ]
        };
        judged.iter().map(row).collect()
    };
    let mut rows = of(Protocol::AsStated, as_stated);
    rows.extend(others.iter().flat_map(|(protocol, judged)| of(*protocol, judged)));
    csv::to_csv(["claim", "protocol", "text", "verdict", "finding", "rule", "figure"], rows)
}
