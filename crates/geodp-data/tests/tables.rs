//! What a schema can say of a column: missing cells, dates, truths, numbers to learn, units; and drafts.

use crate::common;
use crate::fuzz;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use common::{in_folder, rows};
use geodp_data::table::{self, DraftOptions, ImportReport, ReadOptions, Schema};
use geodp_data::{DataError, Dataset};
use proptest::prelude::*;

fn read(text: &str, schema: &str) -> Result<(Dataset, ImportReport), DataError> {
    let schema = Schema::parse("schema.toml", schema)?;
    in_folder("patients.csv", text, |path| table::read(path, &schema))
}

const LABEL: &str = "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n";

fn one_feature(declared: &str) -> String {
    format!("na = [\"NA\", -999]\n{LABEL}[[feature]]\ncolumn = \"x\"\n{declared}\n")
}

#[test]
fn missing_cells_have_the_treatment_that_is_declared() {
    let text = "x,y\n5,a\nNA,b\n ,a\n-999.0,b\n10,b\n";
    let (data, report) = read(text, &one_feature("range = [0, 10]\nmissing = 2.5")).unwrap();
    let missing = [0.25, 1.0];
    assert_eq!(rows(data.records()), [[0.5, 0.0], missing, missing, missing, [1.0, 0.0]]);
    assert_eq!((report.columns[0].missing, report.skipped, report.changed_cells()), (3, 0, 0));

    let (data, report) = read(text, &one_feature("range = [0, 10]\nmissing = \"skip\"")).unwrap();
    assert_eq!((rows(data.records()), data.labels()), (vec![vec![0.5], vec![1.0]], &[0, 1][..]));
    assert_eq!((report.records, report.skipped), (2, 3));
    assert!(report.warnings().iter().any(|w| w.starts_with("3 rows were left out")), "{report:?}");

    let (data, _) = read(text, &one_feature("values = [5, 10]\nmissing = \"category\"")).unwrap();
    let missing = vec![0.0, 0.0, 0.0, 1.0];
    assert_eq!(rows(data.records())[..2], [vec![1.0, 0.0, 0.0, 0.0], missing]);

    for declared in ["range = [0, 10]", "range = [0, 10]\nmissing = \"refuse\""] {
        let error = read(text, &one_feature(declared)).unwrap_err().to_string();
        assert!(error.contains("line 3, column 1 (x): the cell is empty"), "{error}");
    }
    // One treatment for all columns that say nothing else.
    let all = format!("missing = \"skip\"\n{}", one_feature("range = [0, 10]"));
    assert_eq!(read(text, &all).unwrap().1.skipped, 3);
}

#[test]
fn a_missing_label_is_refused_or_skipped() {
    let schema = one_feature("range = [0, 10]");
    let error = read("x,y\n1,NA\n", &schema).unwrap_err().to_string();
    assert!(error.contains("column 2 (y): the label is missing"), "{error}");
    let skips = schema.replace("[\"a\", \"b\"]", "[\"a\", \"b\"]\nmissing = \"skip\"");
    let (data, report) = read("x,y\n1,NA\n2,b\n", &skips).unwrap();
    assert_eq!((data.labels(), report.skipped), (&[1][..], 1));
}

#[test]
fn dates_go_from_the_first_day_to_the_last() {
    let schema = one_feature("dates = [\"2020-01-01\", \"2020-01-11\"]\nmissing = \"2020-01-06\"");
    let text = "x,y\n2020-01-01,a\n2020-01-06 12:00,a\n2020-01-11T23:59:59Z,a\n2019-12-31,a\n\
                2021-05-01,a\nNA,a\n";
    let (data, report) = read(text, &schema).unwrap();
    let days: Vec<f32> = rows(data.records()).iter().map(|row| row[0]).collect();
    assert_eq!(days, [0.0, 0.55, 1.0, 0.0, 1.0, 0.5]);
    let x = &report.columns[0];
    assert_eq!((x.below, x.above, x.missing), (1, 1, 1));
    let error = read("x,y\n01.02.2020,a\n", &schema).unwrap_err().to_string();
    assert!(error.contains("\"01.02.2020\" is not a date as 2025-12-31"), "{error}");
    let error =
        read("x,y\n2020-01-01,a\n", &one_feature("range = [0, 1]")).unwrap_err().to_string();
    assert!(error.contains("declare the column with dates"), "{error}");
}

#[test]
fn truths_are_read_as_tables_write_them() {
    let schema = one_feature("boolean = true\nmissing = false");
    let text = "x,y\nTrue,a\nno,a\n1,a\n0.0,a\nY,a\nf,a\n,a\n";
    let (data, _) = read(text, &schema).unwrap();
    let found: Vec<f32> = rows(data.records()).iter().map(|row| row[0]).collect();
    assert_eq!(found, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    let error = read("x,y\nperhaps,a\n", &schema).unwrap_err().to_string();
    assert!(error.contains("\"perhaps\" is not true or false"), "{error}");
}

#[test]
fn a_number_is_learnt_in_its_declared_range() {
    let schema =
        "[label]\ncolumn = \"y\"\nrange = [-10, 30]\n[[feature]]\ncolumn = \"x\"\nrange = [0, 1]\n";
    let (data, report) = read("x,y\n0,10\n0,-99\n1,31\n1,0\n", schema).unwrap();
    assert_eq!(data.targets().unwrap(), [0.5, 0.0, 1.0, 0.25]);
    assert_eq!((data.target_range(), data.classes()), (Some([-10.0, 30.0]), 0));
    let label = &report.columns[1];
    assert_eq!((label.column.as_str(), label.below, label.above), ("y", 1, 1));
    let some = data.subset(&[3, 0]).unwrap();
    assert_eq!(some.targets().unwrap(), [0.25, 0.5]);
    assert_ne!(some.fingerprint(), data.subset(&[3, 1]).unwrap().fingerprint());
    let error = read("x,y\n0,high\n", schema).unwrap_err().to_string();
    assert!(error.contains("\"high\" is not a number"), "{error}");
}

fn with_units() -> String {
    format!(
        "[unit]\ncolumn = \"patient\"\nmost_rows = 2\n{LABEL}[[feature]]\ncolumn = \"x\"\nrange = [0, 10]\n"
    )
}

#[test]
fn rows_of_a_unit_are_put_together_and_stay_together() {
    let text = "patient,x,y\np1,1,a\np2,2,a\np1,3,b\np3,4,a\np1,5,a\np2,6,b\n";
    let (data, report) = read(text, &with_units()).unwrap();
    let units = data.units().unwrap();
    let rows = units.units();
    assert_eq!((rows.len(), units.name(), rows.most_rows()), (3, "patient", 2));
    let found: Vec<&[u32]> = (0..3).map(|unit| rows.rows(unit)).collect();
    assert_eq!(found, [&[0, 2, 4][..], &[1, 5], &[3]]);
    assert!(report.shared.is_empty() && report.ignored.is_empty());
    // A part that is held back is made of whole units.
    for seed in 0..20 {
        let (rest, part) = data.split_off(1, seed).unwrap();
        assert_eq!((rest.unit_count(), part.unit_count()), (2, 1));
        assert_eq!(rest.len() + part.len(), 6);
    }
    assert!(data.split_off(4, 0).unwrap_err().to_string().contains("4 of 3 units"));
    let moved = text.replace("p3", "p1");
    assert_ne!(read(&moved, &with_units()).unwrap().0.fingerprint(), data.fingerprint());
    let error = read("patient,x,y\n,1,a\n", &with_units()).unwrap_err().to_string();
    assert!(error.contains("(patient): the unit is missing"), "{error}");
    // Prediction needs no unit.
    let schema = Schema::parse("s", &with_units()).unwrap();
    let found = in_folder("new.csv", "x\n1\n", |path| {
        table::read_with(path, &schema, &table::ReadOptions::default())
    });
    assert_eq!(found.unwrap().records.len(), 1);
}

#[test]
fn a_shared_identifier_that_no_unit_uses_is_pointed_out() {
    let schema = format!("{LABEL}[[feature]]\ncolumn = \"x\"\nrange = [0, 10]\n");
    let shared = "patient_id,row_id,x,y\np1,1,1,a\np1,2,1,a\np2,3,1,a\np2,4,1,a\n";
    let (_, report) = read(shared, &schema).unwrap();
    assert_eq!(report.shared, ["patient_id"]);
    let warning = &report.warnings()[0];
    assert!(warning.contains("[unit] column = \"patient_id\""), "{warning}");
}

#[test]
fn columns_mostly_outside_the_schema_are_loud() {
    let schema = format!(
        "{LABEL}[[feature]]\ncolumn = \"x\"\nrange = [0, 10]\n[[feature]]\ncolumn = \"z\"\nvalues = [\"u\"]\n"
    );
    let (_, report) = read("x,z,y\n50,U,a\n60,U,a\n1,u,a\n", &schema).unwrap();
    let warnings = report.warnings().join("\n");
    assert!(warnings.contains("\"x\": 67 % of its cells are outside the declared range"));
    assert!(warnings.contains("\"z\": 67 % of its cells are none of the declared values"));
    let back: ImportReport = toml::from_str(&toml::to_string(&report).unwrap()).unwrap();
    assert_eq!(back, report);
}

#[test]
fn prediction_passes_columns_through_and_goes_on_after_bad_rows() {
    let schema = Schema::parse("s", &one_feature("range = [0, 10]\nmissing = \"skip\"")).unwrap();
    let options = ReadOptions {
        skip_bad_rows: true,
        keep: vec!["id".to_owned()],
        keep_places: true,
        ..ReadOptions::default()
    };
    let text = "id,x\nu,5\nv,what\nw,\nshort\nz,10\n";
    let found = in_folder("t.csv", text, |path| table::read_with(path, &schema, &options)).unwrap();
    assert_eq!(rows(&found.records), [[0.5], [1.0]]);
    assert_eq!(
        (&found.kept[0][..], &found.places[..]),
        (&["u".to_owned(), "z".into()][..], &[1, 5][..])
    );
    assert_eq!((found.report.skipped, found.report.bad_rows), (1, 2));
    assert!(found.report.bad[0].contains("line 3, column 2 (x)"), "{:?}", found.report.bad);
    assert!(found.report.bad[1].contains("line 5: 1 cells where"), "{:?}", found.report.bad);
}

#[test]
fn text_tables_are_read_packed_by_tabs_and_in_capitals() {
    let schema = Schema::parse("s", &one_feature("range = [0, 10]")).unwrap();
    let expected = in_folder("a.csv", "x,y\n1,a\n2,b\n", |path| table::read(path, &schema));
    let expected = expected.unwrap().0;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"x\ty\n1\ta\n2\tb\n").unwrap();
    let packed = packed.finish().unwrap();
    for (name, bytes) in [
        ("a.CSV", &b"x,y\n1,a\n2,b\n"[..]),
        ("a.tsv", b"x\ty\n1\ta\n2\tb\n"),
        ("a.TSV.GZ", &packed),
    ] {
        let (found, _) = in_folder(name, bytes, |path| table::read(path, &schema)).unwrap();
        assert_eq!((found.fingerprint(), found.name()), (expected.fingerprint(), "a"), "{name}");
    }
    let cut = in_folder("a.tsv.gz", &packed[..packed.len() - 9], |path| table::read(path, &schema));
    let error = cut.unwrap_err().to_string();
    assert!(error.contains("broken gzip data"), "{error}");
    let other = in_folder("a.csv", "x;y\n1;a\n", |path| table::read(path, &schema));
    let error = other.unwrap_err().to_string();
    assert!(error.contains("write delimiter = ';'"), "{error}");
}

#[test]
fn slips_in_a_schema_are_answered_with_what_was_meant() {
    let error = read("age,y\n1,a\n", &one_feature("range = [0, 1]").replace("\"x\"", "\"agee\""));
    assert!(error.unwrap_err().to_string().contains("did you mean \"age\"?"));
    let error = read("x,y\n1,a\n", &one_feature("rnage = [0, 1]")).unwrap_err().to_string();
    assert!(error.contains("did you mean `range`?"), "{error}");
    for (declared, says) in [
        ("range = [0, 1]\nmissing = 2", "a value in its range"),
        ("range = [0, 1]\nmissing = \"category\"", "a value in its range"),
        ("values = [\"a\"]\nmissing = \"other\"", "\"category\", \"skip\""),
        ("dates = [\"2020-01-01\"]", "two dates"),
        ("dates = [\"2020-01-02\", \"2020-01-01\"]", "the earlier first"),
        ("boolean = false", "give either"),
        ("boolean = true\nrange = [0, 1]", "give either"),
    ] {
        let error = Schema::parse("s", &one_feature(declared)).unwrap_err().to_string();
        assert!(error.contains(says), "{declared}: {error}");
    }
    let twice = with_units().replace("\"patient\"", "\"y\"");
    assert!(Schema::parse("s", &twice).unwrap_err().to_string().contains("is the label's"));
    let none = with_units().replace("most_rows = 2", "most_rows = 0");
    assert!(Schema::parse("s", &none).unwrap_err().to_string().contains("most_rows"));
    let neither = "[label]\ncolumn = \"y\"\n[[feature]]\ncolumn = \"x\"\nrange = [0, 1]\n";
    assert!(Schema::parse("s", neither).unwrap_err().to_string().contains("to learn a number"));
}

fn draft(path: &Path, look: bool) -> String {
    let options = DraftOptions { look, label: Some("y".to_owned()), delimiter: None };
    table::draft(path, &options).unwrap()
}

#[test]
fn a_draft_without_looking_holds_nothing_of_the_records() {
    let (one, other) = ("id,age,y\n1,20,a\n2,30,b\n", "id,age,y\n9,99,c\n");
    let drafts = [one, other].map(|text| in_folder("t.csv", text, |path| draft(path, false)));
    assert_eq!(drafts[0], drafts[1]);
    assert!(!drafts[0].contains("looked =") && drafts[0].contains("no record was looked at"));
    // It says what is left to declare.
    let error = Schema::parse("t.toml", &drafts[0]).unwrap_err().to_string();
    assert!(error.contains("classes"), "{error}");
}

#[test]
fn a_draft_that_looked_reads_the_table_and_says_so() {
    let text = "patient,age,ward,since,smoker,y\n1,20,A,2020-01-01,True,a\n1,35.5,B,2021-06-01,False,b\n\
                2,NA,,2022-01-01,True,a\n";
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("t.csv");
    fs::write(&path, text).unwrap();
    let drafted = draft(&path, true);
    assert!(drafted.contains("NOT PRIVATE"), "{drafted}");
    let schema = Schema::parse("t.toml", &drafted).unwrap();
    assert!(schema.looked());
    let (data, report) = table::read(&path, &schema).unwrap();
    assert_eq!((data.len(), report.changed_cells(), data.classes()), (3, 0, 2));
    assert!(report.ignored.contains(&"patient".to_owned()), "{drafted}");
    let missing = table::draft(
        &path,
        &DraftOptions { label: Some("agge".to_owned()), ..DraftOptions::default() },
    );
    assert!(missing.unwrap_err().to_string().contains("did you mean \"age\"?"));
}

const EVERYTHING: &str = r#"
na = ["NA", -1]
[label]
column = "y"
range = [0, 5]
missing = "skip"
[unit]
column = "u"
most_rows = 3
[[feature]]
column = "a"
range = [0, 1]
missing = 0.5
[[feature]]
column = "b"
values = ["p", 7, true]
missing = "category"
[[feature]]
column = "c"
dates = ["2000-01-01", "2020-01-01"]
missing = "skip"
[[feature]]
column = "d"
boolean = true
missing = true
"#;

proptest! {
    #![proptest_config(fuzz::cases(64))]

    #[test]
    fn no_table_makes_the_reader_panic(
        text in "(([0-9.e+-]{0,6}|p|true|NA|2010-0[0-9]-1[0-9]|\"|\n|,|;|\u{e9}){0,40})",
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        skip_bad_rows: bool,
    ) {
        let schema = Schema::parse("s", EVERYTHING).unwrap();
        let options = ReadOptions { labelled: true, skip_bad_rows, ..ReadOptions::default() };
        for content in [&b"a,b,c,d,u,y\n"[..], b""] {
            for tail in [text.as_bytes(), &bytes] {
                let table = [content, tail].concat();
                in_folder("t.csv", table, |path| {
                    if let Ok(found) = table::read_with(path, &schema, &options) {
                        assert!(rows(&found.records).concat().iter().all(|v| (0.0..=1.0).contains(v)));
                    }
                    let looked = DraftOptions { look: true, ..DraftOptions::default() };
                    let _ = table::draft(path, &looked);
                });
            }
        }
    }

    #[test]
    fn a_draft_that_looked_always_reads_its_own_table(
        table in prop::collection::vec(
            ("[a-c]|[0-9]{1,3}|-?[0-9]\\.[0-9]|", "[a-z\"'\\\\]{0,4}", "x|y"), 2..12,
        ),
    ) {
        let quoted = |cell: &str| format!("\"{}\"", cell.replace('"', "\"\""));
        let line = |(a, b, y): &(String, String, String)| {
            format!("{},{},{}\n", quoted(a), quoted(b), quoted(y))
        };
        let text = format!("a,b,y\n{}", table.iter().map(line).collect::<String>());
        let labels: std::collections::HashSet<_> = table.iter().map(|row| &row.2).collect();
        prop_assume!(labels.len() == 2);
        in_folder("t.csv", text, |path| {
            let drafted = draft(path, true);
            match Schema::parse("s", &drafted) {
                Ok(schema) => {
                    let (_, report) = table::read(path, &schema).unwrap();
                    assert_eq!(report.changed_cells(), 0, "{drafted}");
                }
                // A column that is missing throughout is left open.
                Err(error) => assert!(error.to_string().contains("give either"), "{error}\n{drafted}"),
            }
        });
    }
}
