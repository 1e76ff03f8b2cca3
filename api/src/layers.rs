//! What surrounds every request: its id, its time limit, compression, its limits' headers, the log line.
//!
//! Invariants: every response passes here, so every response has these headers; a panic is a 500, not a dropped
//! connection.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use telemetry::spans::{SPAN_TARGET, continue_from, rename};
use tower::{Service, ServiceExt};
use tower_http::CompressionLevel;
use tower_http::compression::Compression;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::access::throttle::Left;
use crate::access::{Caller, Entry, headers, scrub};
use crate::address;
use crate::app::App;
use crate::connection::Connection;
use crate::error::ApiError;
use crate::head;
use crate::request_id::{self, RequestId};

const VARY: &str = "Authorization, X-API-Key, Accept, Accept-Encoding";
const VARY_BY_ORIGIN: &str = "Authorization, X-API-Key, Accept, Accept-Encoding, Origin";

/// How a request came in.
pub(crate) struct Arrival {
    pub(crate) peer: SocketAddr,
    /// Whether the peer is a trusted proxy.
    pub(crate) is_proxied: bool,
    pub(crate) connection: Arc<Connection>,
}

/// Answers a request by its route, with all that surrounds it.
pub(crate) async fn around(app: App, mut router: Router, arrival: Arrival, mut request: Request) -> Response {
    let started = Instant::now();
    let id = RequestId::of(request.headers());
    let client = address::client(arrival.peer, request.headers(), &app.settings.trusted_proxies);
    let caller = Caller::new(client, arrival.is_proxied, arrival.connection);
    // The line is only for those who debug; a path is copied for nobody else.
    let asked = tracing::enabled!(tracing::Level::DEBUG).then(|| scrub(request.uri().path()).into_owned());
    let (method, span) = (request.method().clone(), span(&request, &id));
    let encodings = encodings(&request);
    request.extensions_mut().insert(Arc::clone(&caller));
    let (mut response, left) = match app.throttle.call(client) {
        Ok(left) => {
            // Pinned once, so that what is put around it moves a pointer to it.
            let answering = pin!(router.call(request));
            let answering = bounded(&app, answering);
            let response = request_id::scope(id.clone(), answering).instrument(span.clone()).await;
            (compressed(encodings, response).await, left)
        }
        Err(refused) => (throttled(&app, refused.retry_after).into_response(), refused.left),
    };
    // A request that turned out wrong only when its rows were read costs no more than one that was wrong from the start.
    if response.status().is_server_error() || response.status() == StatusCode::BAD_REQUEST {
        app.admission.refund_failed(&caller);
    }
    finish(&app, &mut response, caller.entry(), left, &id);
    app.admission.count(&caller, response.status());
    let elapsed = started.elapsed();
    app.metrics.answered(caller.endpoint(), &method, response.status(), elapsed.as_secs_f64());
    record(&span, &method, caller.endpoint(), response.status());
    if let Some(path) = asked {
        let (status, elapsed) = (response.status().as_u16(), elapsed.as_micros());
        tracing::debug!(request_id = id.as_str(), %method, path, status, elapsed_us = elapsed, "answered");
    }
    response
}

/// The request in its caller's trace.
fn span(request: &Request, id: &RequestId) -> Span {
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
    continue_from(&span, request.headers());
    span
}

/// Notes in the span what was answered. The path is the route's template: what clients write there is no part of a trace.
fn record(span: &Span, method: &Method, route: Option<&MatchedPath>, status: StatusCode) {
    if span.is_disabled() {
        return;
    }
    let route = route.map(MatchedPath::as_str);
    rename(span, format!("{method} {}", route.unwrap_or_default()).trim_end().to_owned());
    span.record("http.route", route);
    span.record("http.response.status_code", i64::from(status.as_u16()));
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}

/// The encodings that the client understands, if it says so.
fn encodings(request: &Request) -> Vec<HeaderValue> {
    request.headers().get_all(header::ACCEPT_ENCODING).iter().cloned().collect()
}

/// The response as a client of these encodings is sent it; few name any.
async fn compressed(encodings: Vec<HeaderValue>, response: Response) -> Response {
    if encodings.is_empty() {
        return response;
    }
    let mut asked = Request::new(Body::empty());
    for encoding in encodings {
        asked.headers_mut().append(header::ACCEPT_ENCODING, encoding);
    }
    let mut response = Some(response);
    let once = tower::service_fn(move |_: Request| {
        std::future::ready(Ok::<_, Infallible>(response.take().unwrap_or_default()))
    });
    let Ok(response) = Compression::new(once).quality(CompressionLevel::Fastest).oneshot(asked).await;
    response.map(Body::new)
}

/// The response to what never became a request of the router, charged to its address like any other call.
pub(crate) fn refuse(app: &App, client: IpAddr, error: ApiError) -> Response {
    let (error, left) = match app.throttle.call(client) {
        Ok(left) => (error, left),
        Err(refused) => (throttled(app, refused.retry_after), refused.left),
    };
    let mut response = error.into_response();
    app.metrics.refused(response.status());
    finish(app, &mut response, None, left, &RequestId::draw());
    response
}

fn throttled(app: &App, retry_after: u64) -> ApiError {
    app.metrics.throttled.inc();
    ApiError::RateLimited { retry_after }
}

/// Runs the request within its time; panics become an error like any other.
async fn bounded(app: &App, answer: impl Future<Output = Result<Response, Infallible>>) -> Response {
    let running = AssertUnwindSafe(answer).catch_unwind();
    // Answers keep their own time, which begins after a turn that they may have to wait for.
    let longest = app.settings.turn_timeout() + app.settings.request_timeout() * 2;
    match tokio::time::timeout(longest, running).await {
        Ok(Ok(Ok(response))) => response,
        Ok(Err(_)) => ApiError::Internal(anyhow::anyhow!("a handler panicked")).into_response(),
        Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
    }
}

/// Adds the headers that every response has.
fn finish(app: &App, response: &mut Response, entry: Option<&Entry>, left: Left, id: &RequestId) {
    let vary = if app.settings.cors_allowed_origins.is_empty() { VARY } else { VARY_BY_ORIGIN };
    let of_every = [id.header(), HeaderValue::from_static("nosniff"), HeaderValue::from_static(vary)];
    let target = response.headers_mut();
    head::fill(target, &head::OF_EVERY, of_every);
    match entry {
        Some(Entry::Account(charge)) => headers::write(target, charge),
        Some(Entry::Failures(left)) => headers::write_address(target, *left, chrono::Utc::now()),
        None => headers::write_address(target, left, chrono::Utc::now()),
    }
}
