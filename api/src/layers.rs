//! What surrounds every request: its id, its time limit, its limits' headers, the log line.
//!
//! Invariants: every response passes here, so every response has these headers; a panic is a 500, not a dropped
//! connection.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use process::trace::{SPANS, continue_from};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::access::throttle::Left;
use crate::access::{Client, Entry, Ledger, headers, scrub};
use crate::address;
use crate::app::App;
use crate::error::ApiError;
use crate::request_id;

const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

const VARY: &str = "Authorization, X-API-Key, Accept, Accept-Encoding";
const VARY_BY_ORIGIN: &str = "Authorization, X-API-Key, Accept, Accept-Encoding, Origin";

/// The outermost layer.
pub(crate) async fn around(State(app): State<App>, request: Request, next: Next) -> Response {
    let id = given_id(&request).or_else(|| trace_id(&request)).unwrap_or_else(new_id);
    let span = span(&request, &id);
    let response =
        request_id::scope(id.clone(), answer(app, request, next, id)).instrument(span.clone()).await;
    span.record("http.response.status_code", i64::from(response.status().as_u16()));
    if response.status().is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
    response
}

/// The request in its caller's trace. Its path is the template: what clients write there is no part of a trace.
fn span(request: &Request, id: &str) -> Span {
    if !tracing::enabled!(target: SPANS, tracing::Level::INFO) {
        return Span::none();
    }
    let (method, route) =
        (request.method(), request.extensions().get::<MatchedPath>().map(MatchedPath::as_str));
    let span = tracing::info_span!(
        target: SPANS,
        "request",
        otel.name = format!("{method} {}", route.unwrap_or_default()).trim_end(),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method.as_str(),
        http.route = route,
        http.response.status_code = Empty,
        request_id = id,
    );
    continue_from(&span, request.headers());
    span
}

/// The response to what never became a request of the router, charged to its address like any other call.
pub(crate) fn refuse(app: &App, client: IpAddr, error: ApiError) -> Response {
    let (error, left) = match app.throttle.call(client) {
        Ok(left) => (error, left),
        Err(refused) => (throttled(app, refused.retry_after), refused.left),
    };
    let mut response = error.into_response();
    app.metrics.refused(response.status());
    finish(app, &mut response, &Ledger::default(), left, &new_id());
    response
}

fn throttled(app: &App, retry_after: u64) -> ApiError {
    app.metrics.throttled.inc();
    ApiError::RateLimited { retry_after }
}

fn new_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// The client's own id, when it is one.
fn given_id(request: &Request) -> Option<String> {
    let id = request.headers().get(&REQUEST_ID_HEADER)?.to_str().ok()?;
    // A key sent here by mistake would end up in logs.
    let sane = (8..=64).contains(&id.len())
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        && matches!(scrub(id), Cow::Borrowed(_));
    sane.then(|| id.to_owned())
}

/// The id of the trace that the request is part of (W3C Trace Context), which its log lines go on with.
fn trace_id(request: &Request) -> Option<String> {
    let parent = request.headers().get(&TRACE_PARENT)?.to_str().ok()?;
    let id = parent.split('-').nth(1)?;
    let sane = id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (sane && id.bytes().any(|byte| byte != b'0')).then(|| id.to_owned())
}

async fn answer(app: App, mut request: Request, next: Next, id: String) -> Response {
    let started = Instant::now();
    // The line is only for those who debug; a path is copied for nobody else.
    let asked = tracing::enabled!(tracing::Level::DEBUG).then(|| scrub(request.uri().path()).into_owned());
    let (endpoint, method) = (request.extensions().get::<MatchedPath>().cloned(), request.method().clone());
    let (ledger, client) = (Ledger::default(), client_of(&request, &app));
    request.extensions_mut().insert(ledger.clone());
    request.extensions_mut().insert(Client(client));
    let (mut response, left) = match app.throttle.call(client) {
        Ok(left) => (bounded(&app, request, next).await, left),
        Err(refused) => (throttled(&app, refused.retry_after).into_response(), refused.left),
    };
    finish(&app, &mut response, &ledger, left, &id);
    app.admission.count(&ledger, response.status(), endpoint.as_ref());
    let elapsed = started.elapsed();
    app.metrics.answered(endpoint.as_ref(), &method, response.status(), elapsed.as_secs_f64());
    if let Some(path) = asked {
        let (status, elapsed) = (response.status().as_u16(), elapsed.as_micros());
        tracing::debug!(request_id = id, %method, path, status, elapsed_us = elapsed, "answered");
    }
    response
}

fn client_of(request: &Request, app: &App) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(SocketAddr::from(([0, 0, 0, 0], 0)), |peer| peer.0);
    address::client(peer, request.headers(), &app.settings.trusted_proxies)
}

/// Runs the request within its time; panics become an error like any other.
async fn bounded(app: &App, request: Request, next: Next) -> Response {
    let running = AssertUnwindSafe(next.run(request)).catch_unwind();
    // Answers keep their own time, which begins after a turn that they may have to wait for.
    let longest = app.settings.turn_timeout() + app.settings.request_timeout() * 2;
    match tokio::time::timeout(longest, running).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => ApiError::Internal(anyhow::anyhow!("a handler panicked")).into_response(),
        Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
    }
}

fn finish(app: &App, response: &mut Response, ledger: &Ledger, left: Left, id: &str) {
    // A request that turned out wrong only when its rows were read costs no more than one that was wrong from the start.
    if response.status().is_server_error() || response.status() == StatusCode::BAD_REQUEST {
        app.admission.refund_failed(ledger);
    }
    let target = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(id) {
        target.insert(REQUEST_ID_HEADER, id);
    }
    target.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let vary = if app.settings.cors_allowed_origins.is_empty() { VARY } else { VARY_BY_ORIGIN };
    target.insert(header::VARY, HeaderValue::from_static(vary));
    match ledger.entry() {
        Some(Entry::Account(charge)) => headers::write(target, charge),
        Some(Entry::Failures(left)) => headers::write_address(target, *left, chrono::Utc::now()),
        None => headers::write_address(target, left, chrono::Utc::now()),
    }
}
