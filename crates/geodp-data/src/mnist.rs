//! MNIST, inside the binary: 60,000 training and 10,000 test images of digits, 28 × 28.
//!
//! The four IDX files of LeCun, Cortes and Burges as gzip (11 MB), so that the first command works
//! with no network. They are unpacked once a process (55 MB, on all threads about a twentieth of a second) and
//! shared by every dataset made from them. That they are the published files, by SHA-256, is what a test of
//! each build says; a process leaves it at gzip's own checksum.

use std::io::Read;
use std::sync::{Arc, OnceLock};

use flate2::bufread::GzDecoder;
use rayon::prelude::*;

use crate::files::{broken_gzip, gunzip};
use crate::{DataError, Dataset, Records, Scaling, Shape, Split, idx};

struct Asset {
    file: &'static str,
    gzip: &'static [u8],
    #[cfg(test)]
    sha256: &'static str,
}

const TRAIN_IMAGES: Asset = Asset {
    file: "train-images-idx3-ubyte",
    gzip: geodp_mnist::TRAIN_IMAGES,
    #[cfg(test)]
    sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
};
const TRAIN_LABELS: Asset = Asset {
    file: "train-labels-idx1-ubyte",
    gzip: include_bytes!("../assets/train-labels-idx1-ubyte.gz"),
    #[cfg(test)]
    sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
};
const TEST_IMAGES: Asset = Asset {
    file: "t10k-images-idx3-ubyte",
    gzip: include_bytes!("../assets/t10k-images-idx3-ubyte.gz"),
    #[cfg(test)]
    sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
};
const TEST_LABELS: Asset = Asset {
    file: "t10k-labels-idx1-ubyte",
    gzip: include_bytes!("../assets/t10k-labels-idx1-ubyte.gz"),
    #[cfg(test)]
    sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
};

/// The scaling of the paper's CNN: (p/255 − 0.1307)/0.3081, the constants everybody uses for MNIST.
pub fn standard_scaling() -> Scaling {
    Scaling::Standard { mean: vec![0.1307], std: vec![0.3081] }
}

/// Both parts of MNIST; [`standard_scaling`] for the CNN, [`Scaling::Unit`] for logistic regression.
pub fn load(scaling: &Scaling) -> Result<Split, DataError> {
    let (train, test) = rayon::join(|| load_train(scaling), || load_test(scaling));
    Ok(Split { train: train?, test: test? })
}

/// The 60,000 training images.
pub fn load_train(scaling: &Scaling) -> Result<Dataset, DataError> {
    static CACHE: OnceLock<Part> = OnceLock::new();
    dataset("MNIST", part(&CACHE, train_images, &TRAIN_LABELS)?, scaling)
}

/// The 10,000 test images.
pub fn load_test(scaling: &Scaling) -> Result<Dataset, DataError> {
    static CACHE: OnceLock<Part> = OnceLock::new();
    dataset("MNIST test", part(&CACHE, || unpack(&TEST_IMAGES), &TEST_LABELS)?, scaling)
}

#[derive(Clone)]
struct Part {
    pixels: Arc<Vec<u8>>,
    labels: Vec<u32>,
}

fn part(
    cache: &OnceLock<Part>,
    images: impl FnOnce() -> Result<Vec<u8>, DataError>,
    labels: &Asset,
) -> Result<Part, DataError> {
    if let Some(part) = cache.get() {
        return Ok(part.clone());
    }
    let pixels = images()?;
    let labels = unpack(labels)?;
    let labels = labels.into_iter().map(u32::from).collect();
    Ok(cache.get_or_init(|| Part { pixels: Arc::new(pixels), labels }).clone())
}

/// The pixels of the training images: each member to its place, by whichever thread is free.
fn train_images() -> Result<Vec<u8>, DataError> {
    const MEMBER_PIXELS: usize = geodp_mnist::MEMBER_IMAGES * 28 * 28;
    let members: Vec<&[u8]> = geodp_mnist::image_members().collect();
    let mut pixels = vec![0; members.len() * MEMBER_PIXELS];
    let places = pixels.par_chunks_mut(MEMBER_PIXELS).zip(members).with_max_len(1);
    places.try_for_each(|(place, member)| {
        let mut member = GzDecoder::new(member);
        // Behind the pixels stands the checksum; whoever reads on has it compared.
        let read = member.read_exact(place).and_then(|()| member.read(&mut [0]));
        read.map(|_| ()).map_err(|error| broken_gzip(TRAIN_IMAGES.file, &error))
    })?;
    Ok(pixels)
}

/// The values of an asset. Its bytes stay where they are: a copy costs as much as unpacking.
fn unpack(asset: &Asset) -> Result<Vec<u8>, DataError> {
    let mut bytes = gunzip(asset.file, asset.gzip, idx::announced)?;
    let layout = idx::layout(asset.file, &bytes)?;
    DataError::check_length(asset.file, layout.expected, bytes.len() as u64)?;
    bytes.drain(..layout.body_start);
    Ok(bytes)
}

fn dataset(name: &str, part: Part, scaling: &Scaling) -> Result<Dataset, DataError> {
    let records = Records::from_bytes(Shape::image(1, 28, 28), part.pixels, scaling)?;
    let class_names = (0..10).map(|digit| digit.to_string()).collect();
    Dataset::new(name, records, part.labels, class_names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Values;
    use crate::digest::check_sha256;

    #[test]
    fn the_files_inside_are_the_published_ones() {
        for asset in [TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS] {
            let bytes = gunzip(asset.file, asset.gzip, idx::announced).unwrap();
            check_sha256(asset.file, &bytes, asset.sha256).unwrap();
            let values = idx::parse(asset.file, &bytes).unwrap().values;
            let training = asset.file == TRAIN_IMAGES.file;
            let unpacked = if training { train_images() } else { unpack(&asset) };
            assert!(values == Values::Bytes(unpacked.unwrap()), "{}", asset.file);
        }
    }
}
