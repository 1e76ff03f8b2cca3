//! Logging to standard error and span export to an OTLP collector.

use std::io::IsTerminal;
#[cfg(feature = "otlp")]
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::event_writer::EventWriter;
use crate::spans;

/// Maximum log levels of libraries that would otherwise log secrets. `RUST_LOG` cannot raise these levels. rmcp logs
/// keys, tokio-postgres logs password hashes.
const LEVEL_CAPS: [&str; 2] = ["rmcp=error", "tokio_postgres=warn"];

/// Time limit for sending the remaining spans when the program ends.
#[cfg(feature = "otlp")]
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Guard of logging and span export. When it is dropped, the remaining spans are sent.
#[derive(Debug, Default)]
#[must_use = "spans are exported until the guard is dropped"]
pub struct TelemetryGuard {
    #[cfg(feature = "otlp")]
    spans: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
}

/// Starts logging to standard error, and span export if an OTLP endpoint is set.
///
/// With `LOG_FORMAT=json`, each line is a JSON object. `RUST_LOG` replaces `default_filter`.
pub fn init(program: &str, default_filter: &str) -> TelemetryGuard {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let spans_off = format!("{}=off", spans::SPAN_TARGET);
    let filter =
        LEVEL_CAPS.iter().copied().chain([&*spans_off]).fold(filter, |filter, cap| match cap.parse() {
            Ok(directive) => filter.add_directive(directive),
            Err(_) => filter,
        });
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let log = match variable("LOG_FORMAT").as_deref() {
        Some("json") => log.json().with_filter(filter).boxed(),
        _ => {
            log.with_target(false).with_writer(|| EventWriter(std::io::stderr())).with_filter(filter).boxed()
        }
    };
    let endpoint = variable("OTEL_EXPORTER_OTLP_ENDPOINT").or(variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
    let subscriber = tracing_subscriber::registry().with(log);
    #[cfg(feature = "otlp")]
    if endpoint.is_some() {
        match crate::otlp::new_provider(program) {
            Ok(spans) => {
                subscriber.with(crate::otlp::span_layer(&spans, spans::SPAN_TARGET)).init();
                return TelemetryGuard { spans: Some(spans) };
            }
            Err(error) => {
                subscriber.init();
                tracing::warn!(%error, "cannot export spans");
                return TelemetryGuard::default();
            }
        }
    }
    subscriber.init();
    #[cfg(not(feature = "otlp"))]
    if endpoint.is_some() {
        tracing::warn!(program, "cannot export spans: rebuild the program with --features otlp");
    }
    TelemetryGuard::default()
}

#[expect(clippy::disallowed_methods, reason = "read once at the start of main, before settings exist")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        #[cfg(feature = "otlp")]
        if let Some(Err(error)) = self.spans.take().map(|spans| spans.shutdown_with_timeout(FLUSH_TIMEOUT)) {
            tracing::warn!(%error, "cannot export the last spans");
        }
    }
}
