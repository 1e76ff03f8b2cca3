//! Environment variables that contain the settings of the harness. A test has no command line of its own for settings.
//! The harness reads settings only through this module.

use std::ffi::OsString;
use std::path::PathBuf;

use skipped::Requirement;

/// Value of an environment variable. An empty variable is treated as unset.
#[expect(clippy::disallowed_methods, reason = "a test program has no arguments of its own to parse")]
pub(crate) fn read_variable(variable: &str) -> Option<OsString> {
    std::env::var_os(variable).filter(|value| !value.is_empty())
}

pub(crate) fn read_text(variable: &str) -> Option<String> {
    read_variable(variable)?.into_string().ok()
}

/// Number in an optional environment variable. For example, a developer sets a seed to repeat a failed run of a test.
pub fn number_variable(variable: &str) -> Option<u64> {
    read_text(variable)?.parse().ok()
}

/// Folder in an optional environment variable. For example, a developer sets a folder for screenshots.
pub fn folder_variable(variable: &str) -> Option<PathBuf> {
    read_variable(variable).map(PathBuf::from)
}

/// Finds a program that the machine may lack. If the program is missing, records the test as skipped and returns
/// `None`.
pub fn optional_program(name: &str, requirement: Requirement) -> Option<PathBuf> {
    let program = find_program(name);
    if program.is_none() {
        skipped::record(requirement, "");
    }
    program
}

pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = read_variable("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}
