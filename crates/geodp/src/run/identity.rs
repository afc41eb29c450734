//! What ties the files of a run folder together: its config, its data, its key, and the machine whose
//! bits it has.
//!
//! The data's hash is keyed: a hash that anyone can compute lets anyone test a guess of a record. The
//! key of the hash is made of the noise's key and kept in `data.key` for the owner, because the noise's
//! key itself is destroyed at the end. It goes one way: nobody gets the noise from it.

use super::checkpoint::Position;
use super::files;
use crate::Error;
use geodp_account::{Arithmetic, Ledger};
use geodp_data::hex;
use geodp_mechanism::NoiseSource;
use geodp_nn::InstructionSet;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// SHA-256 of a run's config.
pub(crate) fn config_hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// SHA-256 of the noise's key.
pub(crate) fn noise_hash(noise: &NoiseSource) -> String {
    hex(&Sha256::digest(*Zeroizing::new(noise.secret_key())))
}

/// The key of a run's data hash.
pub(crate) struct DataKey(Zeroizing<[u8; 32]>);

impl DataKey {
    /// Made of the noise's key.
    pub(crate) fn of(noise: &NoiseSource) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(b"geodp key of the data's hash\n");
        hasher.update(*Zeroizing::new(noise.secret_key()));
        Self(Zeroizing::new(hasher.finalize().into()))
    }

    /// Writes it where the owner alone can read it.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        files::write_secret(&Self::path(folder), &*self.0)
    }

    /// As the run wrote it.
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        read_32_bytes(&Self::path(folder)).map(Self)
    }

    fn path(folder: &Path) -> PathBuf {
        folder.join("data.key")
    }

    /// The hash of records with this fingerprint.
    pub(crate) fn hash(&self, fingerprint: &str) -> String {
        let mut hasher = Sha256::new();
        hasher.update(*self.0);
        hasher.update(fingerprint.as_bytes());
        // Hashed twice, so that nothing can be appended to what was hashed.
        let mut outer = Sha256::new();
        outer.update(*self.0);
        outer.update(hasher.finalize());
        hex(&outer.finalize())
    }
}

/// A file of 32 secret bytes.
pub(crate) fn read_32_bytes(path: &Path) -> Result<Zeroizing<[u8; 32]>, Error> {
    let bytes = Zeroizing::new(files::read(path)?);
    let key = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| Error::Damaged {
        path: path.to_owned(),
        reason: format!("it has {} bytes instead of 32", bytes.len()),
    })?;
    Ok(Zeroizing::new(key))
}

/// What decides the bits of a step besides its numbers: program, arithmetic and, in floating point, the
/// instruction set that the engine takes on this processor, which decides in which order it adds.
pub(crate) fn machine(arithmetic: Arithmetic) -> String {
    let taken = InstructionSet::available().pop();
    machine_taking(taken.unwrap_or(InstructionSet::Portable), arithmetic)
}

fn machine_taking(instructions: InstructionSet, arithmetic: Arithmetic) -> String {
    let (version, architecture) = (env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    match arithmetic {
        Arithmetic::Exact => format!("geodp {version}, exact"),
        Arithmetic::FloatingPoint => {
            format!("geodp {version}, floating point on {architecture}, {instructions:?}")
        }
    }
}

/// Refuses a folder whose config or ledger is not what the run wrote.
///
/// # Errors
/// [`Error::Mismatch`] with the reason; the line of a ledger that was cut or rewritten.
pub(crate) fn check_folder(
    folder: &Path,
    text: &str,
    ledger: &Ledger,
    position: &Position,
) -> Result<(), Error> {
    let refuse = |reason: &str| Err(mismatch(folder, reason));
    let config = config_hash(text);
    if ledger.header.plan != config {
        return refuse(
            "run.toml was changed after the run began, or the plan given is another; undo the change",
        );
    }
    let Some(run) = &ledger.header.run else {
        return refuse("its ledger is not that of a run folder");
    };
    if position.config != config || position.data != run.data || position.run != run.id {
        return refuse("its checkpoint belongs to another run than its ledger");
    }
    ledger.verify_against(position.ledger_records, &position.ledger_head)?;
    Ok(())
}

/// Refuses records other than those the run began with.
///
/// # Errors
/// [`Error::Mismatch`]; a missing key.
pub(crate) fn check_data(folder: &Path, hash: &str, fingerprint: &str) -> Result<(), Error> {
    if DataKey::read(folder)?.hash(fingerprint) == hash {
        return Ok(());
    }
    Err(mismatch(folder, "the data is not what the run began with (its fingerprint differs)"))
}

pub(crate) fn mismatch(folder: &Path, reason: &str) -> Error {
    Error::Mismatch { folder: folder.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that goes on where the engine adds in another order gets a new key, in floating point alone.
    #[test]
    fn instruction_sets_are_machines_of_their_own_in_floating_point() {
        let names = |arithmetic| {
            let sets = InstructionSet::available().into_iter();
            sets.map(|set| machine_taking(set, arithmetic)).collect::<Vec<_>>()
        };
        let (mut floating, mut exact) =
            (names(Arithmetic::FloatingPoint), names(Arithmetic::Exact));
        assert_eq!(floating.last(), Some(&machine(Arithmetic::FloatingPoint)));
        exact.dedup();
        assert_eq!(exact, [machine(Arithmetic::Exact)]);
        let sets = floating.len();
        floating.sort();
        floating.dedup();
        assert_eq!(floating.len(), sets);
    }
}
