//! The response around a body: entity tag, 304, media type, the next page.

use std::sync::LazyLock;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;

use crate::access::headers;
use crate::head;
use crate::parameters::Format;
use crate::request_id::REQUEST_ID_HEADER;

/// How long a client may use an answer without asking again, seconds.
const MAX_AGE: &str = "private, max-age=60";

/// Whether the client names this entity tag, compared weakly; `*` names any that exists.
pub(super) fn has(if_none_match: Option<&HeaderValue>, etag: &HeaderValue, exists: bool) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let (Some(named), Ok(etag)) = (if_none_match.and_then(|value| value.to_str().ok()), etag.to_str()) else {
        return false;
    };
    (exists && named.trim() == "*") || named.split(',').any(|tag| opaque(tag) == opaque(etag))
}

/// The answer to a client that has it already.
pub(super) fn not_modified(etag: &HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(MAX_AGE));
    response
}

/// What every answer has of its own.
const OWN: [HeaderName; 4] =
    [header::ETAG, header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CACHE_CONTROL];
/// What every response has beside its limits.
const EVERY: [HeaderName; 3] = [REQUEST_ID_HEADER, header::X_CONTENT_TYPE_OPTIONS, header::VARY];

/// The head of an account's answer, of which everything is still empty: [`head::fill`] puts the answer's own headers in, and
/// those of every response follow where it leaves.
static BEGUN: LazyLock<HeaderMap> = LazyLock::new(|| {
    let names = OWN.into_iter().chain(EVERY).chain(headers::OF_ACCOUNT);
    names.map(|name| (name, HeaderValue::from_static(""))).collect()
});

/// The answer with this body.
pub(super) fn ok(body: Body, format: Format, etag: &HeaderValue, link: Option<&HeaderValue>) -> Response {
    let length = body.size_hint().exact();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.clone_from(&BEGUN);
    let content_type = match format {
        Format::Json => "application/json",
        Format::Csv => "text/csv; charset=utf-8; header=present",
    };
    // A body that is written as it is read has no length yet.
    if length.is_none() {
        headers.remove(header::CONTENT_LENGTH);
    }
    let own = [
        Some((header::ETAG, etag.clone())),
        Some((header::CONTENT_TYPE, HeaderValue::from_static(content_type))),
        length.map(|length| (header::CONTENT_LENGTH, length.into())),
        Some((header::CACHE_CONTROL, HeaderValue::from_static(MAX_AGE))),
    ];
    head::fill(headers, own.into_iter().flatten());
    if let Some(link) = link {
        headers.insert(header::LINK, link.clone());
    }
    response
}

/// The same request with the next page's cursor, as a relative reference.
pub(super) fn next_link(target: &str, cursor: &str) -> Option<HeaderValue> {
    let uri: Uri = target.parse().ok()?;
    let kept = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
    let query: Vec<&str> = kept.collect();
    let separator = if query.is_empty() { "" } else { "&" };
    HeaderValue::from_str(&format!(
        "<{}?{}{separator}cursor={cursor}>; rel=\"next\"",
        uri.path(),
        query.join("&")
    ))
    .ok()
}
