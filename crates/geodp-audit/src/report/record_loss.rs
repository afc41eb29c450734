//! The section of measured per-record losses: private, for the data's owner.

use crate::Error;
use crate::record_loss::{
    Quantiles, RecordLoss, RecordLossSummary, RecordTotals, gaussian_epsilon, sampled_epsilon,
};
use geodp_account::Claim;
use geodp_report::{Axis, Callout, Chart, Histogram, Role, Section, Series, Table, format};

/// Points at which ε(μ) is accounted; between them it is interpolated.
const GRID: usize = 16;
/// Smaller losses are shown as this.
const SMALLEST_SHOWN: f64 = 1e-3;
/// Bins of the histograms.
const BINS: usize = 40;

/// What was measured, beside what is claimed; `poisson_rate` as the run's plan has it.
///
/// # Errors
/// If the accountant refuses.
pub fn record_loss_section(
    summary: &RecordLossSummary,
    loss: &RecordLoss,
    poisson_rate: Option<f64>,
    claims: &[Claim],
) -> Result<Section, Error> {
    let role = if summary.beta.is_some() { Role::GeoDp } else { Role::Dp };
    let worst = summary.with_amplification.unwrap_or(summary.without_amplification);
    let mut section = Section::new("Measured per-record loss")
        .callout(
            Callout::Private,
            "Measured on the records themselves. Leave this section, and measured.json, out of what \
             you publish.",
        )
        .headline(headline(summary, &worst))
        .paragraph(format!(
            "{} of the followed records took part in the {} steps. At each step that used one, the movement of the \
             mean gradient without it was computed and held against the noise. This says what these \
             records paid in this run; it promises nothing about others.",
            format::count(summary.records),
            format::count(summary.steps)
        ));
    let mut table = Table::new(["measured ε", "largest", "99.9 %", "median"]).caption(format!(
        "At δ = {:e}. Claimed: {}.",
        summary.delta,
        claims.iter().map(super::claim_text).collect::<Vec<_>>().join(", ")
    ));
    let rows = [
        ("batches unknown: any might have been drawn", summary.with_amplification),
        ("batches known: those that were drawn", Some(summary.without_amplification)),
    ];
    for (name, quantiles) in rows {
        if let Some(q) = quantiles {
            table = table.row([
                name.to_owned(),
                format::epsilon(q.largest),
                format::epsilon(q.permille_999),
                format::epsilon(q.median),
            ]);
        }
    }
    section = section.table(table);

    let steps = loss.steps();
    let epsilons = match poisson_rate {
        Some(rate) => epsilons(loss, RecordTotals::mu_rms, |mu| {
            sampled_epsilon(mu, rate, steps, summary.delta)
        })?,
        None => epsilons(loss, RecordTotals::mu_total, |mu| gaussian_epsilon(mu, summary.delta))?,
    };
    let mut chart = Chart::new(
        "What each record paid",
        Axis::log("measured per-record ε"),
        Axis::linear("records"),
    )
    .series(Series::histogram("records", role, Histogram::log(epsilons, BINS)));
    for claim in claims {
        chart = chart.mark_x(claim.upper(), super::claim_text(claim));
    }
    section = section.figure(&chart, "Records right of a line paid more than that claim says. Losses below 0.001 stand at 0.001.");
    let inside = format!(
        "{} of all measurements stayed within what the noise was scaled for.",
        format::percent(summary.share_of_measurements_inside)
    );
    Ok(match (summary.beta, summary.beta_safe) {
        (Some(beta), Some(beta_safe)) => section.figure(&turns(loss, beta, beta_safe), inside),
        _ => section.paragraph(inside),
    })
}

/// The largest numbers; β only where the mechanism has one.
fn headline(summary: &RecordLossSummary, worst: &Quantiles) -> Vec<(String, String)> {
    let inside = format::percent(summary.share_of_records_inside);
    let mut numbers = vec![
        ("measured ε, worst record".to_owned(), format::epsilon(worst.largest)),
        ("measured ε, median".to_owned(), format::epsilon(worst.median)),
        ("records within what was assumed".to_owned(), inside),
    ];
    let covering = summary.beta_safe;
    numbers.extend(covering.map(|beta| ("β that covers all".to_owned(), format::epsilon(beta))));
    numbers
}

/// How far records turned the mean, in units of GeoDP's β.
fn turns(loss: &RecordLoss, beta: f64, beta_safe: f64) -> Chart {
    let measured = loss.totals().iter().filter(|t| t.measured > 0);
    let needed = measured.map(|t| t.beta_needed.max(1e-4 * beta_safe));
    Chart::new(
        "How far each record turned the mean",
        Axis::log("β that would cover the record’s largest turn"),
        Axis::linear("records"),
    )
    .series(Series::histogram("records", Role::GeoDp, Histogram::log(needed, BINS)))
    .mark_x(beta, format!("β = {beta}"))
}

/// ε of every record that was measured: accounted on a grid of μ, interpolated on log scales.
fn epsilons(
    loss: &RecordLoss,
    mu: fn(&RecordTotals) -> Option<f64>,
    epsilon: impl Fn(f64) -> Result<f64, Error>,
) -> Result<Vec<f64>, Error> {
    let all: Vec<f64> = loss.totals().iter().filter_map(mu).filter(|mu| *mu > 0.0).collect();
    let (low, high) = all.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), m| (l.min(*m), h.max(*m)));
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let at = |point: usize| low * (high / low).powf(point as f64 / (GRID - 1) as f64);
    let grid: Vec<(f64, f64)> = (0..GRID)
        .map(|point| Ok((at(point).ln(), epsilon(at(point))?.max(1e-12).ln())))
        .collect::<Result<_, Error>>()?;
    Ok(all.iter().map(|mu| interpolate(&grid, mu.ln()).exp().max(SMALLEST_SHOWN)).collect())
}

fn interpolate(grid: &[(f64, f64)], x: f64) -> f64 {
    let after = grid.partition_point(|(at, _)| *at < x).clamp(1, grid.len() - 1);
    let ((x0, y0), (x1, y1)) = (grid[after - 1], grid[after]);
    if x1 > x0 { y0 + (y1 - y0) * ((x - x0) / (x1 - x0)).clamp(0.0, 1.0) } else { y0 }
}
