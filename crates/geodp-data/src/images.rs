//! A folder of images by class: `folder/cat/1.png`, `folder/dog/a.jpg`, …
//!
//! The folders' names are the classes, in alphabetical order; each file is a record. Images are PNG or
//! JPEG, all of one size: to crop or to stretch is a choice that belongs to whoever made them. Their
//! pixels stay bytes; transparency is left out. An image's size is read before it is unpacked, so a file
//! that unpacks to very much is refused for its size.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod decode;

use decode::{Decoded, Decoder};

use crate::digest::FieldHasher;
use crate::files::{digest_into, shown};
use crate::table::ImportReport;
use crate::{DataError, Dataset, Fingerprint, Records, Scaling, Shape, Source};

/// Longest side of an image.
const LONGEST: usize = 4096;

/// How a folder of images is read.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageOptions {
    /// Read as one channel of grey, or as red, green and blue.
    pub grey: bool,
    /// Scaling of the bytes.
    pub scaling: Scaling,
    /// The classes, where they are not to be those of the folder: a test set must have those of its
    /// training set.
    pub class_names: Option<Vec<String>>,
}

/// Loads a folder of images by class. Files that are no images by their ending are left out and named
/// in the report.
pub fn load(folder: &Path, options: &ImageOptions) -> Result<(Dataset, ImportReport), DataError> {
    let listed = Listed::in_folder(folder, options)?;
    let all: Vec<u32> = (0..listed.files.len() as u32).collect();
    listed.read(&all)
}

/// The images of a folder, before they are read.
pub struct Listed {
    name: String,
    options: ImageOptions,
    class_names: Vec<String>,
    /// Each image with its label.
    files: Vec<(PathBuf, u32)>,
    ignored: Vec<String>,
}

impl Listed {
    /// Lists a folder of images by class.
    ///
    /// # Errors
    /// A folder that is no class, or none with images.
    pub fn in_folder(folder: &Path, options: &ImageOptions) -> Result<Self, DataError> {
        let found: Vec<String> = folders(folder)?;
        let class_names = options.class_names.clone().unwrap_or_else(|| found.clone());
        let (mut listed, mut ignored) = (Vec::new(), Vec::new());
        for class in &found {
            let Some(label) = class_names.iter().position(|name| name == class) else {
                return Err(DataError::Unsupported {
                    file: shown(&folder.join(class)),
                    problem: format!("a folder that is none of the classes {class_names:?}"),
                });
            };
            for path in files(&folder.join(class))? {
                if is_image(&path) {
                    listed.push((path, label as u32));
                } else {
                    ignored.push(shown(&path));
                }
            }
        }
        if listed.is_empty() {
            return Err(DataError::Unsupported {
                file: shown(folder),
                problem: "no PNG or JPEG images in folders named by their class".to_owned(),
            });
        }
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        Ok(Listed { name, options: options.clone(), class_names, files: listed, ignored })
    }

    /// The names of the classes, in the order of their labels.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    fn read(&self, chosen: &[u32]) -> Result<(Dataset, ImportReport), DataError> {
        let mut pixels = Pixels::new(self.options.grey);
        // The first image says how large all are, also where none is chosen.
        let shape = pixels.shape_of(&self.files[0].0)?;
        let chosen = chosen.iter().map(|&at| &self.files[at as usize]);
        let labels: Vec<u32> = chosen.clone().map(|(_, label)| *label).collect();
        chosen.map(|(path, _)| path).try_for_each(|path| pixels.add(path))?;
        let report =
            ImportReport { ignored: self.ignored.clone(), ..ImportReport::unchanged(labels.len()) };
        let records = Records::from_bytes(shape, Arc::new(pixels.bytes), &self.options.scaling)?;
        let data = Dataset::new(self.name.clone(), records, labels, self.class_names.clone())?;
        Ok((data, report))
    }
}

/// Loads the images of one folder, without labels, in alphabetical order, with their files.
pub fn load_unlabelled(
    folder: &Path,
    options: &ImageOptions,
) -> Result<(Records, Vec<PathBuf>), DataError> {
    let mut pixels = Pixels::new(options.grey);
    let paths: Vec<PathBuf> = files(folder)?.into_iter().filter(|path| is_image(path)).collect();
    paths.iter().try_for_each(|path| pixels.add(path))?;
    let Some(shape) = pixels.shape else {
        return Err(DataError::Empty { file: shown(folder) });
    };
    let records = Records::from_bytes(shape, Arc::new(pixels.bytes), &options.scaling)?;
    Ok((records, paths))
}

impl Source for Listed {
    fn units(&self) -> usize {
        self.files.len()
    }

    fn digest(&self) -> Result<Fingerprint, DataError> {
        let mut hasher = FieldHasher::new("geodp image part 1");
        self.class_names.iter().for_each(|name| hasher.field(name.as_bytes()));
        for (path, label) in &self.files {
            hasher.number(u64::from(*label));
            digest_into(path, &mut hasher)?;
        }
        Ok(hasher.finish())
    }

    fn read(&self, units: &[u32], _: bool) -> Result<(Dataset, ImportReport), DataError> {
        self.read(units)
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let entries = fs::read_dir(folder).map_err(DataError::io("read", folder))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> =
        paths.collect::<Result<_, _>>().map_err(DataError::io("read", folder))?;
    paths.retain(|path| {
        path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'))
    });
    paths.sort();
    Ok(paths)
}

fn folders(folder: &Path) -> Result<Vec<String>, DataError> {
    let folders = entries(folder)?.into_iter().filter(|path| path.is_dir());
    let name = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(folders.filter_map(name).collect())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_file()).collect())
}

fn is_image(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    matches!(ending.as_str(), "png" | "jpg" | "jpeg")
}

/// Images so far, channel by channel.
struct Pixels {
    grey: bool,
    shape: Option<Shape>,
    first: PathBuf,
    bytes: Vec<u8>,
}

impl Pixels {
    fn new(grey: bool) -> Self {
        Pixels { grey, shape: None, first: PathBuf::new(), bytes: Vec::new() }
    }

    /// The shape of all images, which is that of this one.
    fn shape_of(&mut self, path: &Path) -> Result<Shape, DataError> {
        let bytes = fs::read(path).map_err(DataError::io("read", path))?;
        let decoder = Decoder::open(&bytes).map_err(|problem| broken(path, &problem))?;
        self.check(path, decoder.size())
    }

    fn add(&mut self, path: &Path) -> Result<(), DataError> {
        let bytes = fs::read(path).map_err(DataError::io("read", path))?;
        let decoder = Decoder::open(&bytes).map_err(|problem| broken(path, &problem))?;
        self.check(path, decoder.size())?;
        let image = decoder.decode().map_err(|problem| broken(path, &problem))?;
        self.append(&image);
        Ok(())
    }

    /// Holds an image's size against that of the first.
    fn check(&mut self, path: &Path, (height, width): (usize, usize)) -> Result<Shape, DataError> {
        let shape = Shape::image(if self.grey { 1 } else { 3 }, height, width);
        match self.shape {
            None if width.max(height) > LONGEST || width.min(height) == 0 => {
                return Err(DataError::Unsupported {
                    file: shown(path),
                    problem: format!(
                        "an image of {height} × {width} pixels; sides of 1 to {LONGEST} are read"
                    ),
                });
            }
            None => (self.shape, self.first) = (Some(shape), path.to_owned()),
            Some(expected) if expected != shape => {
                return Err(DataError::Unsupported {
                    file: shown(path),
                    problem: format!(
                        "an image of {height} × {width} pixels, but {} has {} × {}; scale all to one size",
                        shown(&self.first),
                        expected.height,
                        expected.width
                    ),
                });
            }
            Some(_) => {}
        }
        Ok(shape)
    }

    /// Appends an image plane by plane.
    fn append(&mut self, image: &Decoded) {
        let pixels = || image.bytes.chunks_exact(image.channels);
        match (self.grey, image.channels) {
            // Grey, maybe with transparency.
            (true, 1 | 2) => self.bytes.extend(pixels().map(|pixel| pixel[0])),
            (false, 1 | 2) => {
                (0..3).for_each(|_| self.bytes.extend(pixels().map(|pixel| pixel[0])));
            }
            (true, _) => {
                self.bytes.extend(pixels().map(|pixel| luma([pixel[0], pixel[1], pixel[2]])))
            }
            (false, _) => {
                (0..3).for_each(|channel| self.bytes.extend(pixels().map(|pixel| pixel[channel])));
            }
        }
    }
}

/// Brightness of a colour by ITU-R BT.601, rounded.
fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let sum = 299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue);
    ((sum + 500) / 1000) as u8
}

fn broken(path: &Path, problem: &str) -> DataError {
    DataError::Unsupported {
        file: shown(path),
        problem: format!(
            "not an image that can be read ({}); write it as PNG or JPEG",
            problem.trim_end()
        ),
    }
}
