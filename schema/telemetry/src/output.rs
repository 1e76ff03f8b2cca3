//! Standard output of commands: the macros `out!` and `outln!`, which handle a closed pipe.

use std::io::{ErrorKind, Write};

/// Writes to standard output. A closed pipe (`| head`) ends the process with exit code 0.
pub fn write_out(text: std::fmt::Arguments<'_>) {
    let Err(error) = std::io::stdout().lock().write_fmt(text) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    tracing::error!(%error, "cannot write to standard output");
    std::process::exit(1);
}

/// Like `print!`, but writes with [`write_out`](crate::write_out).
#[macro_export]
macro_rules! out {
    ($($text:tt)*) => { $crate::write_out(format_args!($($text)*)) };
}

/// Like `println!`, but writes with [`write_out`](crate::write_out).
#[macro_export]
macro_rules! outln {
    ($($text:tt)*) => { $crate::write_out(format_args!("{}\n", format_args!($($text)*))) };
}
