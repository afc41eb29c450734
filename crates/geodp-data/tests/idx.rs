//! IDX pairs from files: plain and gzip, and every way they can be wrong.

use crate::fuzz;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use geodp_data::{DataError, Dataset, PairOptions, Scaling, Shape, idx};
use proptest::prelude::*;

fn encode(type_code: u8, dims: &[u32], body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, type_code, dims.len() as u8];
    dims.iter().for_each(|dim| bytes.extend(dim.to_be_bytes()));
    bytes.extend(body);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn load(inputs: &[u8], labels: &[u8], classes: u32) -> Result<Dataset, DataError> {
    let dir = tempfile::tempdir().unwrap();
    let (inputs, labels) =
        (write(dir.path(), "images", inputs), write(dir.path(), "labels", labels));
    idx::load_pair(&inputs, &labels, &PairOptions::numbered("things", classes))
}

#[test]
fn plain_and_gzip_load_the_same() {
    let images = encode(8, &[2, 2, 3], &[0, 51, 102, 153, 204, 255, 1, 2, 3, 4, 5, 6]);
    let labels = encode(8, &[2], &[1, 0]);
    let plain = load(&images, &labels, 2).unwrap();
    assert_eq!(plain.shape(), Shape::image(1, 2, 3));
    assert_eq!(plain.labels(), [1, 0]);
    let mut input = [0.0; 6];
    plain.read_input(0, &mut input);
    for (value, expected) in input.iter().zip([0.0, 0.2, 0.4, 0.6, 0.8, 1.0]) {
        assert!((value - expected).abs() < 1e-6);
    }
    let packed = load(&gzip(&images), &gzip(&labels), 2).unwrap();
    assert_eq!(packed.fingerprint(), plain.fingerprint());
}

#[test]
fn dimensions_decide_the_shape() {
    let labels = encode(8, &[1], &[0]);
    let shape = |dims: &[u32]| {
        let len = dims.iter().product::<u32>() as usize;
        load(&encode(8, dims, &vec![7; len]), &labels, 2).map(|data| data.shape())
    };
    assert_eq!(shape(&[1, 5]).unwrap(), Shape::features(5));
    assert_eq!(shape(&[1, 3, 8, 8]).unwrap(), Shape::image(3, 8, 8));
    let error = shape(&[1, 8, 8, 3]).unwrap_err();
    assert!(error.to_string().contains("transpose(0, 3, 1, 2)"), "{error}");
    assert!(shape(&[1]).is_err());
    assert!(shape(&[1, 1, 1, 1, 1]).is_err());
}

#[test]
fn integers_and_floats_are_inputs_as_they_are() {
    let labels = encode(0x0c, &[2], &[0, 0, 0, 1, 0, 0, 0, 0]);
    let body: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|value| value.to_be_bytes()).collect();
    let data = load(&encode(0x0d, &[2, 1], &body), &labels, 2).unwrap();
    let mut input = [0.0];
    data.read_input(1, &mut input);
    assert_eq!((input, data.labels()), ([-2.0], &[1, 0][..]));
    let body: Vec<u8> = [1.5f32, f32::NAN].iter().flat_map(|value| value.to_be_bytes()).collect();
    let error = load(&encode(0x0d, &[2, 1], &body), &labels, 2).unwrap_err();
    assert!(matches!(error, DataError::NotFinite { index: 1, .. }), "{error}");
    assert!(error.to_string().contains("images"), "{error}");
}

#[test]
fn pairs_that_do_not_fit_are_refused() {
    let images = encode(8, &[2, 1], &[1, 2]);
    let labels = encode(8, &[2], &[0, 9]);
    load(&images, &labels, 10).unwrap();
    let error = load(&images, &labels, 9).unwrap_err();
    assert!(matches!(error, DataError::LabelOutOfRange { index: 1, label: 9, .. }), "{error}");
    assert!(error.to_string().contains("labels: record 1"), "the labels' file is named: {error}");
    let negative = load(&images, &encode(9, &[2], &[0, 0xff]), 9).unwrap_err();
    assert!(matches!(negative, DataError::LabelOutOfRange { label: -1, .. }), "{negative}");
    let three = load(&images, &encode(8, &[3], &[0, 0, 0]), 9).unwrap_err();
    assert!(matches!(three, DataError::CountMismatch { inputs: 2, labels: 3, .. }), "{three}");
    let swapped = load(&labels, &images, 10).unwrap_err();
    assert!(matches!(swapped, DataError::Unsupported { .. }), "{swapped}");
    let floats = load(&images, &encode(0x0d, &[2], &[0; 8]), 2).unwrap_err();
    assert!(floats.to_string().contains("astype"), "{floats}");
    let none = load(&encode(8, &[0, 4], &[]), &encode(8, &[0], &[]), 2).unwrap_err();
    assert!(matches!(none, DataError::Empty { .. }), "{none}");
    let empty_file = load(&[], &labels, 2).unwrap_err();
    assert!(matches!(empty_file, DataError::Empty { .. }), "{empty_file}");
    let gzip_cut = load(&gzip(&images)[..12], &labels, 10).unwrap_err();
    assert!(matches!(gzip_cut, DataError::Unsupported { .. }), "{gzip_cut}");
}

#[test]
fn names_and_scaling_come_from_the_options() {
    let dir = tempfile::tempdir().unwrap();
    let images = write(dir.path(), "i", &encode(8, &[1, 1], &[255]));
    let labels = write(dir.path(), "l", &encode(8, &[1], &[1]));
    let options = PairOptions {
        name: "clothes".to_owned(),
        class_names: vec!["shirt".to_owned(), "shoe".to_owned()],
        scaling: Scaling::Standard { mean: vec![0.5], std: vec![0.25] },
    };
    let data = idx::load_pair(&images, &labels, &options).unwrap();
    let mut input = [0.0];
    data.read_input(0, &mut input);
    assert!((input[0] - 2.0).abs() < 1e-6);
    assert_eq!((data.name(), data.class_names()[1].as_str()), ("clothes", "shoe"));
}

proptest! {
    #![proptest_config(fuzz::cases(1000))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = idx::parse("random", &bytes);
    }

    #[test]
    fn a_damaged_header_never_panics(
        at in 0usize..12, value: u8, cut in 0usize..20, code in prop::sample::select(vec![8u8, 9, 11, 12, 13, 14]),
    ) {
        let mut bytes = encode(code, &[2, 2], &[1; 32]);
        bytes[at] = value;
        bytes.truncate(bytes.len() - cut);
        let _ = idx::parse("damaged", &bytes);
    }

    #[test]
    fn whatever_loads_is_consistent(dims in prop::collection::vec(0u32..5, 1..5), fill: u8) {
        let len = dims.iter().product::<u32>() as usize;
        let labels = encode(8, &dims[..1], &vec![0; dims[0] as usize]);
        if let Ok(data) = load(&encode(8, &dims, &vec![fill; len]), &labels, 2) {
            prop_assert_eq!(data.len(), dims[0] as usize);
            let mut input = vec![0.0; data.input_len()];
            (0..data.len()).for_each(|index| data.read_input(index, &mut input));
        }
    }
}
