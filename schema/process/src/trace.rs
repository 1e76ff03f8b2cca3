//! Spans: one a request, a load, a batch of the log and a queue of admission. A build with the feature `otlp` sends them to
//! the collector that `OTEL_EXPORTER_OTLP_ENDPOINT` names, as OTLP over HTTP.
//!
//! Invariant: only the exporter listens to spans, so where there is none they cost a comparison. What a queue has no room for
//! is dropped, and a collector that is away delays nobody.

use hyper::HeaderMap;
use tracing::Span;

/// The target of every span, which keeps them out of the log.
pub const SPANS: &str = "span";

/// Makes a span part of the trace that a caller's `traceparent` names (W3C Trace Context).
pub fn continue_from(span: &Span, headers: &HeaderMap) {
    #[cfg(feature = "otlp")]
    if !span.is_disabled() {
        crate::otlp::continue_from(span, headers);
    }
    #[cfg(not(feature = "otlp"))]
    let _ = (span, headers);
}

/// Names a span that is open by what became known only since it began; a name that is recorded as a field comes too late.
pub fn rename(span: &Span, name: String) {
    #[cfg(feature = "otlp")]
    crate::otlp::rename(span, name);
    #[cfg(not(feature = "otlp"))]
    let _ = (span, name);
}
