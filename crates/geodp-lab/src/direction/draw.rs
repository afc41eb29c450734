//! Figures 1, 3 and 4 as charts: measured means with 95 % intervals, expectation as dashed lines.

use super::certified::CertifiedErrors;
use super::measure::Errors;
use super::panels::{Panel, Point, Vary};
use super::{Direction, Pooled};
use crate::experiment::{Drawn, FinishedOf};
use crate::stats;
use geodp_mechanism::analysis::PolarStep;
use geodp_report::{Axis, Callout, Chart, Role, Series, csv, format};

pub(super) fn draw(figure: &Direction, finished: &FinishedOf<Direction>) -> Drawn {
    let mut drawn = Drawn::new(figure.title);
    let Some(pooled) = figure.pooled(finished) else {
        return drawn.with(|s| s.callout(Callout::Info, "Not run yet."));
    };
    drawn.files.push((format!("{}.csv", figure.id), to_csv(figure, &pooled)));
    drawn = drawn.with(|section| section.paragraph(about(&pooled)));
    if let Some(why) = &pooled.not_drawn {
        drawn = drawn.with(|section| section.callout(Callout::Warning, why));
    }
    let mut errors = pooled.errors.as_slice();
    for panel in &figure.panels {
        let (own, rest) = errors.split_at(panel.points.len());
        errors = rest;
        let name = format!("{}{}", figure.id, panel.letter);
        let label = format!("Figure {}", place(figure, panel));
        let certified = certified_at(panel, &pooled);
        let chart = with_certified(chart(figure, panel, own), panel, &certified);
        let text = caption(panel, own) + &certified_caption(panel, &certified);
        drawn = drawn.figure(&name, &label, &chart, text);
    }
    drawn
}

/// Number and, where there are several panels, letter: `3a`.
fn place(figure: &Direction, panel: &Panel) -> String {
    let number = figure.id.trim_start_matches("fig");
    match figure.panels.len() {
        1 => number.to_owned(),
        _ => format!("{number}{}", panel.letter),
    }
}

fn about(pooled: &Pooled) -> String {
    let repeats = pooled.errors.first().map_or(0, |e| e.dp_direction.len());
    format!(
        "Gradients of the CNN ({} parameters) trained without privacy at batch 1 on {}; d of their \
         dimensions picked at random, each gradient clipped at C = 0.1, the mean of B of them \
         perturbed. {repeats} repeats: {} groups of gradients, {} perturbations each. Points are means \
         with 95 % intervals; black dashed lines are expected direction errors, for DP from the analysis of its bias \
         and variance, for GeoDP (d−1)(d+2)(βπσ/B)². Certified GeoDP is an addition: polar steps only, t = {}, on \
         the same means; its expected error is DP’s with noise a/L times as large, and its curve ends where the \
         released magnitude is too small for a direction. Angle differences are wrapped to (−π, π], so a \
         direction that is lost altogether has an error of about π²/3 an angle, below what the \
         formula gives there.{}",
        format::count(pooled.whole_dim as u64),
        pooled.dataset,
        pooled.groups,
        repeats as u64 / pooled.groups.max(1),
        super::certified::MARGIN,
        if pooled.dataset.starts_with("MNIST") {
            " The paper uses CIFAR-10, which is not on this machine; MNIST stands in for it."
        } else {
            ""
        }
    )
}

type Pairs = Vec<(f64, f64)>;

/// Mean and 95 % interval at each point.
fn measured(panel: &Panel, errors: &[Errors], pick: fn(&Errors) -> &Vec<f64>) -> (Pairs, Pairs) {
    let value = |e: &Errors| (e.point.at(panel.vary), stats::mean(pick(e)));
    (errors.iter().map(value).collect(), errors.iter().map(|e| interval(pick(e))).collect())
}

/// The 95 % interval of a mean; a log axis has no room for zero.
fn interval(values: &[f64]) -> (f64, f64) {
    let (mean, half) = (stats::mean(values), stats::half_width(values));
    ((mean - half).max(mean * 1e-3), mean + half)
}

fn chart(figure: &Direction, panel: &Panel, errors: &[Errors]) -> Chart {
    let x = match panel.vary {
        Vary::Sigma => Axis::log("noise multiplier σ"),
        Vary::Dim => Axis::log("dimensions d"),
        Vary::Batch => Axis::log("batch size B"),
        Vary::Beta => Axis::log("bounding factor β"),
    };
    let title = format!("{}: {}", place(figure, panel), fixed(panel));
    let mut chart = Chart::new(title, x, Axis::log("mean squared error"));
    let mut add = |name: &str, role: Role, pick: fn(&Errors) -> &Vec<f64>, dashed: bool| {
        let (points, bounds) = measured(panel, errors, pick);
        let series = Series::line(name, role, points).markers().error_bars(bounds);
        let series = if dashed { series.dashed() } else { series };
        chart = chart.clone().series(series);
    };
    add("DP, direction θ [rad²]", Role::Dp, |e| &e.dp_direction, false);
    add("GeoDP, direction θ [rad²]", Role::GeoDp, |e| &e.geodp_direction, false);
    add("DP, gradient g", Role::Dp, |e| &e.dp_gradient, true);
    add("GeoDP, gradient g", Role::GeoDp, |e| &e.geodp_gradient, true);
    let expected = |pick: fn(&Errors) -> f64| {
        errors.iter().map(|e| (e.point.at(panel.vary), pick(e))).collect::<Vec<_>>()
    };
    chart = chart
        .series(Series::line("DP, expected θ", Role::Theory, expected(|e| e.dp_theory)))
        .series(Series::line("GeoDP, expected θ", Role::Theory, expected(|e| e.geodp_theory)));
    if panel.vary == Vary::Beta
        && let Some(first) = errors.first()
        && first.crossing_beta > 0.02
    {
        let label = format!("β* = {}", format::significant(first.crossing_beta, 2));
        chart = chart.mark_x(first.crossing_beta, label);
    }
    chart
}

/// A panel's points at which certified GeoDP was measured: the place on the axis, and what came out.
type Certified<'a> = Vec<(f64, &'a CertifiedErrors)>;

fn certified_at<'a>(panel: &Panel, pooled: &'a Pooled) -> Certified<'a> {
    let at = |point: &Point| Some((point.at(panel.vary), pooled.certified_at(point)?));
    panel.points.iter().filter_map(at).collect()
}

/// The chart with certified GeoDP's curve, as far as it released directions, and the β it amounts to.
fn with_certified(chart: Chart, panel: &Panel, certified: &Certified<'_>) -> Chart {
    let whole = || certified.iter().filter(|(_, errors)| errors.is_whole());
    if whole().next().is_none() {
        return chart;
    }
    let series = |name: &str, pick: fn(&CertifiedErrors) -> &Vec<f64>| {
        let points = whole().map(|(x, e)| (*x, stats::mean(pick(e))));
        let bounds = whole().map(|(_, e)| interval(pick(e)));
        let points: Pairs = points.collect();
        Series::line(name, Role::CertifiedGeoDp, points).markers().error_bars(bounds)
    };
    let expected: Pairs =
        whole().map(|(x, e)| (*x, e.expected(|step| step.direction_mse))).collect();
    let chart = chart
        .series(series("certified GeoDP, direction θ [rad²]", |e| &e.direction))
        .series(series("certified GeoDP, gradient g", |e| &e.gradient).dashed())
        .series(Series::line("certified GeoDP, expected θ", Role::Theory, expected));
    match certified.first() {
        Some((_, errors)) if panel.vary == Vary::Beta => {
            let beta = errors.expected(|step| step.effective_beta);
            chart.mark_x(beta, format!("certified: {}", format::significant(beta, 2)))
        }
        _ => chart,
    }
}

/// What certified GeoDP's noise is beside DP's, and where it has no direction.
fn certified_caption(panel: &Panel, certified: &Certified<'_>) -> String {
    let (whole, without): (Certified<'_>, Certified<'_>) =
        certified.iter().copied().partition(|(_, errors)| errors.is_whole());
    if certified.is_empty() {
        return String::new();
    }
    let places = |chosen: &Certified<'_>| {
        chosen.iter().map(|(x, _)| x.to_string()).collect::<Vec<_>>().join(", ")
    };
    let mut text = match (whole.first(), whole.last()) {
        (Some((_, first)), Some((_, last))) => {
            let range = |pick: fn(&PolarStep) -> f64| {
                let ends = [first, last].map(|e| format::significant(e.expected(pick), 3));
                if ends[0] == ends[1] { ends[0].clone() } else { ends.join(" … ") }
            };
            format!(
                " Certified GeoDP: a/L = {}, noise on the chord as large as GeoDP’s on an angle at β = {}",
                range(|step| step.noise_ratio),
                range(|step| step.effective_beta)
            )
        }
        _ => " Certified GeoDP".to_owned(),
    };
    if !without.is_empty() {
        let joint = if whole.is_empty() { ":" } else { ";" };
        text += &match panel.vary {
            Vary::Beta => format!("{joint} too small a magnitude for a direction"),
            vary => format!(
                "{joint} no direction, or not always, at {} = {}",
                symbol(vary),
                places(&without)
            ),
        };
    }
    text + "."
}

/// What the panel keeps fixed.
fn fixed(panel: &Panel) -> String {
    let Some(p) = panel.points.first() else { return String::new() };
    let all = [
        (Vary::Dim, format!("d = {}", p.dim)),
        (Vary::Batch, format!("B = {}", p.batch)),
        (Vary::Sigma, format!("σ = {}", p.sigma)),
        (Vary::Beta, format!("β = {}", p.beta)),
    ];
    let kept = all.into_iter().filter(|(vary, _)| *vary != panel.vary).map(|(_, text)| text);
    kept.collect::<Vec<_>>().join(", ")
}

fn symbol(vary: Vary) -> &'static str {
    match vary {
        Vary::Sigma => "σ",
        Vary::Dim => "d",
        Vary::Batch => "B",
        Vary::Beta => "β",
    }
}

/// States where GeoDP's direction error is the smaller one, and β*.
fn caption(panel: &Panel, errors: &[Errors]) -> String {
    let symbol = symbol(panel.vary);
    let wins = |e: &&Errors| stats::mean(&e.geodp_direction) < stats::mean(&e.dp_direction);
    let list = |chosen: Vec<&Errors>| {
        let values = chosen.iter().map(|e| e.point.at(panel.vary).to_string());
        values.collect::<Vec<_>>().join(", ")
    };
    let better: Vec<&Errors> = errors.iter().filter(wins).collect();
    let finding = if better.len() == errors.len() {
        "GeoDP’s direction error is below DP’s at every point".to_owned()
    } else if better.is_empty() {
        "GeoDP’s direction error is above DP’s at every point".to_owned()
    } else {
        format!("GeoDP’s direction error is below DP’s at {symbol} = {} only", list(better))
    };
    let betas: Vec<f64> = errors.iter().map(|e| e.crossing_beta).collect();
    let (low, high) = betas.iter().fold((f64::MAX, 0.0_f64), |(l, h), b| (l.min(*b), h.max(*b)));
    let star = if high - low < 0.02 * high {
        format!("β* = {}", format::significant(high, 2))
    } else {
        format!("β* from {} to {}", format::significant(low, 2), format::significant(high, 2))
    };
    format!("{}: {finding} (expected to cross at {star}).", fixed(panel))
}

fn to_csv(figure: &Direction, pooled: &Pooled) -> String {
    let header = [
        "panel",
        "dim",
        "batch",
        "sigma",
        "beta",
        "mechanism",
        "error",
        "mean",
        "low95",
        "high95",
        "repeats",
        "expected",
        "beta_star",
        "noise_ratio",
        "effective_beta",
    ];
    let letters = figure.panels.iter().flat_map(|p| p.points.iter().map(move |_| p.letter));
    let mut rows = Vec::new();
    let number = |x: Option<f64>| x.filter(|x| x.is_finite()).map_or(String::new(), csv::number);
    for (letter, e) in letters.zip(&pooled.errors) {
        let p = e.point;
        let mut add = |mechanism: &str, error: &str, values: &[f64], theory: [Option<f64>; 4]| {
            let (mean, half) = (stats::mean(values), stats::half_width(values));
            let mut row = vec![
                format!("{}{letter}", figure.id),
                p.dim.to_string(),
                p.batch.to_string(),
                csv::number(p.sigma),
                csv::number(p.beta),
                mechanism.to_owned(),
                error.to_owned(),
                number(Some(mean)),
                number(Some(mean - half)),
                number(Some(mean + half)),
                values.len().to_string(),
            ];
            row.extend(theory.map(number));
            rows.push(row);
        };
        let star = Some(e.crossing_beta);
        add("DP", "direction", &e.dp_direction, [Some(e.dp_theory), star, None, None]);
        add("GeoDP", "direction", &e.geodp_direction, [Some(e.geodp_theory), star, None, None]);
        add("DP", "gradient", &e.dp_gradient, [None, star, None, None]);
        add("GeoDP", "gradient", &e.geodp_gradient, [None, star, None, None]);
        if let Some(c) = pooled.certified_at(&p) {
            let ratio = Some(c.expected(|step| step.noise_ratio));
            let beta = Some(c.expected(|step| step.effective_beta));
            let error = Some(c.expected(|step| step.direction_mse));
            add("certified GeoDP", "direction", &c.direction, [error, None, ratio, beta]);
            add("certified GeoDP", "gradient", &c.gradient, [None, None, ratio, beta]);
        }
    }
    csv::to_csv(header, rows)
}
