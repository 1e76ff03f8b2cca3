//! First stage of `cargo stack`: builds all programs of the service, then replaces itself with the program `stack`.
//!
//! Invariant: this package has no dependencies. Cargo would compile each dependency twice, with different features.

use std::env;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
/// Prefixes of the variables that Cargo sets for a running program. The variables are removed before the build.
/// Otherwise Cargo would treat them as changed, run build scripts again and recompile their crates.
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

/// Builds the programs, and replaces this process with `stack`. Returns only if a requirement is not met, or if the
/// build or the start fails.
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

/// Checks the requirements of the build and of the start. If some requirements are not met, prints them and returns
/// false. Otherwise prints that the first build takes minutes, and returns true.
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
