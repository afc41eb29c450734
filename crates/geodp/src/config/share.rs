//! The records of one process of several: only its share of them is read and kept.
//!
//! Which units are held back for testing and which are whose follows from how many there are, so every
//! process finds its own. Test records are those of the first. Data that is inside the program or in one
//! fixed form (MNIST, CIFAR-10) is unpacked as a whole, and the share is copied out of it.

use super::load::{HOLDOUT_SEED, Imported, Loaded, Stored, image_options};
use super::{DataConfig, PairFiles, RunConfig};
use crate::Error;
use geodp_data::images::{self, Listed};
use geodp_data::table::{self, Schema, TablePart};
use geodp_data::{
    Dataset, Fingerprint, FingerprintPart, PairOptions, PairPart, Source, Split, held_back,
};
use std::path::Path;

/// A share of the training records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Number of its first unit.
    pub first: usize,
    /// Units of the whole.
    pub of: usize,
    /// Of everything that the records are read from: the same in all processes.
    pub source: Fingerprint,
    /// What it knows of the whole's fingerprint.
    pub part: FingerprintPart,
}

/// A process's rank, and how many there are.
pub(crate) type Seat = (usize, usize);

impl Share {
    /// The share of `seat` of data that is all there.
    fn copied(mut split: Split, (rank, size): Seat) -> Result<(Split, Self), Error> {
        let (of, source) = (split.train.unit_count(), split.train.fingerprint());
        let own = geodp_data::share(of, rank, size);
        let first = own.start;
        split.train = split.train.share(own)?;
        if rank > 0 {
            split.test = split.train.subset(&[])?;
        }
        let part = FingerprintPart::of(&split.train, of);
        Ok((split, Share { first, of, source, part }))
    }
}

impl DataConfig {
    /// The share of one process. What is reported of reading is of the records it read.
    pub(crate) fn load_share(&self, seat: Seat) -> Result<Loaded, Error> {
        match self {
            Self::Mnist { .. } | Self::Cifar10 { .. } => {
                let loaded = self.load()?;
                let (split, share) = Share::copied(loaded.split, seat)?;
                Ok(Loaded { split, share: Some(share), ..loaded })
            }
            Self::Arrays(files) => files.load_share(seat),
            Self::Images { train, test, grey, holdout, .. } => {
                let options = |classes| image_options(*grey, classes);
                let source = Listed::in_folder(train, &options(None))?;
                let test = test.as_ref().map(|folder| {
                    let classes = Some(source.class_names().to_vec());
                    move || Ok(with_file(folder, images::load(folder, &options(classes))?))
                });
                read(&source, Some(train), test, *holdout, seat)
            }
            Self::Table { train, test, schema, holdout, .. } => {
                let schema = Schema::load(schema)?;
                let source = TablePart::open(train, &schema)?;
                let test = test.as_ref().map(|file| {
                    let schema = &schema;
                    move || Ok(with_file(file, table::read(file, schema)?))
                });
                let loaded = read(&source, Some(train), test, *holdout, seat)?;
                Ok(Loaded { schema: Some(schema), ..loaded })
            }
        }
    }
}

impl PairFiles {
    fn load_share(&self, seat: Seat) -> Result<Loaded, Error> {
        let options = PairOptions::numbered("data", self.classes);
        let source = PairPart::open(&self.train_inputs, &self.train_labels, options)?;
        let test = self.test_files()?;
        let test = test.map(|files| move || Ok((self.load_pair(files)?, None)));
        read(&source, None, test, self.holdout, seat)
    }
}

/// Test records, and what reading them did.
type Test = (Dataset, Option<Imported>);

fn with_file(file: &Path, (data, report): (Dataset, table::ImportReport)) -> Test {
    (data, Some(Imported { file: file.to_owned(), report }))
}

/// Reads the share of `seat`; `test` reads test records that are of their own, else some are held back.
fn read(
    source: &dyn Source,
    file: Option<&Path>,
    test: Option<impl FnOnce() -> Result<Test, Error>>,
    holdout: Option<usize>,
    (rank, size): Seat,
) -> Result<Loaded, Error> {
    super::load::check_test(test.is_some(), holdout)?;
    let all = source.units();
    let count = if test.is_some() { 0 } else { holdout.unwrap_or(all / 10) };
    if count > all {
        let reason = format!("cannot hold back {count} of {all} records or units");
        return Err(Error::Plan(reason));
    }
    let (rest, held) = held_back(all, count, HOLDOUT_SEED);
    let (of, own) = (rest.len(), geodp_data::share(rest.len(), rank, size));
    let first = own.start;
    let (train, mut report) = source.read(&rest[own], rank == 0)?;
    let mut imported = Vec::new();
    let test = match test {
        _ if rank > 0 => train.subset(&[])?,
        Some(test) => {
            let (test, read) = test()?;
            imported.extend(read);
            test
        }
        None => {
            let (test, held) = source.read(&held, false)?;
            report.add(&held);
            test
        }
    };
    if let Some(file) = file {
        imported.insert(0, Imported { file: file.to_owned(), report });
    }
    let part = FingerprintPart::of(&train, of);
    let share = Some(Share { first, of, source: source.digest()?, part });
    let stored = Stored::of(train.records());
    let split = Split { train, test };
    Ok(Loaded { split, imported, schema: None, views: None, share, stored })
}

impl RunConfig {
    /// As [`load`](Self::load) or, with a folder, [`load_in`](Self::load_in), of one process of several:
    /// its share of the training records, whose features alone are computed. Test records are rank 0's.
    pub(crate) fn load_share(
        &self,
        folder: Option<&Path>,
        progress: &(dyn Fn(usize, usize) + Sync),
        seat: Seat,
    ) -> Result<Loaded, Error> {
        let seen = folder.map(|folder| self.data.seen_from(folder));
        let loaded = seen.as_ref().unwrap_or(&self.data).load_share(seat)?;
        self.prepared(loaded, progress)
    }

    /// The fingerprint of what the model sees, of the whole training records'.
    pub(crate) fn fingerprint_of(&self, records: Fingerprint) -> Fingerprint {
        self.features.as_ref().map_or(records, |features| features.fingerprint_of(records))
    }
}
