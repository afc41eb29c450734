//! A schema to start from.
//!
//! From names and types alone, with ranges and values for the user to declare: nothing of the records is
//! looked at. With `look`, ranges and values are read from the records. That is not private, and the
//! file says so in a key that every statement made with it repeats (`looked = true`).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::date::Moment;
use crate::DataError;
use crate::format::table_format;

/// Different contents of a column up to which they are listed as values.
const MOST_VALUES: usize = 20;
/// Different contents that are kept at all.
const MOST_KEPT: usize = 1000;

/// How a schema is drafted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DraftOptions {
    /// Whether the records are looked at.
    pub look: bool,
    /// The column to be learnt; left open if absent.
    pub label: Option<String>,
    /// The character between cells, if the ending does not say it.
    pub delimiter: Option<u8>,
}

/// What a column is known to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Guess {
    Unknown,
    Number,
    Boolean,
    Date,
    Text,
    Seen(Seen),
}

/// What looking at a column found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    rows: u64,
    missing: u64,
    words: BTreeSet<String>,
    too_many_words: bool,
    numbers: Option<[f64; 2]>,
    all_numbers: bool,
    dates: Option<[i64; 2]>,
    all_dates: bool,
}

/// Words that many programs write for a missing cell.
const NA: [&str; 6] = ["NA", "N/A", "NaN", "nan", "null", "None"];

impl Seen {
    pub(crate) fn new() -> Self {
        Seen { all_numbers: true, all_dates: true, ..Seen::default() }
    }

    pub(crate) fn add(&mut self, cell: &str) {
        self.rows += 1;
        let cell = cell.trim();
        if cell.is_empty() || NA.contains(&cell) {
            self.missing += 1;
            return;
        }
        match cell.parse::<f64>().ok().filter(|number| number.is_finite()) {
            Some(number) => {
                let [low, high] = self.numbers.unwrap_or([number; 2]);
                self.numbers = Some([low.min(number), high.max(number)]);
            }
            None => self.all_numbers = false,
        }
        match Moment::parse(cell) {
            Some(Moment { day, .. }) => {
                let [first, last] = self.dates.unwrap_or([day; 2]);
                self.dates = Some([first.min(day), last.max(day)]);
            }
            None => self.all_dates = false,
        }
        if self.words.len() < MOST_KEPT {
            self.words.insert(cell.to_owned());
        } else if !self.words.contains(cell) {
            self.too_many_words = true;
        }
    }
}

/// Drafts a schema file for a table.
///
/// # Errors
/// If the table cannot be read, or has no column of the label's name.
pub fn draft(path: &Path, options: &DraftOptions) -> Result<String, DataError> {
    let columns = (table_format(path)?.columns)(path, options)?;
    if let Some(label) = &options.label {
        let names: Vec<String> = columns.iter().map(|(name, _)| name.clone()).collect();
        super::build::one_of(&path.display().to_string(), &names, label)?;
    }
    let mut draft = String::new();
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    // Writing to a string cannot fail.
    let _ = write_draft(&mut draft, &name, &columns, options);
    Ok(draft)
}

fn write_draft(
    out: &mut String,
    file: &str,
    columns: &[(String, Guess)],
    options: &DraftOptions,
) -> std::fmt::Result {
    if options.look {
        writeln!(
            out,
            "# Drafted by looking at the records of {file:?}. THIS WAS NOT PRIVATE: the ranges and values"
        )?;
        writeln!(
            out,
            "# below are those of the records. Replace them by what is known without the records, or keep"
        )?;
        writeln!(out, "# `looked`, which every statement about the model will repeat.")?;
        writeln!(out, "looked = true")?;
    } else {
        writeln!(
            out,
            "# Drafted from the names and types of the columns of {file:?}; no record was looked at."
        )?;
        writeln!(
            out,
            "# Declare what is known without the records: ranges, values, dates. Remove columns that are"
        )?;
        writeln!(out, "# not to be learnt from.")?;
    }
    if let Some(delimiter) = options.delimiter {
        writeln!(out, "delimiter = {}", quoted(&char::from(delimiter).to_string()))?;
    }
    writeln!(out, "na = {}", list(NA))?;
    writeln!(
        out,
        "\n# If one person has several rows: the promise then covers all rows of a person."
    )?;
    let units = columns.iter().find(|(name, _)| super::build::looks_like_identifier(name));
    let unit = units.map_or("patient", |(name, _)| name);
    writeln!(out, "# [unit]\n# column = {unit:?}\n# most_rows = 10")?;
    write_label(out, columns, options)?;
    for (name, guess) in columns {
        if options.label.as_ref() == Some(name) {
            continue;
        }
        if super::build::looks_like_identifier(name) {
            writeln!(out, "\n# {name:?} looks like an identifier and was left out.")?;
            continue;
        }
        writeln!(out, "\n[[feature]]\ncolumn = {}", quoted(name))?;
        write_kind(out, guess)?;
    }
    Ok(())
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A list of texts as TOML writes it.
fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    format!("[{}]", texts.into_iter().map(quoted).collect::<Vec<_>>().join(", "))
}

fn write_label(
    out: &mut String,
    columns: &[(String, Guess)],
    options: &DraftOptions,
) -> std::fmt::Result {
    writeln!(out, "\n[label]")?;
    let Some(label) = &options.label else {
        return writeln!(
            out,
            "column = \"\"                    # the column to learn; remove its [[feature]] below\nclasses = []                   # all classes, or range = [low, high] to learn a number"
        );
    };
    writeln!(out, "column = {}", quoted(label))?;
    match columns.iter().find(|(name, _)| name == label) {
        Some((_, Guess::Seen(seen))) if !seen.too_many_words && seen.words.len() <= MOST_VALUES => {
            writeln!(out, "classes = {}", list(seen.words.iter().map(String::as_str)))?;
        }
        Some((_, Guess::Seen(Seen { numbers: Some([low, high]), all_numbers: true, .. }))) => {
            writeln!(out, "range = [{low:?}, {high:?}]")?;
        }
        _ => writeln!(out, "classes = []                   # all classes, or range = [low, high]")?,
    }
    Ok(())
}

fn write_kind(out: &mut String, guess: &Guess) -> std::fmt::Result {
    const OPEN: &str = "# range = [low, high]          # one of these four, without the #\n# values = [\"a\", \"b\"]\n# dates = [\"2000-01-01\", \"2025-12-31\"]\n# boolean = true";
    match guess {
        Guess::Unknown => writeln!(out, "{OPEN}"),
        Guess::Number => writeln!(out, "# range = [low, high]          # a number"),
        Guess::Boolean => writeln!(out, "boolean = true"),
        Guess::Date => writeln!(out, "# dates = [\"2000-01-01\", \"2025-12-31\"]"),
        Guess::Text => writeln!(out, "# values = [\"a\", \"b\"]          # text"),
        Guess::Seen(seen) => write_seen(out, seen),
    }
}

fn write_seen(out: &mut String, seen: &Seen) -> std::fmt::Result {
    let few = !seen.too_many_words && seen.words.len() <= MOST_VALUES;
    let default = match seen {
        Seen { dates: Some([first, last]), all_dates: true, .. } if first < last => {
            let date = |day| Moment { day, nanos: 0 }.date();
            writeln!(out, "dates = [{:?}, {:?}]", date(*first), date(*last))?;
            Some(format!("{:?}", date(*first)))
        }
        Seen { numbers: Some([low, high]), all_numbers: true, words, .. }
            if low < high && (words.len() > 2 || !few) =>
        {
            writeln!(out, "range = [{low:?}, {high:?}]")?;
            Some(format!("{low:?}"))
        }
        _ if seen.words.is_empty() => {
            writeln!(out, "# every cell is missing")?;
            None
        }
        _ if few => {
            writeln!(out, "values = {}", list(seen.words.iter().map(String::as_str)))?;
            Some("\"category\"".to_owned())
        }
        _ => {
            writeln!(
                out,
                "# values = [\"a\", \"b\"]          # text, more than {MOST_VALUES} different"
            )?;
            None
        }
    };
    if let Some(default) = default.filter(|_| seen.missing > 0) {
        writeln!(out, "missing = {default}")?;
    }
    Ok(())
}
