//! CSV tables and their schema: encoding, counting, and errors with their place.

use crate::common;
use crate::fuzz;

use common::{in_folder, rows};
use geodp_data::table::{self, ImportReport, Schema};
use geodp_data::{DataError, Dataset, Place};
use proptest::prelude::*;

const SCHEMA: &str = r#"
scale = "unit"

[label]
column = "outcome"
classes = ["well", "ill"]

[[feature]]
column = "age"
range = [0, 100]

[[feature]]
column = "ward"
values = ["A", "B"]
"#;

fn schema() -> Schema {
    Schema::parse("schema.toml", SCHEMA).unwrap()
}

fn with_file<T>(text: impl AsRef<[u8]>, run: impl FnOnce(&std::path::Path) -> T) -> T {
    in_folder("patients.csv", text, run)
}

fn read(text: impl AsRef<[u8]>, schema: &Schema) -> Result<(Dataset, ImportReport), DataError> {
    with_file(text, |path| table::read(path, schema))
}

#[test]
fn columns_are_encoded_in_the_order_of_the_schema() {
    let text = "ward,id,outcome,age\nA,17,ill,25\n B , 18 , well , 50 \n\"C\",19,ill,100\n";
    let (data, report) = read(text, &schema()).unwrap();
    let expected = [[0.25, 1.0, 0.0, 0.0], [0.5, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]];
    assert_eq!(rows(data.records()), expected);
    assert_eq!(data.labels(), [1, 0, 1]);
    assert_eq!((data.name(), data.class_names()), ("patients", schema().classes()));
    assert_eq!((report.records, report.columns[1].other), (3, 1));
    assert_eq!(report.ignored, ["id"]);
}

#[test]
fn values_outside_are_clamped_and_counted() {
    let text = "age,ward,outcome\n-5,A,ill\n130,A,ill\n1e9,Z,ill\n100,B,ill\n0,B,ill\n";
    let (data, report) = read(text, &schema()).unwrap();
    let ages: Vec<f32> = rows(data.records()).iter().map(|row| row[0]).collect();
    assert_eq!(ages, [0.0, 1.0, 1.0, 1.0, 0.0]);
    let age = &report.columns[0];
    assert_eq!((age.below, age.above, age.other), (1, 2, 0));
    assert_eq!((report.columns[1].other, report.changed_cells()), (1, 4));
    let shown = report.to_string();
    assert!(shown.contains("age: 1 raised") && shown.contains("ward: 1 counted"), "{shown}");
}

#[test]
fn the_symmetric_scale_goes_from_minus_one_to_one() {
    let symmetric = SCHEMA.replace("\"unit\"", "\"symmetric\"");
    let schema = Schema::parse("s", &symmetric).unwrap();
    let (data, _) = read("age,ward,outcome\n0,A,ill\n75,B,ill\n", &schema).unwrap();
    assert_eq!(rows(data.records()), [[-1.0, 1.0, 0.0, 0.0], [0.5, 0.0, 1.0, 0.0]]);
}

#[test]
fn a_table_for_prediction_needs_no_label() {
    let read = |text| {
        let options = table::ReadOptions::default();
        with_file(text, |path| table::read_with(path, &schema(), &options)).unwrap()
    };
    let found = read("ward,age\nB,10\n");
    assert_eq!(rows(&found.records), [[0.1, 0.0, 1.0, 0.0]]);
    assert!(found.report.ignored.is_empty());
    // A label that is there is not looked at.
    let found = read("ward,age,outcome\nB,10,unknown\n");
    assert_eq!((found.records.len(), found.report.ignored.len()), (1, 0));
}

#[test]
fn bad_cells_are_found_by_line_and_column() {
    let cases = [
        ("age,ward,outcome\n1,A,ill\n,A,ill\n", 3, 1, "empty"),
        ("age,ward,outcome\n1, ,ill\n", 2, 2, "empty"),
        ("age,ward,outcome\n1,A,\n", 2, 3, "missing"),
        ("age,ward,outcome\r\n1,A,ill\r\n\r\n1,A,\r\n", 4, 3, "missing"),
        ("age,ward,outcome\n\n\n1,A,dead\n", 4, 3, "\"dead\" is not one of"),
        ("x,age,ward,outcome\n0,abc,A,ill\n", 2, 2, "\"abc\" is not a number"),
        ("age,ward,outcome\nNaN,A,ill\n", 2, 1, "not a number"),
        ("age,ward,outcome\ninf,A,ill\n", 2, 1, "not a number"),
        ("age,ward,outcome\n\"1,5\",A,ill\n", 2, 1, "not a number"),
        ("age,note,ward,outcome\n1,\"two\nlines\",A,ill\nx,y,A,ill\n", 4, 1, "not a number"),
    ];
    for (text, expected_line, expected_column, says) in cases {
        let error = read(text, &schema()).unwrap_err();
        let shown = error.to_string();
        let DataError::Cell { place, column, .. } = error else { panic!("{shown}") };
        assert_eq!((place, column), (Place::Line(expected_line), expected_column), "{shown}");
        assert!(shown.contains(says) && shown.contains("patients.csv, line"), "{shown}");
    }
}

#[test]
fn bad_rows_and_files_are_refused() {
    let error = read("age,ward,outcome\n1,A,ill\n\n1,A\n", &schema()).unwrap_err();
    assert!(matches!(error, DataError::Row { place: Place::Line(4), .. }), "{error}");
    let error = read(b"age,ward,outcome\n1,\xff\xfe,ill\n", &schema()).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
    for text in ["age,ward,outcome\n", "age,ward,outcome\n\n\n"] {
        assert!(matches!(read(text, &schema()), Err(DataError::Empty { .. })));
    }
    let error = read("", &schema()).unwrap_err();
    assert!(matches!(error, DataError::Schema { .. } | DataError::Empty { .. }), "{error}");
    let error = read("age,Ward,outcome\n1,A,ill\n", &schema()).unwrap_err();
    assert!(
        error.to_string().contains("did you mean \"Ward\"? Its columns: age, Ward, outcome"),
        "{error}"
    );
    let error = read("age,age,ward,outcome\n1,1,A,ill\n", &schema()).unwrap_err();
    assert!(error.to_string().contains("two columns"), "{error}");
    let nowhere = table::read("nowhere.csv".as_ref(), &schema()).unwrap_err();
    assert!(matches!(nowhere, DataError::Io { .. }), "{nowhere}");
}

#[test]
fn a_byte_order_mark_and_windows_lines_are_no_trouble() {
    let (data, _) = read("\u{feff}age,ward,outcome\r\n50,A,ill\r\n", &schema()).unwrap();
    assert_eq!((data.len(), data.labels()), (1, &[1][..]));
}

#[test]
fn numbers_can_be_classes_and_values() {
    let text = "delimiter = \";\"\n[label]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                [[feature]]\ncolumn = \"x\"\nvalues = [7, true]\n";
    let schema = Schema::parse("s", text).unwrap();
    let (data, _) = read("x;y\n7;1\ntrue;0\n8;0\n", &schema).unwrap();
    assert_eq!(rows(data.records()), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
    assert_eq!(data.labels(), [1, 0, 0]);
}

#[test]
fn numbers_of_the_schema_match_however_the_table_writes_them() {
    let text = "[label]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                [[feature]]\ncolumn = \"x\"\nvalues = [1, 2]\n";
    let schema = Schema::parse("s", text).unwrap();
    let (data, report) = read("x,y\n1.0,1.0\n2.00,0\n1,0.0\n", &schema).unwrap();
    assert_eq!(rows(data.records()), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]);
    assert_eq!((data.labels(), report.changed_cells()), (&[1, 0, 0][..], 0));
}

#[test]
fn the_schema_is_part_of_the_fingerprint() {
    let text = "age,ward,outcome\n200,A,ill\n";
    let wider = Schema::parse("s", &SCHEMA.replace("[0, 100]", "[0, 150]")).unwrap();
    let (one, _) = read(text, &schema()).unwrap();
    let (other, _) = read(text, &wider).unwrap();
    assert_eq!(rows(one.records()), rows(other.records()));
    assert_ne!(one.fingerprint(), other.fingerprint());
    assert_eq!(one.fingerprint(), read(text, &schema()).unwrap().0.fingerprint());
}

#[test]
fn schemas_that_mean_nothing_are_refused() {
    let label = "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n";
    let feature = "[[feature]]\ncolumn = \"x\"\nrange = [0, 1]\n";
    Schema::parse("s", &format!("{label}{feature}")).unwrap();
    let cases = [
        ("", "label"),
        (label, "[[feature]]"),
        (
            "[label]\ncolumn = \"y\"\nclasses = [\"a\"]\n[[feature]]\ncolumn=\"x\"\nrange=[0,1]",
            "two",
        ),
        (
            "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"a\"]\n[[feature]]\ncolumn=\"x\"\nrange=[0,1]",
            "twice",
        ),
        (&format!("{label}{feature}{feature}"), "twice"),
        (&format!("{label}[[feature]]\ncolumn = \"y\"\nrange = [0, 1]"), "twice"),
        (&format!("{label}[[feature]]\ncolumn = \"x\""), "either"),
        (
            &format!("{label}[[feature]]\ncolumn = \"x\"\nrange = [0, 1]\nvalues = [\"a\"]"),
            "either",
        ),
        (&format!("{label}[[feature]]\ncolumn = \"x\"\nrange = [1, 1]"), "smaller first"),
        (&format!("{label}[[feature]]\ncolumn = \"x\"\nrange = [0, inf]"), "finite"),
        (&format!("{label}[[feature]]\ncolumn = \"x\"\nrange = [0, 1, 2]"), "range"),
        (&format!("{label}[[feature]]\ncolumn = \"x\"\nvalues = []"), "at least one"),
        (&format!("{label}[[feature]]\ncolumn = \"x\"\nvalues = [\" \"]"), "empty"),
        (&format!("delimiter = \"→\"\n{label}{feature}"), "delimiter"),
        (&format!("scale = \"log\"\n{label}{feature}"), "scale"),
        (&format!("scael = \"unit\"\n{label}{feature}"), "scael"),
        ("[label", "expected"),
    ];
    for (text, says) in cases {
        let error = Schema::parse("schema.toml", text).expect_err(text);
        let shown = error.to_string();
        assert!(shown.starts_with("schema.toml") && shown.contains(says), "{text}\n{shown}");
    }
}

proptest! {
    #![proptest_config(fuzz::cases(256))]

    #[test]
    fn random_tables_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes, &schema());
        let after_headings = [b"age,ward,outcome\n", &bytes[..]].concat();
        let _ = read(&after_headings, &schema());
    }

    #[test]
    fn random_schemas_never_panic(text in "[\\[\\]a-z=\"0-9,.\n -]{0,120}") {
        let _ = Schema::parse("s", &text);
        let _ = Schema::parse("s", &format!("{SCHEMA}{text}"));
    }

    #[test]
    fn numbers_stay_in_the_unit_interval(age in prop::num::f64::NORMAL) {
        let text = format!("age,ward,outcome\n{age},A,ill\n");
        let (data, report) = read(&text, &schema()).unwrap();
        let input = rows(data.records())[0][0];
        prop_assert!((0.0..=1.0).contains(&input));
        prop_assert_eq!(report.changed_cells() == 1, !(0.0..=100.0).contains(&age));
    }
}
