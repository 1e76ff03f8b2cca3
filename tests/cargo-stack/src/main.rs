//! What `cargo stack` runs first: builds every program of the service, then becomes the program `stack`.
//!
//! Invariant: this crate has no dependencies. Cargo would choose their features for this crate alone and compile them
//! a second time with those that the whole workspace needs.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
/// What Cargo tells the program it runs. A build script would take it for a change and compile anew.
const TOLD_BY_CARGO: [&str; 7] = [
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
    "CARGO_BIN_",
    "CARGO_CRATE_",
    "CARGO_PRIMARY_",
    "DEP_",
    "LD_LIBRARY_PATH",
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cargo stack: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns only when the build or the start failed.
fn run() -> io::Result<ExitCode> {
    let stack = env::current_exe()?.with_file_name("stack");
    if !build(&stack)? {
        eprintln!("cargo stack: the service could not be built");
        return Ok(ExitCode::FAILURE);
    }
    Err(Command::new(stack).args(env::args_os().skip(1)).exec())
}

fn build(stack: &Path) -> io::Result<bool> {
    if !stack.exists() {
        eprintln!(
            "cargo stack: building the service for trying it out; minutes the first time, seconds from then on"
        );
    }
    let mut cargo = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    cargo.args(["build", "--profile", "stack", "--workspace", "--bins", "--manifest-path", WORKSPACE]);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| TOLD_BY_CARGO.iter().any(|told| name.starts_with(told))) {
            cargo.env_remove(name);
        }
    }
    Ok(cargo.status()?.success())
}
