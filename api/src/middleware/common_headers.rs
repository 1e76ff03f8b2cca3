//! Common headers of every response: request id, `nosniff`, `Vary`, and the caller's rate limits.

use axum::http::{HeaderValue, header};
use axum::response::Response;

use crate::admission::{ReportedLimits, limit_headers};
use crate::app::state::App;
use crate::auth::address_throttle::RemainingCalls;
use crate::connection::request_id::{REQUEST_ID_HEADER, RequestId};

// Constant values are validated when the program is compiled, not once per request.
const NO_SNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const VARY: HeaderValue = HeaderValue::from_static("Authorization, X-API-Key, Accept, Accept-Encoding");
const VARY_BY_ORIGIN: HeaderValue =
    HeaderValue::from_static("Authorization, X-API-Key, Accept, Accept-Encoding, Origin");

/// Adds the common headers. A header of the same name is replaced, except `Cache-Control`. A response without
/// `Cache-Control` must not be stored, because it may contain personal data.
pub(super) fn add_common_headers(
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
        Some(ReportedLimits::Account(decision)) => limit_headers::write_account_limits(target, decision),
        Some(ReportedLimits::FailedCredentials(left)) => {
            limit_headers::write_address_limits(target, *left, chrono::Utc::now())
        }
        None => limit_headers::write_address_limits(target, left, chrono::Utc::now()),
    }
}
