//! Figures 1, 3 and 4 as charts: measured means with 95 % intervals, expectation as dashed lines.

use super::measure::Errors;
use super::panels::{Panel, Vary};
use super::{Direction, Pooled};
use crate::experiment::{Drawn, FinishedOf};
use crate::stats;
use geodp_report::{Axis, Callout, Chart, Role, Series, csv, format};

pub(super) fn draw(figure: &Direction, finished: &FinishedOf<Direction>) -> Drawn {
    let mut drawn = Drawn::new(figure.title);
    let Some(pooled) = figure.pooled(finished) else {
        return drawn.with(|s| s.callout(Callout::Info, "Not run yet."));
    };
    drawn.files.push((format!("{}.csv", figure.id), to_csv(figure, &pooled)));
    drawn = drawn.with(|section| section.paragraph(about(&pooled)));
    let mut errors = pooled.errors.as_slice();
    for panel in &figure.panels {
        let (own, rest) = errors.split_at(panel.points.len());
        errors = rest;
        let name = format!("{}{}", figure.id, panel.letter);
        let label = format!("Figure {}", place(figure, panel));
        drawn = drawn.figure(&name, &label, &chart(figure, panel, own), caption(panel, own));
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
         and variance, for GeoDP (d−1)(d+2)(βπσ/B)². Angle differences are wrapped to (−π, π], so a \
         direction that is lost altogether has an error of about π²/3 an angle, below what the \
         formula gives there.{}",
        format::count(pooled.whole_dim as u64),
        pooled.dataset,
        pooled.groups,
        repeats as u64 / pooled.groups.max(1),
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
    let bound = |e: &Errors| {
        let (mean, half) = (stats::mean(pick(e)), stats::half_width(pick(e)));
        // A log axis has no room for zero.
        ((mean - half).max(mean * 1e-3), mean + half)
    };
    (errors.iter().map(value).collect(), errors.iter().map(bound).collect())
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

/// States where GeoDP's direction error is the smaller one, and β*.
fn caption(panel: &Panel, errors: &[Errors]) -> String {
    let symbol = match panel.vary {
        Vary::Sigma => "σ",
        Vary::Dim => "d",
        Vary::Batch => "B",
        Vary::Beta => "β",
    };
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
    ];
    let letters = figure.panels.iter().flat_map(|p| p.points.iter().map(move |_| p.letter));
    let mut rows = Vec::new();
    for (letter, e) in letters.zip(&pooled.errors) {
        let p = e.point;
        let kinds = [
            ("DP", "direction", &e.dp_direction, Some(e.dp_theory)),
            ("GeoDP", "direction", &e.geodp_direction, Some(e.geodp_theory)),
            ("DP", "gradient", &e.dp_gradient, None),
            ("GeoDP", "gradient", &e.geodp_gradient, None),
        ];
        for (mechanism, error, values, expected) in kinds {
            let (mean, half) = (stats::mean(values), stats::half_width(values));
            rows.push(vec![
                format!("{}{letter}", figure.id),
                p.dim.to_string(),
                p.batch.to_string(),
                csv::number(p.sigma),
                csv::number(p.beta),
                mechanism.to_owned(),
                error.to_owned(),
                csv::number(mean),
                csv::number(mean - half),
                csv::number(mean + half),
                values.len().to_string(),
                expected.map_or(String::new(), csv::number),
                csv::number(e.crossing_beta),
            ]);
        }
    }
    csv::to_csv(header, rows)
}
