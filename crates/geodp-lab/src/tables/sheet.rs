//! A table as a CSV: one record per row and σ, every ε in the column of its kind. Cells that were not
//! run have their record, too, with empty numbers.

use super::draw::paper_epsilon;
use super::loss::Loss;
use super::rows::Noise;
use super::summary::Line;
use super::{Table, train};
use geodp_account::Kind;
use geodp_report::csv;

/// The CSV of a table's lines.
pub(super) fn to_csv(table: &Table, lines: &[Line]) -> String {
    let header = [
        "table",
        "protocol",
        "method",
        "batch",
        "beta",
        "sigma",
        "status",
        "accuracy_mean_percent",
        "accuracy_std_percent",
        "seeds",
        "diverged",
        "published_percent",
        "learning_rate",
        "steps",
        "epsilon_certified",
        "epsilon_conditional",
        "epsilon_as_published",
        "epsilon_holds_in",
        "delta",
        "delta_prime_at_most",
        "paper_epsilon_of_sigma",
        "measured_epsilon_largest",
        "measured_epsilon_999",
        "measured_epsilon_median",
        "share_of_records_inside",
        "beta_safe",
        "accepted_steps",
    ];
    let number = |x: Option<f64>| x.map_or(String::new(), csv::number);
    let rows = lines.iter().map(|line| {
        let first = line.first.as_ref();
        let epsilon = |kind: Kind| first.map_or(String::new(), |o| o.epsilon_csv(kind));
        let noisy = line.row.method.noise != Noise::None;
        let measured =
            |pick: fn(&Loss) -> f64| number(first.and_then(|o| o.measured.as_ref()).map(pick));
        vec![
            table.id.to_owned(),
            table.protocol.name().to_owned(),
            line.row.method.name(),
            line.row.method.batch.to_string(),
            number(first.and_then(|o| o.beta)),
            csv::number(if noisy { line.sigma } else { 0.0 }),
            if line.is_missing() { "not run" } else { "run" }.to_owned(),
            number(line.mean()),
            if line.is_missing() {
                String::new()
            } else {
                csv::number(crate::stats::std_dev(&line.accuracies))
            },
            line.accuracies.len().to_string(),
            line.diverged.to_string(),
            number(line.published),
            number(first.map(|o| o.learning_rate)),
            first.map_or(String::new(), |o| o.steps.to_string()),
            epsilon(Kind::Certified),
            epsilon(Kind::Conditional),
            epsilon(Kind::AsPublished),
            first.filter(|_| noisy).and_then(|o| o.statement.first()).map_or(String::new(), |e| {
                if e.in_real_numbers { "real numbers" } else { "the arithmetic used" }.to_owned()
            }),
            csv::number(train::DELTA),
            number(first.map(|o| o.statement.iter().map(|e| e.delta_prime).fold(0.0, f64::max))),
            number(noisy.then(|| paper_epsilon(line.sigma))),
            measured(|m| m.compared().largest.unwrap_or(f64::INFINITY)),
            measured(|m| m.compared().permille_999.unwrap_or(f64::INFINITY)),
            measured(|m| m.compared().median.unwrap_or(f64::INFINITY)),
            measured(|m| m.share_of_records_inside),
            measured(|m| m.beta_safe),
            first.and_then(|o| o.selection).map_or(String::new(), |s| s.accepted.to_string()),
        ]
    });
    csv::to_csv(header, rows)
}
