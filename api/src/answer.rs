//! How an answer leaves: from memory or made anew, one resource or a page, 304 when the client has it, with its headers.
//!
//! Invariant: a body and the version it names come from the same snapshot.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chrono::NaiveDate;
use serde::Serialize;

use crate::access::{Access, Gate};
use crate::app::App;
use crate::cache::{Answer, Key, Representation};
use crate::envelope::{ListMeta, Meta, Warning};
use crate::error::ApiError;
use crate::parameters::{Format, Listed, Output, Page, Parameters};
use crate::read::projection::{Generation, Version};
use crate::render;
use crate::tier::{Tier, years_before};
use crate::turns::Turn;

/// How long a client may use an answer without asking again, seconds.
const MAX_AGE: &str = "private, max-age=60";

/// What a handler works with to render an answer.
#[derive(Debug)]
pub(crate) struct Context<P> {
    pub(crate) app: App,
    pub(crate) generation: Arc<Generation>,
    pub(crate) tier: Tier,
    /// The day that counts as today.
    pub(crate) today: NaiveDate,
    pub(crate) parameters: P,
}

/// A body and the version it was rendered from.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) body: Bytes,
    pub(crate) version: Version,
    pub(crate) next_cursor: Option<String>,
}

impl<G: Gate, P: Parameters> Access<G, P> {
    /// Answers from memory, or with what `render` renders, or with 304 when the client has it already.
    pub(crate) async fn answer<F>(self, render: impl FnOnce(Context<P>) -> F) -> Response
    where
        F: Future<Output = Result<Rendered, ApiError>> + Send + 'static,
    {
        let generation = match self.app.projection.pin() {
            Ok(generation) => generation,
            Err(error) => return ApiError::from(error).into_response(),
        };
        let Self { app, account, tier, today, parameters, format, is_costly, target, if_none_match, .. } =
            self;
        let representation =
            Representation { today, format, tier: P::TIER_MATTERS.then_some(tier), target: &target };
        let key = Key::new(&generation.version(), &representation);
        if if_none_match.is_some() && has(if_none_match.as_ref(), &key.etag(), false) {
            return not_modified(&key.etag());
        }
        let (generation, mut turn) = match is_costly {
            true => match app.turns.wait(account).await {
                Ok(turn) => (generation.apart(), Some(turn)),
                Err(error) => return ApiError::from(error).into_response(),
            },
            false => (generation, None),
        };
        let context =
            Context { app: app.clone(), generation: Arc::clone(&generation), tier, today, parameters };
        let fill = async {
            // On the heap, and only where it is needed: it is large, and passed through several others.
            let rendering = Box::pin(render(context));
            let rendered = in_turn(rendering, &mut turn).await?;
            generation.observe(rendered.version);
            let link = rendered
                .next_cursor
                .filter(|_| format == Format::Csv)
                .and_then(|cursor| next_link(&target, &cursor));
            let etag = Key::new(&rendered.version, &representation).etag();
            Ok::<_, ApiError>(Answer { body: rendered.body, etag, link })
        };
        match tokio::time::timeout(app.settings.request_timeout(), app.answers.get(key, fill)).await {
            Ok(Ok(answer)) if has(if_none_match.as_ref(), &answer.etag, true) => not_modified(&answer.etag),
            Ok(Ok(answer)) => ok(&answer, format, turn),
            Ok(Err(error)) => error.response(),
            Err(_) => ApiError::Unavailable("the request took too long".to_owned()).into_response(),
        }
    }
}

/// Renders; what costs much on a thread of its own, so that those that answer everybody else stay free. The thread has
/// the turn until it is done, whether the client still waits or not.
async fn in_turn(
    rendering: Pin<Box<impl Future<Output = Result<Rendered, ApiError>> + Send + 'static>>,
    turn: &mut Option<Turn>,
) -> Result<Rendered, ApiError> {
    let Some(held) = turn.take() else { return rendering.await };
    let runtime = tokio::runtime::Handle::current();
    let apart = tokio::task::spawn_blocking(move || (runtime.block_on(rendering), held));
    let (rendered, held) = apart.await.map_err(|error| ApiError::Internal(error.into()))?;
    *turn = Some(held);
    rendered
}

impl<P> Context<P> {
    /// The first day the tier's history reaches.
    pub(crate) fn floor(&self) -> NaiveDate {
        years_before(self.today, self.app.projection.tiers().depth_years(self.tier))
    }

    /// The answer with one resource.
    pub(crate) fn single<T: Serialize>(
        &self,
        output: &Output,
        version: Version,
        row: &T,
    ) -> Result<Rendered, ApiError> {
        self.warned(output, version, row, vec![])
    }

    /// The answer with one resource, and what to know before using it.
    pub(crate) fn warned<T: Serialize>(
        &self,
        output: &Output,
        version: Version,
        row: &T,
        warnings: Vec<Warning>,
    ) -> Result<Rendered, ApiError> {
        let meta = Meta { warnings, ..Meta::new(&version) };
        let body = render::single(output, row, &meta)?;
        Ok(Rendered { body, version, next_cursor: None })
    }

    /// The answer with a page of these rows; `finish` completes its meta.
    pub(crate) fn page<'a, T: Listed + Serialize + 'a>(
        &self,
        output: &Output,
        page: &Page,
        version: Version,
        rows: impl IntoIterator<Item = &'a T>,
        finish: impl FnOnce(&mut ListMeta),
    ) -> Result<Rendered, ApiError> {
        let (rows, next_cursor) = page.select(rows, &self.app.signer);
        let mut meta = ListMeta::new(&version, rows.len(), page.limit, next_cursor.clone());
        finish(&mut meta);
        Ok(Rendered { body: render::list(output, &rows, &meta)?, version, next_cursor })
    }
}

/// Whether the client names this entity tag, compared weakly; `*` names any that exists.
fn has(if_none_match: Option<&HeaderValue>, etag: &HeaderValue, exists: bool) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let (Some(named), Ok(etag)) = (if_none_match.and_then(|value| value.to_str().ok()), etag.to_str()) else {
        return false;
    };
    (exists && named.trim() == "*") || named.split(',').any(|tag| opaque(tag) == opaque(etag))
}

/// A response of this body that may be kept, with room for the headers that every response gets.
fn cached(body: Body, etag: &HeaderValue) -> Response {
    let mut response = Response::new(body);
    *response.headers_mut() = HeaderMap::with_capacity(24);
    response.headers_mut().insert(header::ETAG, etag.clone());
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(MAX_AGE));
    response
}

fn not_modified(etag: &HeaderValue) -> Response {
    let mut response = cached(Body::empty(), etag);
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// The answer as a response, which holds its turn until the last byte is written.
fn ok(answer: &Answer, format: Format, turn: Option<Turn>) -> Response {
    let body = answer.body.clone();
    let body = match turn {
        Some(mut turn) => {
            turn.rendered();
            turn.holding(body)
        }
        None => body,
    };
    let mut response = cached(body.into(), &answer.etag);
    let headers = response.headers_mut();
    let content_type = match format {
        Format::Json => "application/json",
        Format::Csv => "text/csv; charset=utf-8; header=present",
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(link) = &answer.link {
        headers.insert(header::LINK, link.clone());
    }
    response
}

/// The same request with the next page's cursor, as a relative reference.
fn next_link(target: &str, cursor: &str) -> Option<HeaderValue> {
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
