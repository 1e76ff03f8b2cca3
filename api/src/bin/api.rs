//! `api`: serves the tables of the projector over HTTP, and administers accounts and keys.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    api::command::cli::main()
}
