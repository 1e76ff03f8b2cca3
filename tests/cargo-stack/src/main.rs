//! First program of `cargo stack`: builds every program of the service, then becomes the program `stack`.
//!
//! Invariant: this package has no dependencies. Cargo would choose their features for this package alone and compile them
//! a second time with the features that the whole workspace needs.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
/// Variables that Cargo sets for the program it runs. A build script would see a change in them and compile anew.
const SET_BY_CARGO: [&str; 7] = [
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

/// Returns only when a requirement is missing, or the build or the start failed.
fn run() -> io::Result<ExitCode> {
    let stack = env::current_exe()?.with_file_name("stack");
    if !stack.exists() && !prepare_first_build(&stack) {
        return Ok(ExitCode::FAILURE);
    }
    if !build()? {
        eprintln!("cargo stack: the service could not be built");
        return Ok(ExitCode::FAILURE);
    }
    Err(Command::new(stack).args(env::args_os().skip(1)).exec())
}

/// Reports what the build and the start after it would lack; says how long the build takes when nothing is missing.
fn prepare_first_build(stack: &Path) -> bool {
    let mut missing = cargo_stack::missing_for_build(stack.parent().unwrap_or(stack));
    missing.extend(cargo_stack::missing_for_start());
    if !missing.is_empty() {
        eprintln!("cargo stack: {}", cargo_stack::report(&missing));
        return false;
    }
    eprintln!("cargo stack: building the service for a trial; minutes the first time, seconds from then on");
    true
}

fn build() -> io::Result<bool> {
    let mut cargo = Command::new(option_env!("CARGO").unwrap_or("cargo"));
    cargo.args(["build", "--profile", "stack", "--workspace", "--bins", "--manifest-path", WORKSPACE]);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| SET_BY_CARGO.iter().any(|prefix| name.starts_with(prefix))) {
            cargo.env_remove(name);
        }
    }
    Ok(cargo.status()?.success())
}
