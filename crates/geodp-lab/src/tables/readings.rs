//! Both readings of a table's B side by side, with the published number they are held against.

use super::Table;
use super::draw::{first_columns, rates};
use super::summary::Line;

/// Points within which a published accuracy counts as reproduced.
const NEAR: f64 = 1.5;

/// A table for each σ, which fits a page with its deviations: one row per method, in small steps, as stated, and
/// published.
pub(super) fn tables(
    table: &Table,
    as_stated: &[Line],
    small_steps: &[Line],
) -> Vec<geodp_report::Table> {
    let of = |sigma: f64| {
        let column = |lines: &[Line]| -> Vec<Line> {
            lines.iter().filter(|line| line.sigma == sigma).cloned().collect()
        };
        one(sigma, &column(as_stated), &column(small_steps))
    };
    table.sigmas.iter().copied().map(of).collect()
}

fn one(sigma: f64, as_stated: &[Line], small_steps: &[Line]) -> geodp_report::Table {
    let header = ["method", "B", "β", "small steps", "as stated", "paper’s", "η in small steps"];
    let mut shown = geodp_report::Table::new(header).caption(format!(
        "σ = {sigma}: test accuracy in %, mean ± standard deviation over seeds, under both readings of B. \
         Within {NEAR} points of the published number: {} in small steps, {} as stated.",
        reproduced(small_steps),
        reproduced(as_stated),
    ));
    for (small, stated) in small_steps.iter().zip(as_stated) {
        let [method, batch, beta] = first_columns(small);
        let published = small.published.map_or("—".to_owned(), |p| format!("{p:.2}"));
        let rate = rates(std::slice::from_ref(small));
        let (small, stated) = (small.accuracy_text(), stated.accuracy_text());
        shown = shown.row([method, batch, beta, small, stated, published, rate]);
    }
    shown
}

/// `12 of 31`: of the lines that were run and that the paper has.
fn reproduced(lines: &[Line]) -> String {
    let pairs = lines.iter().filter_map(|line| Some((line.mean()?, line.published?)));
    let (mut near, mut all) = (0, 0);
    for (here, published) in pairs {
        all += 1;
        near += usize::from((here - published).abs() <= NEAR);
    }
    format!("{near} of {all}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::rows;

    #[test]
    fn reproduced_rows_are_counted_among_those_run() {
        let line = |here: Option<f64>, published: Option<f64>| Line {
            row: rows::table2()[0],
            sigma: 1.0,
            published,
            accuracies: here.into_iter().collect(),
            diverged: 0,
            first: None,
            losses: Vec::new(),
        };
        let lines = [
            line(Some(90.0), Some(91.4)),
            line(Some(90.0), Some(91.6)),
            line(None, Some(91.6)),
            line(Some(90.0), None),
        ];
        assert_eq!(reproduced(&lines), "1 of 2");
    }
}
