//! CIFAR-10: 50,000 training and 10,000 test images of ten kinds of things, 3 × 32 × 32.
//!
//! The official binary layout ([Krizhevsky](https://www.cs.toronto.edu/~kriz/cifar.html)): files of
//! 10,000 records, each a label byte and 3,072 pixels, red, green, blue. It is not ours to bundle, so
//! it is downloaded or imported once into a data folder and loaded from there. Every file is checked
//! against the published SHA-256, on import and on every load. Import writes beside its target and
//! renames at the end: a data folder holds the whole dataset or nothing of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{DataError, Dataset, Records, Scaling, Shape, Split, download};

mod source;

use source::{BatchFile, Manifest};

/// The official archive.
pub const URL: &str = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz";

/// Name of the folder inside the archive, and inside a data folder.
pub const FOLDER: &str = "cifar-10-batches-bin";

/// Names of the ten classes, in the order of their labels.
pub const CLASS_NAMES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

const PIXELS: usize = 3 * 32 * 32;
/// A label byte, then the pixels.
const RECORD_BYTES: usize = 1 + PIXELS;
const BATCH_BYTES: u64 = 10_000 * RECORD_BYTES as u64;

const fn batch(name: &'static str, sha256: &'static str) -> BatchFile<'static> {
    BatchFile { name, bytes: BATCH_BYTES, sha256 }
}

const OFFICIAL: Manifest<'static> = Manifest {
    train: &[
        batch(
            "data_batch_1.bin",
            "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        ),
        batch(
            "data_batch_2.bin",
            "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        ),
        batch(
            "data_batch_3.bin",
            "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        ),
        batch(
            "data_batch_4.bin",
            "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        ),
        batch(
            "data_batch_5.bin",
            "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        ),
    ],
    test: batch(
        "test_batch.bin",
        "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    ),
};

/// The customary scaling: mean (0.4914, 0.4822, 0.4465), standard deviation (0.2470, 0.2435, 0.2616).
pub fn standard_scaling() -> Scaling {
    Scaling::Standard { mean: vec![0.4914, 0.4822, 0.4465], std: vec![0.2470, 0.2435, 0.2616] }
}

/// Whether a data folder holds CIFAR-10 (its content is checked when it is loaded).
pub fn is_present(data_dir: &Path) -> bool {
    OFFICIAL.files().all(|file| data_dir.join(FOLDER).join(file.name).is_file())
}

/// Loads CIFAR-10 from a data folder (see [`default_data_dir`](crate::default_data_dir)).
pub fn open(data_dir: &Path, scaling: &Scaling) -> Result<Split, DataError> {
    if !is_present(data_dir) {
        return Err(DataError::Missing {
            name: "CIFAR-10",
            dir: data_dir.to_path_buf(),
            remedy: format!(
                "download it from {URL}, or import a folder or archive in its official binary layout"
            ),
        });
    }
    load(&data_dir.join(FOLDER), scaling)
}

/// Loads CIFAR-10 from where it lies: a folder with the six `.bin` files (or with
/// `cifar-10-batches-bin` in it), or the archive. Nothing is written.
pub fn load(source: &Path, scaling: &Scaling) -> Result<Split, DataError> {
    load_by(&OFFICIAL, source, scaling)
}

/// Copies CIFAR-10 from a folder or archive into a data folder and returns where it lies now.
/// Everything is checked before anything is written.
pub fn import(source: &Path, data_dir: &Path) -> Result<PathBuf, DataError> {
    import_by(&OFFICIAL, source, data_dir)
}

/// Downloads the official archive (170 MB) into a data folder and returns where it lies.
///
/// Runs the system's `curl`: it knows the machine's proxies and certificates, and no TLS stack has to
/// be built into this program. With `show_progress`, curl draws its bar on standard error.
pub fn download(data_dir: &Path, show_progress: bool) -> Result<PathBuf, DataError> {
    download_from(URL, data_dir, show_progress)
}

/// Downloads the archive from another address, such as a mirror; the content must be the official one.
pub fn download_from(
    url: &str,
    data_dir: &Path,
    show_progress: bool,
) -> Result<PathBuf, DataError> {
    download_by(&OFFICIAL, url, data_dir, show_progress)
}

fn download_by(
    manifest: &Manifest<'_>,
    url: &str,
    data_dir: &Path,
    show_progress: bool,
) -> Result<PathBuf, DataError> {
    fs::create_dir_all(data_dir).map_err(DataError::io("create", data_dir))?;
    // Deleted when it goes out of scope, however this ends.
    let archive = tempfile::Builder::new()
        .prefix(".cifar-10-download-")
        .tempfile_in(data_dir)
        .map_err(DataError::io("create a file in", data_dir))?;
    download::fetch("curl", url, archive.path(), show_progress)?;
    let contents = manifest.read(archive.path()).map_err(|error| DataError::Download {
        url: url.to_owned(),
        problem: format!("what came is not CIFAR-10 ({error}); nothing was kept"),
    })?;
    install(manifest, &contents, data_dir)
}

fn import_by(
    manifest: &Manifest<'_>,
    source: &Path,
    data_dir: &Path,
) -> Result<PathBuf, DataError> {
    let contents = manifest.read(source)?;
    fs::create_dir_all(data_dir).map_err(DataError::io("create", data_dir))?;
    install(manifest, &contents, data_dir)
}

/// Writes checked contents into the data folder: beside the target first, then one rename.
fn install(
    manifest: &Manifest<'_>,
    contents: &[Vec<u8>],
    data_dir: &Path,
) -> Result<PathBuf, DataError> {
    let target = data_dir.join(FOLDER);
    let staging = tempfile::Builder::new()
        .prefix(".cifar-10-import-")
        .tempdir_in(data_dir)
        .map_err(DataError::io("create a folder in", data_dir))?;
    let fresh = staging.path().join("new");
    fs::create_dir(&fresh).map_err(DataError::io("create", &fresh))?;
    for (file, bytes) in manifest.files().zip(contents) {
        let path = fresh.join(file.name);
        fs::write(&path, bytes).map_err(DataError::io("write", &path))?;
        let written = fs::File::open(&path).and_then(|file| file.sync_all());
        written.map_err(DataError::io("write", &path))?;
    }
    // A folder cannot be renamed onto another: an older one goes into the staging folder, which is
    // deleted at the end.
    if target.exists() {
        fs::rename(&target, staging.path().join("old"))
            .map_err(DataError::io("replace", &target))?;
    }
    fs::rename(&fresh, &target).map_err(DataError::io("create", &target))?;
    Ok(target)
}

fn load_by(manifest: &Manifest<'_>, source: &Path, scaling: &Scaling) -> Result<Split, DataError> {
    let mut contents = manifest.read(source)?;
    let test = contents.split_off(manifest.train.len());
    Ok(Split {
        train: dataset("CIFAR-10", &contents, scaling)?,
        test: dataset("CIFAR-10 test", &test, scaling)?,
    })
}

fn dataset(name: &str, files: &[Vec<u8>], scaling: &Scaling) -> Result<Dataset, DataError> {
    let count = files.iter().map(|file| file.len() / RECORD_BYTES).sum();
    let mut labels = Vec::with_capacity(count);
    let mut pixels = Vec::with_capacity(count * PIXELS);
    for record in files.iter().flat_map(|file| file.chunks_exact(RECORD_BYTES)) {
        labels.push(u32::from(record[0]));
        pixels.extend_from_slice(&record[1..]);
    }
    let records = Records::from_bytes(Shape::image(3, 32, 32), Arc::new(pixels), scaling)?;
    Dataset::new(name, records, labels, CLASS_NAMES.map(str::to_owned).to_vec())
}

#[cfg(test)]
mod tests;
