//! Rows of a text table, as bytes. The same rows as the `csv` crate gives, faster where nothing is quoted,
//! which is most of most tables.
//!
//! A line without a quotation mark is cut at its delimiters where it stands in the buffer. The first line
//! that has one, or a carriage return that does not end it, is handed to `csv` with everything after it.

use std::io::{self, Cursor, Read};
use std::ops::Range;

use csv::{ByteRecord, ReaderBuilder};
use memchr::{memchr, memchr_iter, memchr2};

/// Bytes read at a time; a longer line takes more.
const BUFFER: usize = 1 << 18;

type Source = Box<dyn Read>;
type Rest = csv::Reader<io::Chain<Cursor<Vec<u8>>, Source>>;

/// See the module.
pub(super) struct Rows {
    source: Source,
    delimiter: u8,
    buffer: Vec<u8>,
    /// Where in the buffer the unread part begins.
    next: usize,
    /// Bytes of the stream before the buffer's first.
    before: u64,
    /// Where the current row's cells end, and where the first begins.
    ends: Vec<usize>,
    start: usize,
    /// Bytes of the stream before the current row.
    position: u64,
    quoted: Option<(Rest, u64)>,
    record: ByteRecord,
}

impl Rows {
    /// All rows of a stream, the headings among them.
    pub(super) fn new(source: Source, delimiter: u8) -> io::Result<Self> {
        let mut rows = Rows {
            source,
            delimiter,
            buffer: Vec::new(),
            next: 0,
            before: 0,
            ends: Vec::new(),
            start: 0,
            position: 0,
            quoted: None,
            record: ByteRecord::new(),
        };
        rows.fill()?;
        if rows.buffer.starts_with(b"\xef\xbb\xbf") {
            rows.next = 3;
        }
        Ok(rows)
    }

    /// Goes to the next row; `false` at the end.
    #[inline]
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        if self.quoted.is_some() {
            return self.advance_quoted();
        }
        loop {
            self.position = self.before + self.next as u64;
            let (line, next) = match memchr(b'\n', &self.buffer[self.next..]) {
                Some(length) => (self.next..self.next + length, self.next + length + 1),
                None if self.fill()? => continue,
                None if self.next == self.buffer.len() => return Ok(false),
                None => (self.next..self.buffer.len(), self.buffer.len()),
            };
            let mut bytes = &self.buffer[line.clone()];
            bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
            if memchr2(b'"', b'\r', bytes).is_some() {
                self.hand_over();
                return self.advance_quoted();
            }
            self.next = next;
            if !bytes.is_empty() {
                self.start = line.start;
                self.ends.clear();
                self.ends.extend(memchr_iter(self.delimiter, bytes).map(|end| line.start + end));
                self.ends.push(line.start + bytes.len());
                return Ok(true);
            }
        }
    }

    /// Cells of the current row.
    pub(super) fn len(&self) -> usize {
        if self.quoted.is_some() { self.record.len() } else { self.ends.len() }
    }

    /// One of them.
    #[inline]
    pub(super) fn cell(&self, at: usize) -> &[u8] {
        if self.quoted.is_some() {
            return &self.record[at];
        }
        let start = if at == 0 { self.start } else { self.ends[at - 1] + 1 };
        &self.buffer[Range { start, end: self.ends[at] }]
    }

    /// Bytes of the stream before the current row, or before blank lines in front of it.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Reads on; `false` at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.next);
        self.before += self.next as u64;
        self.next = 0;
        let more = BUFFER.max(self.buffer.len()) as u64;
        Ok(self.source.by_ref().take(more).read_to_end(&mut self.buffer)? > 0)
    }

    fn hand_over(&mut self) {
        let unread = Cursor::new(self.buffer.split_off(self.next));
        let source = std::mem::replace(&mut self.source, Box::new(io::empty()));
        let mut builder = ReaderBuilder::new();
        builder.delimiter(self.delimiter).has_headers(false).flexible(true);
        self.quoted = Some((builder.from_reader(unread.chain(source)), self.position));
    }

    fn advance_quoted(&mut self) -> io::Result<bool> {
        let Some((reader, before)) = &mut self.quoted else { return Ok(false) };
        let there =
            reader.read_byte_record(&mut self.record).map_err(|error| match error.into_kind() {
                csv::ErrorKind::Io(error) => error,
                other => io::Error::other(format!("{other:?}")),
            })?;
        self.position = *before + self.record.position().map_or(0, csv::Position::byte);
        Ok(there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hands over a few bytes at a time.
    struct Slow(Cursor<Vec<u8>>, usize);

    impl Read for Slow {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let most = out.len().min(self.1);
            self.0.read(&mut out[..most])
        }
    }

    fn ours(text: &[u8], at_once: usize) -> Vec<Vec<Vec<u8>>> {
        let source = Box::new(Slow(Cursor::new(text.to_vec()), at_once));
        let mut rows = Rows::new(source, b',').unwrap();
        let mut found = Vec::new();
        while rows.advance().unwrap() {
            found.push((0..rows.len()).map(|at| rows.cell(at).to_vec()).collect());
            assert!(rows.position() <= text.len() as u64);
        }
        found
    }

    fn theirs(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let mut builder = ReaderBuilder::new();
        let reader = builder.has_headers(false).flexible(true).from_reader(text);
        let record =
            |record: csv::Result<ByteRecord>| record.unwrap().iter().map(<[u8]>::to_vec).collect();
        reader.into_byte_records().map(record).collect()
    }

    #[test]
    fn lines_longer_than_the_buffer_are_read() {
        let long = "x".repeat(3 * BUFFER);
        let text = format!("a,b\n1,{long}\n2,3");
        assert_eq!(ours(text.as_bytes(), usize::MAX), theirs(text.as_bytes()));
    }

    proptest! {
        #[test]
        fn rows_are_those_of_the_csv_crate(
            text in "(\u{feff})?([a-c0-9 .]{0,4}|,|,|\n|\n|\r\n|\r|\"|\u{e9}){0,40}",
            at_once in 1usize..9,
        ) {
            prop_assert_eq!(ours(text.as_bytes(), at_once), theirs(text.as_bytes()));
        }
    }
}
