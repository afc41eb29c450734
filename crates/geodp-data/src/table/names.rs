//! Declared values or classes, and which of them a cell is.
//!
//! A cell is the value it is written as; failing that, the one that is the same number (`1.0`, `01` and
//! `1` are), unless two declared values are that number. Programs that write tables turn integers into
//! decimals as soon as one cell is missing, and such a column must not become "other" as a whole.

use std::collections::HashMap;

/// Declared names, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    list: Vec<String>,
    by_text: HashMap<String, usize>,
    /// By the number that a name is; `None` where two names are the same one.
    by_number: HashMap<u64, Option<usize>>,
}

impl Names {
    /// Distinct, trimmed names.
    pub(crate) fn new(list: Vec<String>) -> Result<Self, String> {
        let (mut by_text, mut by_number) = (HashMap::new(), HashMap::new());
        for (at, name) in list.iter().enumerate() {
            if name.is_empty() {
                return Err("an empty value is a missing cell, not a value".to_owned());
            }
            if by_text.insert(name.clone(), at).is_some() {
                return Err(format!("{name:?} is declared twice"));
            }
            if let Some(number) = finite(name) {
                by_number.entry(key(number)).and_modify(|other| *other = None).or_insert(Some(at));
            }
        }
        Ok(Names { list, by_text, by_number })
    }

    /// The names, in the order declared.
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// Which name a cell is.
    pub(crate) fn position(&self, cell: &str) -> Option<usize> {
        let found = self.by_text.get(cell).copied().or_else(|| self.number(finite(cell)?));
        found.or_else(|| self.truth(cell))
    }

    /// Which name is this truth, in whatever capitals: `True` in a table is `true` in a schema.
    fn truth(&self, cell: &str) -> Option<usize> {
        let word = ["true", "false"].into_iter().find(|word| cell.eq_ignore_ascii_case(word))?;
        self.list.iter().position(|name| name.eq_ignore_ascii_case(word))
    }

    /// Which name is this number.
    pub(crate) fn number(&self, number: f64) -> Option<usize> {
        self.by_number.get(&key(number)).copied().flatten()
    }
}

/// A finite number, if the text is one.
fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The number's bits; 0 and −0 are one number.
fn key(number: f64) -> u64 {
    (number + 0.0).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Result<Names, String> {
        Names::new(list.iter().map(|&name| name.to_owned()).collect())
    }

    #[test]
    fn numbers_match_as_numbers_and_text_as_text() {
        let names = names(&["1", "2.50", "-0", "blue", "1e3"]).unwrap();
        let cases = [
            ("1", Some(0)),
            ("1.0", Some(0)),
            ("01", Some(0)),
            ("+1", Some(0)),
            ("2.5", Some(1)),
            ("0.0", Some(2)),
            ("blue", Some(3)),
            ("Blue", None),
            ("1000", Some(4)),
            ("10", None),
            ("nan", None),
            ("true", None),
            ("inf", None),
        ];
        for (cell, expected) in cases {
            assert_eq!(names.position(cell), expected, "{cell}");
        }
    }

    #[test]
    fn truths_match_in_any_capitals() {
        let names = names(&["true", "No"]).unwrap();
        assert_eq!([names.position("True"), names.position("TRUE")], [Some(0), Some(0)]);
        assert_eq!([names.position("False"), names.position("no")], [None, None]);
    }

    #[test]
    fn one_number_written_twice_is_told_apart_by_its_text() {
        let names = names(&["07", "7", "8"]).unwrap();
        assert_eq!([names.position("07"), names.position("7")], [Some(0), Some(1)]);
        assert_eq!([names.position("7.0"), names.position("8.0")], [None, Some(2)]);
    }

    #[test]
    fn empty_and_repeated_names_are_refused() {
        assert!(names(&["a", ""]).unwrap_err().contains("missing cell"));
        assert!(names(&["a", "b", "a"]).unwrap_err().contains("twice"));
    }
}
