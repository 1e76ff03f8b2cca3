//! Response of a handler: its cache key, entity tag, 304 Not Modified, media type, and link to the next page.
//!
//! The body of a cheap request is rendered completely before it is sent. Concurrent identical requests share one rendering.

use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::future::BoxFuture;

use super::context::{HandlerContext, RenderedBody};
use super::{Access, RequiredTier};
use crate::app::App;
use crate::auth::AccountId;
use crate::error::{ApiError, SymbolKind};
use crate::parameters::{Parameters, ResponseFormat};
use crate::read::{DataVersion, ServedGeneration, lookup};
use crate::render::cache::{CacheKey, CachedResponse, ResponseCache};
use crate::render::icalendar;

/// Request that needs a response body, because its `If-None-Match` is absent or does not match.
#[derive(Debug)]
pub(super) struct PendingResponse {
    pub(super) handle: CacheHandle,
    pub(super) app: App,
    pub(super) generation: Arc<ServedGeneration>,
    pub(super) account_id: AccountId,
    /// True if the response may be streamed: it is JSON, and the client detects a truncated response.
    pub(super) accepts_streaming: bool,
}

/// Cache key of a response, with the client's `If-None-Match`.
#[derive(Debug)]
pub(super) struct CacheHandle {
    pub(super) key: CacheKey,
    if_none_match: Option<HeaderValue>,
    /// True if the response must not be stored, neither here nor by the client.
    is_private: bool,
}

#[expect(clippy::result_large_err, reason = "a response is handed on once, and not by way of the heap")]
/// Builds the cache key and the handler context. `Err` is a finished response: 304, or an error if the data cannot be
/// read.
pub(super) fn prepare_handler<G: RequiredTier, P: Parameters>(
    access: Access<G, P>,
) -> Result<(PendingResponse, HandlerContext<P>), Response> {
    let Access {
        app,
        generation,
        account_id,
        tier,
        today,
        parameters,
        format,
        known_at,
        detects_truncation,
        target,
        if_none_match,
        ..
    } = access;
    let generation = generation.map_err(|error| ApiError::from(error).into_response())?;
    let version = generation.version();
    let (control_revision, tier_of_key) =
        (generation.control_state().revision, P::TIER_MATTERS.then_some(tier));
    let key = CacheKey { version, control_revision, today, format, tier: tier_of_key, target };
    if if_none_match.is_some() && !P::IS_PRIVATE {
        let etag = key.etag(&version);
        if matches_etag(if_none_match.as_ref(), &etag, false) {
            generation.record_returned_version(version);
            return Err(not_modified(&etag));
        }
    }
    // Only JSON is streamed, because a truncated CSV looks complete. The `Link` header of a CSV is another obstacle: it
    // is known only after the last row, but must be sent before the body.
    let accepts_streaming = detects_truncation && format == ResponseFormat::Json;
    let handle = CacheHandle { key, if_none_match, is_private: P::IS_PRIVATE };
    let asked = PendingResponse {
        handle,
        app: app.clone(),
        generation: Arc::clone(&generation),
        account_id,
        accepts_streaming,
    };
    Ok((asked, HandlerContext { app, generation, tier, today, known_at, parameters }))
}

impl PendingResponse {
    /// Responds with the result of `rendering`. The whole body is rendered before it is sent. Concurrent identical
    /// requests share one rendering.
    pub(super) async fn respond_buffered(
        self,
        rendering: BoxFuture<'static, Result<RenderedBody, ApiError>>,
    ) -> Response {
        let Self { handle, app, generation, .. } = self;
        let fill = async {
            let rendered = generation.run_while_responsive(rendering).await;
            let rendered = explain_unknown_symbol(&app, &generation, rendered).await?;
            generation.record_returned_version(rendered.version);
            let next_cursor = rendered.next_cursor.as_deref();
            Ok::<_, ApiError>(handle.to_cached(rendered.body, &rendered.version, next_cursor))
        };
        let filled = app.response_cache.get_or_render(&handle.key, fill);
        match tokio::time::timeout(app.settings.request_timeout, filled).await {
            Ok(Ok(answer)) => handle.respond_cached(&answer),
            Ok(Err(error)) => error.into_response(),
            Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
        }
    }

    /// Looks up the response in the cache.
    pub(super) fn cached_response(&self) -> Option<Response> {
        if self.handle.is_private {
            return None;
        }
        self.app.response_cache.get(&self.handle.key).map(|kept| self.handle.respond_cached(&kept))
    }
}

impl CacheHandle {
    pub(super) fn to_cached(
        &self,
        body: Bytes,
        version: &DataVersion,
        next_cursor: Option<&str>,
    ) -> CachedResponse {
        CachedResponse { body, etag: self.key.etag(version), link: self.link(next_cursor) }
    }

    pub(super) fn link(&self, next_cursor: Option<&str>) -> Option<HeaderValue> {
        let cursor = next_cursor.filter(|_| self.key.format == ResponseFormat::Csv)?;
        next_page_link(&self.key.target, cursor)
    }

    /// Caches a response, unless it must not be stored.
    pub(super) fn insert_into(&self, cache: &ResponseCache, answer: CachedResponse) {
        if !self.is_private {
            cache.insert(self.key.clone(), answer);
        }
    }

    /// Response with a complete body, or 304 if the client's copy is current.
    fn respond_cached(&self, answer: &CachedResponse) -> Response {
        self.respond(&answer.etag, answer.link.as_ref(), || answer.body.clone().into())
    }

    /// Response with a body, or 304 if the client's copy is current.
    pub(super) fn respond(
        &self,
        etag: &HeaderValue,
        link: Option<&HeaderValue>,
        body: impl FnOnce() -> Body,
    ) -> Response {
        if self.is_private {
            return ok_response(body(), self.key.format, None, link);
        }
        if matches_etag(self.if_none_match.as_ref(), etag, true) {
            return not_modified(etag);
        }
        ok_response(body(), self.key.format, Some(etag), link)
    }
}

/// Replaces the error for an unknown symbol if the symbol is an address of several listings. Otherwise adds similar
/// symbols to the error. If they cannot be read, the error stays as it is.
pub(super) async fn explain_unknown_symbol<T>(
    app: &App,
    generation: &ServedGeneration,
    rendered: Result<T, ApiError>,
) -> Result<T, ApiError> {
    let Err(ApiError::UnknownSymbol { kind, symbol, .. }) = rendered else { return rendered };
    // Boxed, because the future of every response would contain these rare reads.
    Box::pin(async move {
        lookup::require_unshared(generation, [&symbol]).await?;
        let tables = &app.memory_tables;
        let nearest = match kind {
            SymbolKind::Stock => {
                tables.stocks(generation).await.map(|table| table.near_symbols(&symbol.text))
            }
            SymbolKind::Etf => tables.etfs(generation).await.map(|table| table.near_symbols(&symbol.text)),
        };
        Err(ApiError::UnknownSymbol { kind, symbol, nearest: nearest.unwrap_or_default() })
    })
    .await
}

/// `Cache-Control` of a response: the client may cache the response for 60 seconds, shared caches must not.
const MAX_AGE: HeaderValue = HeaderValue::from_static("private, max-age=60");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const CSV: HeaderValue = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
/// Initial capacity for response headers, including the headers of the middleware.
const HEADERS: usize = 16;

/// True if `If-None-Match` contains this entity tag, by weak comparison. `*` matches only if `exists` is true. `exists`
/// means that the response was rendered, so the resource is known to exist.
fn matches_etag(if_none_match: Option<&HeaderValue>, etag: &HeaderValue, exists: bool) -> bool {
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

fn not_modified(etag: &HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag.clone());
    headers.insert(header::CACHE_CONTROL, MAX_AGE);
    response
}

/// Response 200 with this body. Without an entity tag, it must not be stored.
fn ok_response(
    body: Body,
    format: ResponseFormat,
    etag: Option<&HeaderValue>,
    link: Option<&HeaderValue>,
) -> Response {
    let length = body.size_hint().exact();
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.reserve(HEADERS);
    // A streamed body has no known length.
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    let content_type = match format {
        ResponseFormat::Json => JSON,
        ResponseFormat::Csv => CSV,
        ResponseFormat::Calendar => icalendar::MEDIA_TYPE,
    };
    headers.insert(header::CONTENT_TYPE, content_type);
    if let Some(etag) = etag {
        headers.insert(header::ETAG, etag.clone());
        headers.insert(header::CACHE_CONTROL, MAX_AGE);
    }
    if let Some(link) = link {
        headers.insert(header::LINK, link.clone());
    }
    response
}

/// Link to the next page: the same request with the next cursor, as a relative reference.
fn next_page_link(target: &str, cursor: &str) -> Option<HeaderValue> {
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
