//! Every reader on damaged files: no panic, and never more memory than a stated multiple of the file.
//!
//! Files of `corpus` are changed in up to seven places. Each reader gets a few hundred of them in every run of
//! the tests, and a million by
//! `GEODP_FUZZ_CASES=1000000 TMPDIR=/dev/shm cargo test -p geodp-data --test readers -- --test-threads=1`.
//! A file that fails is written to the corpus, to be committed with what mends it, and is tried first from
//! then on. The multiples, of bytes of the file:
//!
//! | reader | bytes |
//! |---|---|
//! | CSV | 64 for the cells of a row of this schema, 1 MB for buffers; gzip unpacks to at most 1,032 times |
//! | Parquet | 1,032 to unpack a page, 9 for a dictionary's texts, 2 MB; rows as in [`CSV`](csv) |
//! | PNG, JPEG | 16 MB for the pixels of 4096 × 4096, times channels and working copies |
//! | NPY, IDX | 24 for numbers as doubles and as what is kept |
//! | schema | 512 for a tree of TOML |

mod counting;
mod damage;
mod fuzz;
mod quiet;

use std::fs;
use std::path::{Path, PathBuf};

use counting::{alone, most_bytes};
use damage::{Repair, damaged, repair_gzip, repair_png};
use geodp_data::images::{self, ImageOptions};
use geodp_data::table::{self, DraftOptions, ReadOptions, Schema};
use geodp_data::{Scaling, idx, npy};

const MEGABYTE: usize = 1 << 20;
/// Ways to read a file, which damaged ones take by turns; those of the corpus are read in each.
const WAYS: u64 = 3;

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind)
}

/// The files of one kind, in order.
fn corpus(kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(kind)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{kind} has no files");
    files
}

fn schema() -> Schema {
    let text = fs::read_to_string(&corpus("schema")[0]).unwrap();
    Schema::parse("schema.toml", &text).unwrap()
}

/// Tries one reader with the files of its corpus and with damaged ones, and holds it to `most` of a file's
/// length. What fails is kept in the corpus.
fn try_reader(
    kind: &str,
    usual: u32,
    repair: Option<Repair>,
    most: impl Fn(usize) -> usize,
    mut read: impl FnMut(&[u8], u64) -> bool,
) {
    let alone = alone();
    // Whether the file could be read, or what is wrong with the reader.
    let mut hold = |bytes: &[u8], way: u64| {
        let (read, taken) = most_bytes(&alone, || quiet::panics(|| read(bytes, way)));
        match read {
            Err(panic) => Err(format!("panics: {panic}")),
            Ok(_) if taken > most(bytes.len()) => Err(format!("takes {taken} bytes")),
            Ok(read) => Ok(read),
        }
    };
    let paths = corpus(kind);
    let files: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let mut read_whole = 0;
    for (path, bytes) in paths.iter().zip(&files) {
        let read = |way| hold(bytes, way).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        read_whole += (0..WAYS).map(read).filter(|read| *read).count();
    }
    assert!(read_whole >= 2 * WAYS as usize, "{kind}: a reader that refuses everything");
    for case in 0..u64::from(fuzz::cases(usual).cases) {
        let bytes = damaged(&files, case, repair);
        if let Err(why) = hold(&bytes, case % WAYS) {
            let kept = folder(kind).join(format!("case_{case}"));
            fs::write(&kept, &bytes).unwrap();
            panic!("{kind}: {why} for a file of {} bytes, kept as {}", bytes.len(), kept.display());
        }
    }
}

/// Reads a table as a whole or without its bad rows, or looks at it for a draft.
fn read_table(path: &Path, schema: &Schema, way: u64) -> bool {
    let options = ReadOptions { labelled: true, skip_bad_rows: way == 1, ..ReadOptions::default() };
    match way {
        0 | 1 => table::read_with(path, schema, &options).is_ok(),
        _ => table::draft(path, &DraftOptions { look: true, ..DraftOptions::default() }).is_ok(),
    }
}

fn try_tables(
    kind: &str,
    name: &str,
    usual: u32,
    repair: Option<Repair>,
    most: impl Fn(usize) -> usize,
) {
    let (dir, schema) = (tempfile::tempdir().unwrap(), schema());
    let path = dir.path().join(name);
    try_reader(kind, usual, repair, most, |bytes, way| {
        fs::write(&path, bytes).unwrap();
        read_table(&path, &schema, way)
    });
}

#[test]
fn csv() {
    try_tables("csv", "t.csv", 300, None, |len| 64 * len + MEGABYTE);
}

#[test]
fn gzip() {
    try_tables("gzip", "t.csv.gz", 300, Some(repair_gzip), |len| 1032 * 64 * len + MEGABYTE);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet() {
    try_tables("parquet", "t.parquet", 100, None, |len| 9 * 1032 * len + 2 * MEGABYTE);
}

fn try_images(kind: &str, repair: Option<Repair>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/1.png");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let class_names = Some(vec!["a".to_owned(), "b".to_owned()]);
    let mut options = ImageOptions { grey: true, scaling: Scaling::Unit, class_names };
    try_reader(
        kind,
        300,
        repair,
        |_| 12 * 16 * MEGABYTE,
        |bytes, way| {
            fs::write(&path, bytes).unwrap();
            options.grey = way == 0;
            images::load(dir.path(), &options).is_ok()
        },
    );
}

#[test]
fn png() {
    try_images("png", Some(repair_png));
}

#[test]
fn jpeg() {
    try_images("jpeg", None);
}

#[test]
fn npy() {
    try_reader(
        "npy",
        1000,
        None,
        |len| 24 * len + MEGABYTE,
        |bytes, _| npy::parse("damaged", bytes).is_ok(),
    );
}

#[test]
fn idx() {
    try_reader(
        "idx",
        1000,
        None,
        |len| 24 * len + MEGABYTE,
        |bytes, _| idx::parse("damaged", bytes).is_ok(),
    );
}

#[test]
fn schemas() {
    try_reader(
        "schema",
        1000,
        None,
        |len| 512 * len + MEGABYTE,
        |bytes, _| Schema::parse("damaged", &String::from_utf8_lossy(bytes)).is_ok(),
    );
}
