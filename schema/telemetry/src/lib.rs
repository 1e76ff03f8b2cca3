//! Functions that the three programs share: telemetry, command lines, output and shutdown.

pub mod command_line;
mod event_writer;
pub mod failpoint;
pub mod health_check;
pub mod listener;
mod log_limit;
mod logging;
pub mod memory;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
pub mod report;
mod shutdown;
pub mod spans;
pub mod table;
mod text;

pub use log_limit::LogLimit;
pub use logging::{TelemetryGuard, init};
pub use output::write_out;
pub use shutdown::Shutdown;
pub use text::{counted, escape_controls, escape_formula, group_digits, list_names, shorten};
