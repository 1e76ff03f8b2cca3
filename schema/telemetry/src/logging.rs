//! Logging to standard error with a rate limit, and span export to an OTLP collector by builds with the feature `otlp`.
//!
//! Invariants: an unreachable collector does not delay requests: if the export queue is full, new spans are dropped.
//! Every line of a log event except the first is indented, so external text cannot forge an event.

use std::fmt;
use std::io::{self, IsTerminal, Stderr, Write};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use parking_lot::Mutex;
use tracing::{Event, Level, Span, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

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

/// Log options of all commands.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct LogArgs {
    /// Log the progress, even if standard error is not a terminal
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// Starts logging to standard error, and span export if an OTLP endpoint is set. `RUST_LOG` replaces `default_filter`.
///
/// `command` has the options of a command that ends by itself. Its log is text such as `error: cannot …`. Unless
/// standard error is a terminal, only `--verbose` adds messages below warnings. For a service, it is `None`: with
/// `LOG_FORMAT=json`, each line is then a JSON object.
pub fn init(program: &str, default_filter: &str, command: Option<LogArgs>) -> TelemetryGuard {
    let is_quiet = command.is_some_and(|args| !args.verbose) && !io::stderr().is_terminal();
    let default_filter = if is_quiet { "warn" } else { default_filter };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    let spans_off = format!("{}=off", SPAN_TARGET);
    let filter =
        LEVEL_CAPS.iter().copied().chain([&*spans_off]).fold(filter, |filter, cap| match cap.parse() {
            Ok(directive) => filter.add_directive(directive),
            Err(_) => filter,
        });
    let log = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let text = || EventWriter(io::stderr());
    let log = match (command, variable("LOG_FORMAT").as_deref()) {
        (Some(_), _) => log.event_format(CommandFormat).with_writer(text).with_filter(filter).boxed(),
        (None, Some("json")) => log.json().with_filter(filter).boxed(),
        (None, _) => log.with_target(false).with_writer(text).with_filter(filter).boxed(),
    };
    let endpoint = variable("OTEL_EXPORTER_OTLP_ENDPOINT").or(variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"));
    let subscriber = tracing_subscriber::registry().with(log);
    #[cfg(feature = "otlp")]
    if endpoint.is_some() {
        match otlp::new_provider(program) {
            Ok(spans) => {
                subscriber.with(otlp::span_layer(&spans, SPAN_TARGET)).init();
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

/// Format of the events of a command: `error: message field=value`.
struct CommandFormat;

impl<S, N> FormatEvent<S, N> for CommandFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        writer.write_str(match *event.metadata().level() {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            _ => "",
        })?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
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

/// Tracing target of all spans. The filter of the log excludes this target.
pub const SPAN_TARGET: &str = "span";

/// Makes a span the child of the span in the `traceparent` header (W3C Trace Context).
pub fn set_parent_from_headers(span: &Span, headers: &HeaderMap) {
    #[cfg(feature = "otlp")]
    if !span.is_disabled() {
        otlp::set_parent_from_headers(span, headers);
    }
    #[cfg(not(feature = "otlp"))]
    let _ = (span, headers);
}

/// Renames an open span. The name of a request's span includes the route, which is unknown when the span begins.
pub fn rename_span(span: &Span, name: String) {
    #[cfg(feature = "otlp")]
    otlp::rename_span(span, name);
    #[cfg(not(feature = "otlp"))]
    let _ = (span, name);
}

/// Indentation of every line of an event except the first.
const INDENT: &[u8] = b"    ";

/// Writer of complete events. Each call of `write` must contain one event.
#[derive(Debug)]
pub(crate) struct EventWriter(pub(crate) Stderr);

impl Write for EventWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_all(&indent_continuation_lines(event))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn indent_continuation_lines(event: &[u8]) -> Vec<u8> {
    let text = event.strip_suffix(b"\n").unwrap_or(event);
    let mut lines = Vec::with_capacity(event.len() + INDENT.len());
    for byte in text {
        match byte {
            b'\n' => lines.extend([b"\n", INDENT].concat()),
            b'\r' => lines.extend(b"\\r"),
            byte => lines.push(*byte),
        }
    }
    lines.push(b'\n');
    lines
}

/// Minimum interval between two logged occurrences of a message.
const INTERVAL: Duration = Duration::from_secs(10);

/// Rate limit of one log message, declared as a `static` where the message is logged.
#[derive(Debug)]
pub struct LogLimit(Mutex<LastLine>);

#[derive(Debug)]
struct LastLine {
    at: Option<Instant>,
    suppressed: u64,
}

impl LogLimit {
    /// Creates a limit that admits the first occurrence of its message.
    #[expect(clippy::new_without_default, reason = "a static needs a const function")]
    pub const fn new() -> Self {
        Self(Mutex::new(LastLine { at: None, suppressed: 0 }))
    }

    /// Number of suppressed occurrences since the message was last logged; `None` if this occurrence must be suppressed
    /// too.
    pub fn admit(&self) -> Option<u64> {
        let mut last = self.0.lock();
        if last.at.is_some_and(|at| at.elapsed() < INTERVAL) {
            last.suppressed += 1;
            return None;
        }
        last.at = Some(Instant::now());
        Some(std::mem::take(&mut last.suppressed))
    }
}

/// OTLP exporter of spans over HTTP.
#[cfg(feature = "otlp")]
mod otlp {
    use hyper::HeaderMap;
    use opentelemetry::propagation::{Extractor, TextMapPropagator};
    use opentelemetry::trace::{TraceContextExt, TracerProvider};
    use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
    use opentelemetry_sdk::Resource;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use opentelemetry_sdk::trace::SdkTracerProvider;
    use tracing::Span;
    use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::Targets;
    use tracing_subscriber::registry::LookupSpan;

    /// Tracer provider that exports spans in batches. The OpenTelemetry library reads all settings except the service name
    /// from environment variables, for example `OTEL_EXPORTER_OTLP_HEADERS` and `OTEL_TRACES_SAMPLER`.
    pub(super) fn new_provider(program: &str) -> Result<SdkTracerProvider, ExporterBuildError> {
        // This call fails if a rustls provider is already installed. The installed provider is then used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let exporter = SpanExporter::builder().with_http().build()?;
        let resource = Resource::builder().with_service_name(format!("dds-{program}")).build();
        Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
    }

    /// Subscriber layer that exports only the spans with a given tracing target.
    pub(super) fn span_layer<S>(provider: &SdkTracerProvider, target: &'static str) -> impl Layer<S>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        let layer = OpenTelemetryLayer::new(provider.tracer("dds"));
        let layer =
            layer.with_location(false).with_threads(false).with_target(false).with_tracked_inactivity(false);
        layer.with_filter(Targets::new().with_target(target, tracing::Level::INFO))
    }

    pub(super) fn set_parent_from_headers(span: &Span, headers: &HeaderMap) {
        struct Headers<'a>(&'a HeaderMap);
        impl Extractor for Headers<'_> {
            fn get(&self, name: &str) -> Option<&str> {
                self.0.get(name)?.to_str().ok()
            }

            fn keys(&self) -> Vec<&str> {
                self.0.keys().map(hyper::header::HeaderName::as_str).collect()
            }
        }
        // If the headers have no valid parent, the span starts a new trace.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    }

    pub(super) fn rename_span(span: &Span, name: String) {
        span.context().span().update_name(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cannot_begin_a_line() {
        assert_eq!(indent_continuation_lines(b"WARN a\nERROR b\rc\n"), b"WARN a\n    ERROR b\\rc\n");
        assert_eq!(indent_continuation_lines(b"WARN a\n"), b"WARN a\n");
    }
}

#[cfg(test)]
mod log_limit_tests {
    use super::*;

    #[test]
    fn one_line_per_interval_counts_the_others() {
        let limit = LogLimit::new();
        assert_eq!([limit.admit(), limit.admit(), limit.admit()], [Some(0), None, None]);
        limit.0.lock().at = Instant::now().checked_sub(INTERVAL);
        assert_eq!([limit.admit(), limit.admit()], [Some(2), None]);
    }
}
