//! What tests of tables share.

use geodp_data::Records;
use std::path::Path;

/// Runs something with a file of this name and content, and removes it.
pub(crate) fn in_folder<T>(name: &str, text: impl AsRef<[u8]>, run: impl FnOnce(&Path) -> T) -> T {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    run(&path)
}

/// The inputs of every record.
pub(crate) fn rows(records: &Records) -> Vec<Vec<f32>> {
    let row = |index| {
        let mut input = vec![0.0; records.input_len()];
        records.read_input(index, &mut input);
        input
    };
    (0..records.len()).map(row).collect()
}
