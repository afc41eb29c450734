//! A dataset: records, a label for each, and the number of classes.
//!
//! The one type that every loader of this crate makes and that training reads. Subsets, digit pairs
//! and validation parts are datasets again and share the stored inputs. What a dataset *is* can be
//! said in one line, its [`Fingerprint`]: checkpoints keep it, so that a run is never resumed on
//! other data.

use std::sync::{Arc, OnceLock};

use geodp_nn::{Loss, permutation};

use crate::DataError;
use crate::digest::{FieldHasher, Fingerprint};
use crate::fingerprint::FingerprintPart;
use crate::records::Records;
use crate::scaling::{Scaling, Shape};
use crate::unit_column::UnitColumn;

/// Labelled records.
#[derive(Clone, Debug)]
pub struct Dataset {
    name: String,
    records: Records,
    labels: Arc<[u32]>,
    class_names: Vec<String>,
    targets: Option<Targets>,
    units: Option<Arc<UnitColumn>>,
    fingerprint: OnceLock<Fingerprint>,
}

/// Numbers to be learnt, in place of classes.
#[derive(Clone, Debug)]
struct Targets {
    /// Each in \[0, 1\]: 0 is the lower end of the range, 1 its upper end.
    values: Arc<[f32]>,
    range: [f64; 2],
    loss: Loss,
}

/// A training set and the test set that belongs to it.
#[derive(Clone, Debug)]
pub struct Split {
    /// Records to train on.
    pub train: Dataset,
    /// Records held back for measuring.
    pub test: Dataset,
}

impl Dataset {
    /// Puts records and labels together; `class_names[k]` is the name of label k.
    pub fn new(
        name: impl Into<String>,
        records: Records,
        labels: Vec<u32>,
        class_names: Vec<String>,
    ) -> Result<Self, DataError> {
        let name = name.into();
        let classes = u32::try_from(class_names.len()).unwrap_or(u32::MAX);
        if classes < 2 {
            return Err(DataError::Argument(format!(
                "{name}: {classes} class declared; telling records apart needs at least 2"
            )));
        }
        if records.len() != labels.len() {
            return Err(DataError::CountMismatch {
                inputs_file: name.clone(),
                inputs: records.len(),
                labels_file: name,
                labels: labels.len(),
            });
        }
        if let Some(index) = labels.iter().position(|&label| label >= classes) {
            let label = i64::from(labels[index]);
            return Err(DataError::LabelOutOfRange { file: name, index, label, classes });
        }
        let labels = labels.into();
        Ok(Dataset {
            name,
            records,
            labels,
            class_names,
            targets: None,
            units: None,
            fingerprint: OnceLock::new(),
        })
    }

    /// Records with a number each to be learnt: `targets` in \[0, 1\] are the places of those numbers
    /// in the declared `range`, held against outputs by `loss`. Such a dataset has no classes, and its labels are 0.
    pub fn regression(
        name: impl Into<String>,
        records: Records,
        targets: Vec<f32>,
        range: [f64; 2],
        loss: Loss,
    ) -> Result<Self, DataError> {
        let name = name.into();
        if records.len() != targets.len() {
            return Err(DataError::CountMismatch {
                inputs_file: name.clone(),
                inputs: records.len(),
                labels_file: name,
                labels: targets.len(),
            });
        }
        if let Some(index) = targets.iter().position(|target| !(0.0..=1.0).contains(target)) {
            let value = f64::from(targets[index]);
            return Err(DataError::Argument(format!(
                "{name}: record {index} has the target {value}; targets are in [0, 1]"
            )));
        }
        Ok(Dataset {
            name,
            labels: vec![0; targets.len()].into(),
            records,
            class_names: Vec::new(),
            targets: Some(Targets { values: targets.into(), range, loss }),
            units: None,
            fingerprint: OnceLock::new(),
        })
    }

    /// The same records with their privacy units.
    ///
    /// # Errors
    /// If the units are of another number of records.
    pub fn with_units(self, units: UnitColumn) -> Result<Self, DataError> {
        if units.all().len() != self.len() {
            return Err(DataError::Argument(format!(
                "{}: units of {} records for {} records",
                self.name,
                units.all().len(),
                self.len()
            )));
        }
        Ok(Dataset { units: Some(Arc::new(units)), fingerprint: OnceLock::new(), ..self })
    }

    /// What it is called in reports.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Shape of one input.
    pub fn shape(&self) -> Shape {
        self.records.shape()
    }

    /// Values in one input.
    pub fn input_len(&self) -> usize {
        self.records.input_len()
    }

    /// How many privacy units there are: records, unless several of them are one unit's.
    pub fn unit_count(&self) -> usize {
        self.units().map_or(self.len(), |column| column.units().len())
    }

    /// The privacy units, where one is more than one record.
    pub fn units(&self) -> Option<&UnitColumn> {
        self.units.as_deref()
    }

    /// Number of each record to be learnt, in \[0, 1\], if that is what is learnt.
    pub fn targets(&self) -> Option<&[f32]> {
        self.targets.as_ref().map(|targets| &targets.values[..])
    }

    /// The range in which [`targets`](Self::targets) are places.
    pub fn target_range(&self) -> Option<[f64; 2]> {
        self.targets.as_ref().map(|targets| targets.range)
    }

    /// What being off by some costs, if a number is learnt.
    pub fn target_loss(&self) -> Option<Loss> {
        self.targets.as_ref().map(|targets| targets.loss)
    }

    /// Number of classes; labels are below it. None if a number is learnt.
    pub fn classes(&self) -> usize {
        self.class_names.len()
    }

    /// Name of each class, in the order of their labels.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// The records without their labels.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// All labels, in order.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Label of record `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    pub fn label(&self, index: usize) -> u32 {
        self.labels[index]
    }

    /// Writes input `index` to `out`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len) or `out` is not [`input_len`](Self::input_len) long.
    pub fn read_input(&self, index: usize, out: &mut [f32]) {
        self.records.read_input(index, out);
    }

    /// A digest of shape, classes, preprocessing and every record in order ([`FingerprintPart`]). The
    /// name is not part of it. Computed on first use (about 0.1 s for MNIST) and kept.
    pub fn fingerprint(&self) -> Fingerprint {
        *self.fingerprint.get_or_init(|| {
            let whole = FingerprintPart::of(self, self.unit_count());
            FingerprintPart::join(whole.head, [&whole])
        })
    }

    /// The digest of what all shares of `units` units have in common.
    pub(crate) fn head(&self, units: usize) -> Fingerprint {
        let mut hasher = FieldHasher::new("geodp head 2");
        self.class_names.iter().for_each(|name| hasher.field(name.as_bytes()));
        self.records.describe_into(&mut hasher);
        if let Some(Targets { range, loss, .. }) = &self.targets {
            hasher.field(format!("targets {loss:?}").as_bytes());
            range.iter().for_each(|end| hasher.number(end.to_bits()));
        }
        if let Some(column) = &self.units {
            hasher.field(b"units");
            hasher.number(column.units().most_rows() as u64);
        }
        hasher.number(units as u64);
        hasher.finish()
    }

    /// Feeds one record with its label into a digest.
    pub(crate) fn feed(&self, index: usize, hasher: &mut FieldHasher) {
        self.records.feed(index, hasher);
        hasher.number(u64::from(self.labels[index]));
        if let Some(Targets { values, .. }) = &self.targets {
            hasher.number(u64::from(values[index].to_bits()));
        }
    }

    /// The same records read with other constants; an error if they are not stored as bytes.
    pub fn rescaled(&self, scaling: &Scaling) -> Result<Self, DataError> {
        let records = self.records.rescaled(scaling).unwrap_or_else(|| {
            Err(DataError::Argument(format!(
                "{}: inputs are not bytes, so there is no scaling to change",
                self.name
            )))
        })?;
        Ok(Dataset { records, fingerprint: OnceLock::new(), ..self.clone() })
    }

    /// Other inputs for the same records, in the same order.
    pub(crate) fn with_records(&self, records: Records) -> Result<Self, DataError> {
        if records.len() != self.len() {
            return Err(DataError::Argument(format!(
                "{}: {} inputs for {} records",
                self.name,
                records.len(),
                self.len()
            )));
        }
        Ok(Dataset { records, fingerprint: OnceLock::new(), ..self.clone() })
    }

    /// The same, known by this fingerprint.
    pub(crate) fn with_fingerprint(self, fingerprint: Fingerprint) -> Self {
        Dataset { fingerprint: OnceLock::from(fingerprint), ..self }
    }

    /// The records at these positions, in this order.
    pub fn subset(&self, indices: &[usize]) -> Result<Self, DataError> {
        let records = self.records.subset(indices)?;
        let labels = indices.iter().map(|&index| self.labels[index]).collect();
        let targets = self.targets.as_ref().map(|targets| Targets {
            values: indices.iter().map(|&index| targets.values[index]).collect(),
            range: targets.range,
            loss: targets.loss,
        });
        let units = self.units.as_ref().map(|units| units.subset(indices)).transpose()?;
        let units = units.map(Arc::new);
        Ok(Dataset {
            records,
            labels,
            targets,
            units,
            fingerprint: OnceLock::new(),
            ..self.clone()
        })
    }

    /// The records of some units (records are their own, where there is no column of them), in order, and
    /// stored on their own: the rest need not be kept for them.
    ///
    /// # Errors
    /// If there are no such units.
    pub fn share(&self, units: std::ops::Range<usize>) -> Result<Self, DataError> {
        if units.end > self.unit_count() {
            return Err(DataError::Argument(format!(
                "{}: units {units:?} of {}",
                self.name,
                self.unit_count()
            )));
        }
        let part = self.subset(&self.records_of(units))?;
        Ok(Dataset { records: part.records.copied()?, ..part })
    }

    /// The records of some units, in the order of the units.
    fn records_of(&self, units: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let Some(column) = self.units() else { return units.into_iter().collect() };
        let rows = units.into_iter().flat_map(|unit| column.units().rows(unit as u32));
        rows.map(|&record| record as usize).collect()
    }

    /// Only the records of the given classes, relabelled 0, 1, … in the order given:
    /// `only_labels(&[0, 1])` of MNIST is the paper's logistic regression set.
    pub fn only_labels(&self, keep: &[u32]) -> Result<Self, DataError> {
        let mut new_label = vec![None; self.classes()];
        for (position, &label) in (0u32..).zip(keep) {
            match new_label.get_mut(label as usize) {
                Some(slot @ None) => *slot = Some(position),
                Some(_) => {
                    return Err(DataError::Argument(format!("class {label} is listed twice")));
                }
                None => {
                    return Err(DataError::Argument(format!(
                        "class {label} was asked for, but the classes are 0 to {}",
                        self.classes() - 1
                    )));
                }
            }
        }
        let (indices, labels): (Vec<_>, Vec<_>) = (0..self.len())
            .filter_map(|index| Some((index, new_label[self.labels[index] as usize]?)))
            .unzip();
        let class_names = keep.iter().map(|&l| self.class_names[l as usize].clone()).collect();
        let records = self.records.subset(&indices)?;
        let data = Dataset::new(self.name.clone(), records, labels, class_names)?;
        match &self.units {
            Some(units) => data.with_units(units.subset(&indices)?),
            None => Ok(data),
        }
    }

    /// Parts off `count` records for validation, or `count` units with all their records where there
    /// are units: (the rest, the part). Which ones depends on the seed and the number of records (or
    /// units) alone, never on their content; both keep the original order.
    pub fn split_off(&self, count: usize, seed: u64) -> Result<(Self, Self), DataError> {
        let (all, what) = match self.units() {
            Some(column) => (column.units().len(), "units"),
            None => (self.len(), "records"),
        };
        if count > all {
            return Err(DataError::Argument(format!("cannot part off {count} of {all} {what}")));
        }
        let (rest, part) = held_back(all, count, seed);
        let records = |units: Vec<u32>| {
            let mut records = self.records_of(units.into_iter().map(|unit| unit as usize));
            records.sort_unstable();
            self.subset(&records)
        };
        Ok((records(rest)?, records(part)?))
    }
}

/// `count` of `all` numbers, held back by the seed alone: (the rest, those held back), in order.
///
/// # Panics
/// If there are not so many.
pub fn held_back(all: usize, count: usize, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let mut part: Vec<u32> = permutation(all, seed).into_iter().map(|unit| unit as u32).collect();
    let mut rest = part.split_off(count);
    part.sort_unstable();
    rest.sort_unstable();
    (rest, part)
}
