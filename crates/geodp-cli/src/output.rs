//! `println!`, `print!` and `eprintln!` that outlive their reader.
//!
//! The standard ones panic where nobody reads on: `geodp plan --json | grep -m1 sigma`. These shadow them in
//! the whole binary: a closed pipe is no error, and a training goes on without its listener. A result that
//! cannot be written for another reason (a full disk) ends the program with exit code 1.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Writes a result.
pub(crate) fn result(text: Arguments<'_>) {
    if let Err(error) = std::io::stdout().write_fmt(text)
        && error.kind() != ErrorKind::BrokenPipe
    {
        note(format_args!("error: cannot write the result: {error}\n"));
        std::process::exit(1);
    }
}

/// Writes a note beside the results; where nobody can hear it, it is lost.
pub(crate) fn note(text: Arguments<'_>) {
    let _ = std::io::stderr().write_fmt(text);
}

macro_rules! print {
    ($($text:tt)*) => { $crate::output::result(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::output::result(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::result(format_args!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprintln {
    () => { $crate::output::note(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::note(format_args!("{}\n", format_args!($($text)*))) };
}
