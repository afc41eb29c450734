//! Rows as CSV text (RFC 4180 quoting, `\n` line ends, numbers that read back to the same bits).

/// Writes a header and rows; fields are quoted where a comma, a quote or a line end asks for it.
///
/// ```
/// let text = geodp_report::csv::to_csv(["name", "note"], [["a", "x, \"y\""]]);
/// assert_eq!(text, "name,note\na,\"x, \"\"y\"\"\"\n");
/// ```
pub fn to_csv<H, R, F>(header: H, rows: R) -> String
where
    H: IntoIterator<Item: AsRef<str>>,
    R: IntoIterator<Item = F>,
    F: IntoIterator<Item: AsRef<str>>,
{
    let mut out = String::new();
    write_row(&mut out, header);
    for row in rows {
        write_row(&mut out, row);
    }
    out
}

/// The shortest text that reads back as `x`: plain where it is short, else with an exponent.
pub fn number(x: f64) -> String {
    let size = x.abs();
    if x == 0.0 || !x.is_finite() || (1e-5..1e15).contains(&size) {
        x.to_string()
    } else {
        format!("{x:e}")
    }
}

fn write_row(out: &mut String, fields: impl IntoIterator<Item: AsRef<str>>) {
    for (i, field) in fields.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        let field = field.as_ref();
        if field.contains([',', '"', '\n', '\r']) || field != field.trim() {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reader of our own, so that quoting is checked against the rules and not against itself.
    fn parse(text: &str) -> Vec<Vec<String>> {
        let (mut rows, mut row, mut field, mut quoted) = (vec![], vec![], String::new(), false);
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match (quoted, c) {
                (true, '"') if chars.peek() == Some(&'"') => {
                    field.push('"');
                    chars.next();
                }
                (_, '"') => quoted = !quoted,
                (false, ',') => row.push(std::mem::take(&mut field)),
                (false, '\n') => {
                    row.push(std::mem::take(&mut field));
                    rows.push(std::mem::take(&mut row));
                }
                (_, c) => field.push(c),
            }
        }
        rows
    }

    proptest! {
        #[test]
        fn fields_read_back(rows in prop::collection::vec(prop::collection::vec(".*", 2), 1..5)) {
            let text = to_csv(&rows[0], &rows[1..]);
            prop_assert_eq!(parse(&text), rows);
        }

        #[test]
        fn numbers_read_back(x in any::<f64>()) {
            let back: f64 = number(x).parse().unwrap();
            prop_assert!(back.to_bits() == x.to_bits() || (back.is_nan() && x.is_nan()));
        }
    }
}
