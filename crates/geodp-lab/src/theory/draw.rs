//! The theory as a page section: derivation, four figures, one CSV.

use super::measure::{Geometry, Pair};
use super::{Found, JOBS, Job, Theory, words};
use crate::experiment::{Drawn, Experiment, FinishedOf};
use crate::model::Model;
use geodp_report::{Axis, Callout, Chart, Role, Series, csv, format};

/// What each finished job found, in the order of [`JOBS`].
pub(super) type Points<'a> = Vec<(Job, &'a Found)>;

pub(super) fn draw(finished: &FinishedOf<Theory>) -> Drawn {
    let points: Points<'_> = finished.pairs.iter().map(|(job, found)| (*job, found)).collect();
    let mut drawn = Drawn::new(Theory.title());
    drawn.files.push(("theory.csv".to_owned(), to_csv(&points)));
    drawn = drawn.with(|section| {
        let section = words::derivation(section).paragraph(words::finding(&points));
        match JOBS.len() - points.len() {
            0 => section,
            n => section.callout(Callout::Info, format!("Cells not run yet: {n}.")),
        }
    });
    if points.is_empty() {
        return drawn;
    }
    drawn = drawn
        .figure(
            "theory-direction",
            "Theory, direction",
            &direction(&points),
            direction_caption(&points),
        )
        .figure("theory-crossing", "Theory, crossing", &crossing(&points), crossing_caption());
    let trained: Points<'_> =
        points.into_iter().filter(|(job, _)| matches!(job, Job::Training(_))).collect();
    if trained.is_empty() {
        return drawn;
    }
    drawn
        .figure(
            "theory-training",
            "Theory, training",
            &over_training(&trained),
            training_caption(&trained),
        )
        .figure(
            "theory-certified",
            "Theory, certified GeoDP",
            &certified(&trained),
            certified_caption(&trained),
        )
}

/// The least and the largest of some numbers.
pub(super) fn spread(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, x| match range {
        None => Some((x, x)),
        Some((low, high)) => Some((x.min(low), x.max(high))),
    })
}

fn role(job: Job) -> Role {
    match job {
        Job::Training(Model::Cnn) => Role::Dp,
        Job::Training(Model::Scattering) => Role::NoNoise,
        _ => Role::Neutral,
    }
}

/// A chart with one series of points a job.
fn scattered(chart: Chart, points: &Points<'_>, place: fn(&Geometry) -> (f64, f64)) -> Chart {
    points.iter().fold(chart, |chart, (job, found)| {
        let own: Vec<(f64, f64)> = found.points.iter().map(|(_, g)| place(g)).collect();
        chart.series(Series::scatter(job.title(), role(*job), own))
    })
}

fn all<'a>(points: &'a Points<'_>) -> impl Iterator<Item = &'a Geometry> {
    points.iter().flat_map(|(_, found)| found.points.iter().map(|(_, g)| g))
}

fn direction(points: &Points<'_>) -> Chart {
    let x = Axis::log("σC/(B‖g‖)").unit("rad");
    let y = Axis::log("measured, per tangent dimension").unit("rad");
    let chart = Chart::new("The direction’s noise under DP", x, y);
    let (low, high) = spread(all(points).map(|g| g.tangent.expected)).unwrap_or((1e-4, 1.0));
    let line = Series::line("σ times local sensitivity", Role::Theory, [(low, low), (high, high)]);
    scattered(chart, points, |g| (g.tangent.expected, g.tangent.measured)).series(line)
}

fn direction_caption(points: &Points<'_>) -> String {
    let near = |g: &&Geometry| g.is_first_order();
    let off = all(points).filter(near).map(|g| g.tangent.measured / g.tangent.expected - 1.0);
    let off = spread(off);
    let off = off.map_or(f64::NAN, |(low, high)| high.max(-low));
    format!(
        "How far DP’s noise moves the direction of a mean gradient, per tangent dimension, against σC/(B‖g‖): over d, B \
         and C on the gradients of Figure 3 at σ = 1, and along two trainings on MNIST at B = 4096, σ = 1.85 (ε = 2.99). \
         Points below 0.1 rad are within {} of the line: isotropic noise is noise on the direction, of σ times its \
         local sensitivity. (Beyond, the noise along g is as long as g, and there is no direction left to speak of.)",
        format::percent(off)
    )
}

/// π√(d+2)·‖g‖/C.
fn abscissa(g: &Geometry) -> f64 {
    std::f64::consts::PI * ((g.setting.dim + 2) as f64).sqrt() * g.mean_norm_over_clip
}

fn crossing(points: &Points<'_>) -> Chart {
    let x = Axis::log("π√(d+2)·‖g‖/C");
    let chart = Chart::new("Where GeoDP’s direction error equals DP’s", x, Axis::log("β*"));
    let (low, high) = spread(all(points).map(abscissa)).unwrap_or((1.0, 100.0));
    let line = |name: &str, factor: f64| {
        Series::line(name, Role::Theory, [(low, factor / low), (high, factor / high)])
    };
    scattered(chart, points, |g| (abscissa(g), g.crossing.measured))
        .series(line("even gradient, √2·C/(π√(d+2)‖g‖)", std::f64::consts::SQRT_2))
        .series(line("what covers one record’s turn, C/(π√(d+2)‖g‖)", 1.0))
}

fn crossing_caption() -> String {
    "β* as measured by perturbing each mean with both mechanisms. Upper line: expected where the gradient is spread \
     evenly over its coordinates. Lower line: the least β at which GeoDP’s assumed sensitivity covers how far one \
     record can turn that mean. Below both, GeoDP keeps the direction better than DP and does not cover the record. \
     Points off the upper line have gradients that are not spread evenly."
        .to_owned()
}

/// (step, value) of the points of a training; step 0 stands at 1, for a log axis.
fn along(found: &Found, pick: fn(&Geometry) -> Option<f64>) -> Vec<(f64, f64)> {
    let at = |(step, g): &(f64, Geometry)| Some((step + 1.0, pick(g)?));
    found.points.iter().filter_map(at).collect()
}

fn over_training(trained: &Points<'_>) -> Chart {
    let x = Axis::log("step");
    let chart = Chart::new("β along two trainings", x, Axis::log("β"));
    let name = |job: &Job, what: &str| match job {
        Job::Training(model) => format!("{what}, {}", model.name()),
        _ => what.to_owned(),
    };
    let chart = trained.iter().fold(chart, |chart, (job, found)| {
        let expected = along(found, |g| Some(g.crossing.expected));
        let measured = along(found, |g| Some(g.crossing.measured));
        let covering = along(found, |g| g.largest_turn.map(|turn| turn.covering_beta));
        chart
            .series(Series::scatter(name(job, "β* measured"), role(*job), measured))
            .series(Series::line(name(job, "β* expected"), Role::Theory, expected))
            .series(Series::line(name(job, "β that covers every record"), role(*job), covering))
    });
    chart.mark_y(0.1, "β = 0.1")
}

fn training_caption(trained: &Points<'_>) -> String {
    let turns = || all(trained).filter_map(|g| Some((g.crossing.measured, g.largest_turn?)));
    let above = turns().filter(|(star, turn)| turn.covering_beta > *star).count();
    format!(
        "DP trainings on MNIST, B = 4096, σ = 1.85. β*, below which GeoDP’s direction error is smaller than DP’s, and the \
         least β whose assumed sensitivity would cover the angles of every record that was left out of the mean. At \
         {above} of {} moments the second is the larger one: there no β exists at which GeoDP’s direction is better than \
         DP’s and its assumption true.",
        turns().count()
    )
}

fn certified(trained: &Points<'_>) -> Chart {
    let x = Axis::log("step");
    let y = Axis::log("direction’s noise over DP’s");
    let chart = Chart::new("Certified GeoDP’s direction along two trainings", x, y);
    let pick: fn(&Geometry) -> Option<Pair> = |g| g.certified;
    let chart = trained.iter().fold(chart, |chart, (job, found)| {
        let points = |of: fn(Pair) -> f64| -> Vec<(f64, f64)> {
            let at = |(step, g): &(f64, Geometry)| Some((step + 1.0, of(pick(g)?)));
            found.points.iter().filter_map(at).collect()
        };
        let Job::Training(model) = job else { return chart };
        chart
            .series(Series::scatter(
                format!("measured, {}", model.name()),
                role(*job),
                points(|p| p.measured),
            ))
            .series(Series::line(
                format!("a/L, {}", model.name()),
                Role::Theory,
                points(|p| p.expected),
            ))
    });
    chart.mark_y(1.2, "beyond this a training takes DP’s step")
}

fn certified_caption(trained: &Points<'_>) -> String {
    let without = trained.iter().flat_map(|(_, found)| &found.points);
    let without = without.filter(|(_, g)| g.certified.is_none()).count();
    let range = spread(all(trained).filter_map(|g| g.certified.map(|c| c.measured)));
    let range = range.map_or(String::new(), |(low, high)| {
        format!(" from {} to {}", format::significant(low, 3), format::significant(high, 3))
    });
    format!(
        "How far certified GeoDP moves the direction, every step polar, over how far DP moves it: measured{range}, \
         expected a/L. It is above 1 and grows as gradients shrink; at {without} of the moments the released magnitude \
         is too small for a direction. A training takes DP’s step where a/L is expected above 1.2."
    )
}

fn to_csv(points: &Points<'_>) -> String {
    let header = [
        "varied",
        "value",
        "dataset",
        "dim",
        "batch",
        "clip_norm",
        "sigma",
        "mean_norm_over_clip",
        "radial_std_expected",
        "radial_std_measured",
        "tangent_std_expected",
        "tangent_std_measured",
        "beta_star_expected",
        "beta_star_measured",
        "certified_ratio_expected",
        "certified_ratio_measured",
        "largest_rotation",
        "covering_beta",
    ];
    let number = |x: Option<f64>| x.map_or(String::new(), csv::number);
    let rows = points.iter().flat_map(|(job, found)| {
        found.points.iter().map(move |(value, g)| {
                let mut row = vec![
                    job.key(),
                    csv::number(*value),
                    found.dataset.clone(),
                    g.setting.dim.to_string(),
                    g.setting.batch.to_string(),
                ];
                let pair = |p: Pair| [Some(p.expected), Some(p.measured)];
                let numbers = [
                    &[
                        Some(g.setting.clip_norm),
                        Some(g.setting.sigma),
                        Some(g.mean_norm_over_clip),
                    ][..],
                    &pair(g.radial),
                    &pair(g.tangent),
                    &pair(g.crossing),
                    &g.certified.map_or([None; 2], pair),
                    &g.largest_turn
                        .map_or([None; 2], |t| [Some(t.rotation), Some(t.covering_beta)]),
                ];
                row.extend(numbers.concat().into_iter().map(number));
                row
            })
    });
    csv::to_csv(header, rows)
}
