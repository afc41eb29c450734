//! `report.html`: what was trained, what it cost in privacy, how it went, how to do it again.
//!
//! Two halves: what may be shown with the model (statement, accuracy on public records or with noise,
//! parameters), and what is for the data's owner (training loss, gradient norms, accuracy and scores on
//! private records, what single records paid), marked as that.

mod answers;

use crate::config::{Imported, TestIs};
use crate::plan::Plan;
use crate::run::metrics::{BINS, BlockMetrics, bin_start};
use crate::scores::Scores;
use crate::statement::Statement;
use geodp_account::Kind;
use geodp_mechanism::perturb::PolarCounts;
use geodp_report::{Axis, Callout, Chart, Histogram, Page, Role, Section, Series, Table, format};
use std::time::Duration;

/// Everything the page is made of.
pub(crate) struct ReportInputs<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) statement: &'a Statement,
    pub(crate) metrics: &'a [BlockMetrics],
    pub(crate) data_name: &'a str,
    pub(crate) model_name: &'a str,
    pub(crate) config_toml: &'a str,
    pub(crate) ledger_records: u64,
    pub(crate) ledger_head: &'a str,
    /// How good the final answers are, and the classes' names; as private as the held-out records.
    pub(crate) scores: Option<&'a Scores>,
    pub(crate) classes: &'a [String],
    /// What reading did to tables; private.
    pub(crate) imported: &'a [Imported],
    /// What a watch found; private.
    pub(crate) measured: Option<Section>,
}

/// The page.
pub(crate) fn html(inputs: &ReportInputs<'_>) -> String {
    let mut page = Page::new(format!("{} on {}", inputs.model_name, inputs.data_name))
        .subtitle(inputs.statement.headline())
        .section(result(inputs))
        .section(privacy(inputs))
        .section(training(inputs))
        .section(diagnostics(inputs));
    if let Some(measured) = &inputs.measured {
        page = page.section(measured.clone());
    }
    page.section(ledger(inputs))
        .section(reproduce(inputs))
        .footer(format!("geodp {}", env!("CARGO_PKG_VERSION")))
        .to_html()
}

fn role(plan: &Plan) -> Role {
    match plan.protection().kind() {
        Some(_) if plan.mechanism().is_polar() => Role::CertifiedGeoDp,
        None => Role::NoNoise,
        Some(Kind::Conditional) => Role::GeoDp,
        Some(_) => Role::Dp,
    }
}

/// An axis that starts at zero, so that lengths compare.
fn from_zero(title: impl Into<String>, points: &[(f64, f64)]) -> Axis {
    let largest = points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
    Axis::linear(title).range(0.0, largest)
}

fn result(inputs: &ReportInputs<'_>) -> Section {
    let seconds: f64 = inputs.metrics.iter().map(|m| m.seconds).sum();
    let records: u64 = inputs.metrics.iter().map(|m| m.records).sum();
    let test = inputs.metrics.iter().rev().find_map(|m| m.test);
    let errors = test.and_then(|test| test.errors);
    let accuracy = match (test, &inputs.statement.accuracy) {
        (_, Some(released)) => released.to_string(),
        (Some(test), None) if test.is == TestIs::Public => match errors {
            Some(errors) => format::significant(errors.rmse, 4),
            None => format::percent(test.accuracy),
        },
        (Some(_), None) => "for the owner, below".to_owned(),
        (None, None) => "not measured".to_owned(),
    };
    let rate = format::rate(records as f64 / seconds.max(1e-9));
    Section::new("Result").headline([
        (if errors.is_some() { "test RMSE" } else { "test accuracy" }.to_owned(), accuracy),
        (inputs.statement.epsilon_label(), inputs.statement.epsilon_text()),
        ("training time".to_owned(), format::duration(Duration::from_secs_f64(seconds))),
        ("records".to_owned(), rate),
    ])
}

fn privacy(inputs: &ReportInputs<'_>) -> Section {
    let mut section = Section::new("Privacy statement");
    for paragraph in inputs.statement.paragraphs() {
        section = section.paragraph(paragraph);
    }
    section = section.key_values(inputs.statement.facts());
    let epsilon: Vec<(f64, f64)> = inputs
        .metrics
        .iter()
        .filter_map(|m| Some((m.epoch, m.epsilon.as_ref()?.upper())))
        .filter(|(_, upper)| upper.is_finite())
        .collect();
    if let (Some(kind), false) = (inputs.plan.protection().kind(), epsilon.is_empty()) {
        let delta = inputs.statement.delta_text();
        let mut chart = Chart::new(
            format!("{kind} ε spent"),
            Axis::linear("epoch"),
            from_zero(format!("{kind} ε at δ = {delta}"), &epsilon),
        )
        .series(Series::line(format!("{kind} ε"), role(inputs.plan), epsilon));
        if let Some(budget) = inputs.plan.protection().budget() {
            chart = chart.mark_y(budget, format!("budget {}", format::epsilon(budget)));
        }
        let caption = format!(
            "The {kind} ε over the training. Steps that would pass the budget do not happen."
        );
        section = section.figure(&chart, caption);
    }
    section
}

fn training(inputs: &ReportInputs<'_>) -> Section {
    let mut section = Section::new("Training").key_values(inputs.plan.facts_text());
    if let Some(summary) = &inputs.statement.polar {
        let caption = format!(
            "Steps of each kind since the start: {summary}. Each is chosen by what earlier steps \
             released, and all cost the same."
        );
        section = section.figure(&kinds(inputs.metrics), caption);
    }
    match held_out(inputs) {
        Some(charts) if is_public(inputs) => answers::add_to(charts.add_to(section), inputs),
        _ => section,
    }
}

/// How many steps of each kind certified GeoDP made.
fn kinds(metrics: &[BlockMetrics]) -> Chart {
    let mut chart =
        Chart::new("Steps by kind", Axis::linear("epoch"), Axis::linear("steps since the start"));
    let mut add = |name: &str, role: Role, pick: fn(&PolarCounts) -> u64| {
        let counted = metrics.iter().filter_map(|m| Some((m.epoch, pick(&m.polar?.counts) as f64)));
        let series = Series::line(name, role, counted.collect::<Vec<_>>()).markers();
        chart = chart.clone().series(series);
    };
    add("polar", Role::CertifiedGeoDp, |counts| counts.polar);
    add("isotropic, as DP’s", Role::Dp, |counts| counts.isotropic);
    add("without direction", Role::Neutral, |counts| counts.directionless);
    chart
}

/// Whether the figures from held-out records may be shown to anyone.
fn is_public(inputs: &ReportInputs<'_>) -> bool {
    inputs.metrics.iter().filter_map(|m| m.test).all(|test| test.is == TestIs::Public)
}

/// How the model did on held-out records, over the training.
struct HeldOut {
    /// Accuracy, or of numbers the error.
    accuracy: Chart,
    caption: String,
    loss: Chart,
}

impl HeldOut {
    fn add_to(&self, section: Section) -> Section {
        section
            .figure(&self.accuracy, &*self.caption)
            .figure(&self.loss, "Loss on the same records.")
    }
}

fn held_out(inputs: &ReportInputs<'_>) -> Option<HeldOut> {
    let test = |value: fn(&crate::run::TestMetrics) -> f64| -> Vec<(f64, f64)> {
        inputs.metrics.iter().filter_map(|m| Some((m.epoch, value(&m.test?)))).collect()
    };
    let role = role(inputs.plan);
    let accuracies = test(|t| 100.0 * t.accuracy);
    if accuracies.is_empty() {
        return None;
    }
    let numbers = inputs.metrics.iter().filter_map(|m| m.test).any(|t| t.errors.is_some());
    let accuracy = if numbers {
        let errors = test(|t| t.errors.map_or(0.0, |errors| errors.rmse));
        let axis = from_zero("test RMSE", &errors);
        Chart::new("Error on held-out records", Axis::linear("epoch"), axis)
            .series(Series::line("test RMSE", role, errors).markers())
    } else {
        Chart::new(
            "Accuracy on held-out records",
            Axis::linear("epoch"),
            Axis::linear("test accuracy").unit("%"),
        )
        .series(Series::line("test accuracy", role, accuracies).markers())
    };
    let losses = test(|t| t.loss);
    let loss = Chart::new(
        "Loss on held-out records",
        Axis::linear("epoch"),
        from_zero("test loss", &losses),
    )
    .series(Series::line("test loss", role, losses).markers());
    let what = if numbers { "Error" } else { "Accuracy" };
    let of = measured_on(inputs.metrics);
    let caption = format!("{what} on the records that took no part in training{of}.");
    Some(HeldOut { accuracy, caption, loss })
}

/// What a curve's points are of, where they are of fewer records than its end.
fn measured_on(metrics: &[BlockMetrics]) -> String {
    let counts = || metrics.iter().filter_map(|m| Some(m.test?.records));
    let (Some(fewest), Some(end)) = (counts().min(), counts().next_back()) else {
        return String::new();
    };
    if fewest >= end {
        return String::new();
    }
    let [fewest, end] = [fewest, end].map(|count| format::count(count as u64));
    format!(": the last point on all {end} of them, the points before it on the same {fewest}")
}

fn diagnostics(inputs: &ReportInputs<'_>) -> Section {
    let loss: Vec<(f64, f64)> =
        inputs.metrics.iter().filter_map(|m| Some((m.epoch, m.loss?))).collect();
    let chart =
        Chart::new("Training loss", Axis::linear("epoch"), from_zero("training loss", &loss))
            .series(Series::line("training loss", Role::Neutral, loss));
    let mut section = Section::new("For the data’s owner")
        .callout(
            Callout::Private,
            "Training losses and gradient norms, and whatever was measured on private held-back \
             records, are computed on the records without noise. They are not covered by the \
             statement: leave this section, and metrics.jsonl, out of what you publish.",
        )
        .figure(&chart, "Mean loss of the records of each block of steps, before the step.");
    section = inputs.imported.iter().fold(section, import);
    if let (Some(charts), false) = (held_out(inputs), is_public(inputs)) {
        let test = inputs.metrics.iter().rev().find_map(|m| m.test);
        if let Some(test) = test {
            let found = match test.errors {
                Some(errors) => errors.to_string(),
                None => format!("accuracy {}", format::percent(test.accuracy)),
            };
            section = section.paragraph(format!(
                "On {} held-back private records: {found}, without noise.",
                format::count(test.records as u64),
            ));
        }
        section = answers::add_to(charts.add_to(section), inputs);
    }
    if let (Some(histogram), Some(clip)) = (norms(inputs.metrics), inputs.plan.protection.clip()) {
        let clip_norm = clip.sensitivity().get();
        let clipped = clipped_share(inputs.metrics);
        let chart = Chart::new(
            "Gradient norms",
            Axis::log("norm of a record’s gradient"),
            Axis::linear("records"),
        )
        .series(Series::histogram("last epoch", Role::Neutral, histogram))
        .mark_x(clip_norm, format!("C = {clip_norm}"));
        let moved = if inputs.plan.is_adaptive() { " (the first; it was adapted)" } else { "" };
        let caption = format!(
            "Norms of per-record gradients in the last epoch; {} were longer than C = {clip_norm}{moved} \
             and scaled down.",
            format::percent(clipped)
        );
        section = section.figure(&chart, caption);
    }
    section
}

/// What reading did to a table: what should not be overlooked, then every column that was changed.
fn import(mut section: Section, imported: &Imported) -> Section {
    let report = &imported.report;
    section = section.subheading(format!("Import of {}", imported.name()));
    for warning in report.warnings() {
        section = section.callout(Callout::Warning, warning);
    }
    let changed = report.columns.iter().filter(|c| c.below + c.above + c.other + c.missing > 0);
    let mut table = Table::new(["column", "below the range", "above it", "other", "missing"]);
    let mut rows = 0;
    for column in changed {
        let counts = [column.below, column.above, column.other, column.missing];
        let cells = counts.into_iter().map(format::count);
        table = table.row([column.column.clone()].into_iter().chain(cells));
        rows += 1;
    }
    let records = format::count(report.records);
    if rows == 0 {
        return section
            .paragraph(format!("{records} records; every cell is as the schema declares."));
    }
    section
        .table(table.caption(format!("{records} records; cells outside what the schema declares.")))
}

/// The blocks of the last epoch.
fn last_epoch(metrics: &[BlockMetrics]) -> impl Iterator<Item = &BlockMetrics> {
    let end = metrics.last().map_or(0.0, |m| m.epoch);
    metrics.iter().filter(move |m| m.epoch > end - 1.0)
}

/// Records that a histogram is made of, at most.
const MOST_DRAWN: u64 = 1 << 30;

fn norms(metrics: &[BlockMetrics]) -> Option<Histogram> {
    let mut counts = vec![0; BINS];
    for (bin, count) in last_epoch(metrics).flat_map(|m| &m.norms) {
        *counts.get_mut(*bin)? += count;
    }
    // Each record is drawn; no epoch has so many.
    if counts.iter().sum::<u64>() > MOST_DRAWN {
        return None;
    }
    let first = counts.iter().position(|c| *c > 0)?;
    let last = counts.iter().rposition(|c| *c > 0)?;
    let edges: Vec<f64> = (first..=last + 1).map(bin_start).collect();
    let middles = (first..=last).flat_map(|bin| {
        let middle = (bin_start(bin) * bin_start(bin + 1)).sqrt();
        std::iter::repeat_n(middle, counts[bin] as usize)
    });
    Some(Histogram::over(&edges, middles))
}

fn clipped_share(metrics: &[BlockMetrics]) -> f64 {
    let (mut clipped, mut records) = (0.0, 0.0);
    for block in last_epoch(metrics) {
        clipped += block.clipped.unwrap_or(0.0) * block.records as f64;
        records += block.records as f64;
    }
    if records > 0.0 { clipped / records } else { 0.0 }
}

fn ledger(inputs: &ReportInputs<'_>) -> Section {
    Section::new("Ledger")
        .paragraph(
            "Every block of steps was written to ledger.jsonl, and made durable, before its weights \
             could be seen. Each line holds the hash of the line before it.",
        )
        .key_values([
            ("charged".to_owned(), inputs.statement.charged_text()),
            ("lines".to_owned(), format::count(inputs.ledger_records)),
            ("hash of the last".to_owned(), inputs.ledger_head.to_owned()),
        ])
}

fn reproduce(inputs: &ReportInputs<'_>) -> Section {
    let mut section = Section::new("Do it again")
        .paragraph("Save this as run.toml (it is in the run folder, too), then:")
        .code("geodp train --config run.toml --out again")
        .code(inputs.config_toml);
    if inputs.plan.seed.is_none() {
        section = section.paragraph(
            "The noise came from the operating system’s generator and its key is gone: a new run \
             gives other weights of the same privacy.",
        );
    }
    section
}
