//! Features in front of a model: shapes, threads, storage, subsets and refusals.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use geodp_data::{Dataset, FeatureSpec, Records, Scaling, Shape, Storage};
use geodp_scattering::{Scattering, group_norm};

fn images(count: usize, shape: Shape) -> Dataset {
    let len = shape.channels * shape.height * shape.width;
    let pixels = (0..count * len).map(|at| (at * at / 3 % 251) as u8).collect();
    let records = Records::from_bytes(shape, Arc::new(pixels), &Scaling::Unit).unwrap();
    let labels = (0..count as u32).map(|index| index % 2).collect();
    Dataset::new("images", records, labels, vec!["a".into(), "b".into()]).unwrap()
}

fn rows(data: &Dataset) -> Vec<Vec<f32>> {
    let row = |index| {
        let mut input = vec![0.0; data.input_len()];
        data.read_input(index, &mut input);
        input
    };
    (0..data.len()).map(row).collect()
}

fn quiet(_: usize, _: usize) {}

fn single() -> FeatureSpec {
    FeatureSpec::scattering_as(Storage::Single)
}

#[test]
fn a_record_has_the_features_it_has_alone() {
    let data = images(11, Shape::image(3, 8, 12));
    let found = single().apply_to(&data, &quiet).unwrap();
    assert_eq!(found.shape(), Shape::image(243, 2, 3));
    assert_eq!((found.labels(), found.name()), (data.labels(), data.name()));
    let scattering = Scattering::new(8, 12).unwrap();
    for (input, found) in rows(&data).iter().zip(rows(&found)) {
        let mut expected = Vec::new();
        for plane in input.chunks_exact(96) {
            let mut out = vec![0.0; scattering.output_len()];
            scattering.transform(&[plane], &mut scattering.scratch(), &mut [&mut out]);
            expected.extend(out);
        }
        group_norm(&mut expected, 243, 27).unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn threads_and_subsets_do_not_change_a_bit() {
    let data = images(37, Shape::image(1, 9, 8));
    for spec in [FeatureSpec::scattering(), single()] {
        let all = spec.apply_to(&data, &quiet).unwrap();
        for threads in [1, 2, 3, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| spec.apply_to(&data, &quiet).unwrap());
            assert_eq!(rows(&found), rows(&all), "{threads}");
        }
        let some = [30, 2, 2, 17];
        let of_some = spec.apply_to(&data.subset(&some).unwrap(), &quiet).unwrap();
        assert_eq!(rows(&of_some), rows(&all.subset(&some).unwrap()));
    }
}

#[test]
fn halves_are_the_same_features_to_eleven_bits() {
    let data = images(9, Shape::image(1, 8, 8));
    let single = single().apply_to(&data, &quiet).unwrap();
    let halved = FeatureSpec::scattering().apply_to(&data, &quiet).unwrap();
    for (single, halved) in rows(&single).concat().iter().zip(rows(&halved).concat()) {
        assert!((single - halved).abs() <= single.abs() * 2f32.powi(-11) + 2f32.powi(-25));
    }
    assert_ne!(single.fingerprint(), halved.fingerprint());
    let parted = halved.subset(&[3, 1]).unwrap();
    assert_eq!(rows(&parted), [rows(&halved)[3].clone(), rows(&halved)[1].clone()]);
}

#[test]
fn progress_counts_every_record_once() {
    let (most, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let count = |done: usize, total: usize| {
        assert!(done <= total && total == 37);
        most.fetch_max(done, Ordering::Relaxed);
        calls.fetch_add(1, Ordering::Relaxed);
    };
    FeatureSpec::scattering().apply_to(&images(37, Shape::image(1, 8, 8)), &count).unwrap();
    assert_eq!((most.into_inner(), calls.into_inner()), (37, 37usize.div_ceil(Scattering::BLOCK)));
}

#[test]
fn what_cannot_be_transformed_is_refused() {
    let spec = FeatureSpec::scattering();
    let table = spec.shape(Shape::features(30)).unwrap_err();
    assert!(table.to_string().contains("30 × 1 × 1"), "{table}");
    let groups = FeatureSpec::Scattering { groups: 28, storage: Storage::Single };
    let error = groups.apply_to(&images(1, Shape::image(1, 8, 8)), &quiet).unwrap_err();
    assert!(error.to_string().contains("nearest number that divides them is 27"), "{error}");
    let vast = Records::from_floats(Shape::image(1, 4, 4), vec![3e38; 32], "as stored").unwrap();
    let error = spec.apply(&vast, &quiet).unwrap_err();
    assert!(error.to_string().contains("record 0 holds numbers too large"), "{error}");
    let none = images(0, Shape::image(1, 8, 8));
    assert!(spec.apply_to(&none, &quiet).unwrap().is_empty());
}

#[test]
fn the_spec_is_read_from_toml() {
    let read = |text: &str| toml::from_str::<FeatureSpec>(text);
    let text = "kind = \"scattering\"\ngroups = 9\nstorage = \"half\"\n";
    let spec = read(text).unwrap();
    assert_eq!(toml::to_string(&spec).unwrap(), text);
    assert!(read("kind = \"scattering\"\ngruops = 9").is_err());
    assert!(read("kind = \"wavelets\"").is_err());
}

/// What is new is kept as halves and says so; what does not say was written when floats were the default, and is
/// written again as it was: ledgers know a run's config by the hash of its text.
#[test]
fn a_spec_without_storage_stays_what_it_was() {
    let new = FeatureSpec::scattering();
    assert!(matches!(new, FeatureSpec::Scattering { groups: 27, storage: Storage::Half }));
    let kept = toml::to_string(&new).unwrap();
    assert_eq!(kept, "kind = \"scattering\"\nstorage = \"half\"\n");
    assert_eq!(toml::from_str::<FeatureSpec>(&kept).unwrap(), new);

    let unsaid = "kind = \"scattering\"\n";
    let old: FeatureSpec = toml::from_str(unsaid).unwrap();
    assert_eq!(old, single());
    assert_eq!(toml::to_string(&old).unwrap(), unsaid);
    let said = "kind = \"scattering\"\nstorage = \"single\"\n";
    assert_eq!(toml::from_str::<FeatureSpec>(said).unwrap(), old);
    // Fingerprints of features are in ledgers, too.
    let ends = |spec: &FeatureSpec, end: &str| spec.describe().ends_with(end);
    assert!(ends(&old, "group norm 27, f32") && ends(&new, "group norm 27, f16"));
}
