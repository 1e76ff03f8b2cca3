//! What every binary does the same way: logs to standard error, figures and health on a listener of their own, cells of CSV,
//! and a shutdown that drains.

#![warn(missing_docs)]

pub mod failpoint;
pub mod health;
pub mod metrics;
pub mod sheet;

use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

/// What is logged of some libraries at most, whoever asks for more. The tools' protocol shows what its clients send, keys in
/// arguments included; the database shows the parameters of statements, hashes of passwords included.
const QUIET: [&str; 2] = ["rmcp=error", "tokio_postgres=info"];

/// Starts logging to standard error. `LOG_FORMAT=json` writes one JSON object a line; `RUST_LOG` filters.
pub fn init_logging(default_filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let filter = QUIET.iter().fold(filter, |filter, quiet| match quiet.parse() {
        Ok(directive) => filter.add_directive(directive),
        Err(_) => filter,
    });
    #[expect(clippy::disallowed_methods, reason = "read once at the start of main, before settings exist")]
    let json = std::env::var("LOG_FORMAT").is_ok_and(|format| format == "json");
    let terminal = std::io::stderr().is_terminal();
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(terminal).with_writer(std::io::stderr);
    if json {
        builder.json().init();
    } else {
        builder.with_target(false).init();
    }
}

/// Says when the process was asked to stop (Ctrl-C or SIGTERM).
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Listens for the signals from now on.
    pub fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
            tracing::info!("asked to stop");
            sender.send_replace(true);
            // Keeps the channel open: a closed channel would look like a request to stop.
            tokio::time::sleep(Duration::MAX).await;
        });
        Ok(Self(receiver))
    }

    /// Whether a stop was asked for.
    pub fn requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until a stop is asked for.
    pub async fn wait(&mut self) {
        let _ = self.0.wait_for(|requested| *requested).await;
    }
}

/// Writes to standard output. A reader that has seen enough and gone (`| head`) ends the program, which is no failure.
pub fn write_out(text: std::fmt::Arguments<'_>) {
    let Err(error) = std::io::stdout().lock().write_fmt(text) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    tracing::error!(%error, "standard output cannot be written");
    std::process::exit(1);
}

/// Prints like `print!`, by [`write_out`](crate::write_out).
#[macro_export]
macro_rules! out {
    ($($text:tt)*) => { $crate::write_out(format_args!($($text)*)) };
}

/// Prints a line like `println!`, by [`write_out`](crate::write_out).
#[macro_export]
macro_rules! outln {
    ($($text:tt)*) => { $crate::write_out(format_args!("{}\n", format_args!($($text)*))) };
}
