//! The decoder's panics as errors of the file.
//!
//! The decoder trusts the lengths that stand inside unpacked pages, and panics where they lie. Whoever reads
//! such a file wants one sentence and no trace of another library, so what prints panics is silent on a
//! thread while it decodes; every other panic is handed to what printed them before.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use parquet::errors::ParquetError;

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Runs a part of the decoder. What it worked on is not to be used again if it fails.
pub(super) fn decoding<T>(
    work: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, ParquetError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if !DECODING.get() {
                usual(panic);
            }
        }));
    });
    DECODING.set(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    DECODING.set(false);
    result.unwrap_or_else(|_| {
        Err(ParquetError::General("its pages hold other lengths than they have".to_owned()))
    })
}
