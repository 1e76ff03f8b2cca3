//! The environment variables the harness reads. A test has no command line to put them on, and this is the one
//! place that reads them.

use std::ffi::OsString;

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
pub fn given_folder(variable: &str) -> Option<std::path::PathBuf> {
    given(variable).map(std::path::PathBuf::from)
}
