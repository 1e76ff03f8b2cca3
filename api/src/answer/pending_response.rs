//! Cache key, entity tag and cache look-up of a response.

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

use super::context::Context;
use super::response;
use crate::answer::{Access, Gate};
use crate::app::state::App;
use crate::error::ApiError;
use crate::parameters::{Format, Parameters};
use crate::read::projection::{Generation, Version};
use crate::render::cache::{Answer, Key};

/// Request without a matching `If-None-Match`, ready to be answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) named: Named,
    pub(super) app: App,
    pub(super) generation: Arc<Generation>,
    pub(super) account: i64,
    /// True if the client accepts a streamed response, which may be truncated.
    pub(super) takes_parts: bool,
}

/// Cache key of a response, with the client's `If-None-Match`.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) key: Key,
    if_none_match: Option<HeaderValue>,
}

#[expect(clippy::result_large_err, reason = "a response is handed on once, and not by way of the heap")]
/// Builds the cache key. Responds 304 if the client's copy is current, and 503 without a generation.
pub(super) fn asked<G: Gate, P: Parameters>(access: Access<G, P>) -> Result<(Asked, Context<P>), Response> {
    let Access {
        app,
        generation,
        account,
        tier,
        today,
        parameters,
        format,
        knows_ends,
        target,
        if_none_match,
        ..
    } = access;
    let generation = generation.map_err(|error| ApiError::from(error).into_response())?;
    let version = generation.version();
    let key = Key { version, today, format, tier: P::TIER_MATTERS.then_some(tier), target };
    if if_none_match.is_some() {
        let etag = key.etag(&version);
        if response::has(if_none_match.as_ref(), &etag, false) {
            return Err(response::not_modified(&etag));
        }
    }
    // A truncated CSV is still well-formed, and its `Link` header precedes the body. So only JSON is streamed.
    let takes_parts = knows_ends && format == Format::Json;
    let named = Named { key, if_none_match };
    let asked = Asked { named, app: app.clone(), generation: Arc::clone(&generation), account, takes_parts };
    Ok((asked, Context { app, generation, tier, today, parameters }))
}

impl Asked {
    /// Cached response, if present.
    pub(super) fn kept(&self) -> Option<Response> {
        self.app.answers.kept(&self.named.key).map(|kept| self.named.whole(&kept))
    }
}

impl Named {
    /// Response body with its entity tag and, for CSV, the link to the next page.
    pub(super) fn answer(&self, body: Bytes, version: &Version, next_cursor: Option<&str>) -> Answer {
        Answer { body, etag: self.etag(version), link: self.link(next_cursor) }
    }

    pub(super) fn etag(&self, version: &Version) -> HeaderValue {
        self.key.etag(version)
    }

    pub(super) fn link(&self, next_cursor: Option<&str>) -> Option<HeaderValue> {
        let cursor = next_cursor.filter(|_| self.key.format == Format::Csv)?;
        response::next_link(&self.key.target, cursor)
    }

    /// Response with a complete body, or 304.
    pub(super) fn whole(&self, answer: &Answer) -> Response {
        self.respond(&answer.etag, answer.link.as_ref(), || answer.body.clone().into())
    }

    /// Response with a body, or 304 if the client's copy is current.
    pub(super) fn respond(
        &self,
        etag: &HeaderValue,
        link: Option<&HeaderValue>,
        body: impl FnOnce() -> Body,
    ) -> Response {
        if response::has(self.if_none_match.as_ref(), etag, true) {
            return response::not_modified(etag);
        }
        response::ok(body(), self.key.format, etag, link)
    }
}
