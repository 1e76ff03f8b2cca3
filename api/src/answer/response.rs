//! The response around a body: entity tag, 304, media type, the next page.

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;

use crate::parameters::Format;

/// How long a client may use an answer without asking again, seconds.
const MAX_AGE: &str = "private, max-age=60";
/// Headers of a response to an account, with those that middleware adds.
const HEADERS: usize = 16;

/// True if the client names this entity tag, compared weakly; `*` names any that exists.
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

/// The answer with this body.
pub(super) fn ok(body: Body, format: Format, etag: &HeaderValue, link: Option<&HeaderValue>) -> Response {
    let length = body.size_hint().exact();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(header::ETAG, etag.clone());
    // A streamed body has no length yet.
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    let content_type = match format {
        Format::Json => "application/json",
        Format::Csv => "text/csv; charset=utf-8; header=present",
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(MAX_AGE));
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
