//! Spans of requests, loads, log batches and admission batches, exported over OTLP/HTTP by builds with the feature
//! `otlp`.
//!
//! Invariant: an unreachable collector does not delay requests. If the export queue is full, new spans are dropped.

use hyper::HeaderMap;
use tracing::Span;

/// Tracing target of all spans. The filter of the log excludes this target.
pub const SPAN_TARGET: &str = "span";

/// Makes a span the child of the span in the `traceparent` header (W3C Trace Context).
pub fn set_parent_from_headers(span: &Span, headers: &HeaderMap) {
    #[cfg(feature = "otlp")]
    if !span.is_disabled() {
        crate::otlp::set_parent_from_headers(span, headers);
    }
    #[cfg(not(feature = "otlp"))]
    let _ = (span, headers);
}

/// Renames an open span. The name of a request's span includes the route, which is unknown when the span begins.
pub fn rename_span(span: &Span, name: String) {
    #[cfg(feature = "otlp")]
    crate::otlp::rename_span(span, name);
    #[cfg(not(feature = "otlp"))]
    let _ = (span, name);
}
