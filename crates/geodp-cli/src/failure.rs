//! Which exit code an error deserves: 2 if the user's input is at fault, 130 if it was asked to stop, 1
//! otherwise.

use std::fmt;
use std::process::ExitCode;

/// Marks an error as caused by what the user gave: a flag, a config file, a data file.
#[derive(Debug)]
pub(crate) struct BadInput(pub(crate) String);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// Turns any displayable error into a [`BadInput`]: `.map_err(bad_input)?`.
pub(crate) fn bad_input(error: impl fmt::Display) -> anyhow::Error {
    BadInput(error.to_string()).into()
}

/// Marks a work that was asked to stop; its message says how to go on.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) String);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Stopped {}

/// Whether standard output was closed by whoever read it: `geodp predict … | head`.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind)
    };
    error.chain().any(|cause| io(cause) == Some(std::io::ErrorKind::BrokenPipe))
}

/// 2 for [`BadInput`] anywhere in the chain, 130 for [`Stopped`] as shells have it, 1 otherwise.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.chain().any(|cause| cause.is::<BadInput>()) {
        ExitCode::from(2)
    } else if error.chain().any(|cause| cause.is::<Stopped>()) {
        ExitCode::from(130)
    } else {
        ExitCode::FAILURE
    }
}

/// A library error with the exit code it deserves: the user's input, or the system.
pub(crate) fn classify(error: geodp::Error) -> anyhow::Error {
    use geodp::Error as E;
    match error {
        E::Write { .. } | E::Engine { .. } | E::Diverged { .. } => error.into(),
        _ => bad_input(error),
    }
}
