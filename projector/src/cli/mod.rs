//! Command line: arguments, commands and exit codes.

pub(crate) mod command;
pub mod run;
pub mod status;
