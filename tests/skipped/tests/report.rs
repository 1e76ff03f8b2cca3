//! Prints the skipped tests of this run. It runs after all other test programs and has no test of its own.

use std::io::{self, IsTerminal, Write};

use skipped::Report;

fn main() -> io::Result<()> {
    // nextest and `cargo test -- --list` ask for the names of tests.
    if std::env::args_os().any(|argument| argument == "--list") {
        return Ok(());
    }
    let mut out = io::stdout();
    write!(out, "{}", Report::take(out.is_terminal())?)
}
