//! The section of a one-run audit.

use super::{claim_text, lower};
use crate::canaries::CanaryKind;
use crate::one_run::OneRun;
use geodp_account::Claim;
use geodp_report::{Axis, Callout, Chart, Histogram, Role, Section, Series, Table, format};

/// Bins of the histogram of scores.
const BINS: usize = 40;

/// What one run showed, beside what is claimed of it; `unit` is the name of units of several rows.
pub fn one_run_section(
    found: &OneRun,
    kind: CanaryKind,
    unit: Option<&str>,
    claims: &[Claim],
) -> Section {
    let refuted: Vec<&Claim> =
        claims.iter().filter(|claim| found.epsilon_lower > claim.upper()).collect();
    let confidence = format::percent(found.confidence);
    let bound = lower(found.epsilon_lower);
    let mut numbers = vec![(format!("audited: ε is at least ({confidence})"), bound.clone())];
    numbers.extend(claims.iter().map(|c| (format!("{} ε", c.kind()), c.epsilon_text())));
    let mut section = Section::new("One-run audit").headline(numbers).paragraph(format!(
        "{} {kind} canaries{} stood beside the training records, each with a fair coin that decided \
         whether it took part. After one training an attacker guessed the coins. With confidence \
         {confidence}, training is not ({bound}, {:e})-differentially private or better. The audit \
         bounds ε from below; it cannot certify anything.",
        format::count(found.canaries),
        unit.map_or(String::new(), |unit| format!(", each one {unit} with all rows,")),
        found.delta
    ));
    section = match refuted.as_slice() {
        [] => section.callout(Callout::Info, "No claim is refuted by this run."),
        refuted => section.callout(
            Callout::Warning,
            format!(
                "Refuted: {}. The training leaks more than that.",
                refuted.iter().map(|c| claim_text(c)).collect::<Vec<_>>().join(", ")
            ),
        ),
    };
    let all = || found.scores_in.iter().chain(&found.scores_out).copied();
    let edges = Histogram::linear(all(), BINS).edges().to_vec();
    let histogram = |scores: &[f64]| Histogram::over(&edges, scores.iter().copied());
    let chart = Chart::new(
        "Scores of the canaries",
        Axis::linear("score: higher looks more as if it took part"),
        Axis::linear("canaries"),
    )
    .series(Series::histogram("took part", Role::GeoDp, histogram(&found.scores_in)))
    .series(Series::histogram("did not", Role::Dp, histogram(&found.scores_out)));
    let mut table = Table::new(["guesses", "right", "ε is at least"]).caption(
        "Guesses at the canaries of highest and lowest score; the significance is shared out over \
         the rows.",
    );
    for tried in &found.tried {
        table = table.row([
            format::count(tried.guesses),
            format::count(tried.correct),
            lower(tried.epsilon_lower),
        ]);
    }
    section
        .figure(&chart, "The less the two overlap, the better the coins can be guessed.")
        .table(table)
}
