//! Every reader on damaged files: no panic, and never more memory than a stated multiple of the file.
//!
//! Files of `corpus` are changed in up to seven places. Each reader gets a few hundred of them in every run of
//! the tests, and a million by
//! `GEODP_FUZZ_CASES=1000000 TMPDIR=/dev/shm cargo test -p geodp-data --test readers -- --test-threads=1`.
//! What was found once is a file of the corpus, too. The multiples, of bytes of the file:
//!
//! | reader | bytes |
//! |---|---|
//! | CSV | 64 for the cells of a row of this schema, 1 MB for buffers; gzip unpacks to at most 1,032 times |
//! | Parquet | 1,032 to unpack a page, 9 for a dictionary's texts, 2 MB; rows as in [`CSV`](csv) |
//! | PNG, JPEG | 16 MB for the pixels of 4096 × 4096, times channels and working copies |
//! | NPY, IDX | 24 for numbers as doubles and as what is kept |
//! | schema | 512 for a tree of TOML |

mod counting;
mod fuzz;

use std::fs;
use std::path::{Path, PathBuf};

use counting::{alone, most_bytes};
use fuzz::{Damage, damaged, damages};
use geodp_data::images::{self, ImageOptions};
use geodp_data::table::{self, DraftOptions, ReadOptions, Schema};
use geodp_data::{Scaling, idx, npy};
use proptest::prelude::*;

const MEGABYTE: usize = 1 << 20;

/// The files of one kind, in order.
fn corpus(kind: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
    let mut files: Vec<PathBuf> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

fn schema() -> Schema {
    let text = corpus("schema").swap_remove(0);
    Schema::parse("schema.toml", std::str::from_utf8(&text).unwrap()).unwrap()
}

/// Tries one reader with damaged files of its corpus, and holds it to `most` of the file's length.
fn try_reader(kind: &str, usual: u32, most: impl Fn(usize) -> usize, mut read: impl FnMut(&[u8])) {
    let alone = alone();
    let corpus = corpus(kind);
    for file in &corpus {
        read(file);
    }
    let inputs = (0..corpus.len(), damages());
    let mut runner = proptest::test_runner::TestRunner::new(fuzz::cases(usual));
    let read = std::cell::RefCell::new(&mut read);
    let result = runner.run(&inputs, |(which, damage): (usize, Vec<Damage>)| {
        let bytes = damaged(corpus[which].clone(), &damage);
        let ((), taken) = most_bytes(&alone, || (read.borrow_mut())(&bytes));
        prop_assert!(taken <= most(bytes.len()), "{taken} bytes for a file of {}", bytes.len());
        Ok(())
    });
    if let Err(error) = result {
        panic!("{kind}: {error}");
    }
}

/// Reads a table in both ways, and looks at it for a draft.
fn read_table(path: &Path, schema: &Schema) {
    let strict = ReadOptions { labelled: true, ..ReadOptions::default() };
    let _ = table::read_with(path, schema, &strict);
    let _ = table::read_with(path, schema, &ReadOptions { skip_bad_rows: true, ..strict });
    let _ = table::draft(path, &DraftOptions { look: true, ..DraftOptions::default() });
}

fn try_tables(kind: &str, name: &str, usual: u32, most: impl Fn(usize) -> usize) {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let path = dir.path().join(name);
    try_reader(kind, usual, most, |bytes| {
        fs::write(&path, bytes).unwrap();
        read_table(&path, &schema);
    });
}

#[test]
fn csv() {
    try_tables("csv", "t.csv", 300, |len| 64 * len + MEGABYTE);
}

#[test]
fn gzip() {
    try_tables("gzip", "t.csv.gz", 300, |len| 1032 * 64 * len + MEGABYTE);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet() {
    try_tables("parquet", "t.parquet", 100, |len| 9 * 1032 * len + 2 * MEGABYTE);
}

fn try_images(kind: &str) {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|class| dir.path().join(class).join("1.png"));
    paths.iter().for_each(|path| fs::create_dir_all(path.parent().unwrap()).unwrap());
    let options = ImageOptions { grey: true, scaling: Scaling::Unit, class_names: None };
    try_reader(
        kind,
        300,
        |_| 12 * 16 * MEGABYTE,
        |bytes| {
            paths.iter().for_each(|path| fs::write(path, bytes).unwrap());
            let _ = images::load(dir.path(), &options);
            let _ = images::load(dir.path(), &ImageOptions { grey: false, ..options.clone() });
        },
    );
}

#[test]
fn png() {
    try_images("png");
}

#[test]
fn jpeg() {
    try_images("jpeg");
}

#[test]
fn npy() {
    try_reader(
        "npy",
        1000,
        |len| 24 * len + MEGABYTE,
        |bytes| {
            let _ = npy::parse("damaged", bytes);
        },
    );
}

#[test]
fn idx() {
    try_reader(
        "idx",
        1000,
        |len| 24 * len + MEGABYTE,
        |bytes| {
            let _ = idx::parse("damaged", bytes);
        },
    );
}

#[test]
fn schemas() {
    try_reader(
        "schema",
        1000,
        |len| 512 * len + MEGABYTE,
        |bytes| {
            let _ = Schema::parse("damaged", &String::from_utf8_lossy(bytes));
        },
    );
}
