//! Data read in shares: together they are what one process reads, in every format.

use crate::common;

use std::io::Write;
use std::path::{Path, PathBuf};

use common::in_folder;
use geodp_data::images::{self, ImageOptions, Listed};
use geodp_data::table::{self, ImportReport, Schema, TablePart};
use geodp_data::{
    Dataset, FingerprintPart, PairOptions, PairPart, Scaling, Source, load_pair, share,
};

const SCHEMA: &str = include_str!("golden/parquet/schema.toml");

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Holds the shares of so many processes against the whole; returns how many records each of the last read.
fn check(source: &dyn Source, whole: &(Dataset, ImportReport), sizes: &[usize]) -> Vec<usize> {
    let (data, report) = whole;
    let total = source.units();
    assert_eq!(total, data.unit_count());
    let units: Vec<u32> = (0..total as u32).collect();
    let mut records = Vec::new();
    for &size in sizes {
        let (mut parts, mut sum) = (Vec::new(), None::<ImportReport>);
        records.clear();
        for rank in 0..size {
            let own = &units[share(total, rank, size)];
            let (part, read) = source.read(own, rank == 0).unwrap();
            assert_eq!(part.unit_count(), own.len());
            parts.push(FingerprintPart::of(&part, total));
            records.push(part.len());
            match &mut sum {
                None => sum = Some(read),
                Some(sum) => sum.add(&read),
            }
        }
        let joined = FingerprintPart::join(parts[0].head, &parts);
        assert_eq!(joined, data.fingerprint(), "{size} shares");
        assert_eq!(sum.as_ref(), Some(report), "{size} shares");
        assert_eq!(records.iter().sum::<usize>(), data.len());
    }
    records
}

/// A CSV of what make_parquet.py made long.parquet of.
fn long_csv() -> String {
    let row = |row: u32| {
        let x = (!row.is_multiple_of(11)).then(|| (f64::from(row % 101) / 4.0).to_string());
        let y = if row.is_multiple_of(3) { "ill" } else { "well" };
        format!("{},{},{y}\n", row * 13 % 3001, x.unwrap_or_default())
    };
    "patient,x,y\n".to_owned() + &(0..10_000).map(row).collect::<String>()
}

/// Units or none; missing cells that are a value or leave the row out; with and without Parquet.
#[test]
fn tables() {
    let schema = Schema::parse("s", SCHEMA).unwrap();
    let mut files = vec![golden("parquet/table.csv")];
    if cfg!(feature = "parquet") {
        files.push(golden("parquet/table_snappy.parquet"));
    }
    for file in &files {
        let whole = table::read(file, &schema).unwrap();
        check(&TablePart::open(file, &schema).unwrap(), &whole, &[1, 2, 5]);
    }
    let text = "[label]\ncolumn = \"y\"\nclasses = [\"well\", \"ill\"]\n[[feature]]\ncolumn = \"x\"\nrange = [0, 20]\n";
    let unit = "[unit]\ncolumn = \"patient\"\nmost_rows = 2\n";
    for missing in ["missing = 3\n", "missing = \"skip\"\n"] {
        for unit in [unit, ""] {
            let schema = Schema::parse("s", &format!("{unit}{text}{missing}")).unwrap();
            in_folder("long.csv", long_csv(), |csv| {
                let whole = table::read(csv, &schema).unwrap();
                assert_eq!(whole.1.shared.is_empty(), !unit.is_empty());
                let records = check(&TablePart::open(csv, &schema).unwrap(), &whole, &[3]);
                assert!(records.iter().all(|&read| read < whole.0.len() / 2), "{records:?}");
                if cfg!(feature = "parquet") {
                    let part = TablePart::open(&golden("parquet/long.parquet"), &schema).unwrap();
                    check(&part, &whole, &[3]);
                }
            });
        }
    }
}

#[test]
fn a_bad_row_is_told_by_who_reads_it() {
    let schema = Schema::parse(
        "s",
        "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n[[feature]]\ncolumn = \"x\"\nrange = [0, 1]\n",
    )
    .unwrap();
    in_folder("t.csv", "x,y\n0,a\n1,b\n?,a\n1,b\n", |path| {
        let part = TablePart::open(path, &schema).unwrap();
        assert_eq!(part.read(&[0, 1, 3], true).unwrap().0.len(), 3);
        let error = part.read(&[2], false).unwrap_err().to_string();
        assert!(error.contains("t.csv, line 4, column 1 (x): \"?\" is not a number"), "{error}");
    });
}

/// IDX, NPY and gzip: one record in two bytes.
#[test]
fn arrays() {
    let dir = tempfile::tempdir().unwrap();
    let pixels: Vec<u8> = (0..60).collect();
    let idx = [&[0, 0, 8, 2, 0, 0, 0, 30, 0, 0, 0, 2][..], &pixels].concat();
    let mut header = b"{'descr': '<i2', 'fortran_order': False, 'shape': (30,), }".to_vec();
    header.resize(117, b' ');
    header.push(b'\n');
    let labels: Vec<u8> = (0..30u16).flat_map(|at| (at % 3).to_le_bytes()).collect();
    let npy = [b"\x93NUMPY\x01\x00", &118u16.to_le_bytes()[..], &header, &labels].concat();
    let [inputs, labels, packed] =
        ["x-idx2-ubyte", "y.npy", "x-idx2-ubyte.gz"].map(|name| dir.path().join(name));
    std::fs::write(&inputs, &idx).unwrap();
    std::fs::write(&labels, npy).unwrap();
    let file = std::fs::File::create(&packed).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::new(6));
    encoder.write_all(&idx).unwrap();
    encoder.finish().unwrap();
    let options = PairOptions::numbered("data", 3);
    let whole = load_pair(&inputs, &labels, &options).unwrap();
    let whole = (whole, ImportReport::unchanged(30));
    for inputs in [&inputs, &packed] {
        check(&PairPart::open(inputs, &labels, options.clone()).unwrap(), &whole, &[1, 2, 5]);
    }
    let few = PairOptions::numbered("data", 2);
    let error = PairPart::open(&inputs, &labels, few).unwrap().read(&[4, 5], false).unwrap_err();
    assert!(error.to_string().contains('5'), "{error}");
    std::fs::write(&inputs, &idx[..50]).unwrap();
    assert!(PairPart::open(&inputs, &labels, options).is_err());
}

#[test]
fn folders_of_images() {
    let dir = tempfile::tempdir().unwrap();
    for (at, class) in ["cat", "dog", "cat", "owl", "dog"].iter().enumerate() {
        let folder = dir.path().join(class);
        std::fs::create_dir_all(&folder).unwrap();
        let name = if at % 2 == 0 { "grey" } else { "colour" };
        std::fs::copy(golden(&format!("{name}.jpg")), folder.join(format!("{at}.jpg"))).unwrap();
    }
    let options = ImageOptions { grey: false, scaling: Scaling::Unit, class_names: None };
    let whole = images::load(dir.path(), &options).unwrap();
    check(&Listed::in_folder(dir.path(), &options).unwrap(), &whole, &[1, 2, 5, 7]);
}

/// Any byte of a file changes what processes compare.
#[test]
fn another_file_has_another_digest() {
    let text = "[label]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n[[feature]]\ncolumn = \"x\"\nrange = [0, 1]\n";
    let schema = Schema::parse("s", text).unwrap();
    let digest = |text: &str| {
        in_folder("t.csv", text, |path| TablePart::open(path, &schema).unwrap().digest().unwrap())
    };
    let one = digest("x,y,z\n0,a,1\n1,b,2\n");
    assert_eq!(digest("x,y,z\n0,a,1\n1,b,2\n"), one);
    assert_ne!(digest("x,y,z\n0,a,1\n1,b,3\n"), one);
}
