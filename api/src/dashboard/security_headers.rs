//! Security headers of the pages, and the answer to forms of other sites.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::csrf::ProtectionError;

use crate::admission::Caller;
use crate::app::site::is_secure;
use crate::app::state::App;
use crate::dashboard::error::PageError;

/// Own files only; no frame, no script or style in a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The same, and calls of the page's script to this service. Only the reference calls.
pub(crate) const CALLING_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With no referrer at all, browsers would hide the origin of the forms too.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Adds the headers to a page.
pub(crate) async fn headers(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_secure = is_secure_request(&app, &request);
    let mut response = next.run(request).await;
    secure(response.headers_mut(), is_secure);
    response
}

/// True if a request came over HTTPS.
pub(crate) fn is_secure_request(app: &App, request: &Request) -> bool {
    let is_proxied = Caller::of(request.extensions()).is_some_and(|caller| caller.is_proxied);
    is_secure(request.headers(), is_proxied, app.settings.dashboard.public_url.as_ref())
}

/// Sets the headers. A policy that the page has already stays.
pub(crate) fn secure(target: &mut HeaderMap, is_secure: bool) {
    for (name, value) in HEADERS {
        if name != header::CONTENT_SECURITY_POLICY || !target.contains_key(&name) {
            target.insert(name, HeaderValue::from_static(value));
        }
    }
    if is_secure {
        target.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}

/// The answer to a form that another site sent.
pub(crate) fn foreign(_: ProtectionError) -> Response {
    PageError::Forged.into_response()
}
