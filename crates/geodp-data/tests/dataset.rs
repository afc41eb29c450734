//! Views of a dataset, its fingerprint, and what it refuses.

use std::sync::Arc;

use geodp_data::{DataError, Dataset, Records, Scaling, Shape};
use proptest::prelude::*;

fn names(classes: &[&str]) -> Vec<String> {
    classes.iter().map(|&name| name.to_owned()).collect()
}

fn small() -> Dataset {
    let pixels = Arc::new(vec![0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 250, 255]);
    let records = Records::from_bytes(Shape::image(1, 2, 2), pixels, &Scaling::Unit).unwrap();
    Dataset::new("small", records, vec![0, 1, 1], names(&["a", "b"])).unwrap()
}

/// `count` records of one feature, whose value is their position, with labels 0, 1, 2, 0, 1, …
fn counted(count: usize) -> Dataset {
    let values = (0..count).map(|index| index as f32).collect();
    let records = Records::from_floats(Shape::features(1), values, "as stored").unwrap();
    let labels = (0..count as u32).map(|index| index % 3).collect();
    Dataset::new("counted", records, labels, names(&["0", "1", "2"])).unwrap()
}

fn values(data: &Dataset) -> Vec<usize> {
    let read = |index| {
        let mut input = [0.0];
        data.read_input(index, &mut input);
        input[0] as usize
    };
    (0..data.len()).map(read).collect()
}

#[test]
fn fingerprints_are_those_of_the_script() {
    // tests/golden/make_golden.py
    let bytes = "c2787aae057e5e01eb06d432b3c50a16e6ece223d0e0f3965604a39bf7dffc93";
    assert_eq!(small().fingerprint().to_string(), bytes);
    let records =
        Records::from_floats(Shape::features(2), vec![0.5, -1.0, 3.25, 0.0], "as stored").unwrap();
    let floats = Dataset::new("f", records, vec![2, 0], names(&["0", "1", "2"])).unwrap();
    let expected = "8bda29a9a72901ec34d18de7a3c35906308a4880428f7cb60bc6e648b2e80097";
    assert_eq!(floats.fingerprint().to_string(), expected);
}

#[test]
fn a_fingerprint_names_content_order_labels_and_preprocessing() {
    let data = small();
    let all = [0, 1, 2];
    assert_eq!(data.subset(&all).unwrap().fingerprint(), data.fingerprint());
    let scaled = Scaling::Standard { mean: vec![0.5], std: vec![0.5] };
    let changed = [
        data.subset(&[0, 2, 1]).unwrap(),
        data.subset(&[0, 1]).unwrap(),
        data.rescaled(&scaled).unwrap(),
        data.only_labels(&[1, 0]).unwrap(),
        Dataset::new("small", data.records().clone(), vec![0, 1, 0], names(&["a", "b"])).unwrap(),
    ];
    for other in changed {
        assert_ne!(other.fingerprint(), data.fingerprint());
    }
    let renamed =
        Dataset::new("other name", data.records().clone(), vec![0, 1, 1], names(&["a", "b"]));
    assert_eq!(renamed.unwrap().fingerprint(), data.fingerprint());
}

#[test]
fn only_labels_relabels_in_the_order_given() {
    let data = counted(9).only_labels(&[2, 0]).unwrap();
    assert_eq!(values(&data), [0, 2, 3, 5, 6, 8]);
    assert_eq!(data.labels(), [1, 0, 1, 0, 1, 0]);
    assert_eq!(data.class_names(), ["2", "0"]);
    assert!(counted(9).only_labels(&[0, 3]).is_err());
    assert!(counted(9).only_labels(&[0, 0]).is_err());
    assert!(counted(9).only_labels(&[0]).is_err());
}

#[test]
fn views_of_views_read_the_right_rows() {
    let data = counted(10).subset(&[9, 4, 4, 0]).unwrap().subset(&[3, 1, 0]).unwrap();
    assert_eq!(values(&data), [0, 4, 9]);
    assert_eq!(data.labels(), [0, 1, 0]);
    assert!(counted(10).subset(&[10]).is_err());
    assert!(counted(10).subset(&[]).unwrap().is_empty());
}

#[test]
fn which_records_are_parted_off_never_changes() {
    // tests/golden/make_golden.py. A change here would silently move records between training and validation of old runs.
    let (rest, part) = counted(12).split_off(4, 7).unwrap();
    assert_eq!(values(&part), [7, 8, 10, 11]);
    assert_eq!(rest.len(), 8);
    assert!(counted(3).split_off(4, 0).is_err());
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = small();
    let build = |labels, classes: &[&str]| {
        Dataset::new("x", data.records().clone(), labels, names(classes)).unwrap_err()
    };
    assert!(matches!(build(vec![0, 1], &["a", "b"]), DataError::CountMismatch { .. }));
    let error = build(vec![0, 2, 0], &["a", "b"]);
    assert!(matches!(error, DataError::LabelOutOfRange { index: 1, label: 2, classes: 2, .. }));
    assert!(matches!(build(vec![0, 0, 0], &["a"]), DataError::Argument(_)));

    let floats = |values| Records::from_floats(Shape::features(2), values, "");
    assert!(matches!(floats(vec![1.0; 3]), Err(DataError::Argument(_))));
    let not_a_number = floats(vec![1.0, 2.0, 3.0, f32::NAN]);
    assert!(matches!(not_a_number, Err(DataError::NotFinite { index: 1, .. })));
    let no_values = Records::from_floats(Shape::features(0), vec![], "");
    assert!(matches!(no_values, Err(DataError::Argument(_))));
    let vast = Records::from_floats(Shape::image(usize::MAX, 2, 2), vec![], "");
    assert!(matches!(vast, Err(DataError::Argument(_))));
    let finite = floats(vec![1.0, 2.0]).unwrap();
    assert!(finite.rescaled(&Scaling::Unit).is_none());
}

proptest! {
    #[test]
    fn which_records_are_parted_off_depends_on_their_number_and_the_seed_alone(
        contents in prop::collection::vec((-1e6f32..1e6, 0u32..3), 1..100), seed: u64,
    ) {
        let (values_of, labels): (Vec<f32>, Vec<u32>) = contents.into_iter().unzip();
        let count = values_of.len() / 3;
        let records = Records::from_floats(Shape::features(1), values_of.clone(), "as stored");
        let other = Dataset::new("x", records.unwrap(), labels.clone(), names(&["0", "1", "2"]));
        let (rest, part) = other.unwrap().split_off(count, seed).unwrap();
        let (expected_rest, expected_part) = counted(values_of.len()).split_off(count, seed).unwrap();
        for (found, expected) in [(rest, expected_rest), (part, expected_part)] {
            let places = values(&expected);
            prop_assert!(found.labels().iter().eq(places.iter().map(|&at| &labels[at])));
            let mut input = [0.0];
            for (index, &place) in places.iter().enumerate() {
                found.read_input(index, &mut input);
                prop_assert_eq!(input[0].to_bits(), values_of[place].to_bits());
            }
        }
    }

    #[test]
    fn split_off_parts_every_record_to_one_side(
        len in 0usize..200, share in 0.0f64..=1.0, seed: u64,
    ) {
        let count = (share * len as f64) as usize;
        let (rest, part) = counted(len).split_off(count, seed).unwrap();
        prop_assert_eq!(part.len(), count);
        let (rest, part) = (values(&rest), values(&part));
        prop_assert!(rest.is_sorted() && part.is_sorted());
        let mut all = [rest, part].concat();
        all.sort_unstable();
        prop_assert!(all.into_iter().eq(0..len));
    }
}
