//! Accuracy against ε: one figure with a panel for each data set, which stands in the README, a chart for each
//! data set, and a table with what was published and how that was accounted.

use super::published::{self, KINDS};
use super::{Accuracy, Noise, Outcome, Set};
use crate::experiment::{Drawn, FinishedOf};
use crate::stats;
use geodp_report::{Axis, Chart, Figure, Panels, Role, Series, Table, csv, format};

/// All seeds of one (set, noise, ε).
struct Line<'a> {
    set: Set,
    noise: Noise,
    epsilon: f64,
    outcomes: Vec<&'a Outcome>,
}

impl Line<'_> {
    /// Test accuracies in %.
    fn percents(&self) -> Vec<f64> {
        self.outcomes.iter().filter_map(|o| o.accuracy).map(|share| 100.0 * share).collect()
    }

    fn name(&self) -> String {
        match (self.noise, self.outcomes.first().and_then(|o| o.beta)) {
            (Noise::Dp, _) => "DP-SGD".to_owned(),
            (Noise::Geodp, _) => "GeoDP, β = 0.1".to_owned(),
            (Noise::GeodpAtCrossing, Some(beta)) => {
                format!("GeoDP, β* = {}", format::significant(beta, 2))
            }
            (Noise::GeodpAtCrossing, None) => "GeoDP, β*".to_owned(),
        }
    }

    /// The ε bought, with its kind.
    fn epsilon_text(&self) -> String {
        let claim = self.outcomes.first().and_then(|outcome| outcome.claims.first());
        claim.map_or("not run".to_owned(), |claim| claim.short())
    }
}

fn lines(finished: &FinishedOf<Accuracy>) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (job, outcome) in &finished.pairs {
        let own = |line: &&mut Line<'_>| {
            (line.set, line.noise, line.epsilon) == (job.set, job.noise, job.epsilon)
        };
        match lines.iter_mut().find(own) {
            Some(line) => line.outcomes.push(outcome),
            None => lines.push(Line {
                set: job.set,
                noise: job.noise,
                epsilon: job.epsilon,
                outcomes: vec![outcome],
            }),
        }
    }
    lines.sort_by(|a, b| a.epsilon.total_cmp(&b.epsilon));
    lines
}

pub(super) fn draw(title: &str, finished: &FinishedOf<Accuracy>) -> Drawn {
    let lines = lines(finished);
    let mut drawn = Drawn::new(title).with(|section| section.paragraph(ABOUT));
    drawn.files.push(("accuracy.csv".into(), to_csv(&lines)));
    if !lines.is_empty() {
        let (figure, label) = (panels(&lines), "Accuracy at a certified ε");
        drawn.files.push(("accuracy.svg".into(), figure.svg().to_string()));
        drawn.figures.push(("accuracy".to_owned(), label.to_owned()));
        let section = drawn.section.named_figure("accuracy", label, &figure, SIDE_BY_SIDE);
        drawn.section = section;
    }
    for set in Set::ALL {
        let own: Vec<&Line<'_>> = lines.iter().filter(|line| line.set == set).collect();
        if own.is_empty() {
            continue;
        }
        let name = format!("accuracy-{}", set.name());
        let label = format!("Accuracy on {}", set.title());
        drawn = drawn
            .figure(&name, &label, &chart(set, &own), caption(set, &own))
            .with(|section| section.table(table(set, &own)));
    }
    drawn
}

const ABOUT: &str = "No public data, no GPU, one recipe for a data set, chosen on held-back training \
records; the test set was measured once for each training. Ours: Poisson batches as drawn, every step \
charged, exact arithmetic, δ = 10⁻⁵. A linear model on scattering features of MNIST (with views moved by a \
pixel) and Fashion-MNIST, two convolutions on those of CIFAR-10 (mirrored views). GeoDP runs the same \
recipe; its ε is conditional on an assumption that nothing enforces.";

/// Pairs of numbers: (ε, mean), or the two ends of a bar.
type Pairs = Vec<(f64, f64)>;

fn points(lines: &[&Line<'_>], noise: Noise) -> (Pairs, Pairs) {
    let own = lines.iter().filter(|line| line.noise == noise && !line.percents().is_empty());
    own.map(|line| {
        let percents = line.percents();
        let (mean, spread) = (stats::mean(&percents), stats::std_dev(&percents));
        ((line.epsilon, mean), (mean - spread, mean + spread))
    })
    .unzip()
}

fn chart(set: Set, lines: &[&Line<'_>]) -> Chart {
    let title = format!("{}: test accuracy against ε", set.title());
    let x = Axis::log("ε at δ = 10⁻⁵ (GeoDP: conditional)");
    let mut chart = Chart::new(title, x, Axis::linear("test accuracy").unit("%"));
    let (dp, spread) = points(lines, Noise::Dp);
    chart = chart.series(
        Series::line("DP-SGD, certified (here)", Role::Dp, dp).markers().error_bars(spread),
    );
    for (noise, name) in [
        (Noise::Geodp, "GeoDP, β = 0.1, conditional (here)"),
        (Noise::GeodpAtCrossing, "GeoDP, β*, conditional (here)"),
    ] {
        let (points, _) = points(lines, noise);
        // A training that learnt nothing would hide every difference between those that did.
        let points: Vec<(f64, f64)> = points.into_iter().filter(|(_, y)| *y > 50.0).collect();
        if !points.is_empty() {
            chart = chart.series(Series::line(name, Role::GeoDp, points).markers());
        }
    }
    for (name, accounting) in KINDS {
        let points = published::points(set, accounting);
        if !points.is_empty() {
            chart = chart.series(Series::scatter(name, Role::Neutral, points));
        }
    }
    chart
}

const SIDE_BY_SIDE: &str = "Ours with the standard deviation over seeds, each axis its own; published points \
with what their accounting was.";

/// Every data set that was run, beside one another. All panels have all series, so that one name looks the
/// same in each.
fn panels(lines: &[Line<'_>]) -> Panels {
    let of = |set: Set| {
        let own: Vec<&Line<'_>> = lines.iter().filter(|line| line.set == set).collect();
        let (dp, spread) = points(&own, Noise::Dp);
        if dp.is_empty() {
            return None;
        }
        let y = Axis::linear(set.title()).unit("%");
        let ours = Series::line("here, certified", Role::Dp, dp).markers().error_bars(spread);
        let chart = Chart::new(set.title(), Axis::log("ε at δ = 10⁻⁵"), y).series(ours);
        Some(KINDS.into_iter().fold(chart, |chart, (name, accounting)| {
            chart.series(Series::scatter(name, Role::Neutral, published::points(set, accounting)))
        }))
    };
    let title = "Test accuracy against ε, without public data and without a GPU";
    Panels::new(title, Set::ALL.into_iter().filter_map(of))
}

fn caption(set: Set, lines: &[&Line<'_>]) -> String {
    let of_dp = lines.iter().filter(|line| line.noise == Noise::Dp);
    let values: Vec<String> = of_dp
        .map(|line| {
            let percents = line.percents();
            let (mean, spread) = (stats::mean(&percents), stats::std_dev(&percents));
            let (count, epsilon) = (percents.len(), line.epsilon);
            match count {
                1 => format!("{mean:.2} % at certified ε = {epsilon} (one seed)"),
                _ => {
                    format!("{mean:.2} ± {spread:.2} % at certified ε = {epsilon} ({count} seeds)")
                }
            }
        })
        .collect();
    format!("{}: mean and standard deviation over seeds: {}.", set.title(), values.join("; "))
}

fn table(set: Set, lines: &[&Line<'_>]) -> Table {
    let header = ["training", "ε", "accounting", "accuracy in %", "seeds"];
    let mut table = Table::new(header).caption(format!("{}, ours and published.", set.title()));
    for line in lines {
        let percents = line.percents();
        let accuracy = match percents.len() {
            0 => "diverged".to_owned(),
            1 => format!("{:.2}", percents[0]),
            _ => format!("{:.2} ± {:.2}", stats::mean(&percents), stats::std_dev(&percents)),
        };
        let accounting = "every step, as drawn".to_owned();
        let seeds = percents.len().to_string();
        table = table.row([line.name(), line.epsilon_text(), accounting, accuracy, seeds]);
    }
    for p in published::on(set) {
        let epsilon = format!("as published {}", p.epsilon);
        let row = [p.who.to_owned(), epsilon, p.accounting.to_owned(), p.percent.to_string()];
        table = table.row(row.into_iter().chain([String::new()]));
    }
    table
}

fn to_csv(lines: &[Line<'_>]) -> String {
    let header = [
        "data",
        "training",
        "epsilon",
        "kind",
        "accuracy_mean",
        "accuracy_std",
        "loss_mean",
        "seeds",
    ];
    let rows = lines.iter().map(|line| {
        let percents = line.percents();
        let losses: Vec<f64> = line.outcomes.iter().filter_map(|o| o.loss).collect();
        let claim = line.outcomes.first().and_then(|o| o.claims.first());
        let number = |value: f64| if value.is_nan() { String::new() } else { csv::number(value) };
        vec![
            line.set.name().to_owned(),
            line.name(),
            claim.map_or(String::new(), |claim| csv::number(claim.upper())),
            claim.map_or(String::new(), |claim| claim.kind().to_string()),
            number(stats::mean(&percents)),
            number(stats::std_dev(&percents)),
            number(stats::mean(&losses)),
            percents.len().to_string(),
        ]
    });
    csv::to_csv(header, rows)
}
