//! Settings of the harness in environment variables. They are variables because a test has no command line of its own.
//! The harness reads settings only through this module.

use std::ffi::OsString;
use std::path::PathBuf;

use skipped::Requirement;

/// Value of a variable; `None` if it is unset or empty.
#[expect(clippy::disallowed_methods, reason = "a test program has no arguments of its own to parse")]
pub(crate) fn read_variable(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

/// Value of a variable as text; `None` if it is unset, empty or not UTF-8.
pub(crate) fn read_text(variable: &str) -> Option<String> {
    read_variable(variable)?.into_string().ok()
}

/// Number that a developer sets in an environment variable, such as the seed with which a test repeats a failed run.
pub fn number_variable(variable: &str) -> Option<u64> {
    read_text(variable)?.parse().ok()
}

/// Folder that a developer or another test process sets in an environment variable, for example for screenshots.
pub fn folder_variable(variable: &str) -> Option<PathBuf> {
    read_variable(variable).map(PathBuf::from)
}

/// Path of a program that the machine may lack. `None` without the program; the test is then recorded as skipped.
pub fn optional_program(name: &str, requirement: Requirement) -> Option<PathBuf> {
    let program = find_program(name);
    if program.is_none() {
        skipped::record(requirement, "");
    }
    program
}

/// First file of this name on `PATH`.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = read_variable("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
