//! Accuracy against *measured* privacy: DP over σ, GeoDP over (σ, β), on one axis.
//!
//! Equal σ is not equal privacy: the two mechanisms scale their noise by different bounds, and
//! GeoDP's is not enforced. Here each training stands at the ε that its own records were measured
//! to pay, so that curves can be compared where they meet.

use super::loss::Loss;
use super::rows::Noise;
use super::summary::Line;
use super::{Table, draw as table_draw, sheet};
use crate::Error;
use crate::experiment::{Drawn, FinishedOf, PageContext};
use crate::stats;
use geodp_report::{Axis, Callout, Chart, Role, Series};

/// A training as the comparison sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Measured ε.
    pub epsilon: f64,
    /// Test accuracy in %.
    pub accuracy: f64,
}

/// Which measured ε is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Of the record that paid most.
    Largest,
    /// Of the record in the middle.
    Median,
}

/// GeoDP's places against DP's curve.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Comparison {
    /// Places of GeoDP that can be compared: within the range of DP's ε, or above it and no more
    /// accurate than DP is within.
    pub compared: usize,
    /// Of these, where GeoDP is more accurate by more than `MARGIN`.
    pub geodp_better: usize,
    /// Of these, where DP is more accurate by more than `MARGIN`.
    pub dp_better: usize,
}

/// Percentage points below which two accuracies count as equal.
pub const MARGIN: f64 = 0.5;

/// Places of the lines that were run and measured, by ascending ε: the median over seeds, because what the
/// record that pays most pays differs tenfold from one to the next.
pub fn places<'a>(lines: impl IntoIterator<Item = &'a Line>, reading: Reading) -> Vec<Place> {
    let place = |line: &Line| {
        let of_seed = |loss: &Loss| {
            let spread = loss.compared();
            let epsilon = match reading {
                Reading::Largest => spread.largest,
                Reading::Median => spread.median,
            };
            epsilon.unwrap_or(f64::INFINITY)
        };
        let of_seeds: Vec<f64> = line.losses.iter().map(of_seed).collect();
        let epsilon = (!of_seeds.is_empty()).then(|| stats::median(&of_seeds))?;
        epsilon.is_finite().then_some(Place { epsilon, accuracy: line.mean()? })
    };
    let mut places: Vec<Place> = lines.into_iter().filter_map(place).collect();
    places.sort_by(|a, b| a.epsilon.total_cmp(&b.epsilon));
    places
}

/// Compares each place of GeoDP with DP's accuracy at the same ε, interpolated in ln ε. Above DP's
/// range stands DP's best, which was reached at a smaller ε: enough to lose against, not to win.
pub fn compare(dp: &[Place], geodp: &[Place]) -> Comparison {
    let mut comparison = Comparison::default();
    let best = dp.iter().map(|p| p.accuracy).fold(f64::NAN, f64::max);
    for place in geodp {
        let above = dp.last().is_some_and(|last| place.epsilon > last.epsilon);
        let at_less = (above && place.accuracy <= best + MARGIN).then_some(best);
        let Some(accuracy) = interpolate(dp, place.epsilon).or(at_less) else { continue };
        comparison.compared += 1;
        comparison.geodp_better += usize::from(place.accuracy > accuracy + MARGIN);
        comparison.dp_better += usize::from(place.accuracy < accuracy - MARGIN);
    }
    comparison
}

/// DP's accuracy at an ε within its range.
fn interpolate(curve: &[Place], epsilon: f64) -> Option<f64> {
    curve.windows(2).find(|w| (w[0].epsilon..=w[1].epsilon).contains(&epsilon)).map(|w| {
        let span = (w[1].epsilon / w[0].epsilon).ln();
        let share = if span > 0.0 { (epsilon / w[0].epsilon).ln() / span } else { 0.0 };
        w[0].accuracy + share * (w[1].accuracy - w[0].accuracy)
    })
}

/// Lines of DP and of GeoDP.
pub fn sides(lines: &[Line]) -> (Vec<&Line>, Vec<&Line>) {
    lines.iter().partition(|line| line.row.method.noise == Noise::Dp)
}

pub(super) fn draw(
    table: &Table,
    finished: &FinishedOf<Table>,
    _: &PageContext<'_>,
) -> Result<Drawn, Error> {
    let lines = table.lines(finished);
    let mut drawn = Drawn::new(table.title);
    drawn.files.push((format!("{}.csv", table.id), sheet::to_csv(table, &lines)));
    drawn = drawn.with(|section| {
        let section = section.paragraph(
            "Equal σ is not equal privacy: GeoDP scales its noise by a bound that nothing enforces. \
             Here every training stands at the ε its own records were measured to pay (δ = 10⁻⁵, \
             with amplification by sampling).",
        );
        let section = match &finished.settings {
            Some(settings) => section.paragraph(table_draw::protocol(table, settings)),
            None => section,
        };
        section.callout(
            Callout::Private,
            "Measured ε depend on the records: they compare mechanisms, and are no guarantee.",
        )
    });
    for (reading, name, word) in [
        (Reading::Largest, "privacy-largest", "largest"),
        (Reading::Median, "privacy-median", "median"),
    ] {
        let label = format!("Equal measured privacy, {word}");
        let chart = chart(&lines, reading, word);
        drawn = drawn.figure(name, &label, &chart, caption(&lines, reading, word));
    }
    Ok(drawn.with(|section| section.table(table_draw::privacy_table(table, &lines))))
}

fn chart(lines: &[Line], reading: Reading, word: &str) -> Chart {
    let title = format!("Accuracy against measured ε ({word} of the followed records)");
    let x = Axis::log(format!("measured ε, {word}, δ = 10⁻⁵"));
    let mut chart = Chart::new(title, x, Axis::linear("test accuracy").unit("%"));
    let mut methods: Vec<super::rows::Method> = Vec::new();
    for line in lines {
        if !methods.contains(&line.row.method) {
            methods.push(line.row.method);
        }
    }
    for method in methods {
        let own = places(lines.iter().filter(|l| l.row.method == method), reading);
        let (name, role) = match method.noise {
            Noise::Geodp { .. } => (format!("GeoDP, β = {}", method.beta_text()), Role::GeoDp),
            _ => ("DP".to_owned(), Role::Dp),
        };
        let points = own.iter().map(|p| (p.epsilon, p.accuracy)).collect::<Vec<_>>();
        chart = chart.series(Series::line(name, role, points).markers());
    }
    chart
}

fn caption(lines: &[Line], reading: Reading, word: &str) -> String {
    let (dp, geodp) = sides(lines);
    let Comparison { compared, geodp_better, dp_better } =
        compare(&places(dp, reading), &places(geodp, reading));
    if compared == 0 {
        return format!(
            "Measured by the {word} record: no training of GeoDP can be compared with DP’s yet."
        );
    }
    format!(
        "Measured by the {word} record: of {compared} GeoDP trainings that can be compared, GeoDP is \
         more accurate than DP at the same measured ε in {geodp_better}, DP at the same or a smaller \
         one in {dp_better}, and {} are within {MARGIN} points. Each point is one (σ, β) with its own η; of its seeds, \
         the mean accuracy at the median of their ε.",
        compared - geodp_better - dp_better
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::loss::Spread;
    use crate::tables::rows;

    #[test]
    fn a_place_is_the_mean_of_its_seeds_at_the_median_of_their_epsilons() {
        let loss = |largest: Option<f64>| Loss {
            records: 1,
            measurements: 1,
            share_of_records_inside: 1.0,
            share_of_measurements_inside: 1.0,
            beta_safe: 1.0,
            amplified: None,
            plain: Spread { largest, permille_999: None, median: Some(2.0) },
        };
        let line = |largest: [Option<f64>; 3]| Line {
            row: rows::table2()[0],
            sigma: 1.0,
            published: None,
            accuracies: vec![90.0, 91.0, 92.0],
            diverged: 0,
            first: None,
            losses: largest.map(loss).to_vec(),
        };
        let finite = line([Some(5.0), None, Some(70.0)]);
        assert_eq!(places([&finite], Reading::Largest), [Place { epsilon: 70.0, accuracy: 91.0 }]);
        assert_eq!(places([&finite], Reading::Median), [Place { epsilon: 2.0, accuracy: 91.0 }]);
        // Beyond all bounds in most seeds: nowhere on the axis.
        assert_eq!(places([&line([Some(5.0), None, None])], Reading::Largest), []);
    }

    #[test]
    fn comparison_is_at_equal_epsilon() {
        let place = |epsilon: f64, accuracy: f64| Place { epsilon, accuracy };
        let dp = [place(1.0, 50.0), place(100.0, 90.0)];
        // DP has 70 % at ε = 10.
        assert_eq!(interpolate(&dp, 10.0), Some(70.0));
        assert_eq!(interpolate(&dp, 0.5), None);
        let all = [place(10.0, 71.0), place(10.0, 69.0), place(10.0, 70.2), place(1e3, 99.0)];
        let expected = Comparison { compared: 3, geodp_better: 1, dp_better: 1 };
        assert_eq!(compare(&dp, &all), expected);
        // Beyond DP's range: as accurate as DP at less, less accurate, and not comparable.
        let beyond = [place(1e3, 90.2), place(1e3, 80.0), place(1e3, 99.0), place(0.1, 10.0)];
        let expected = Comparison { compared: 2, geodp_better: 0, dp_better: 1 };
        assert_eq!(compare(&dp, &beyond), expected);
    }
}
