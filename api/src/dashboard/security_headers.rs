//! Security headers of the pages.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::admission::RequestContext;
use crate::app::site_address::is_https;
use crate::app::state::App;
use crate::dashboard::error::ErrorText;
use crate::dashboard::view::layout::Viewer;
use crate::dashboard::visitor::has_market_pages;

/// Content security policy: only files of this service, no frames, no inline script or style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Content security policy of the page `/docs`. It also allows scripts to call this service, because the page's script
/// calls the API.
pub(crate) const CALLING_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With `no-referrer`, browsers would also hide the origin of forms, which the origin check needs.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Middleware that adds the security headers to every page. If the market pages (pages with market data) are public, it
/// also adds their search form to error pages.
pub(crate) async fn add_security_headers(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_secure = is_secure_request(&app, &request);
    let mut response = next.run(request).await;
    if let Some(text) = response.extensions_mut().remove::<ErrorText>()
        && has_market_pages(&app, Viewer::Visitor)
    {
        *response.body_mut() = text.render(true).0.into();
    }
    set_security_headers(response.headers_mut(), is_secure);
    response
}

/// True if a request came over HTTPS.
pub(crate) fn is_secure_request(app: &App, request: &Request) -> bool {
    let is_proxied =
        RequestContext::from_extensions(request.extensions()).is_some_and(|caller| caller.is_proxied);
    is_https(request.headers(), is_proxied, app.settings.dashboard.public_url.as_ref())
}

/// Sets the security headers. A content security policy that the page has already set is not replaced.
pub(crate) fn set_security_headers(target: &mut HeaderMap, is_secure: bool) {
    for (name, value) in HEADERS {
        if name != header::CONTENT_SECURITY_POLICY || !target.contains_key(&name) {
            target.insert(name, HeaderValue::from_static(value));
        }
    }
    if is_secure {
        target.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
}
