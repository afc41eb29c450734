//! Both readings of a table's B side by side, with the published number they are held against.

use super::Table;
use super::draw::{first_columns, rates};
use super::summary::Line;

/// Points within which a published accuracy counts as reproduced.
const NEAR: f64 = 1.5;

/// One row per method: as stated, in small steps, and published, for each σ.
pub(super) fn table(
    table: &Table,
    as_stated: &[Line],
    small_steps: &[Line],
) -> geodp_report::Table {
    let mut header = ["method", "B", "β"].map(str::to_owned).to_vec();
    for sigma in &table.sigmas {
        let of = |what: &str| format!("σ = {sigma}, {what}");
        header.extend([of("small steps"), of("as stated"), of("paper’s")]);
    }
    header.push("η in small steps".to_owned());
    let mut shown = geodp_report::Table::new(header).caption(format!(
        "Test accuracy in %, mean ± standard deviation over seeds, under both readings of B. Within \
         {NEAR} points of the published number: {} in small steps, {} as stated.",
        reproduced(small_steps),
        reproduced(as_stated),
    ));
    let columns = table.sigmas.len();
    for (small, stated) in small_steps.chunks(columns).zip(as_stated.chunks(columns)) {
        let mut cells = first_columns(&small[0]).to_vec();
        for (small, stated) in small.iter().zip(stated) {
            let published = small.published.map_or("—".to_owned(), |p| format!("{p:.2}"));
            cells.extend([small.accuracy_text(), stated.accuracy_text(), published]);
        }
        cells.push(rates(small));
        shown = shown.row(cells);
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
