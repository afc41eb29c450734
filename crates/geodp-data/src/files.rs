//! Reading files, plain or gzip, and where downloaded datasets live.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::DataError;
use crate::digest::FieldHasher;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Unpacked before the header is read; no header of a format read here is longer.
pub(crate) const HEADER_BYTES: u64 = 1 << 17;
/// DEFLATE stores at most 258 bytes in two bits.
const MOST_DEFLATE: u64 = 1032;

/// The folder for datasets that are not bundled: `$GEODP_DATA` if set, else the platform's place for
/// a user's data (`$XDG_DATA_HOME/geodp` or `~/.local/share/geodp`; `~/Library/Application
/// Support/geodp` on macOS; `%LOCALAPPDATA%\geodp` on Windows).
pub fn default_data_dir() -> Result<PathBuf, DataError> {
    data_dir_from(|name| {
        std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
    })
}

fn data_dir_from(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, DataError> {
    if let Some(dir) = variable("GEODP_DATA") {
        return Ok(dir);
    }
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        // The XDG specification says to ignore a relative path.
        variable("XDG_DATA_HOME")
            .filter(|dir| dir.is_absolute())
            .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("geodp")).ok_or_else(|| {
        DataError::Argument(
            "no home folder is known here; set GEODP_DATA to the folder for datasets".to_owned(),
        )
    })
}

/// The path as it appears in messages.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// What a format reads off the first bytes of its content: how long all of it is.
pub(crate) trait Announced: Fn(&str, &[u8]) -> Result<u64, DataError> {}

impl<F: Fn(&str, &[u8]) -> Result<u64, DataError>> Announced for F {}

/// A whole file, decompressed if it is gzip.
pub(crate) fn read_maybe_gzip(
    path: &Path,
    announced: impl Announced,
) -> Result<Vec<u8>, DataError> {
    let bytes = fs::read(path).map_err(DataError::io("read", path))?;
    if is_gzip(&bytes) { gunzip(&shown(path), &bytes, announced) } else { Ok(bytes) }
}

/// Feeds every byte of a file into a digest, a buffer at a time.
pub(crate) fn digest_into(path: &Path, hasher: &mut FieldHasher) -> Result<(), DataError> {
    let mut file = fs::File::open(path).map_err(DataError::io("read", path))?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer).map_err(DataError::io("read", path))? {
            0 => break,
            length => hasher.more(&buffer[..length]),
        }
    }
    // The length comes last, where it is known.
    hasher.number(fs::metadata(path).map_err(DataError::io("read", path))?.len());
    Ok(())
}

/// Whether bytes start as gzip does.
pub(crate) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&GZIP_MAGIC)
}

/// The content of gzip bytes, but no more of it than its header announces and one byte, which the
/// format's own check of the length then finds. A few kilobytes of gzip can unpack to gigabytes: the
/// header is read first, and refused if it announces more than DEFLATE could hold in these bytes.
pub(crate) fn gunzip(
    file: &str,
    compressed: &[u8],
    announced: impl Announced,
) -> Result<Vec<u8>, DataError> {
    let mut stream = MultiGzDecoder::new(compressed);
    let mut bytes = Vec::new();
    let mut unpack = |bytes: &mut Vec<u8>, most: u64| {
        let unpacked = stream.by_ref().take(most).read_to_end(bytes);
        unpacked.map_err(|error| broken_gzip(file, &error)).map(|_| ())
    };
    unpack(&mut bytes, HEADER_BYTES)?;
    if bytes.is_empty() {
        return Ok(bytes);
    }
    let length = announced(file, &bytes)?;
    if length > MOST_DEFLATE.saturating_mul(compressed.len() as u64) {
        return Err(DataError::Unsupported {
            file: file.to_owned(),
            problem: format!(
                "its header announces {length} bytes, more than a gzip file of {} bytes can hold; copy or download it again",
                compressed.len()
            ),
        });
    }
    let missing = (length + 1).saturating_sub(bytes.len() as u64);
    bytes.reserve_exact(usize::try_from(missing).unwrap_or(0));
    unpack(&mut bytes, missing)?;
    Ok(bytes)
}

/// A gzip stream that ends or goes wrong.
pub(crate) fn broken_gzip(file: &str, error: &std::io::Error) -> DataError {
    DataError::Unsupported {
        file: file.to_owned(),
        problem: format!("broken gzip data ({error}); copy or download it again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_the_data_folder() {
        let with = |pairs: &'static [(&str, &str)]| {
            data_dir_from(move |name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value))
            })
        };
        let all = &[("GEODP_DATA", "/d"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(with(all).unwrap(), Path::new("/d"));
        assert!(with(&[]).unwrap_err().to_string().contains("GEODP_DATA"));
        if cfg!(target_os = "linux") {
            assert_eq!(with(&all[1..]).unwrap(), Path::new("/x/geodp"));
            assert_eq!(with(&all[2..]).unwrap(), Path::new("/h/.local/share/geodp"));
            let relative = with(&[("XDG_DATA_HOME", "x"), ("HOME", "/h")]);
            assert_eq!(relative.unwrap(), Path::new("/h/.local/share/geodp"));
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_maybe_gzip(Path::new("/no/such/file"), |_, _| Ok(0)).unwrap_err();
        assert!(error.to_string().contains("/no/such/file"), "{error}");
    }

    #[test]
    fn broken_gzip_is_an_error() {
        let error = gunzip("x.gz", &[0x1f, 0x8b, 8, 0, 1, 2, 3], |_, _| Ok(0)).unwrap_err();
        assert!(matches!(error, DataError::Unsupported { .. }), "{error}");
    }
}
