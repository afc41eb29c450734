//! Folders of images by class.

use std::fs;
use std::path::Path;

use geodp_data::images::{self, ImageOptions};
use geodp_data::{DataError, Dataset, Scaling, Shape};

fn png(width: u32, height: u32, color: png::ColorType, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(color);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(bytes).unwrap();
    writer.finish().unwrap();
    out
}

/// JPEGs of 8 × 8 pixels of one grey and of one colour (made by tests/golden/make_jpeg.py).
const GREY_JPEG: &[u8] = include_bytes!("golden/grey.jpg");
const COLOUR_JPEG: &[u8] = include_bytes!("golden/colour.jpg");

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn options(grey: bool) -> ImageOptions {
    ImageOptions { grey, scaling: Scaling::Unit, class_names: None }
}

fn pixels(data: &Dataset, index: usize) -> Vec<u8> {
    let mut input = vec![0.0; data.input_len()];
    data.read_input(index, &mut input);
    input.iter().map(|v| (v * 255.0).round() as u8).collect()
}

#[test]
fn folders_are_classes_and_files_are_records() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "dog/b.png",
        &png(2, 2, png::ColorType::Rgb, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    );
    write(dir.path(), "cat/a.PNG", &png(2, 2, png::ColorType::Grayscale, &[10, 20, 30, 40]));
    write(
        dir.path(),
        "dog/a.png",
        &png(2, 2, png::ColorType::GrayscaleAlpha, &[9, 0, 8, 0, 7, 0, 6, 255]),
    );
    write(dir.path(), "dog/readme.txt", b"not an image");
    let (data, report) = images::load(dir.path(), &options(false)).unwrap();
    assert_eq!((data.shape(), data.labels()), (Shape::image(3, 2, 2), &[0, 1, 1][..]));
    assert_eq!(data.class_names(), ["cat", "dog"]);
    assert_eq!(pixels(&data, 0), [10, 20, 30, 40].repeat(3));
    assert_eq!(pixels(&data, 1), [9, 8, 7, 6].repeat(3));
    assert_eq!(pixels(&data, 2), [1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12]);
    assert_eq!((report.records, report.ignored.len()), (3, 1));

    let (grey, _) = images::load(dir.path(), &options(true)).unwrap();
    assert_eq!((grey.shape(), pixels(&grey, 2)), (Shape::image(1, 2, 2), vec![2, 5, 8, 11]));
    // Classes of a training set, for a test set that lacks one of them.
    fs::remove_dir_all(dir.path().join("cat")).unwrap();
    let of_training = Some(vec!["cat".to_owned(), "dog".to_owned()]);
    let options = ImageOptions { class_names: of_training, ..options(true) };
    assert_eq!(images::load(dir.path(), &options).unwrap().0.labels(), [1, 1]);
    let (records, paths) = images::load_unlabelled(&dir.path().join("dog"), &options).unwrap();
    assert_eq!((records.len(), paths.len()), (2, 2));
}

#[test]
fn jpegs_are_read_in_grey_and_in_colour() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a/1.jpg", GREY_JPEG);
    write(dir.path(), "b/1.JPEG", COLOUR_JPEG);
    let (data, _) = images::load(dir.path(), &options(false)).unwrap();
    let near = |found: u8, expected: u8| found.abs_diff(expected) <= 3;
    assert!(pixels(&data, 0).iter().all(|&v| near(v, 100)), "{:?}", pixels(&data, 0));
    let colour = pixels(&data, 1);
    let plane = colour.len() / 3;
    for (channel, expected) in [(0, 200), (1, 60), (2, 30)] {
        assert!(
            colour[channel * plane..][..plane].iter().all(|&v| near(v, expected)),
            "{colour:?}"
        );
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let small = png(2, 2, png::ColorType::Grayscale, &[0; 4]);
    let load = || images::load(dir.path(), &options(true)).unwrap_err().to_string();
    assert!(load().contains("no PNG or JPEG images"));
    write(dir.path(), "a/1.png", &small);
    assert!(load().contains("at least 2"));
    write(dir.path(), "b/2.png", &png(3, 2, png::ColorType::Grayscale, &[0; 6]));
    let error = load();
    assert!(
        error.contains("2 × 3 pixels, but") && error.contains("scale all to one size"),
        "{error}"
    );
    write(dir.path(), "b/2.png", b"\x89PNG and more");
    assert!(load().contains("not an image that can be read"));
    write(dir.path(), "b/2.png", &COLOUR_JPEG[..100]);
    let error = load();
    assert!(error.contains("not an image that can be read") && !error.contains('\n'), "{error}");
    write(dir.path(), "b/2.png", b"GIF89a");
    assert!(load().contains("neither PNG nor JPEG"));
    fs::remove_file(dir.path().join("b/2.png")).unwrap();
    let names = ImageOptions { class_names: Some(vec!["b".into(), "c".into()]), ..options(true) };
    let error = images::load(dir.path(), &names).unwrap_err().to_string();
    assert!(error.contains("none of the classes"), "{error}");
    let nowhere = images::load(&dir.path().join("nowhere"), &options(true));
    assert!(matches!(nowhere, Err(DataError::Io { .. })));
}
