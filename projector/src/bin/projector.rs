//! `projector`: folds the log into facts and read tables.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    projector::cli::run::main()
}
