//! The section of a membership audit: ROC curves on log axes, where low false positive rates show.

use crate::membership::{Attack, CONFIDENCE, strongest};
use geodp_report::{Callout, Chart, Role, Section, Series, Table, format};

/// Attacks on a model whose statement is given, against so many members and non-members.
pub fn membership_section(
    attacks: &[Attack],
    statement: &str,
    members: usize,
    non_members: usize,
    shadows: usize,
) -> Section {
    let mut section = Section::new("Membership inference");
    if let Some(best) = strongest(attacks) {
        section = section.headline([
            ("strongest attack".to_owned(), best.name.to_owned()),
            (
                "found at 1 % false alarms".to_owned(),
                with_limits(best.roc.tpr_at_1_percent, best.tpr_at_1_percent_limits),
            ),
            (
                "found at 0.1 %".to_owned(),
                with_limits(best.roc.tpr_at_01_percent, best.tpr_at_01_percent_limits),
            ),
            ("AUC".to_owned(), format!("{:.3}", best.roc.auc)),
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
    let mut table = Table::new(["attack", "TPR at 1 % FPR", "TPR at 0.1 % FPR", "AUC"]).caption(
        format!(
            "TPR: share of members found; FPR: share of non-members accused. The strongest attack is \
             the one with the highest TPR at 1 % FPR. In brackets limits of Clopper and Pearson for \
             thresholds as they were found, all of which hold together with confidence {}.",
            format::percent(CONFIDENCE)
        ),
    );
    for (attack, role) in attacks.iter().zip(roles.into_iter().cycle()) {
        chart = chart.series(Series::line(attack.name, role, steps(&attack.roc.points)));
        table = table.row([
            attack.name.to_owned(),
            with_limits(attack.roc.tpr_at_1_percent, attack.tpr_at_1_percent_limits),
            with_limits(attack.roc.tpr_at_01_percent, attack.tpr_at_01_percent_limits),
            format!("{:.3}", attack.roc.auc),
        ]);
    }
    section
        .figure(
            &chart,
            "On the dashed line an attack is no better than guessing; above it, it works.",
        )
        .table(table)
}

/// `12 % (8.1 % to 17 %)`.
fn with_limits(rate: f64, (low, high): (f64, f64)) -> String {
    let [rate, low, high] = [rate, low, high].map(format::percent);
    format!("{rate} ({low} to {high})")
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
