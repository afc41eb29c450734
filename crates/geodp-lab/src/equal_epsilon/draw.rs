//! The comparison as a page section: one table, one chart a model, the finding in a sentence.

use super::{
    ARMS, Arm, BATCH, EqualEpsilon, FOLLOWED, Found, Job, MODELS, Outcome, Place, places, scale,
};
use crate::experiment::{Drawn, Experiment, FinishedOf};
use crate::model::Model;
use crate::options::Options;
use crate::stats;
use crate::tables::equal::MARGIN;
use crate::tables::train::DELTA;
use geodp_report::{Axis, Bars, Callout, Estimate, Role, Table, csv, format};

/// One row: a model, an ε and an arm, over its seeds.
struct Line<'a> {
    place: Place,
    arm: Arm,
    outcomes: Vec<&'a Outcome>,
}

impl Line<'_> {
    fn accuracies(&self) -> Vec<f64> {
        self.outcomes.iter().filter_map(|o| Some(100.0 * o.accuracy?)).collect()
    }

    fn mean(&self) -> Option<f64> {
        let accuracies = self.accuracies();
        (!accuracies.is_empty()).then(|| stats::mean(&accuracies))
    }

    fn accuracy_text(&self) -> String {
        match (self.mean(), self.outcomes.len()) {
            (None, 0) => "not run".to_owned(),
            (None, _) => "diverged".to_owned(),
            (Some(mean), 1) => format!("{mean:.2}"),
            (Some(mean), _) => format!("{mean:.2} ± {:.2}", stats::std_dev(&self.accuracies())),
        }
    }

    /// The mean over seeds of a number of each training.
    fn over_seeds(&self, pick: impl Fn(&Outcome) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.outcomes.iter().map(|o| pick(o)).collect();
        (!values.is_empty()).then(|| stats::mean(&values))
    }

    fn largest(&self) -> Option<f64> {
        self.over_seeds(Outcome::largest)
    }

    fn median(&self) -> Option<f64> {
        let of = |o: &Outcome| o.measured.as_ref().and_then(|m| m.compared().median);
        self.over_seeds(|o| of(o).unwrap_or(f64::INFINITY))
    }
}

fn arm_title(arm: Arm) -> String {
    match arm {
        Arm::Dp => "DP".to_owned(),
        Arm::Geodp(beta) => format!("GeoDP, β = {beta}"),
    }
}

pub(super) fn draw(experiment: &EqualEpsilon, finished: &FinishedOf<EqualEpsilon>) -> Drawn {
    let lines = lines(finished);
    let mut drawn = Drawn::new(experiment.title());
    drawn.files.push(("equal-epsilon.csv".to_owned(), to_csv(&lines)));
    drawn = drawn.with(|section| {
        let section = section.paragraph(about(finished));
        let missing = lines.iter().filter(|line| line.outcomes.is_empty()).count();
        let section = match missing {
            0 => section,
            n => section.callout(
                Callout::Info,
                format!("{n} of {} rows of this table are not run yet.", lines.len()),
            ),
        };
        section
            .callout(
                Callout::Private,
                "Measured ε depend on the records: they compare mechanisms, and are no guarantee.",
            )
            .paragraph(finding(&lines))
            .table(table(&lines))
    });
    for model in MODELS {
        let own: Vec<&Line<'_>> = lines.iter().filter(|l| l.place.model == model).collect();
        if own.iter().any(|line| !line.outcomes.is_empty()) {
            let name = format!("equal-epsilon-{}", model.name());
            let label = format!("Equal ε, {}", model.name());
            drawn = drawn.figure(&name, &label, &bars(model, &own), caption(model, &own));
        }
    }
    drawn
}

fn about(finished: &FinishedOf<EqualEpsilon>) -> String {
    let (divide, epochs) = finished.settings.as_ref().map_or((1, 20), |settings| {
        let scale = scale(&Options::of(settings));
        (scale.divide, scale.epochs)
    });
    let small = match divide {
        1 => String::new(),
        _ => format!(" Small form: records and batches are one {divide}th of the full ones."),
    };
    format!(
        "An addition to the paper. MNIST, {epochs} epochs, B = {BATCH}, the recipes of the certified comparison \
         (product’s defaults). DP’s σ is calibrated to the certified ε. GeoDP’s σ is searched, with a seed of its \
         own, until the largest ε measured on {FOLLOWED} followed records is that ε (δ = 10⁻⁵, with \
         amplification by sampling). This favours GeoDP: what its records were measured to pay is less \
         than anything that could be guaranteed to others, while DP pays its whole certified ε.{small}"
    )
}

fn lines<'a>(finished: &'a FinishedOf<EqualEpsilon>) -> Vec<Line<'a>> {
    let settings = finished.settings.as_ref();
    let mut places = settings.map_or(Vec::new(), |settings| places(&Options::of(settings)));
    // Model by model, as they are drawn.
    places.sort_by_key(|place| MODELS.iter().position(|model| *model == place.model));
    let mut lines = Vec::new();
    for (place, arm) in places.into_iter().flat_map(|place| ARMS.map(|arm| (place, arm))) {
        let own = |(job, found): &'a (Job, Found)| match (job, found) {
            (Job::Train(p, a, _), Found::Outcome(outcome)) => {
                (*p == place && *a == arm).then_some(outcome)
            }
            _ => None,
        };
        let outcomes = finished.pairs.iter().filter_map(own).collect();
        lines.push(Line { place, arm, outcomes });
    }
    lines
}

/// GeoDP's lines with the difference in points to DP's at the same place, where both were run.
fn differences<'l, 'o>(lines: &'l [Line<'o>]) -> Vec<(&'l Line<'o>, f64)> {
    let of = |line: &Line<'_>| {
        let dp = lines.iter().find(|l| l.place == line.place && l.arm == Arm::Dp)?;
        Some(line.mean()? - dp.mean()?)
    };
    lines.iter().filter(|l| l.arm != Arm::Dp).filter_map(|l| Some((l, of(l)?))).collect()
}

fn finding(lines: &[Line<'_>]) -> String {
    let all = differences(lines);
    if all.is_empty() {
        return "GeoDP and DP were not both run yet.".to_owned();
    }
    let ahead = all.iter().filter(|(_, d)| *d > MARGIN).count();
    let behind = all.iter().filter(|(_, d)| *d < -MARGIN).count();
    let best = all.iter().map(|(_, d)| *d).fold(f64::NEG_INFINITY, f64::max);
    let worst = all.iter().map(|(_, d)| *d).fold(f64::INFINITY, f64::min);
    format!(
        "At equal ε GeoDP is ahead of DP by more than {MARGIN} points in {ahead} of {} comparisons, behind in {behind}; \
         the differences run from {worst:+.2} to {best:+.2} points.",
        all.len()
    )
}

fn table(lines: &[Line<'_>]) -> Table {
    let header = ["model", "ε", "mechanism", "σ", "accuracy in %", "largest measured ε", "median"];
    let mut shown = Table::new(header).caption(format!(
        "Test accuracy, mean ± standard deviation over seeds, at δ = {DELTA:e}. ε is certified for DP; for GeoDP it is \
         what the search of σ aimed at. Measured ε are means over seeds of the record that paid most and of the one \
         in the middle."
    ));
    let epsilon = |e: Option<f64>| e.map_or("—".to_owned(), format::epsilon);
    for line in lines {
        let sigma = line.over_seeds(|o| o.noise_multiplier);
        shown = shown.row([
            line.place.model.name().to_owned(),
            line.place.epsilon.to_string(),
            arm_title(line.arm),
            sigma.map_or("—".to_owned(), |s| format::significant(s, 3)),
            line.accuracy_text(),
            epsilon(line.largest()),
            epsilon(line.median()),
        ]);
    }
    shown
}

fn bars(model: Model, lines: &[&Line<'_>]) -> Bars {
    let axis = Axis::linear("test accuracy").unit("%").range(0.0, 100.0);
    let dp = lines.iter().filter(|l| l.arm == Arm::Dp);
    let names = dp.map(|l| format!("ε = {}", l.place.epsilon));
    let mut bars = Bars::new(format!("Test accuracy at equal ε: {}", model.title()), axis, names);
    for arm in ARMS {
        let role = if arm == Arm::Dp { Role::Dp } else { Role::GeoDp };
        let values = lines.iter().filter(|l| l.arm == arm).map(|line| match line.mean() {
            Some(mean) if line.outcomes.len() > 1 => {
                Estimate::plus_minus(mean, stats::std_dev(&line.accuracies()))
            }
            mean => Estimate::from(mean.unwrap_or(f64::NAN)),
        });
        bars = bars.group(arm_title(arm), role, values);
    }
    bars
}

fn caption(model: Model, lines: &[&Line<'_>]) -> String {
    let of = |arm: Arm| {
        let own = lines.iter().filter(|l| l.arm == arm && !l.outcomes.is_empty());
        let texts = own.map(|l| format!("{} (ε = {})", l.accuracy_text(), l.place.epsilon));
        format!("{} {}", arm_title(arm), texts.collect::<Vec<_>>().join(", "))
    };
    format!(
        "{}, in %: {}. DP’s ε is certified, GeoDP’s is the largest measured. Whiskers: standard deviation over seeds.",
        model.title(),
        ARMS.map(of).join("; ")
    )
}

fn to_csv(lines: &[Line<'_>]) -> String {
    let header = [
        "model",
        "epsilon",
        "mechanism",
        "beta",
        "sigma",
        "seeds",
        "accuracy_mean_percent",
        "accuracy_std_percent",
        "measured_epsilon_largest_mean",
        "measured_epsilon_median_mean",
    ];
    let number = |x: Option<f64>| x.map_or(String::new(), csv::number);
    let rows = lines.iter().map(|line| {
        let (mechanism, beta) = match line.arm {
            Arm::Dp => ("dp", None),
            Arm::Geodp(beta) => ("geodp", Some(beta)),
        };
        vec![
            line.place.model.name().to_owned(),
            csv::number(line.place.epsilon),
            mechanism.to_owned(),
            number(beta),
            number(line.over_seeds(|o| o.noise_multiplier)),
            line.accuracies().len().to_string(),
            number(line.mean()),
            number(line.mean().map(|_| stats::std_dev(&line.accuracies()))),
            number(line.largest()),
            number(line.median()),
        ]
    });
    csv::to_csv(header, rows)
}
