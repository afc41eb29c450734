//! Features computed from records before training, and before prediction: nothing of them is learnt.
//!
//! ```toml
//! [features]
//! kind = "scattering"
//! groups = 27              # of the normalisation; must divide 81 × channels
//! storage = "half"         # 11 significant bits; or "single": f32, twice the memory, slower steps
//! ```
//!
//! What makes a spec chooses `half` and writes it down. A file without `storage` means `single` wherever it is
//! read: run folders and model files of versions that knew no better default leave it out, and a config somebody
//! writes has the same format, so the two cannot be told apart.
//!
//! Records of channels × height × width become records of (81·channels) × height/4 × width/4, coefficient
//! by coefficient of each channel, and are normalised record by record. A record's features depend on that
//! record alone, so neighbouring datasets stay neighbours and no ε is spent. They are computed once,
//! on all cores, and kept in memory: the bits depend neither on the threads nor on the CPU
//! ([`geodp_scattering`]).

use std::sync::atomic::{AtomicUsize, Ordering};

use geodp_scattering::{Scattering, Scratch, check_groups, group_norm};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::digest::FieldHasher;
use crate::{DataError, Dataset, Fingerprint, Records, Shape, Viewed};
use geodp_nn::{Samples, half};

/// Tramèr and Boneh's number of groups; it divides 81 × channels for any number of channels.
const DEFAULT_GROUPS: usize = 27;

/// Which features stand between the records and the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum FeatureSpec {
    /// The scattering transform of images, normalised in groups of channels.
    Scattering {
        /// Groups of the normalisation.
        #[serde(default = "default_groups", skip_serializing_if = "is_default_groups")]
        groups: usize,
        /// How features are kept in memory; `single` where a file does not say. It is left out again on
        /// writing: a run's config is recognised by the hash of its text.
        #[serde(default = "Storage::unsaid", skip_serializing_if = "Storage::is_unsaid")]
        storage: Storage,
    },
}

/// How features are kept in memory; arithmetic is in f32 either way.
///
/// Halves take half the memory, and a linear model's steps are faster on them, for they are read where they stand.
/// Accuracies are the same. There is no `Default`: what is new is [`FeatureSpec::scattering`], kept as halves, and
/// a file that does not say means f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// As f32.
    Single,
    /// As IEEE binary16.
    Half,
}

impl Storage {
    /// What a file means that does not say.
    fn unsaid() -> Self {
        Storage::Single
    }

    fn is_unsaid(&self) -> bool {
        *self == Self::unsaid()
    }
}

fn default_groups() -> usize {
    DEFAULT_GROUPS
}

fn is_default_groups(groups: &usize) -> bool {
    *groups == DEFAULT_GROUPS
}

impl FeatureSpec {
    /// Scattering with 27 groups, kept as binary16: what a new run gets.
    pub fn scattering() -> Self {
        Self::scattering_as(Storage::Half)
    }

    /// Scattering with 27 groups, kept so.
    pub fn scattering_as(storage: Storage) -> Self {
        FeatureSpec::Scattering { groups: DEFAULT_GROUPS, storage }
    }

    /// Shape of the features of records of this shape.
    ///
    /// # Errors
    /// If such records are no images of at least 4 × 4 pixels, or the groups do not fit.
    pub fn shape(&self, input: Shape) -> Result<Shape, DataError> {
        let FeatureSpec::Scattering { groups, .. } = self;
        let Shape { channels, height, width } = input;
        if height.min(width) < 4 {
            return Err(DataError::Argument(format!(
                "scattering features are made of images of at least 4 × 4 pixels, and these records are {channels} × {height} × {width}; leave [features] out"
            )));
        }
        let shape = Shape::image(81 * channels, height / 4, width / 4);
        check_groups(shape.channels, *groups).map_err(argument)?;
        Ok(shape)
    }

    /// The features of every record, in order. `progress` is told how many of how many records are
    /// done, from any thread, and not always in order.
    ///
    /// # Errors
    /// As [`shape`](Self::shape), or if a record's numbers are too large to be transformed.
    pub fn apply(
        &self,
        records: &Records,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Records, DataError> {
        self.compute(records, records.len(), &|at, out| records.read_input(at, out), progress)
    }

    /// The features of `count` inputs that are read like `records`.
    fn compute(
        &self,
        records: &Records,
        count: usize,
        read: &ReadInput<'_>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Records, DataError> {
        let shape = self.shape(records.shape())?;
        let FeatureSpec::Scattering { groups, storage } = self;
        let input = records.shape();
        let job = Job {
            count,
            read,
            input,
            scattering: Scattering::new(input.height, input.width).map_err(argument)?,
            groups: *groups,
            len: shape.channels * shape.height * shape.width,
            progress,
            done: AtomicUsize::new(0),
        };
        let made = format!("{}; {}", records.preprocessing(), self.describe());
        match storage {
            Storage::Single => Records::from_floats(shape, job.run(|value| value)?, made),
            Storage::Half => Records::from_halves(shape, job.run(half::encode)?, made),
        }
    }

    /// [`apply`](Self::apply) to the records of a dataset; labels, classes and name stay.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_to(
        &self,
        data: &Dataset,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Dataset, DataError> {
        let made = data.with_records(self.apply(data.records(), progress)?)?;
        Ok(made.with_fingerprint(self.fingerprint_of(data.fingerprint())))
    }

    /// The features of all views of `data`, view by view of each record.
    pub(crate) fn apply_to_views(
        &self,
        data: &Dataset,
        views: &Viewed,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Dataset, DataError> {
        let read = |at: usize, out: &mut [f32]| views.read_input(at, out);
        let features = self.compute(data.records(), views.len(), &read, progress)?;
        let labels = (0..views.len()).map(|row| views.label(row)).collect();
        Dataset::new(data.name(), features, labels, data.class_names().to_vec())
    }

    /// The fingerprint of the features of `records`, without computing them: that of the records, and
    /// what is done to them.
    pub fn fingerprint_of(&self, records: Fingerprint) -> Fingerprint {
        let mut hasher = FieldHasher::new("geodp features 1");
        hasher.field(records.to_string().as_bytes());
        hasher.field(self.describe().as_bytes());
        hasher.finish()
    }

    /// The features in one line, part of a dataset's fingerprint.
    pub fn describe(&self) -> String {
        let FeatureSpec::Scattering { groups, storage } = self;
        let stored = match storage {
            Storage::Single => "f32",
            Storage::Half => "f16",
        };
        format!("scattering J 2 L 8 order 2, group norm {groups}, {stored}")
    }
}

fn argument(error: impl std::fmt::Display) -> DataError {
    DataError::Argument(error.to_string())
}

/// Writes the input at a place.
type ReadInput<'a> = dyn Fn(usize, &mut [f32]) + Sync + 'a;

/// One pass over some inputs.
struct Job<'a> {
    count: usize,
    read: &'a ReadInput<'a>,
    /// Shape of one input.
    input: Shape,
    scattering: Scattering,
    groups: usize,
    /// Features of one record.
    len: usize,
    progress: &'a (dyn Fn(usize, usize) + Sync),
    done: AtomicUsize,
}

/// What one thread works with: a block's inputs and features.
struct Desk {
    scratch: Scratch,
    inputs: Vec<f32>,
    features: Vec<f32>,
}

impl Job<'_> {
    /// The features of all records, each value through `store`.
    fn run<T: Copy + Default + Send>(
        &self,
        store: impl Fn(f32) -> T + Sync,
    ) -> Result<Vec<T>, DataError> {
        let total = self.count;
        let mut all = vec![T::default(); total * self.len];
        let blocks = all.par_chunks_mut(Scattering::BLOCK * self.len).enumerate();
        blocks.try_for_each_init(
            || self.desk(),
            |desk, (block, out)| {
                let count = out.len() / self.len;
                self.block(desk, block * Scattering::BLOCK, count)?;
                for (out, value) in out.iter_mut().zip(&desk.features) {
                    *out = store(*value);
                }
                let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
                (self.progress)(done, total);
                Ok(())
            },
        )?;
        Ok(all)
    }

    fn input_len(&self) -> usize {
        self.input.channels * self.input.height * self.input.width
    }

    fn desk(&self) -> Desk {
        Desk {
            scratch: self.scattering.scratch(),
            inputs: vec![0.0; Scattering::BLOCK * self.input_len()],
            features: vec![0.0; Scattering::BLOCK * self.len],
        }
    }

    /// The features of `count` records from `first` on.
    fn block(&self, desk: &mut Desk, first: usize, count: usize) -> Result<(), DataError> {
        let (input_len, channels) = (self.input_len(), self.input.channels);
        let (plane, path) = (input_len / channels, self.len / channels);
        for (at, input) in desk.inputs.chunks_exact_mut(input_len).take(count).enumerate() {
            (self.read)(first + at, input);
        }
        for channel in 0..channels {
            let inputs = desk.inputs.chunks_exact(input_len).take(count);
            let planes: Vec<&[f32]> =
                inputs.map(|input| &input[channel * plane..][..plane]).collect();
            let outputs = desk.features.chunks_exact_mut(self.len).take(count);
            let mut outputs: Vec<&mut [f32]> =
                outputs.map(|features| &mut features[channel * path..][..path]).collect();
            self.scattering.transform(&planes, &mut desk.scratch, &mut outputs);
        }
        for (at, features) in desk.features.chunks_exact_mut(self.len).take(count).enumerate() {
            group_norm(features, 81 * channels, self.groups).map_err(argument)?;
            if features.iter().any(|value| !value.is_finite()) {
                return Err(DataError::Argument(format!(
                    "record {} holds numbers too large for scattering; scale the inputs to about 1",
                    first + at
                )));
            }
        }
        Ok(())
    }
}
