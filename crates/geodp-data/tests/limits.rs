//! Small files that unpack to very much: what is allocated is bounded by what their header announces.

mod counting;

use std::fs;
use std::io::Write;
use std::path::Path;

use counting::{alone, most_bytes};
use geodp_data::{DataError, Scaling, Values, idx, npy};

/// A gzip file of `head` and then 16 MB of zeros: about 16 kB.
fn bomb(path: &Path, head: &[u8]) {
    let file = fs::File::create(path).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::new(6));
    encoder.write_all(head).unwrap();
    for _ in 0..16 {
        encoder.write_all(&vec![0; 1 << 20]).unwrap();
    }
    encoder.finish().unwrap();
    assert!(fs::metadata(path).unwrap().len() < 100_000);
}

type Load = fn(&Path) -> Result<geodp_data::Records, DataError>;

#[test]
fn a_bomb_is_not_unpacked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bomb.gz");
    let idx: Load = |path| idx::load_inputs(path, &Scaling::Unit);
    let npy: Load = |path| npy::load_inputs(path, &Scaling::Unit);
    let npy_header = |shape: &str| {
        let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut head = b"\x93NUMPY\x01\x00".to_vec();
        head.extend((text.len() as u16).to_le_bytes());
        [head, text.into_bytes()].concat()
    };
    // No header, one that announces 8 bytes, and one that announces more than gzip can hold.
    let huge = [0, 0, 8, 2, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0xff];
    let cases: [(Load, Vec<u8>, &str); 6] = [
        (idx, vec![1], "not an IDX file"),
        (idx, vec![0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 4], "holds something else"),
        (idx, huge.to_vec(), "more than a gzip file of"),
        (npy, vec![1], "not an NPY file"),
        (npy, npy_header("2, 4"), "holds something else"),
        (npy, npy_header("2147483647, 255"), "more than a gzip file of"),
    ];
    let alone = alone();
    for (load, head, says) in cases {
        bomb(&path, &head);
        let (result, most) = most_bytes(&alone, || load(&path));
        let error = result.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert!(most < 2 << 20, "{error}: {most} bytes");
    }
}

/// A plain file of any type stands in memory once, and its values are those of its bytes as a whole.
#[test]
fn a_plain_array_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("inputs.npy");
    let (rows, columns) = (40_000, 64);
    let alone = alone();
    for (descr, size, kept) in [("|u1", 1, 1), ("<f4", 4, 4), ("<f8", 8, 4)] {
        let text = format!(
            "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {columns}), }}\n"
        );
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.into_bytes());
        for i in 0..rows * columns {
            match size {
                1 => bytes.push(i as u8),
                4 => bytes.extend((i as f32).to_le_bytes()),
                _ => bytes.extend((i as f64).to_le_bytes()),
            }
        }
        fs::write(&path, &bytes).unwrap();
        let (read, most) = most_bytes(&alone, || npy::load_inputs(&path, &Scaling::Unit));
        // The values, four bytes a row for its number (twice while they are counted), and two blocks.
        let room = rows * columns * kept + rows * 8 + (5 << 20);
        assert!(most < room, "{descr}: {most} bytes, {room} at most");
        let (read, parsed) = (read.unwrap(), npy::parse("all", &bytes).unwrap());
        let mut input = vec![0.0; columns];
        for row in [0, 1, rows / 2, rows - 1] {
            read.read_input(row, &mut input);
            for (column, value) in input.iter().enumerate() {
                let expected = match &parsed.values {
                    Values::Bytes(bytes) => {
                        f32::from(bytes[row * columns + column]) * (1.0 / 255.0)
                    }
                    Values::Floats(floats) => floats[row * columns + column],
                    Values::Integers(_) => unreachable!("no integers were written"),
                };
                assert!((value - expected).abs() < 1e-6, "{descr}: {row}, {column}");
            }
        }
    }
}

/// Damaged Parquet files are refused by a word, and none is unpacked to what it only announces.
#[cfg(feature = "parquet")]
#[test]
fn a_parquet_file_takes_no_more_than_it_holds() {
    use geodp_data::table::{DraftOptions, draft};
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let look = DraftOptions { look: true, ..DraftOptions::default() };
    let alone = alone();
    let read = |name: &str| most_bytes(&alone, || draft(&folder.join(name), &look));
    let (zeros, most) = read("limits/zeros.parquet");
    assert!(zeros.unwrap().contains("[[feature]]") && most < 8 << 20, "{most} bytes");
    let (bomb, most) = read("limits/bomb.parquet");
    let error = bomb.unwrap_err().to_string();
    assert!(error.contains("announces 134217727 bytes in"), "{error}");
    assert!(most < 2 << 20, "{most} bytes");
    let error = read("parquet/long_text.parquet").0.unwrap_err().to_string();
    assert!(error.contains("other lengths than they have"), "{error}");
}
