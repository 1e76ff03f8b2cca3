//! Program `stack`: runs the whole service on this machine. `cargo stack` builds this program and starts it.

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::cli::main()
}
