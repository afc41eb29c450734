//! Parquet against CSV: the same table gives the same bits, and broken files are refused.
#![cfg(feature = "parquet")]

use std::path::{Path, PathBuf};

use geodp_data::table::{self, DraftOptions, Schema};
use geodp_data::{DataError, Place};

const SCHEMA: &str = include_str!("golden/parquet/schema.toml");

#[cfg(feature = "zstd")]
const CODECS: &[&str] = &["none", "snappy", "gzip", "zstd"];
#[cfg(not(feature = "zstd"))]
const CODECS: &[&str] = &["none", "snappy", "gzip"];

/// Without its codec a file is refused with what to do.
#[cfg(not(feature = "zstd"))]
#[test]
fn zstandard_is_refused_with_the_remedy() {
    let error = table::read(&golden("table_zstd.parquet"), &schema()).unwrap_err().to_string();
    assert!(error.contains("compression='snappy'"), "{error}");
}

/// Made by tests/golden/make_parquet.py with pandas and pyarrow.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/parquet").join(name)
}

fn schema() -> Schema {
    Schema::parse("schema.toml", SCHEMA).unwrap()
}

#[test]
fn the_same_table_gives_the_same_bits() {
    let (csv, csv_report) = table::read(&golden("table.csv"), &schema()).unwrap();
    assert_eq!(csv.len(), 173);
    assert!(csv_report.changed_cells() > 0 && csv_report.columns.iter().any(|c| c.missing > 0));
    for codec in CODECS {
        let path = golden(&format!("table_{codec}.parquet"));
        let (parquet, report) = table::read(&path, &schema()).unwrap();
        assert_eq!(parquet.fingerprint(), csv.fingerprint(), "{codec}");
        assert_eq!(report, csv_report, "{codec}");
        assert_eq!(parquet.units(), csv.units(), "{codec}");
    }
    let learns_cost = SCHEMA.replace(
        "column = \"outcome\"\nclasses = [\"well\", \"ill\"]",
        "column = \"cost\"\nrange = [0, 1000]",
    );
    let learns_cost = Schema::parse("s", &learns_cost).unwrap();
    let (csv, _) = table::read(&golden("table.csv"), &learns_cost).unwrap();
    let (parquet, _) = table::read(&golden("table_snappy.parquet"), &learns_cost).unwrap();
    assert_eq!(parquet.fingerprint(), csv.fingerprint());
}

#[test]
fn typed_columns_fit_the_schema_or_are_named() {
    let path = golden("table_snappy.parquet");
    let wrong = Schema::parse("s", &SCHEMA.replace("\"weight\"", "\"wieght\"")).unwrap();
    let error = table::read(&path, &wrong).unwrap_err().to_string();
    assert!(error.contains("did you mean \"weight\"?"), "{error}");
    let wrong = SCHEMA.replace("column = \"admitted\"\ndates", "column = \"outcome2\"\ndates");
    let wrong = wrong.replace("\"outcome2\"", "\"smoker2\"");
    assert!(table::read(&path, &Schema::parse("s", &wrong).unwrap()).is_err());
    let numeric_text =
        SCHEMA.replace("values = [\"A\", \"B\"]\nmissing = \"category\"", "range = [0, 1]");
    let error = table::read(&path, &Schema::parse("s", &numeric_text).unwrap()).unwrap_err();
    let shown = error.to_string();
    assert!(matches!(error, DataError::Cell { place: Place::Row(_), column: 8, .. }), "{shown}");
    let nested = "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n[[feature]]\ncolumn = \"x\"\nrange = [0, 2]\n";
    let plain = Schema::parse("s", nested).unwrap();
    assert_eq!(table::read(&golden("nested.parquet"), &plain).unwrap().0.len(), 2);
    let uses = nested.replace("\"x\"", "\"list.list.element\"");
    let error = table::read(&golden("nested.parquet"), &Schema::parse("s", &uses).unwrap());
    assert!(error.unwrap_err().to_string().contains("nested"));
}

#[test]
fn drafts_know_the_types_and_looking_knows_more() {
    let path = golden("table_gzip.parquet");
    let options = DraftOptions { label: Some("outcome".to_owned()), ..DraftOptions::default() };
    let open = table::draft(&path, &options).unwrap();
    assert!(open.contains("boolean = true") && open.contains("# dates = "), "{open}");
    let looked = table::draft(&path, &DraftOptions { look: true, ..options }).unwrap();
    let schema = Schema::parse("s", &looked).unwrap();
    let (data, report) = table::read(&path, &schema).unwrap();
    assert_eq!((data.len(), report.changed_cells()), (173, 0), "{looked}");
}
