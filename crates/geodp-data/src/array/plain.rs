//! A plain file of an array, read block by block, so that a large one stands in memory once: as its values,
//! and not as its bytes beside them.
//!
//! The values are read and not mapped. A map would let them change while a run uses them, under a fingerprint
//! that no longer holds; who needs more records than fit in memory shares them among processes, of which each
//! reads its part.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::{Array, Layout, ReadLayout, Values};
use crate::DataError;
use crate::files::{HEADER_BYTES, is_gzip, shown};

/// Bytes read at a time: whole elements of any size.
const BLOCK: usize = 1 << 20;

/// A file whose header was read, and whose length is what that announces.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) layout: Layout,
}

impl Opened {
    /// `None` if the file is gzip, or no file of a known length: a pipe cannot be read twice.
    pub(super) fn new(path: &Path, layout: ReadLayout) -> Result<Option<Self>, DataError> {
        // Before it is opened: whoever writes into a pipe would lose its first reader.
        let about = fs::metadata(path).map_err(DataError::io("read", path))?;
        if !about.is_file() {
            return Ok(None);
        }
        let mut file = File::open(path).map_err(DataError::io("read", path))?;
        let mut first = Vec::new();
        let read = file.by_ref().take(HEADER_BYTES).read_to_end(&mut first);
        read.map_err(DataError::io("read", path))?;
        if is_gzip(&first) {
            return Ok(None);
        }
        let layout = layout(&shown(path), &first)?;
        DataError::check_length(&shown(path), layout.expected, about.len())?;
        Ok(Some(Opened { file, layout }))
    }

    /// All of its values.
    pub(super) fn read(self, path: &Path) -> Result<Array, DataError> {
        let Opened { mut file, layout: Layout { dims, decode, body_start, expected } } = self;
        let io = |error| DataError::io("read", path)(error);
        file.seek(SeekFrom::Start(body_start as u64)).map_err(io)?;
        let mut block = vec![0; BLOCK];
        let mut values = decode(&[]);
        values.reserve(dims.iter().product());
        let mut left = expected - body_start as u64;
        while left > 0 {
            let next = &mut block[..left.min(BLOCK as u64) as usize];
            file.read_exact(next).map_err(io)?;
            values.append(decode(next));
            left -= next.len() as u64;
        }
        Ok(Array { dims, values })
    }
}

impl Values {
    /// Room for so many in all, and for no more.
    fn reserve(&mut self, count: usize) {
        match self {
            Values::Bytes(values) => values.reserve_exact(count),
            Values::Integers(values) => values.reserve_exact(count),
            Values::Floats(values) => values.reserve_exact(count),
        }
    }

    /// Puts more values of the same type behind these.
    fn append(&mut self, more: Values) {
        match (self, more) {
            (Values::Bytes(values), Values::Bytes(more)) => values.extend(more),
            (Values::Integers(values), Values::Integers(more)) => values.extend(more),
            (Values::Floats(values), Values::Floats(more)) => values.extend(more),
            _ => unreachable!("a file's decoder makes values of one type"),
        }
    }
}
