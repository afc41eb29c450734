//! Differences in accuracy between rows of a table, and how large one must be to count.
//!
//! Two rows of n and m seeds differ if their means do by more than [`MARGIN`] and by more than
//! t·√(s²/n + s′²/m), with Student's t for n + m − 2 degrees of freedom at 95 %. A row of one seed
//! shows no spread: the pooled one of all rows with several stands in, with t of many degrees.

use crate::stats;
use crate::tables::equal::MARGIN;
use crate::tables::rows::{Beta, LARGE_BATCH, Method, Noise};
use crate::tables::summary::Line;

/// A difference between two rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// table2 or table3.
    pub table: &'static str,
    /// σ.
    pub sigma: f64,
    /// What is compared, such as `GeoDP β = 0.1 over DP`.
    pub what: String,
    /// Whether it is the add-on of a method or GeoDP against DP.
    pub add_on: bool,
    /// Percentage points.
    pub points: f64,
    /// Points beyond which it counts.
    pub margin: f64,
}

/// GeoDP at β = 0.1 against DP, and each add-on against the method it is added to.
pub fn differences(table: &'static str, lines: &[Line], spread: f64) -> Vec<Difference> {
    let mut all = Vec::new();
    for line in lines.iter().filter(|l| l.published.is_some() && l.row.method.batch == LARGE_BATCH)
    {
        let method = line.row.method;
        let geodp = method.noise == Noise::Geodp { beta: Beta::Fixed(0.1) };
        let base = if method.has_add_on() {
            Method::plain(method.noise, method.batch)
        } else if geodp {
            Method { noise: Noise::Dp, ..method }
        } else {
            continue;
        };
        let base = lines.iter().find(|l| l.row.method == base && l.sigma == line.sigma);
        let Some(base) = base else { continue };
        let (Some(ours), Some(theirs)) = (line.mean(), base.mean()) else { continue };
        all.push(Difference {
            table,
            sigma: line.sigma,
            what: format!("{} over {}", method.name(), base.row.method.name()),
            add_on: method.has_add_on(),
            points: ours - theirs,
            margin: margin(&line.accuracies, &base.accuracies, spread),
        });
    }
    all
}

/// Pooled standard deviation over seeds of the rows that have several; 0 if none has.
pub fn pooled_std<'a>(lines: impl IntoIterator<Item = &'a Line>) -> f64 {
    let (mut squares, mut degrees) = (0.0, 0.0);
    for line in lines.into_iter().filter(|l| l.accuracies.len() > 1) {
        let own = (line.accuracies.len() - 1) as f64;
        squares += own * stats::std_dev(&line.accuracies).powi(2);
        degrees += own;
    }
    if degrees > 0.0 { (squares / degrees).sqrt() } else { 0.0 }
}

fn margin(ours: &[f64], theirs: &[f64], spread: f64) -> f64 {
    let variance = |values: &[f64]| {
        let std = if values.len() > 1 { stats::std_dev(values) } else { spread };
        std.powi(2) / values.len() as f64
    };
    let t = match (ours.len(), theirs.len()) {
        (n, m) if n > 1 && m > 1 => student_t(n + m - 2),
        _ => student_t(usize::MAX),
    };
    (t * (variance(ours) + variance(theirs)).sqrt()).max(MARGIN)
}

/// Two-sided 95 % quantile of Student's t, at the next smaller listed number of degrees.
fn student_t(degrees: usize) -> f64 {
    const TABLE: [(usize, f64); 10] = [
        (60, 2.00),
        (30, 2.042),
        (20, 2.086),
        (10, 2.228),
        (8, 2.306),
        (6, 2.447),
        (4, 2.776),
        (3, 3.182),
        (2, 4.303),
        (1, 12.706),
    ];
    TABLE.iter().find(|(listed, _)| degrees >= *listed).map_or(f64::INFINITY, |(_, t)| *t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_follow_spread_and_seeds() {
        // s = 1 each, three seeds: 2.776·√(2/3).
        let three = [79.0, 80.0, 81.0];
        assert!((margin(&three, &three, 9.0) - 2.776 * (2.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        // One seed each: the pooled spread, and t of many degrees.
        assert!((margin(&[80.0], &[70.0], 1.5) - 2.0 * 1.5 * 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(margin(&[80.0; 3], &[70.0; 3], 9.0), MARGIN);
        assert_eq!((student_t(5), student_t(1)), (2.776, 12.706));
    }
}
