//! Figure 5 as six charts, protocol beside protocol, and a table of final losses.

use super::curves::{Curve, Panel, Protocol, panels};
use super::train::{FAIR_RATE, Losses};
use super::{Logistic, curves_by_protocol, losses_of};
use crate::experiment::{Drawn, FinishedOf};
use crate::stats;
use geodp_mechanism::Mechanism;
use geodp_report::{Axis, Chart, Role, Series, Table, csv, format};

pub(super) fn draw(title: &str, finished: &FinishedOf<Logistic>) -> Drawn {
    let mut drawn = Drawn::new(title);
    let all = curves_by_protocol().into_iter();
    let runs: Vec<Run<'_>> = all
        .map(|(protocol, curve)| (protocol, curve, losses_of(finished, protocol, &curve)))
        .collect();
    drawn.files.push(("fig5-final.csv".into(), to_csv(&runs)));
    drawn = drawn.with(|section| section.paragraph(about()).table(final_table(&runs)));
    for panel in panels() {
        for protocol in Protocol::ALL {
            let name = format!("fig5{}-{}", panel.letter, protocol.name());
            let figure = chart(&panel, protocol, &runs);
            let label = format!("Figure 5{}, {}", panel.letter, protocol.name());
            drawn = drawn.figure(&name, &label, &figure, caption(&panel, protocol, &runs));
        }
    }
    drawn
}

/// A curve under a protocol, with the losses of each finished seed.
type Run<'a> = (Protocol, Curve, Vec<&'a Losses>);

fn find<'a>(runs: &'a [Run<'a>], protocol: Protocol, curve: &Curve) -> &'a [&'a Losses] {
    let found = runs.iter().find(|(p, c, _)| *p == protocol && c == curve);
    found.map_or(&[], |(_, _, losses)| losses)
}

/// Mean final loss over seeds; not a number if not run.
fn final_loss(losses: &[&Losses]) -> f64 {
    stats::mean(&losses.iter().map(|losses| losses.last()).collect::<Vec<_>>())
}

fn about() -> String {
    format!(
        "MNIST digits 0 and 1, d = 785, 350 iterations from w = 0. Protocol “released” follows the \
         authors’ code: the gradient of the whole training set, η = 0.1; DP clips this mean gradient \
         at C = 0.1, GeoDP and the noise-free run do not clip it, and GeoDP clamps noisy angles to \
         their ranges; B scales the noise only. Protocol “fair” clips every record’s gradient at \
         C = 0.1 for all three, draws Poisson batches of expected size B, and uses η = {FAIR_RATE} \
         for all (clipped gradients are short)."
    )
}

fn final_table(runs: &[Run<'_>]) -> Table {
    let mut table = Table::new(["training", "B", "σ", "β", "released", "fair"])
        .caption("Training loss after the last iteration, mean over seeds.");
    let fair_of = |curve: &Curve| final_loss(find(runs, Protocol::Fair, curve));
    for (_, curve, losses) in runs.iter().filter(|(p, _, _)| *p == Protocol::Released) {
        let (name, beta) = (curve.mechanism.title(), curve.mechanism.beta());
        let beta = beta.map_or(String::new(), |beta| beta.to_string());
        let loss = |x: f64| if x.is_nan() { "not run".into() } else { format!("{x:.4}") };
        table = table.row([
            name.to_owned(),
            curve.batch.to_string(),
            curve.sigma.to_string(),
            beta,
            loss(final_loss(losses)),
            loss(fair_of(curve)),
        ]);
    }
    table
}

fn chart(panel: &Panel, protocol: Protocol, runs: &[Run<'_>]) -> Chart {
    let title = format!("5{}, {}: {}", panel.letter, protocol.name(), panel.fixed);
    let mut chart = Chart::new(title, Axis::linear("iteration"), Axis::log("training loss"));
    for curve in &panel.curves {
        let losses = find(runs, protocol, curve);
        let Some(first) = losses.first() else { continue };
        let mean = |at: usize| {
            let values: Vec<f64> =
                losses.iter().filter_map(|l| l.losses.get(at).copied()).collect();
            stats::mean(&values)
        };
        let points: Vec<(f64, f64)> =
            first.iterations.iter().enumerate().map(|(at, i)| (*i as f64, mean(at))).collect();
        let role = match (curve.mechanism.is_private(), curve.mechanism == Mechanism::Dp) {
            (false, _) => Role::NoNoise,
            (true, true) => Role::Dp,
            (true, false) => Role::GeoDp,
        };
        chart = chart.series(Series::line(curve.label(panel.vary), role, points));
    }
    chart
}

/// Final losses, in words.
fn caption(panel: &Panel, protocol: Protocol, runs: &[Run<'_>]) -> String {
    let values: Vec<String> = panel
        .curves
        .iter()
        .map(|curve| (curve, final_loss(find(runs, protocol, curve))))
        .filter(|(_, loss)| !loss.is_nan())
        .map(|(curve, loss)| {
            let name = curve.label(panel.vary).replace(", ", " with ");
            format!("{name}: {}", format::significant(loss, 3))
        })
        .collect();
    if values.is_empty() {
        return "Not run yet.".to_owned();
    }
    let what = match protocol {
        Protocol::Released => {
            "DP’s mean gradient is clipped, GeoDP’s and the noise-free one’s are not"
        }
        Protocol::Fair => "every record’s gradient is clipped in all three",
    };
    format!("Protocol {}: {what}. Final loss: {}.", protocol.name(), values.join("; "))
}

fn to_csv(runs: &[Run<'_>]) -> String {
    let header = ["protocol", "training", "beta", "batch", "sigma", "final_loss_mean", "seeds"];
    let rows = runs.iter().map(|(protocol, curve, losses)| {
        let name = curve.mechanism.title();
        let beta = curve.mechanism.beta().map_or(String::new(), csv::number);
        let loss = final_loss(losses);
        vec![
            protocol.name().to_owned(),
            name.to_owned(),
            beta,
            curve.batch.to_string(),
            csv::number(curve.sigma),
            if loss.is_nan() { String::new() } else { csv::number(loss) },
            losses.len().to_string(),
        ]
    });
    csv::to_csv(header, rows)
}
