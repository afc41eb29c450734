//! Tables of data: columns of numbers to the right, words to the left, scrolling within themselves.

use super::paragraph;
use super::text::Text;

/// Cells of up to this many characters stay on one line: a name is not torn apart.
const SHORT: usize = 16;

/// Tables of more columns than this may grow beyond the text's column where the screen has room.
const MANY: usize = 7;

/// A table under construction.
///
/// ```
/// use geodp_report::Table;
/// let table = Table::new(["method", "accuracy"]).row(["DP", "94.25"]).row(["GeoDP", "96.47"]);
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    header: Vec<Text>,
    rows: Vec<Vec<Text>>,
    caption: Option<Text>,
}

impl Table {
    /// A table with its header; the number of columns is the header's.
    pub fn new(header: impl IntoIterator<Item: Into<Text>>) -> Table {
        let header = header.into_iter().map(Into::into).collect();
        Table { header, rows: Vec::new(), caption: None }
    }

    /// Adds a row; missing cells stay empty, cells beyond the header are dropped.
    pub fn row(mut self, cells: impl IntoIterator<Item: Into<Text>>) -> Table {
        let mut cells: Vec<Text> = cells.into_iter().map(Into::into).collect();
        cells.resize(self.header.len(), Text::default());
        self.rows.push(cells);
        self
    }

    /// What the table shows.
    pub fn caption(mut self, caption: impl Into<Text>) -> Table {
        self.caption = Some(caption.into());
        self
    }

    /// A column is numeric if every cell is, and some cell is not blank.
    fn numeric_columns(&self) -> Vec<bool> {
        (0..self.header.len())
            .map(|i| {
                self.rows.iter().all(|row| row[i].is_numeric())
                    && self.rows.iter().any(|row| !row[i].is_blank())
            })
            .collect()
    }

    pub(crate) fn write(&self, out: &mut String) {
        let numeric = self.numeric_columns();
        if let Some(caption) = &self.caption {
            // Not a <caption>: that would be as wide as the table and scroll away with it.
            paragraph(out, "caption", caption);
        }
        // Focusable, so that a keyboard can scroll it.
        let class = if self.header.len() > MANY { "scroll wide" } else { "scroll" };
        out.push_str(&format!("<div class=\"{class}\" tabindex=\"0\" role=\"group\">\n<table>\n"));
        out.push_str("<thead><tr>");
        cells(out, "th scope=\"col\"", "th", &self.header, &numeric);
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            cells(out, "td", "td", row, &numeric);
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n</table>\n</div>\n");
    }
}

fn cells(out: &mut String, open: &str, close: &str, cells: &[Text], numeric: &[bool]) {
    for (cell, numeric) in cells.iter().zip(numeric) {
        let class = match (numeric, cell.len() <= SHORT) {
            (true, _) => " class=\"number\"",
            (false, true) => " class=\"short\"",
            (false, false) => "",
        };
        out.push_str(&format!("<{open}{class}>"));
        cell.write(out);
        out.push_str(&format!("</{close}>"));
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn numeric_columns_are_marked_and_rows_fit_the_header() {
        let mut out = String::new();
        Table::new(["a", "b"]).row(["x", "1"]).row(["y"]).row(["z", "2", "3"]).write(&mut out);
        assert_eq!(out.matches("<td class=\"short\">").count(), 3);
        assert_eq!(out.matches("<td class=\"number\">").count(), 3);
        assert!(out.contains("<th scope=\"col\" class=\"number\">b</th>"));
        assert!(!out.contains('3'));
    }
}
