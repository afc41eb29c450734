//! What a column's pages announce, checked before anything is unpacked.
//!
//! A page's header says how many bytes it has in the file and how many it has unpacked, and the reader
//! makes room for the second at once; of a dictionary it makes room for as many values as are announced.
//! So a few hundred bytes could ask for gigabytes. Here the headers are walked first, and a page is refused
//! if it announces more than [`MOST_UNPACKED`] times its bytes (what gzip can reach at most) and more than
//! [`SMALL`]; a dictionary, if it announces more values than its bytes can hold.
//!
//! Headers are structs of [Thrift's compact protocol](https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md),
//! of which only the numbers named in [`Header`] are kept; everything else is stepped over.

use std::io::{Read, Seek, SeekFrom};

/// How many times its bytes in the file a page may have unpacked.
pub(super) const MOST_UNPACKED: u64 = 1032;
/// What any page may have unpacked.
pub(super) const SMALL: u64 = 1 << 20;
/// Bytes of a header that are read at first.
const HEAD: usize = 1 << 10;
/// Structs in structs, at most; a page's header has three.
const DEEPEST: u32 = 16;

/// The numbers of a page's header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Header {
    unpacked: i64,
    packed: i64,
    dictionary_values: i64,
    /// Its own length.
    length: u64,
}

/// Why a column is not read.
pub(super) fn check(file: &mut (impl Read + Seek), start: u64, length: u64) -> Result<(), String> {
    let (mut at, end) = (start, start.saturating_add(length));
    while at < end {
        let header = header_at(file, at, end)?;
        let sizes = (u64::try_from(header.unpacked), u64::try_from(header.packed));
        let (Ok(unpacked), Ok(packed)) = sizes else {
            return Err(format!("the page at byte {at} announces a negative size"));
        };
        if unpacked > SMALL && unpacked > MOST_UNPACKED.saturating_mul(packed) {
            return Err(format!(
                "the page at byte {at} announces {unpacked} bytes in {packed}, more than any compression reaches"
            ));
        }
        if u64::try_from(header.dictionary_values).map_or(true, |values| values > unpacked) {
            return Err(format!(
                "the dictionary at byte {at} announces {} values in {unpacked} bytes",
                header.dictionary_values
            ));
        }
        at = at.saturating_add(header.length).saturating_add(packed);
        if at > end {
            return Err("a page is longer than its column".to_owned());
        }
    }
    Ok(())
}

fn header_at(file: &mut (impl Read + Seek), at: u64, end: u64) -> Result<Header, String> {
    let mut room = HEAD as u64;
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        file.seek(SeekFrom::Start(at)).map_err(|error| error.to_string())?;
        let most = room.min(end - at);
        file.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let mut walk = Walk { bytes: &bytes, at: 0 };
        match walk.page_header() {
            Some(header) => return Ok(Header { length: walk.at as u64, ..header }),
            // Statistics may hold long texts.
            None if most < end - at && bytes.len() as u64 == most => room *= 8,
            None => return Err(format!("the page at byte {at} has no header")),
        }
    }
}

/// A place in a struct; `None` where it ends too early or means nothing.
struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// Numbers of Thrift's types.
mod kind {
    pub(super) const FALSE: u8 = 2;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const BINARY: u8 = 8;
    pub(super) const STRUCT: u8 = 12;
}

impl Walk<'_> {
    fn page_header(&mut self) -> Option<Header> {
        let mut header = Header::default();
        self.fields(&mut |walk, id, kind| {
            match (id, kind) {
                (2, kind::I16..=kind::I64) => header.unpacked = walk.number()?,
                (3, kind::I16..=kind::I64) => header.packed = walk.number()?,
                (7, kind::STRUCT) => walk.fields(&mut |walk, id, kind| {
                    match (id, kind) {
                        (1, kind::I16..=kind::I64) => header.dictionary_values = walk.number()?,
                        _ => walk.skip(kind, DEEPEST)?,
                    }
                    Some(())
                })?,
                _ => walk.skip(kind, DEEPEST)?,
            }
            Some(())
        })?;
        Some(header)
    }

    /// Calls `field` with the number and the type of each field, in front of its content.
    fn fields(&mut self, field: &mut dyn FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        let mut id = 0_i64;
        loop {
            let byte = self.byte()?;
            if byte & 15 == 0 {
                return Some(());
            }
            id = if byte >> 4 == 0 { self.number()? } else { id + i64::from(byte >> 4) };
            field(self, id, byte & 15)?;
        }
    }

    fn byte(&mut self) -> Option<u8> {
        self.at += 1;
        self.bytes.get(self.at - 1).copied()
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A signed number, as the format turns it into an unsigned one.
    fn number(&mut self) -> Option<i64> {
        let value = self.unsigned()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn step_over(&mut self, count: u64) -> Option<()> {
        self.at = self.at.checked_add(usize::try_from(count).ok()?)?;
        (self.at <= self.bytes.len()).then_some(())
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // A truth that is a field stands in its type.
            1..=kind::FALSE => Some(()),
            3 => self.step_over(1),
            kind::I16..=kind::I64 => self.unsigned().map(|_| ()),
            7 => self.step_over(8),
            kind::BINARY => {
                let length = self.unsigned()?;
                self.step_over(length)
            }
            9..=10 => {
                let byte = self.byte()?;
                let count = if byte >> 4 == 15 { self.unsigned()? } else { u64::from(byte >> 4) };
                let one = |walk: &mut Self| match byte & 15 {
                    1..=kind::FALSE => walk.step_over(1),
                    of => walk.skip(of, depth),
                };
                (0..count).try_for_each(|_| one(self))
            }
            kind::STRUCT => self.fields(&mut |walk, _, kind| walk.skip(kind, depth)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A page of `packed` bytes whose header announces `unpacked`, and a dictionary of `values`.
    fn page(unpacked: i64, packed: i64, values: i64) -> Vec<u8> {
        let number = |value: i64| {
            let mut left = ((value << 1) ^ (value >> 63)) as u64;
            let mut bytes = Vec::new();
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
            bytes
        };
        // 1: type i32, 2: unpacked, 3: packed, 7: {1: values, 2: i32, stop}, stop.
        let mut bytes = [&[0x15][..], &number(2), &[0x15], &number(unpacked)].concat();
        bytes.extend([&[0x15][..], &number(packed), &[0x4c, 0x15], &number(values)].concat());
        bytes.extend([0x15, 0, 0, 0]);
        bytes.extend(vec![7; usize::try_from(packed).unwrap_or(0)]);
        bytes
    }

    fn verdict(bytes: &[u8]) -> Result<(), String> {
        check(&mut Cursor::new(bytes), 0, bytes.len() as u64)
    }

    #[test]
    fn plausible_pages_pass_and_bombs_do_not() {
        let two = [page(4000, 100, 10), page(40, 40, 10)].concat();
        verdict(&two).unwrap();
        verdict(&page(SMALL as i64, 5, 0)).unwrap();
        let ratio = MOST_UNPACKED as i64;
        verdict(&page(2000 * ratio, 2000, 0)).unwrap();
        let refused = |bytes: &[u8], says: &str| {
            let why = verdict(bytes).unwrap_err();
            assert!(why.contains(says), "{why}");
        };
        refused(&page(2000 * ratio + 1, 2000, 0), "more than any compression reaches");
        refused(&[page(40, 40, 1), page(1 << 30, 100, 1)].concat(), "1073741824 bytes in 100");
        refused(&page(100, 100, 101), "101 values in 100 bytes");
        refused(&page(100, 100, -1), "-1 values");
        refused(&page(-5, 100, 0), "negative");
        refused(&page(100, -5, 0), "negative");
        refused(&page(100, 100, 0)[..50], "longer than its column");
        refused(&page(100, 100, 0)[..5], "no header");
        // Struct in struct in …, and a text that is not there.
        refused(&[0x1c; 40], "no header");
        refused(&[0x18, 0xff, 0xff, 0xff, 0xff, 0x7f], "no header");
    }

    /// Longer than what is read of a header at first.
    #[test]
    fn long_statistics_are_stepped_over() {
        let text = vec![b'x'; 5000];
        let statistics = [&[0x5c, 0x18, 0x88, 0x27][..], &text, &[0]].concat();
        let bytes = [&[0x25, 0x50, 0x15, 0x50][..], &statistics, &[0], &[1; 40]].concat();
        verdict(&bytes).unwrap();
        assert!(verdict(&bytes[..4000]).is_err());
    }
}
