//! Middleware of every request: request id, throttle, compression, deadline, common headers, metrics, span, log line.
//!
//! Invariants: every response passes through this module and gets the common headers. After a panic the response is
//! 500, and the connection stays open.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use futures::future::ready;
use telemetry::logging::{SPAN_TARGET, rename_span, set_parent_from_headers};
use tower::Service;
use tower_http::CompressionLevel;
use tower_http::compression::{Compression, CompressionBody};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::admission::{ReportedLimits, RequestContext, request_context};
use crate::app::App;
use crate::auth::address_throttle::RemainingCalls;
use crate::auth::{client_address, redact_secrets};
use crate::connection::{ClientConnection, REQUEST_ID_HEADER, RequestId, with_request_id};
use crate::error::ApiError;
use crate::parameters::Deprecation;

/// Connection of a request.
pub(crate) struct ConnectionInfo {
    pub(crate) peer: SocketAddr,
    /// True if the peer is a trusted proxy.
    pub(crate) is_proxied: bool,
    pub(crate) connection: Arc<ClientConnection>,
}

/// Handles a request: calls the router, with all middleware around it.
///
/// The middleware wraps the router's future in combinators instead of `async` blocks and functions. These reserve space
/// twice for a captured future that they await, and for each of their parameters.
pub(crate) fn handle_request(
    app: App,
    router: Router,
    connection: ConnectionInfo,
    mut request: Request,
) -> impl Future<Output = Response> {
    let started = Instant::now();
    let id = RequestId::from_headers(request.headers());
    let client = client_address::resolve_client_address(
        connection.peer,
        request.headers(),
        &app.settings.trusted_proxies,
    );
    let caller = RequestContext::new(client, connection.is_proxied, connection.connection);
    // The path is copied only if it is written to the debug log.
    let path =
        tracing::enabled!(tracing::Level::DEBUG).then(|| redact_secrets(request.uri().path()).into_owned());
    let (method, span) = (request.method().clone(), request_span(&request, &id));
    let deprecated = Deprecation::used_by(request.uri());
    request.extensions_mut().insert(Arc::clone(&caller));
    let (routed, left) = match app.throttle.charge_call(client) {
        Ok(left) if has_valid_host(&request) => {
            let routed = call_router(&app, router, request);
            let routed = with_request_id(id.clone(), routed).instrument(span.clone());
            (routed.left_future(), left)
        }
        Ok(left) => {
            let message = "An HTTP/1.1 request needs exactly one valid Host header";
            let refused = ApiError::refused(StatusCode::BAD_REQUEST, message).into_response();
            (ready(refused).right_future(), left)
        }
        Err(refused) => {
            let response = throttled(&app, refused.retry_after_seconds).into_response();
            (ready(response).right_future(), refused.left)
        }
    };
    routed.map(move |mut response| {
        // The quota is refunded for server errors, and for mistakes of the client that are found only after admission:
        // a 400, 406, 408, 413 or 415, or a 429 for too many streams. A mistake found before admission is not charged to
        // the quota.
        let is_late_mistake = matches!(
            response.status(),
            StatusCode::BAD_REQUEST
                | StatusCode::NOT_ACCEPTABLE
                | StatusCode::REQUEST_TIMEOUT
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNSUPPORTED_MEDIA_TYPE
                | StatusCode::TOO_MANY_REQUESTS
        );
        if response.status().is_server_error() || is_late_mistake {
            app.admission.refund_failed_request(&caller);
        }
        add_common_headers(&app, &mut response, caller.limits(), left, &id);
        if let Some(part) = deprecated {
            part.add_headers(response.headers_mut());
        }
        app.admission.record_usage(&caller, response.status());
        let elapsed = started.elapsed();
        app.metrics.record_response(caller.route(), &method, response.status(), elapsed.as_secs_f64());
        record_response(&span, &method, caller.route(), response.status());
        if let Some(path) = path {
            let (status, elapsed) = (response.status().as_u16(), elapsed.as_micros());
            tracing::debug!(request_id = id.as_str(), %method, path, status, elapsed_us = elapsed, "answered");
        }
        response
    })
}

/// Calls the router within the deadline. Compresses the response if the request allows it.
fn call_router(app: &App, mut router: Router, request: Request) -> impl Future<Output = Response> + use<> {
    // The response timeout begins only after the wait for a permit. The deadline must therefore exceed the sum of the
    // maximum wait and the response timeout.
    let deadline = app.settings.permit_timeout + app.settings.request_timeout * 2;
    // Without this header nothing is compressed, and the layer would only copy the response.
    if !request.headers().contains_key(header::ACCEPT_ENCODING) {
        return with_deadline(deadline, router.call(request)).left_future();
    }
    let route = tower::service_fn(move |request: Request| {
        with_deadline(deadline, router.call(request)).map(|mut response| {
            let status = RoutedStatus(response.status());
            response.extensions_mut().insert(status);
            Ok::<_, Infallible>(response)
        })
    });
    let compressed = Compression::new(route).quality(CompressionLevel::Fastest).call(request);
    compressed.map(|Ok(response)| restore_status(response)).right_future()
}

/// Runs a handler until the deadline. After a timeout the response is 503, after a panic 500. The layers of tower-http
/// send an empty body after a timeout, and box every response body again.
fn with_deadline(
    deadline: Duration,
    handler: impl Future<Output = Result<Response, Infallible>>,
) -> impl Future<Output = Response> {
    let running = AssertUnwindSafe(handler).catch_unwind();
    tokio::time::timeout(deadline, running).map(|outcome| match outcome {
        Ok(Ok(Ok(response))) => response,
        Ok(Err(_)) => ApiError::Internal(anyhow::anyhow!("a handler panicked")).into_response(),
        Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
    })
}

/// Undoes the status 406 of the compression layer. The layer sets it for a request that excludes every encoding, but
/// keeps the body of the router's response.
fn restore_status(response: Response<CompressionBody<Body>>) -> Response {
    let routed = response.extensions().get().map_or(response.status(), |RoutedStatus(status)| *status);
    match response.status() {
        StatusCode::NOT_ACCEPTABLE if routed.is_success() || routed.is_redirection() => {
            let message = "Accept-Encoding excludes every encoding; accept identity, gzip, br or zstd";
            ApiError::refused(StatusCode::NOT_ACCEPTABLE, message).into_response()
        }
        _ => {
            let mut response = response.map(Body::new);
            *response.status_mut() = routed;
            response
        }
    }
}

/// Status that the router returned. It is stored here, because the compression layer may overwrite the status of the
/// response.
#[derive(Clone, Copy)]
struct RoutedStatus(StatusCode);

/// True if the `Host` headers are valid by RFC 9112.
fn has_valid_host(request: &Request) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let is_valid = |host: &HeaderValue| {
        let bytes = host.as_bytes();
        bytes.is_empty() || (Authority::try_from(bytes).is_ok() && !bytes.contains(&b'@'))
    };
    match hosts.next() {
        Some(host) => hosts.next().is_none() && is_valid(host),
        None => request.version() < Version::HTTP_11,
    }
}

fn throttled(app: &App, retry_after_seconds: u64) -> ApiError {
    app.metrics.throttled.inc();
    ApiError::RateLimited { retry_after: retry_after_seconds }
}

// Constant values are validated when the program is compiled, not once per request.
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const VARY: HeaderValue = HeaderValue::from_static("Authorization, X-API-Key, Accept, Accept-Encoding");
const VARY_BY_ORIGIN: HeaderValue =
    HeaderValue::from_static("Authorization, X-API-Key, Accept, Accept-Encoding, Origin");

/// Adds the common headers. A header of the same name is replaced, except `Cache-Control`. A response without
/// `Cache-Control` must not be stored, because it may contain personal data.
fn add_common_headers(
    app: &App,
    response: &mut Response,
    limits: Option<&ReportedLimits>,
    left: RemainingCalls,
    id: &RequestId,
) {
    let vary = if app.settings.cors_allowed_origins.is_empty() { VARY } else { VARY_BY_ORIGIN };
    let target = response.headers_mut();
    target.insert(REQUEST_ID_HEADER, id.to_header_value());
    target.insert(header::X_CONTENT_TYPE_OPTIONS, NO_SNIFF);
    target.insert(header::VARY, vary);
    target.entry(header::CACHE_CONTROL).or_insert(NO_STORE);
    if app.is_draining() {
        // `Connection: close` makes the client open a new connection. The load balancer sends it to another instance.
        target.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    match limits {
        Some(ReportedLimits::Account(decision)) => request_context::write_account_limits(target, decision),
        Some(ReportedLimits::FailedCredentials(left)) => {
            request_context::write_address_limits(target, *left, chrono::Utc::now())
        }
        None => request_context::write_address_limits(target, left, chrono::Utc::now()),
    }
}

/// Creates the span of a request. If the request has a trace context, the span is a child of the client's span.
fn request_span(request: &Request, id: &RequestId) -> Span {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn future_size<A, B, C, D, F: Future>(_: impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// Every request copies its future a few times before the future is polled.
    #[test]
    fn the_future_of_a_request_is_small() {
        let bytes = future_size(handle_request);
        assert!(bytes <= 1_024, "{bytes} bytes");
    }

    #[test]
    fn a_request_names_one_host() {
        let check = |version, hosts: &[&str]| {
            let mut request = Request::new(Body::empty());
            *request.version_mut() = version;
            for host in hosts {
                request.headers_mut().append(header::HOST, host.parse().expect("a header"));
            }
            has_valid_host(&request)
        };
        for valid in ["a", "data.example.com:8080", "[::1]:80", "127.0.0.1", ""] {
            assert!(check(Version::HTTP_11, &[valid]), "{valid}");
        }
        for invalid in [&[][..], &["a", "a"], &["a", "b"], &["a b"], &["a/b"], &["user@a"], &["a,b c"]] {
            assert!(!check(Version::HTTP_11, invalid), "{invalid:?}");
        }
        assert!(check(Version::HTTP_10, &[]) && !check(Version::HTTP_10, &["a", "b"]));
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_panic_is_a_500_and_a_timeout_a_503() {
        let answered = with_deadline(LONG, async { Ok(Response::default()) }).await;
        assert_eq!(answered.status(), StatusCode::OK);
        let panicked = with_deadline(LONG, async { panic!("of the test") }).await;
        assert_eq!(panicked.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let late = with_deadline(Duration::ZERO, std::future::pending()).await;
        assert_eq!(late.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
