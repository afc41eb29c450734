//! Data that can be read in part: what processes need that each hold a share.
//!
//! Opening looks at what is needed to know how many units there are: a header, a list of files, lines
//! counted. Reading then takes the records of some units and keeps nothing of the others. Every byte of
//! the files is in [`Source::digest`], so processes find out whether they have the same files.

use crate::table::ImportReport;
use crate::{DataError, Dataset, Fingerprint};

/// See the module.
pub trait Source {
    /// How many privacy units there are: records, unless several of them are one unit's.
    fn units(&self) -> usize;

    /// A digest of every byte of the files and of how they are read.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn digest(&self) -> Result<Fingerprint, DataError>;

    /// The records of these units (in ascending order), in the order of the file. Rows that become no
    /// record are of no unit; the process that is asked to reads them, too, so that they are counted.
    ///
    /// # Errors
    /// A bad record among them.
    fn read(&self, units: &[u32], others: bool) -> Result<(Dataset, ImportReport), DataError>;
}
