//! HTTP response builder: entity tag, 304 Not Modified, media type, link to the next page.

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;

use crate::parameters::ResponseFormat;

/// `Cache-Control` of a response: the client may cache the response for 60 seconds, shared caches must not.
const MAX_AGE: HeaderValue = HeaderValue::from_static("private, max-age=60");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const CSV: HeaderValue = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
/// Initial capacity for response headers, including the headers of the middleware.
const HEADERS: usize = 16;

/// True if `If-None-Match` contains this entity tag, by weak comparison. `*` matches only if `exists` is true. `exists`
/// means that the response was rendered, so the resource is known to exist.
pub(super) fn matches_etag(if_none_match: Option<&HeaderValue>, etag: &HeaderValue, exists: bool) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let (Some(named), Ok(etag)) = (if_none_match.and_then(|value| value.to_str().ok()), etag.to_str()) else {
        return false;
    };
    (exists && named.trim() == "*") || named.split(',').any(|tag| opaque(tag) == opaque(etag))
}

/// Response with a complete body that only the client may cache, or 304 if the client's copy is current.
pub(crate) fn private_response(
    body: impl Into<Body>,
    content_type: HeaderValue,
    etag: &HeaderValue,
    if_none_match: Option<&HeaderValue>,
) -> Response {
    if matches_etag(if_none_match, etag, true) {
        return not_modified(etag);
    }
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag.clone());
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CACHE_CONTROL, MAX_AGE);
    response
}

pub(super) fn not_modified(etag: &HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag.clone());
    headers.insert(header::CACHE_CONTROL, MAX_AGE);
    response
}

/// Response 200 with this body.
pub(super) fn ok_response(
    body: Body,
    format: ResponseFormat,
    etag: &HeaderValue,
    link: Option<&HeaderValue>,
) -> Response {
    let length = body.size_hint().exact();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    headers.insert(header::ETAG, etag.clone());
    // A streamed body has no known length.
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    let content_type = match format {
        ResponseFormat::Json => JSON,
        ResponseFormat::Csv => CSV,
    };
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::CACHE_CONTROL, MAX_AGE);
    if let Some(link) = link {
        headers.insert(header::LINK, link.clone());
    }
    response
}

/// Link to the next page: the same request with the next cursor, as a relative reference.
pub(super) fn next_page_link(target: &str, cursor: &str) -> Option<HeaderValue> {
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
