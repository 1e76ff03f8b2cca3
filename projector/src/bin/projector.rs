//! `projector`: applies the log to facts and derives read tables.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    projector::cli::main()
}
