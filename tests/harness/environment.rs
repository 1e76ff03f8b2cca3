//! The environment variables the harness reads. A test has no command line to put them on, and this is the one
//! place that reads them.

use std::ffi::OsString;
use std::path::PathBuf;

use skipped::Requirement;

/// A variable that is set to something.
#[expect(clippy::disallowed_methods, reason = "a test program has no arguments of its own to parse")]
pub(crate) fn given(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// As [`given`], for values that have to be text.
pub(crate) fn text(variable: &str) -> Option<String> {
    given(variable)?.into_string().ok()
}

/// A number that a developer gives to a test, such as the seed of a run to repeat.
pub fn number(variable: &str) -> Option<u64> {
    text(variable)?.parse().ok()
}

/// A folder that a developer wants a test's pictures in.
pub fn given_folder(variable: &str) -> Option<PathBuf> {
    given(variable).map(PathBuf::from)
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
    let path = given("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
