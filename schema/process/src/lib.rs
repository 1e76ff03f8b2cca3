//! What every binary does the same way: logs to standard error, spans to a collector, figures and health on a listener of their own, cells of CSV,
//! and a shutdown that drains.

pub mod failpoint;
pub mod health;
pub mod memory;
pub mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
pub mod sheet;
pub mod trace;

use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use tokio::sync::watch;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

/// What is logged of some libraries at most, whoever asks for more. The tools' protocol shows what its clients send, keys in
/// arguments included; the database shows the parameters of statements, hashes of passwords included.
const QUIET: [&str; 2] = ["rmcp=error", "tokio_postgres=info"];

/// How long the end of a program waits for a collector.
#[cfg(feature = "otlp")]
const LAST_SPANS: Duration = Duration::from_secs(2);

/// What a program tells of itself while it runs. Dropped at its end, it sends the spans that are left.
#[derive(Debug)]
#[must_use = "spans are sent as long as it lives"]
pub struct Telling {
    #[cfg(feature = "otlp")]
    spans: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

/// Starts logging to standard error, and sending spans where they are wanted. `LOG_FORMAT=json` writes one JSON object a line;
/// `RUST_LOG` filters.
pub fn tell(program: &str, default_filter: &str) -> Telling {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let spans_are_no_lines = format!("{}=off", trace::SPANS);
    let filter =
        QUIET.iter().copied().chain([&*spans_are_no_lines]).fold(filter, |filter, quiet| {
            match quiet.parse() {
                Ok(directive) => filter.add_directive(directive),
                Err(_) => filter,
            }
        });
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let lines = match variable("LOG_FORMAT").as_deref() {
        Some("json") => lines.json().with_filter(filter).boxed(),
        _ => lines.with_target(false).with_filter(filter).boxed(),
    };
    let wanted = variable("OTEL_EXPORTER_OTLP_ENDPOINT").or(variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
    let subscriber = tracing_subscriber::registry().with(lines);
    #[cfg(feature = "otlp")]
    if wanted.is_some() {
        match otlp::provider(program) {
            Ok(spans) => {
                subscriber.with(otlp::layer(&spans, trace::SPANS)).init();
                return Telling { spans: Some(spans) };
            }
            Err(error) => {
                subscriber.init();
                tracing::warn!("no spans are sent: {error}");
                return Telling { spans: None };
            }
        }
    }
    subscriber.init();
    #[cfg(feature = "otlp")]
    return Telling { spans: None };
    #[cfg(not(feature = "otlp"))]
    {
        if wanted.is_some() {
            tracing::warn!("no spans are sent: build {program} with --features otlp, as the image is");
        }
        Telling {}
    }
}

#[expect(clippy::disallowed_methods, reason = "read once at the start of main, before settings exist")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Drop for Telling {
    fn drop(&mut self) {
        #[cfg(feature = "otlp")]
        if let Some(Err(error)) = self.spans.take().map(|spans| spans.shutdown_with_timeout(LAST_SPANS)) {
            tracing::warn!("the last spans were not sent: {error}");
        }
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
