//! Functions that the three programs share: telemetry, command lines, output and shutdown.

pub mod command_line;
mod count;
pub mod csv_cell;
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
mod shorten;
mod shutdown;
pub mod spans;
pub mod table;

pub use count::counted;
pub use log_limit::LogLimit;
pub use logging::{TelemetryGuard, init};
pub use output::write_out;
pub use shorten::shorten;
pub use shutdown::Shutdown;
