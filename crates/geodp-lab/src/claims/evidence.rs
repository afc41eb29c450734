//! The numbers that verdicts are computed from, gathered from the finished cells. Plain data: a
//! test can turn any of them round and see the verdict turn.

use super::accuracy::{self, Difference};
use super::checks::{Bias, Identity, Knobs};
use super::{Checked, Claims};
use crate::direction::measure::Errors;
use crate::direction::{Direction, Pooled};
use crate::experiment::{Experiment, FinishedOf};
use crate::logistic::curves::{Curve, Protocol};
use crate::logistic::{Logistic, losses_of};
use crate::runtime::{Runtime, Times};
use crate::store::Store;
use crate::tables::Table;
use crate::tables::equal::{self, Comparison, Reading};
use crate::tables::protocol::Protocol as TableProtocol;
use crate::tables::rows::Noise;
use crate::tables::summary::Line;
use crate::{Error, stats};
use geodp_mechanism::Mechanism;

/// Everything the claims are judged by; what is `None` or empty was not run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// Direction errors of Figures 1, 3 and 4.
    pub directions: Vec<DirectionPoint>,
    /// Panels a, d and g of Figure 3 (β = 1), by letter.
    pub at_beta_one: Vec<(char, Vec<DirectionPoint>)>,
    /// Claim 2.
    pub bias: Option<Bias>,
    /// Claim 3.
    pub knobs: Option<Knobs>,
    /// Claim 4.
    pub identity: Option<Identity>,
    /// Final losses of Figure 5 by protocol.
    pub logistic: Vec<(Protocol, LogisticLosses)>,
    /// Differences in accuracy of Tables 2 and 3.
    pub accuracy: Vec<Difference>,
    /// Figure 6.
    pub times: Vec<Times>,
    /// Measured privacy of the tables' GeoDP rows.
    pub privacy: Vec<PrivacyRow>,
    /// At equal measured privacy (largest).
    pub equal: Option<Comparison>,
}

/// Mean direction errors at one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DirectionPoint {
    /// d.
    pub dim: usize,
    /// B.
    pub batch: u64,
    /// σ.
    pub sigma: f64,
    /// β.
    pub beta: f64,
    /// DP's mean ‖θ* − θ‖².
    pub dp: f64,
    /// GeoDP's.
    pub geodp: f64,
    /// β*, where the expected errors are equal.
    pub beta_star: f64,
}

/// Final losses that Claim 6 compares.
#[derive(Debug, Clone, PartialEq)]
pub struct LogisticLosses {
    /// (setting, DP, GeoDP) where the paper finds GeoDP ahead.
    pub pairs: Vec<(String, f64, f64)>,
    /// DP at B = 256 with σ = 0.1 and with σ = 0.01.
    pub dp_small_sigma: (f64, f64),
}

/// A GeoDP training beside DP's at the same σ and B.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivacyRow {
    /// Its name.
    pub name: String,
    /// Whether the paper has it.
    pub published: bool,
    /// ε certified for DP at the same σ, B and length.
    pub dp_certified: f64,
    /// Largest ε measured on a record of the GeoDP training; ∞ if it is beyond all bounds.
    pub measured_largest: f64,
    /// Share of records that stayed within the assumed region.
    pub share_inside: f64,
}

impl Evidence {
    /// Gathers what a store has, with the tables under `protocol`; `checks` are the finished cells of
    /// the claims themselves.
    ///
    /// # Errors
    /// A store that cannot be read.
    pub fn gather(
        checks: &FinishedOf<Claims>,
        protocol: TableProtocol,
        store: &Store,
    ) -> Result<Self, Error> {
        let mut evidence = Self::default();
        for checked in checks.results() {
            match checked {
                Checked::Bias(found) => evidence.bias = Some(*found),
                Checked::Knobs(found) => evidence.knobs = Some(found.clone()),
                Checked::Identity(found) => evidence.identity = Some(found.clone()),
            }
        }
        if let Some(finished) = store.finished(&Runtime)? {
            evidence.times = finished.results().copied().collect();
        }
        for figure in [Direction::figure1(), Direction::figure3(), Direction::figure4()] {
            let Some(finished) = store.finished(&figure)? else { continue };
            let Some(Pooled { errors, .. }) = figure.pooled(&finished) else { continue };
            let points: Vec<DirectionPoint> = errors.iter().map(point).collect();
            let mut rest = points.as_slice();
            for panel in figure.panels() {
                let (own, others) = rest.split_at(panel.points.len());
                rest = others;
                if figure.panels().len() == 9 && own.iter().all(|p| p.beta == 1.0) {
                    evidence.at_beta_one.push((panel.letter, own.to_vec()));
                }
            }
            evidence.directions.extend(points);
        }
        if let Some(finished) = store.finished(&Logistic::default())? {
            for protocol in Protocol::ALL {
                let losses = logistic(&finished, protocol);
                evidence.logistic.extend(losses.map(|losses| (protocol, losses)));
            }
        }
        let mut tables = Vec::new();
        for table in Table::under(protocol) {
            tables.push((table.id(), lines_of(&table, store)?));
        }
        let spread = accuracy::pooled_std(tables.iter().flat_map(|(_, lines)| lines));
        for (id, lines) in &tables {
            evidence.accuracy.extend(accuracy::differences(id, lines, spread));
            evidence.privacy.extend(privacy_rows(lines));
        }
        // That comparison is of trainings as stated.
        if protocol == TableProtocol::AsStated {
            evidence.equal = at_equal_privacy(store)?;
        }
        Ok(evidence)
    }
}

/// GeoDP against DP where their records were measured to pay as much at most.
fn at_equal_privacy(store: &Store) -> Result<Option<Comparison>, Error> {
    let lines = lines_of(&Table::equal_privacy(), store)?;
    let (dp, geodp) = equal::sides(&lines);
    let reading = Reading::Largest;
    let comparison = equal::compare(&equal::places(dp, reading), &equal::places(geodp, reading));
    Ok((comparison.compared > 0).then_some(comparison))
}

/// A table's lines, all of them empty if it was never begun.
fn lines_of(table: &Table, store: &Store) -> Result<Vec<Line>, Error> {
    Ok(table.lines(&store.finished(table)?.unwrap_or_default()))
}

fn point(errors: &Errors) -> DirectionPoint {
    DirectionPoint {
        dim: errors.point.dim,
        batch: errors.point.batch,
        sigma: errors.point.sigma,
        beta: errors.point.beta,
        dp: stats::mean(&errors.dp_direction),
        geodp: stats::mean(&errors.geodp_direction),
        beta_star: errors.crossing_beta,
    }
}

/// Final losses of one protocol, if all of them were run.
fn logistic(finished: &FinishedOf<Logistic>, protocol: Protocol) -> Option<LogisticLosses> {
    let last = |mechanism: Mechanism, batch: u64, sigma: f64| {
        let curve = Curve { mechanism, batch, sigma };
        let losses = losses_of(finished, protocol, &curve);
        stats::mean(&losses.iter().map(|l| l.last()).collect::<Vec<_>>())
    };
    let mut pairs = Vec::new();
    for (beta, batch, sigma) in
        [(1.0, 4096, 1.0), (0.5, 2048, 10.0), (1.0, 256, 0.1), (1.0, 256, 0.01)]
    {
        let dp = last(Mechanism::Dp, batch, sigma);
        let geodp = last(Mechanism::Geodp { beta }, batch, sigma);
        pairs.push((format!("B = {batch}, σ = {sigma}, β = {beta}"), dp, geodp));
    }
    if pairs.iter().any(|(_, dp, geodp)| dp.is_nan() || geodp.is_nan()) {
        return None;
    }
    let small = |sigma| last(Mechanism::Dp, 256, sigma);
    Some(LogisticLosses { pairs, dp_small_sigma: (small(0.1), small(0.01)) })
}

/// The GeoDP rows without add-ons that were measured, each beside DP's certified ε.
fn privacy_rows(lines: &[Line]) -> Vec<PrivacyRow> {
    let mut rows = Vec::new();
    for line in lines.iter().filter(|l| !l.row.method.has_add_on()) {
        if !matches!(line.row.method.noise, Noise::Geodp { .. }) {
            continue;
        }
        let dp = lines.iter().find(|l| {
            l.row.method.noise == Noise::Dp
                && !l.row.method.has_add_on()
                && l.row.method.batch == line.row.method.batch
                && l.sigma == line.sigma
        });
        let certified = dp.and_then(|l| l.first.as_ref()).and_then(|o| o.statement.first());
        let measured = line.first.as_ref().and_then(|o| o.measured.as_ref());
        let (Some(certified), Some(measured)) = (certified, measured) else { continue };
        rows.push(PrivacyRow {
            name: format!(
                "β = {}, B = {}, σ = {}",
                line.row.method.beta_text(),
                line.row.method.batch,
                line.sigma
            ),
            published: line.published.is_some(),
            dp_certified: certified.epsilon.unwrap_or(f64::INFINITY),
            measured_largest: measured.compared().largest.unwrap_or(f64::INFINITY),
            share_inside: measured.share_of_records_inside,
        });
    }
    rows
}
