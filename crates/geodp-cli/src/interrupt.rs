//! Ctrl-C asks a training to stop after its step; a second one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Installs the handler and returns the flag it sets.
pub(crate) fn flag() -> anyhow::Result<&'static AtomicBool> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            // Every state on disk can be resumed from: leaving at once loses only this block.
            std::process::exit(130);
        }
    })?;
    Ok(&STOP)
}
