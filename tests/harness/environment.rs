//! The environment variables the harness reads. A test has no command line to put them on, and this is the one
//! place that reads them.

use std::ffi::OsString;
use std::path::PathBuf;

use skipped::Requirement;

/// A variable that is set to something.
#[expect(clippy::disallowed_methods, reason = "a test program has no arguments of its own to parse")]
pub(crate) fn read_variable(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// As [`read_variable`], for values that have to be text.
pub(crate) fn read_text(variable: &str) -> Option<String> {
    read_variable(variable)?.into_string().ok()
}

/// A number that a developer gives to a test, such as the seed of a run to repeat.
pub fn number_variable(variable: &str) -> Option<u64> {
    read_text(variable)?.parse().ok()
}

/// A folder that a developer wants a test's pictures in.
pub fn folder_variable(variable: &str) -> Option<PathBuf> {
    read_variable(variable).map(PathBuf::from)
}

/// The path of a program that a test needs and a machine may lack. Without it, the test is recorded as skipped.
pub fn optional_program(name: &str, requirement: Requirement) -> Option<PathBuf> {
    let program = find_program(name);
    if program.is_none() {
        skipped::record(requirement, "");
    }
    program
}

/// The first executable of this name on `PATH`.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = read_variable("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
