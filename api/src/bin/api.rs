//! `api`: serves the dividend data in Postgres over HTTP, and administers accounts and keys.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    api::command::cli::main()
}
