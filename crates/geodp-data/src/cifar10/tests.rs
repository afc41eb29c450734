//! CIFAR-10's layout, on small made-up files through the same code as the published ones.

use std::io::{Read, Write};
use std::net::TcpListener;

use sha2::{Digest, Sha256};

use super::*;
use crate::digest::hex;

/// Two training files of 3 and 2 records, and a test file of 2.
struct Fake {
    contents: Vec<(String, Vec<u8>, String)>,
}

fn fake() -> Fake {
    let file = |name: &str, labels: &[u8]| {
        let mut bytes = Vec::new();
        for (record, &label) in labels.iter().enumerate() {
            bytes.push(label);
            bytes.extend((0..PIXELS).map(|pixel| (pixel * 7 + record * 31 + labels.len()) as u8));
        }
        let sha256 = hex(&Sha256::digest(&bytes));
        (name.to_owned(), bytes, sha256)
    };
    let contents = vec![
        file("data_batch_1.bin", &[3, 9, 0]),
        file("data_batch_2.bin", &[1, 1]),
        file("test_batch.bin", &[8, 2]),
    ];
    Fake { contents }
}

impl Fake {
    fn with_manifest<T>(&self, run: impl FnOnce(&Manifest<'_>) -> T) -> T {
        let files: Vec<BatchFile<'_>> = self
            .contents
            .iter()
            .map(|(name, bytes, sha256)| BatchFile { name, bytes: bytes.len() as u64, sha256 })
            .collect();
        run(&Manifest { train: &files[..2], test: files[2] })
    }

    fn write_to(&self, folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        self.contents.iter().for_each(|(name, bytes, _)| {
            fs::write(folder.join(name), bytes).unwrap();
        });
    }

    fn archive(&self) -> Vec<u8> {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(gzip);
        let mut add = |name: &str, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, format!("{FOLDER}/{name}"), bytes).unwrap();
        };
        add("readme.html", b"not data");
        self.contents.iter().for_each(|(name, bytes, _)| add(name, bytes));
        tar.into_inner().unwrap().finish().unwrap()
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn records_are_a_label_then_the_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let fake = fake();
    fake.write_to(dir.path());
    let split = fake.with_manifest(|m| load_by(m, dir.path(), &Scaling::Unit)).unwrap();
    assert_eq!(split.train.labels(), [3, 9, 0, 1, 1]);
    assert_eq!(split.test.labels(), [8, 2]);
    assert_eq!(split.train.class_names()[9], "truck");
    let mut input = vec![0.0; PIXELS];
    split.train.read_input(4, &mut input);
    let stored = &fake.contents[1].1[RECORD_BYTES + 1..];
    assert!(input.iter().zip(stored).all(|(x, &p)| (x - f32::from(p) / 255.0).abs() < 1e-6));
}

#[test]
fn each_channel_has_its_own_scaling() {
    let dir = tempfile::tempdir().unwrap();
    let fake = fake();
    fake.write_to(dir.path());
    let split = fake.with_manifest(|m| load_by(m, dir.path(), &standard_scaling())).unwrap();
    let mut input = vec![0.0; PIXELS];
    split.test.read_input(0, &mut input);
    let means = [0.4914, 0.4822, 0.4465];
    let stds = [0.2470, 0.2435, 0.2616];
    for at in [0, 1023, 1024, 2047, 2048, 3071] {
        let pixel = f32::from(fake.contents[2].1[1 + at]) / 255.0;
        let expected = (pixel - means[at / 1024]) / stds[at / 1024];
        assert!((input[at] - expected).abs() < 1e-5, "{at}: {} against {expected}", input[at]);
    }
}

#[test]
fn folder_nested_folder_and_archive_import_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let fake = fake();
    let (flat, outer) = (dir.path().join("flat"), dir.path().join("outer"));
    fake.write_to(&flat);
    fake.write_to(&outer.join(FOLDER));
    let archive = dir.path().join("archive.tar.gz");
    fs::write(&archive, fake.archive()).unwrap();
    let plain = dir.path().join("archive.tar");
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&fake.archive()[..]).read_to_end(&mut unpacked).unwrap();
    fs::write(&plain, unpacked).unwrap();
    for (index, source) in [flat, outer, archive, plain].iter().enumerate() {
        let data = dir.path().join(format!("data{index}"));
        let target = fake.with_manifest(|m| import_by(m, source, &data)).unwrap();
        // Nothing is left beside it, and importing again replaces it.
        assert_eq!(names_in(&data), [FOLDER]);
        fake.with_manifest(|m| import_by(m, source, &data)).unwrap();
        assert_eq!(names_in(&data), [FOLDER]);
        for (name, bytes, _) in &fake.contents {
            assert_eq!(&fs::read(target.join(name)).unwrap(), bytes, "{source:?} {name}");
        }
    }
}

#[test]
fn bad_sources_are_refused_and_touch_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let fake = fake();
    let data = dir.path().join("data");
    fake.write_to(&dir.path().join("good"));
    fake.with_manifest(|m| import_by(m, &dir.path().join("good"), &data)).unwrap();
    let import = |source: &Path| fake.with_manifest(|m| import_by(m, source, &data)).unwrap_err();

    let good = &fake.contents[1].1;
    let flipped: Vec<u8> = good.iter().enumerate().map(|(i, b)| b ^ u8::from(i == 99)).collect();
    let long = [good.as_slice(), &[0]].concat();
    type Check = fn(&DataError) -> bool;
    let cases: [(&[u8], Check); 4] = [
        (&good[..good.len() - 1], |e| matches!(e, DataError::Truncated { .. })),
        (&long, |e| matches!(e, DataError::TrailingBytes { .. })),
        (&flipped, |e| matches!(e, DataError::Checksum { .. })),
        (&[], |e| matches!(e, DataError::Empty { .. })),
    ];
    for (bytes, check) in cases {
        let bad = dir.path().join("bad");
        fake.write_to(&bad);
        fs::write(bad.join("data_batch_2.bin"), bytes).unwrap();
        let error = import(&bad);
        assert!(check(&error) && error.to_string().contains("data_batch_2.bin"), "{error}");
        assert_eq!(names_in(&data), [FOLDER]);
    }
    let archive = fake.archive();
    let broken = dir.path().join("broken.tar.gz");
    for bytes in [&archive[..archive.len() / 2], b"<html>not found</html>", b""] {
        fs::write(&broken, bytes).unwrap();
        let error = import(&broken);
        assert!(matches!(error, DataError::Unsupported { .. } | DataError::Io { .. }), "{error}");
    }
    assert!(import(&dir.path().join("nowhere")).to_string().contains("nowhere"));
    // What was there before is still there, whole.
    fake.with_manifest(|m| load_by(m, &data, &Scaling::Unit)).unwrap();
}

#[test]
fn a_label_above_nine_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut fake = fake();
    fake.contents[0].1[RECORD_BYTES] = 10;
    fake.contents[0].2 = hex(&Sha256::digest(&fake.contents[0].1));
    fake.write_to(dir.path());
    let error = fake.with_manifest(|m| load_by(m, dir.path(), &Scaling::Unit)).unwrap_err();
    assert!(matches!(error, DataError::LabelOutOfRange { index: 1, label: 10, .. }), "{error}");
}

#[test]
fn a_missing_dataset_says_how_to_get_it() {
    let dir = tempfile::tempdir().unwrap();
    let error = open(dir.path(), &Scaling::Unit).unwrap_err();
    assert!(matches!(error, DataError::Missing { .. }));
    assert!(error.to_string().contains(URL), "{error}");
}

/// Answers one request with the given status and body, on the loopback interface.
fn serve_once(status: &'static str, body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/cifar-10-binary.tar.gz", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1024];
        let _ = stream.read(&mut request).unwrap();
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
    });
    url
}

#[test]
fn download_installs_what_a_server_sends() {
    let dir = tempfile::tempdir().unwrap();
    let fake = fake();
    let archive = dir.path().join("archive.tar.gz");
    fs::write(&archive, fake.archive()).unwrap();
    let urls = [serve_once("200 OK", fake.archive()), format!("file://{}", archive.display())];
    for (index, url) in urls.iter().enumerate() {
        let data = dir.path().join(format!("data{index}"));
        fake.with_manifest(|m| download_by(m, url, &data, false)).unwrap();
        assert_eq!(names_in(&data), [FOLDER]);
        let split = fake.with_manifest(|m| load_by(m, &data, &Scaling::Unit)).unwrap();
        assert_eq!((split.train.len(), split.test.len()), (5, 2));
    }
}

#[test]
fn a_failed_download_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let fake = fake();
    let other = b"<html>a login page</html>".to_vec();
    let missing = format!("file://{}/nothing", dir.path().display());
    for url in [serve_once("404 Not Found", other.clone()), serve_once("200 OK", other), missing] {
        let data = dir.path().join("data");
        let error = fake.with_manifest(|m| download_by(m, &url, &data, false)).unwrap_err();
        assert!(matches!(&error, DataError::Download { .. }), "{error}");
        assert_eq!(names_in(&data), [""; 0], "after {error}");
    }
    let error = download::fetch("no-such-curl", URL, &dir.path().join("x"), false).unwrap_err();
    assert!(error.to_string().contains("install it"), "{error}");
}
