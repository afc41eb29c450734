//! The part of the page on how good the final model's answers are: confusion matrix, recall, AUC and
//! calibration of classes; MAE, RMSE and R² of numbers. Where it stands decides who may see it: the caller
//! puts figures from private records into the owner's half.

use super::ReportInputs;
use crate::scores::{CalibrationBin, Errors, Scores};
use geodp_report::{Axis, Chart, Section, Series, Table, format};

/// Classes up to which the whole confusion matrix is shown.
const MOST_SHOWN: usize = 12;

/// Adds what is known of the last measurement's answers.
pub(super) fn add_to(section: Section, inputs: &ReportInputs<'_>) -> Section {
    let errors = inputs.metrics.iter().rev().find_map(|m| m.test).and_then(|test| test.errors);
    match (errors, inputs.scores) {
        (Some(errors), _) => numbers(section.subheading(HEADING), &errors),
        (None, Some(scores)) => classes(section.subheading(HEADING), inputs, scores),
        (None, None) => section,
    }
}

const HEADING: &str = "Answers of the final model";

fn numbers(section: Section, errors: &Errors) -> Section {
    let mut facts = vec![
        ("MAE".to_owned(), format::significant(errors.mae, 4)),
        ("RMSE".to_owned(), format::significant(errors.rmse, 4)),
    ];
    facts.extend(errors.r_squared.map(|share| ("R²".to_owned(), format!("{share:.4}"))));
    section.key_values(facts).paragraph(
        "MAE and RMSE are in the unit of the number that is learnt. R² is 0 for answering the mean of \
         these records and 1 for the truth.",
    )
}

fn classes(mut section: Section, inputs: &ReportInputs<'_>, scores: &Scores) -> Section {
    let names = inputs.classes;
    if let Some(auc) = scores.auc {
        let what = match names.len() {
            2 => format!("of “{}”", names[1]),
            _ => "mean of each class against the rest".to_owned(),
        };
        section = section.key_values([("AUC", format!("{auc:.4} ({what})"))]);
    }
    let whole = names.len() <= MOST_SHOWN;
    let header = ["class".to_owned(), "records".to_owned(), "recall".to_owned()];
    let answers = names.iter().filter(|_| whole).cloned();
    let mut table = Table::new(header.into_iter().chain(answers));
    for (class, name) in names.iter().enumerate() {
        let row = &scores.confusion[class];
        let recall = scores.recall[class].map_or("–".to_owned(), format::percent);
        let first = [name.clone(), format::count(row.iter().sum()), recall];
        let counts = row.iter().filter(|_| whole).map(|count| format::count(*count));
        table = table.row(first.into_iter().chain(counts));
    }
    let caption = if whole {
        "Confusion matrix: a row for the class that records have, a column for what they were taken as. \
         Recall is the share of a class that was found."
    } else {
        "Recall: the share of each class that was found."
    };
    section = section.table(table.caption(caption));
    if scores.calibration.is_empty() {
        return section;
    }
    let (what, share) = match names.len() {
        2 => (format!("probability of “{}”", names[1]), format!("share that was “{}”", names[1])),
        _ => ("probability of the answer".to_owned(), "share of right answers".to_owned()),
    };
    section.figure(
        &calibration(&scores.calibration, what, share, inputs),
        "Calibration, by tenths of the probability: on the line, as many are so as the model says. \
         Bars are twice the standard error.",
    )
}

fn calibration(
    bins: &[CalibrationBin],
    what: String,
    share: String,
    inputs: &ReportInputs<'_>,
) -> Chart {
    let points = bins.iter().map(|bin| (bin.predicted, bin.observed)).collect::<Vec<_>>();
    let bars = bins.iter().map(|bin| {
        // Of a share plus two of each kind (Agresti and Coull): no bin is without error.
        let count = bin.records as f64 + 4.0;
        let middle = (bin.observed * bin.records as f64 + 2.0) / count;
        let reach = 2.0 * (middle * (1.0 - middle) / count).sqrt();
        let (low, high) = ((middle - reach).max(0.0), (middle + reach).min(1.0));
        (low.min(bin.observed), high.max(bin.observed))
    });
    let bars = bars.collect::<Vec<_>>();
    Chart::new(
        "Calibration",
        Axis::linear(what).range(0.0, 1.0),
        Axis::linear(share).range(0.0, 1.0),
    )
    .series(
        Series::line("calibrated", geodp_report::Role::Theory, [(0.0, 0.0), (1.0, 1.0)]).dashed(),
    )
    .series(
        Series::line("held-out records", super::role(inputs.plan), points)
            .markers()
            .error_bars(bars),
    )
}
