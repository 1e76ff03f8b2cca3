//! Tracing span of a request (OpenTelemetry HTTP server conventions).

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use telemetry::logging::{SPAN_TARGET, rename_span, set_parent_from_headers};
use tracing::Span;
use tracing::field::Empty;

use crate::connection::request_id::RequestId;

/// Creates the span of a request. If the request has a trace context, the span is a child of the client's span.
pub(super) fn request_span(request: &Request, id: &RequestId) -> Span {
    if !tracing::enabled!(target: SPAN_TARGET, tracing::Level::INFO) {
        return Span::none();
    }
    let span = tracing::info_span!(
        target: SPAN_TARGET,
        "request",
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = request.method().as_str(),
        http.route = Empty,
        http.response.status_code = Empty,
        request_id = id.as_str(),
    );
    set_parent_from_headers(&span, request.headers());
    span
}

/// Records the response in the span. The span contains the template of the route instead of the client's path.
pub(super) fn record_response(span: &Span, method: &Method, route: Option<&MatchedPath>, status: StatusCode) {
    if span.is_disabled() {
        return;
    }
    let route = route.map(MatchedPath::as_str);
    rename_span(span, format!("{method} {}", route.unwrap_or_default()).trim_end().to_owned());
    span.record("http.route", route);
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}
