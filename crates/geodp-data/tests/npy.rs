//! NPY files that NumPy wrote (tests/golden/make_npy.py), and every way a file can be wrong.

use crate::fuzz;

use std::fs;
use std::path::PathBuf;

use geodp_data::{Array, DataError, PairOptions, Scaling, Shape, Values, npy};
use proptest::prelude::*;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/npy/{name}.npy"))
}

fn parse(name: &str) -> Result<Array, DataError> {
    npy::parse(name, &fs::read(golden(name)).unwrap())
}

#[test]
fn every_type_numpy_writes_is_read() {
    let numbers = [0, 1, 2, 3, 100, 127];
    let bytes = parse("u1").unwrap();
    assert_eq!(bytes.values, Values::Bytes(numbers.map(|n| n as u8).to_vec()));
    assert_eq!(bytes.dims, [2, 3]);
    for name in ["i1", "u2", "i2", "u4", "i4", "u8", "i8"] {
        let array = parse(name).unwrap();
        assert_eq!(array.values, Values::Integers(numbers.to_vec()), "{name}");
        assert_eq!(array.dims, [2, 3]);
    }
    for name in ["f4", "f8", "version2", "version3"] {
        let array = parse(name).unwrap();
        assert_eq!(array.values, Values::Floats(numbers.map(|n| n as f32).to_vec()), "{name}");
        assert_eq!(array.dims, [2, 3]);
    }
    assert_eq!(parse("b1").unwrap().values, Values::Integers(vec![0, 1, 1, 1, 1, 1]));
    assert_eq!(parse("scalar").unwrap(), Array { dims: vec![], values: Values::Floats(vec![3.5]) });
    assert_eq!(parse("fortran_1d").unwrap().values, Values::Integers(vec![1, 0]));
}

#[test]
fn other_arrays_are_refused_with_a_way_out() {
    for (name, hint) in [
        ("fortran", "ascontiguousarray"),
        ("big_endian_f4", "astype"),
        ("f2", "astype"),
        ("c8", "astype"),
        ("structured", "no structures"),
    ] {
        let error = parse(name).unwrap_err();
        assert!(matches!(error, DataError::Unsupported { .. }));
        assert!(error.to_string().contains(hint), "{error}");
    }
}

#[test]
fn a_pair_becomes_a_dataset() {
    let options = PairOptions::numbered("colours", 2);
    let data = npy::load_pair(&golden("images"), &golden("fortran_1d"), &options).unwrap();
    assert_eq!(data.shape(), Shape::image(3, 2, 2));
    assert_eq!(data.labels(), [1, 0]);
    let mut input = [0.0; 12];
    data.read_input(1, &mut input);
    assert!((input[0] - 12.0 / 255.0).abs() < 1e-7 && (input[11] - 23.0 / 255.0).abs() < 1e-7);
    let inputs = npy::load_inputs(&golden("f8"), &Scaling::Unit).unwrap();
    assert_eq!((inputs.len(), inputs.shape()), (2, Shape::features(3)));
    let mut input = [0.0; 3];
    inputs.read_input(1, &mut input);
    assert_eq!(input, [3.0, 100.0, 127.0]);
    let error = npy::load_inputs(&golden("overflow"), &Scaling::Unit).unwrap_err();
    assert!(matches!(error, DataError::NotFinite { index: 1, .. }), "{error}");
    let error = npy::load_inputs(&golden("scalar"), &Scaling::Unit).unwrap_err();
    assert!(matches!(error, DataError::Unsupported { .. }), "{error}");
}

#[test]
fn bad_files_have_their_own_errors() {
    let good = fs::read(golden("f4")).unwrap();
    let parse = |bytes: &[u8]| npy::parse("bad", bytes).unwrap_err();
    assert!(matches!(parse(&[]), DataError::Empty { .. }));
    assert!(matches!(parse(b"PK\x03\x04"), DataError::WrongMagic { .. }));
    for cut in [7, 9, 20, good.len() - 1] {
        assert!(matches!(parse(&good[..cut]), DataError::Truncated { .. }), "{cut}");
    }
    assert!(matches!(parse(&[&good[..], &[0]].concat()), DataError::TrailingBytes { .. }));
    let mut version = good.clone();
    version[6] = 4;
    assert!(matches!(parse(&version), DataError::Unsupported { .. }));
}

proptest! {
    #![proptest_config(fuzz::cases(1000))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = npy::parse("random", &bytes);
        let after_magic = [b"\x93NUMPY\x01\x00\x20\x00", &bytes[..]].concat();
        let _ = npy::parse("random", &after_magic);
    }

    #[test]
    fn damaged_files_never_panic(
        name in prop::sample::select(vec!["f4", "i8", "version3", "structured", "scalar"]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in 0usize..40,
    ) {
        let mut bytes = fs::read(golden(name)).unwrap();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(bytes.len() - cut.min(bytes.len()));
        let _ = npy::parse("damaged", &bytes);
    }

    #[test]
    fn random_headers_never_panic(header in "[{}()'\",:a-z0-9<>|_ TF]{0,80}") {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        let _ = npy::parse("header", &bytes);
    }
}
