//! Functions that the three programs share: telemetry, command lines, output and shutdown.

pub mod command_line;
pub mod listener;
pub mod logging;
pub mod process;
pub mod report;
pub mod table;
mod text;

pub use command_line::write_out;
pub use logging::{LogArgs, LogLimit, TelemetryGuard, init};
pub use process::Shutdown;
pub use text::{Sample, counted, escape_controls, escape_formula, group_digits, list_names, shorten};
