//! Spans of requests, loads, log batches and admission batches, exported over OTLP/HTTP with the feature `otlp`.
//!
//! Invariant: only the exporter subscribes to spans. Without an exporter, a span costs one comparison. If the export
//! queue is full, spans are dropped. An unreachable collector does not delay requests.

use hyper::HeaderMap;
use tracing::Span;

/// Tracing target of all spans. The log filter excludes this target.
pub const SPAN_TARGET: &str = "span";

/// Sets the parent of a span from the `traceparent` header (W3C Trace Context).
pub fn set_parent_from_headers(span: &Span, headers: &HeaderMap) {
    #[cfg(feature = "otlp")]
    if !span.is_disabled() {
        crate::otlp::set_parent_from_headers(span, headers);
    }
    #[cfg(not(feature = "otlp"))]
    let _ = (span, headers);
}

/// Renames an open span, if its name is known only after it has begun.
pub fn rename_span(span: &Span, name: String) {
    #[cfg(feature = "otlp")]
    crate::otlp::rename_span(span, name);
    #[cfg(not(feature = "otlp"))]
    let _ = (span, name);
}
