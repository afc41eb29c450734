//! SHA-256 digests: of published files, which must match, and of datasets, which name them.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::DataError;

/// A SHA-256 digest that names a dataset: equal for equal records in equal order under equal
/// preprocessing, on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Fingerprint(bytes)
    }

    /// The digest's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// Feeds fields into a digest, each after its length, so that no two lists of fields collide.
pub(crate) struct FieldHasher(Sha256);

impl FieldHasher {
    /// Starts a digest of the given purpose.
    pub(crate) fn new(purpose: &str) -> Self {
        let mut hasher = FieldHasher(Sha256::new());
        hasher.field(purpose.as_bytes());
        hasher
    }

    /// Adds one field: its length, then its bytes.
    pub(crate) fn field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds bytes as they come: whoever does so says where they end.
    pub(crate) fn more(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds one integer.
    pub(crate) fn number(&mut self, value: u64) {
        self.field(&value.to_le_bytes());
    }

    /// Adds one field of values of so many bytes each.
    pub(crate) fn values<const N: usize>(
        &mut self,
        values: impl ExactSizeIterator<Item = [u8; N]>,
    ) {
        self.0.update(((values.len() * N) as u64).to_le_bytes());
        let (mut bytes, mut filled) = ([0; 4096], 0);
        for value in values {
            bytes[filled..filled + N].copy_from_slice(&value);
            filled += N;
            if filled + N > bytes.len() {
                self.0.update(&bytes[..filled]);
                filled = 0;
            }
        }
        self.0.update(&bytes[..filled]);
    }

    /// Ends the digest.
    pub(crate) fn finish(self) -> Fingerprint {
        Fingerprint(self.0.finalize().into())
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses bytes whose SHA-256 is not the published one.
pub(crate) fn check_sha256(file: &str, bytes: &[u8], expected: &str) -> Result<(), DataError> {
    let found = hex(&Sha256::digest(bytes));
    if found == expected {
        return Ok(());
    }
    Err(DataError::Checksum { file: file.to_owned(), expected: expected.to_owned(), found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha256_of_abc_is_the_one_of_fips_180() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        check_sha256("abc", b"abc", abc).unwrap();
        let error = check_sha256("abc", b"abd", abc).unwrap_err();
        assert!(matches!(error, DataError::Checksum { .. }), "{error}");
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        let digest = |fields: &[&[u8]]| {
            let mut hasher = FieldHasher::new("test");
            fields.iter().for_each(|field| hasher.field(field));
            hasher.finish()
        };
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        assert_eq!(digest(&[b"ab", b"c"]), digest(&[b"ab", b"c"]));
    }
}
