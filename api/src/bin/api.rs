//! `api`: serves the read tables, and administers accounts and keys.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    api::command::cli::main()
}
