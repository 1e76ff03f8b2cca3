//! Functions that the three programs share: telemetry, command lines, output and shutdown.

pub mod command_line;
pub mod failpoint;
pub mod health_check;
pub mod listener;
pub mod logging;
pub mod memory;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
pub mod report;
mod shutdown;
pub mod table;
mod text;

pub use logging::{LogLimit, TelemetryGuard, init};
pub use output::write_out;
pub use shutdown::Shutdown;
pub use text::{counted, escape_controls, escape_formula, group_digits, list_names, shorten};
