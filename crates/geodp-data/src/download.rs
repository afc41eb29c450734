//! Downloads through the system's `curl`.
//!
//! A TLS stack would be the largest dependency of the whole program and is needed for one command.
//! curl is part of Windows, macOS and nearly every Linux, and follows the machine's proxy settings;
//! where it is missing the error says how to go on without it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::DataError;

/// Fetches `url` into the file `target`; `program` is the curl to run.
pub(crate) fn fetch(
    program: &str,
    url: &str,
    target: &Path,
    show_progress: bool,
) -> Result<(), DataError> {
    let failed = |problem: String| DataError::Download { url: url.to_owned(), problem };
    let by_hand = "fetch it by other means and import the file";
    let mut command = Command::new(program);
    command.args(["--fail", "--location", "--retry", "2"]);
    command.args(["--proto", "=https,http,file", "--proto-redir", "=https,http"]);
    if show_progress {
        command.arg("--progress-bar").stderr(Stdio::inherit());
    } else {
        command.args(["--silent", "--show-error"]).stderr(Stdio::piped());
    }
    command.arg("--output").arg(target).args(["--url", url]);
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output().map_err(|error| {
        failed(format!("cannot run {program} ({error}); install it, or {by_hand}"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    // With retries curl repeats itself: its last line says it all.
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said = stderr.trim().lines().next_back().unwrap_or_default();
    let status = output.status;
    Err(failed(format!("{program} ended with {status} {said}; try again, or {by_hand}")))
}
