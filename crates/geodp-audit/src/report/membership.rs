//! The section of a membership audit: ROC curves on log axes, where low false positive rates show.

use crate::membership::Roc;
use geodp_report::{Callout, Chart, Role, Section, Series, Table, format};
use serde::Serialize;

/// An attack and how it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attack {
    /// Its name.
    pub name: String,
    /// Its curve.
    pub roc: Roc,
}

/// Attacks on a model whose statement is given, against so many members and non-members.
pub fn membership_section(
    attacks: &[Attack],
    statement: &str,
    members: usize,
    non_members: usize,
    shadows: usize,
) -> Section {
    let best = attacks.iter().max_by(|a, b| a.roc.auc.total_cmp(&b.roc.auc));
    let mut section = Section::new("Membership inference");
    if let Some(best) = best {
        section = section.headline([
            ("strongest attack".to_owned(), best.name.clone()),
            ("AUC".to_owned(), format!("{:.3}", best.roc.auc)),
            ("found at 1 % false alarms".to_owned(), format::percent(best.roc.tpr_at_1_percent)),
            ("found at 0.1 %".to_owned(), format::percent(best.roc.tpr_at_01_percent)),
        ]);
    }
    section = section
        .paragraph(format!(
            "{} records the model was trained on and {} it never saw, told apart by what it says of \
             them, with {} shadow models trained by the same plan. Privacy of the model: {statement}.",
            format::count(members as u64),
            format::count(non_members as u64),
            format::count(shadows as u64)
        ))
        .callout(
            Callout::Private,
            "Which records are found depends on them. The curve is for the data’s owner; a failed \
             attack is no proof of privacy.",
        );
    // A whole power of ten below one false alarm.
    let floor = 10f64.powf((1.0 / members.max(non_members).max(10) as f64).log10().floor());
    let mut chart = Chart::roc("Members found against false alarms", floor);
    let roles = [Role::Neutral, Role::GeoDp, Role::Dp, Role::NoNoise];
    let mut table = Table::new(["attack", "AUC", "TPR at 1 % FPR", "TPR at 0.1 % FPR"]);
    for (attack, role) in attacks.iter().zip(roles.into_iter().cycle()) {
        chart = chart.series(Series::line(attack.name.as_str(), role, steps(&attack.roc.points)));
        table = table.row([
            attack.name.clone(),
            format!("{:.3}", attack.roc.auc),
            format::percent(attack.roc.tpr_at_1_percent),
            format::percent(attack.roc.tpr_at_01_percent),
        ]);
    }
    section
        .figure(
            &chart,
            "On the dashed line an attack is no better than guessing; above it, it works.",
        )
        .table(table)
}

/// A curve of at most a few hundred points: the ends whole, the middle thinned.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let far = kept.last().is_none_or(|(fpr, tpr)| {
            // About 1 % apart in one of the coordinates, which is a pixel or two on log axes.
            point.0 > 1.01 * fpr || point.1 > 1.01 * tpr
        });
        if far || at + 1 == points.len() {
            kept.push(*point);
        }
    }
    kept
}
