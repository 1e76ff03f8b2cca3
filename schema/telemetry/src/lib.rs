//! Functions that the three programs share: telemetry, command lines, output and shutdown.

pub mod command_line;
pub mod failpoint;
pub mod health_check;
pub mod listener;
pub mod logging;
#[cfg(feature = "otlp")]
mod otlp;
pub mod output;
mod shutdown;
pub mod table;

pub use logging::{LogLimit, TelemetryGuard, init};
pub use output::{counted, shorten, write_out};
pub use shutdown::Shutdown;
