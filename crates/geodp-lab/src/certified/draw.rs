//! The comparison as a page section: one table and one chart, with the finding in a sentence.

use super::train::Outcome;
use super::{ARMS, Arm, BATCHES, CLIP_NORM, Certified, Found, Job, MODELS, MOMENTUM, Model, scale};
use crate::experiment::{Drawn, FinishedOf};
use crate::options::Options;
use crate::stats;
use crate::tables::train::{DELTA, Epsilon};
use geodp_mechanism::perturb::PolarSummary;
use geodp_report::{Axis, Bars, Callout, Estimate, Role, Table, csv, format};

/// Points of accuracy within which certified GeoDP is to stay with DP.
const WITHIN: f64 = 0.3;

/// One row: a model, a B and an arm, over its seeds.
struct Line {
    model: Model,
    batch: u64,
    sigma: f64,
    arm: Arm,
    /// Test accuracy in % of each finished seed that did not diverge.
    accuracies: Vec<f64>,
    diverged: usize,
    /// How the steps of each seed went.
    polar: Vec<PolarSummary>,
    /// The first finished seed: ε, β and steps are the same for all.
    first: Option<Outcome>,
}

impl Line {
    fn mean(&self) -> Option<f64> {
        (!self.accuracies.is_empty()).then(|| stats::mean(&self.accuracies))
    }

    fn accuracy_text(&self) -> String {
        match (self.mean(), &self.first) {
            (None, None) => "not run".to_owned(),
            (None, Some(_)) => format!("diverged ({} seeds)", self.diverged),
            (Some(mean), _) => format!("{mean:.2} ± {:.2}", stats::std_dev(&self.accuracies)),
        }
    }

    /// ε with its kind: the first claim of the statement.
    fn epsilon(&self) -> Option<&Epsilon> {
        self.first.as_ref()?.statement.first()
    }

    /// Steps of each kind, the mean over seeds.
    fn steps(&self, pick: fn(&PolarSummary) -> u64) -> f64 {
        stats::mean(&self.polar.iter().map(|p| pick(p) as f64).collect::<Vec<f64>>())
    }

    /// Mean a/L of the polar steps of all seeds.
    fn ratio(&self) -> Option<f64> {
        let ratios: Vec<f64> = self.polar.iter().filter_map(|p| p.mean_ratio).collect();
        (!ratios.is_empty()).then(|| stats::mean(&ratios))
    }
}

pub(super) fn draw(finished: &FinishedOf<Certified>) -> Drawn {
    let lines = lines(finished);
    let mut drawn = Drawn::new("Certified GeoDP beside DP and GeoDP at equal σ");
    drawn.files.push(("certified.csv".to_owned(), to_csv(&lines)));
    drawn = drawn.with(|section| {
        let section = section.paragraph(about(finished));
        let missing = lines.iter().filter(|line| line.first.is_none()).count();
        let section = match missing {
            0 => section,
            n => section.callout(
                Callout::Info,
                format!("{n} of {} rows of this table are not run yet.", lines.len()),
            ),
        };
        section.paragraph(finding(&lines)).table(table(&lines))
    });
    for model in MODELS {
        let own: Vec<&Line> = lines.iter().filter(|line| line.model == model).collect();
        if own.iter().any(|line| line.first.is_some()) {
            let name = format!("certified-{}", model.name());
            let label = format!("Certified GeoDP, {}", model.name());
            drawn = drawn.figure(&name, &label, &bars(model, &own), caption(model, &own));
        }
    }
    drawn
}

/// How the numbers came about, in sentences.
fn about(finished: &FinishedOf<Certified>) -> String {
    let settings = finished.settings.as_ref().map(|settings| scale(&Options::of(settings)));
    let (divide, epochs) = settings.unwrap_or((1, 0));
    let small = match divide {
        1 => String::new(),
        _ => format!(" Small form: records and batches are one {divide}th of the full ones."),
    };
    format!(
        "An addition to the paper. MNIST, {epochs} epochs, C = {CLIP_NORM}, momentum {MOMENTUM}, η from {} \
         for the linear model on scattering features and from {} for the CNN (the product’s defaults) down \
         along a cosine; first weights and batches are the same for every row.{small} Every row of a B has \
         the same σ. DP’s and certified GeoDP’s ε are theorems and differ by what 1 % of δ is worth; GeoDP’s \
         ε is conditional on a bound that nothing enforces, so its accuracy is not at equal privacy.",
        Model::Scattering.learning_rate(),
        Model::Cnn.learning_rate(),
    )
}

fn lines(finished: &FinishedOf<Certified>) -> Vec<Line> {
    let mut lines = Vec::new();
    for model in MODELS {
        for (batch, sigma) in BATCHES {
            for arm in ARMS {
                let (accuracies, polar) = (Vec::new(), Vec::new());
                let mut line =
                    Line { model, batch, sigma, arm, accuracies, diverged: 0, polar, first: None };
                for (job, found) in &finished.pairs {
                    let Found::Outcome(outcome) = found else { continue };
                    if matches!(job, Job::Train { model: m, batch: b, arm: a, .. }
                        if (*m, *b, *a) == (model, batch, arm))
                    {
                        line.add(outcome);
                    }
                }
                lines.push(line);
            }
        }
    }
    lines
}

impl Line {
    fn add(&mut self, outcome: &Outcome) {
        match outcome.accuracy {
            Some(accuracy) => self.accuracies.push(100.0 * accuracy),
            None => self.diverged += 1,
        }
        self.polar.extend(outcome.polar);
        self.first.get_or_insert_with(|| outcome.clone());
    }
}

/// Certified GeoDP's accuracy minus DP's at each model and B where both were run.
fn differences(lines: &[Line], arm: Arm) -> Vec<(&Line, f64)> {
    let of = |line: &Line| {
        let same = |l: &&Line| (l.model, l.batch, l.arm) == (line.model, line.batch, Arm::Dp);
        Some(line.mean()? - lines.iter().find(same)?.mean()?)
    };
    lines.iter().filter(|l| l.arm == arm).filter_map(|l| Some((l, of(l)?))).collect()
}

/// What certified GeoDP gains and what not.
fn finding(lines: &[Line]) -> String {
    let chosen = differences(lines, Arm::GeodpCertified);
    if chosen.is_empty() {
        return "Certified GeoDP and DP were not both run yet.".to_owned();
    }
    let most = |all: &[(&Line, f64)]| {
        all.iter()
            .map(|(_, d)| *d)
            .fold(0.0, |most: f64, d| if d.abs() > most.abs() { d } else { most })
    };
    let inside = chosen.iter().filter(|(_, d)| d.abs() <= WITHIN).count();
    let mut text = format!(
        "Certified GeoDP is within {WITHIN} points of DP in {inside} of {} comparisons; the largest difference \
         is {:+.2} points. It gains no accuracy: it gains a theorem for noise on magnitude and direction, \
         and steps whose length is known.",
        chosen.len(),
        most(&chosen)
    );
    let forced = differences(lines, Arm::PolarOnly);
    if !forced.is_empty() {
        text += &format!(
            " With polar steps only, the largest difference is {:+.2} points: where a/L is large, DP’s step is \
             the better one, and choosing it costs no privacy.",
            most(&forced)
        );
    }
    text
}

fn table(lines: &[Line]) -> Table {
    let header = [
        "model",
        "B",
        "σ",
        "steps",
        "mechanism",
        "accuracy in %",
        "ε",
        "polar / isotropic / no direction",
        "mean a/L",
    ];
    let mut shown = Table::new(header).caption(format!(
        "Test accuracy, mean ± standard deviation over seeds, at δ = {DELTA:e}. Counts of steps are means over \
         seeds. β* (where GeoDP’s direction error equals DP’s) was measured along a training without noise.",
    ));
    for line in lines {
        let epsilon = line.epsilon().map_or("—".to_owned(), |e| {
            format!("{} {}", format::epsilon(e.epsilon.unwrap_or(f64::INFINITY)), e.kind)
        });
        let beta = line.first.as_ref().and_then(|first| first.beta);
        let name = match beta {
            Some(beta) => format!("{} = {}", line.arm.title(), format::significant(beta, 2)),
            None => line.arm.title().to_owned(),
        };
        let counts = match line.polar.is_empty() {
            true => "—".to_owned(),
            false => [
                line.steps(|p| p.counts.polar),
                line.steps(|p| p.counts.isotropic),
                line.steps(|p| p.counts.directionless),
            ]
            .map(|count| format::significant(count, 3))
            .join(" / "),
        };
        shown = shown.row([
            line.model.name().to_owned(),
            line.batch.to_string(),
            line.sigma.to_string(),
            line.first.as_ref().map_or("—".to_owned(), |first| first.steps.to_string()),
            name,
            line.accuracy_text(),
            epsilon,
            counts,
            line.ratio().map_or("—".to_owned(), |ratio| format!("{ratio:.3}")),
        ]);
    }
    shown
}

fn bars(model: Model, lines: &[&Line]) -> Bars {
    // Bars begin at 0: a cut axis would make a tenth of a point look like a difference.
    let axis = Axis::linear("test accuracy").unit("%").range(0.0, 100.0);
    let names = BATCHES.map(|(batch, sigma)| format!("B = {batch}, σ = {sigma}"));
    let title = format!("Test accuracy at equal σ: {}", model.title());
    let mut bars = Bars::new(title, axis, names);
    for (arm, role) in
        ARMS.into_iter().zip([Role::Dp, Role::CertifiedGeoDp, Role::GeoDp, Role::CertifiedGeoDp])
    {
        let values = lines.iter().filter(|l| l.arm == arm).map(|line| match line.mean() {
            Some(mean) => Estimate::plus_minus(mean, stats::std_dev(&line.accuracies)),
            None => Estimate::from(f64::NAN),
        });
        bars = bars.group(arm.title(), role, values);
    }
    bars
}

fn caption(model: Model, lines: &[&Line]) -> String {
    let of = |arm: Arm| {
        let texts = lines.iter().filter(|l| l.arm == arm).map(|line| line.accuracy_text());
        texts.collect::<Vec<_>>().join(", ")
    };
    format!(
        "{}, B = 1024, 4096, 16384: DP {} %; certified GeoDP {} %; GeoDP at β* {} % (conditional ε). Whiskers: \
         standard deviation over seeds.",
        model.title(),
        of(Arm::Dp),
        of(Arm::GeodpCertified),
        of(Arm::GeodpStar)
    )
}

fn to_csv(lines: &[Line]) -> String {
    let header = [
        "model",
        "batch",
        "sigma",
        "arm",
        "seeds",
        "diverged",
        "accuracy_mean_percent",
        "accuracy_std_percent",
        "steps",
        "beta",
        "epsilon",
        "epsilon_kind",
        "delta",
        "polar_steps_mean",
        "isotropic_steps_mean",
        "directionless_steps_mean",
        "mean_ratio",
    ];
    let number = |x: Option<f64>| x.filter(|x| !x.is_nan()).map_or(String::new(), csv::number);
    let rows = lines.iter().map(|line| {
        let first = line.first.as_ref();
        let spread = line.mean().map(|_| stats::std_dev(&line.accuracies));
        let epsilon = line.epsilon();
        vec![
            line.model.name().to_owned(),
            line.batch.to_string(),
            csv::number(line.sigma),
            line.arm.name().to_owned(),
            line.accuracies.len().to_string(),
            line.diverged.to_string(),
            number(line.mean()),
            number(spread),
            first.map_or(String::new(), |o| o.steps.to_string()),
            number(first.and_then(|o| o.beta)),
            number(epsilon.map(|e| e.epsilon.unwrap_or(f64::INFINITY))),
            epsilon.map_or(String::new(), |e| e.kind.to_string()),
            csv::number(DELTA),
            number(Some(line.steps(|p| p.counts.polar))),
            number(Some(line.steps(|p| p.counts.isotropic))),
            number(Some(line.steps(|p| p.counts.directionless))),
            number(line.ratio()),
        ]
    });
    csv::to_csv(header, rows)
}
