//! The response around a body: entity tag, 304, media type, the next page.

use std::sync::LazyLock;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;

use crate::access::headers;
use crate::head;
use crate::parameters::Format;

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

/// What differs from answer to answer, in this order.
static OWN: [HeaderName; 2] = [header::ETAG, header::CONTENT_LENGTH];
/// The heads of an account's answers, of which [`head::fill`] puts in what is empty: here, and where every response leaves.
static JSON: LazyLock<HeaderMap> = LazyLock::new(|| begun("application/json"));
static CSV: LazyLock<HeaderMap> = LazyLock::new(|| begun("text/csv; charset=utf-8; header=present"));

fn begun(content_type: &'static str) -> HeaderMap {
    let known = [(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, MAX_AGE)];
    let known = known.map(|(name, value)| (name, HeaderValue::from_static(value)));
    let empty = |name: &HeaderName| (name.clone(), HeaderValue::from_static(""));
    let (own, left) = (OWN.iter().map(empty), head::OF_EVERY.iter().chain(&headers::OF_ACCOUNT).map(empty));
    own.chain(known).chain(left).collect()
}

/// The answer with this body.
pub(super) fn ok(body: Body, format: Format, etag: &HeaderValue, link: Option<&HeaderValue>) -> Response {
    let length = body.size_hint().exact();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.clone_from(match format {
        Format::Json => &JSON,
        Format::Csv => &CSV,
    });
    match length {
        Some(length) => head::fill(headers, &OWN, [etag.clone(), length.into()]),
        // A body that is written as it is read has no length yet.
        None => {
            headers.insert(header::ETAG, etag.clone());
            headers.remove(header::CONTENT_LENGTH);
        }
    }
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
