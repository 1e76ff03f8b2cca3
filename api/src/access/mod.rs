//! Who may ask what, how often: credential, tier, rate, quota, in one decision.
//!
//! Invariants: [`Access`] in a handler's signature is the only way to data; parameters are read before anything is
//! charged and reported after; when the store does not decide, the answer is 503, never data.

mod accounts;
mod admission;
mod bucket;
mod clock;
mod credential;
pub(crate) mod headers;
mod ledger;
mod limiter;
mod memory;
mod store;
pub(crate) mod throttle;
mod tier;

pub(crate) use admission::{Admission, Admitted, Verdict};
pub(crate) use credential::Secret;
pub(crate) use credential::scrub;
pub(crate) use ledger::{Entry, Ledger};
pub(crate) use tier::{Free, Gate, Professional, Starter};
pub(crate) use tier::{Tier, Tiers};

use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use chrono::NaiveDate;

use crate::app::App;
use crate::cache::{Answer, Ingredients, Key};
use crate::envelope::{ListMeta, Meta};
use crate::error::ApiError;
use crate::parameters::{Format, Listed, Output, Page, Parameters, Reader, years_before};
use crate::projection::{Generation, Version};
use crate::render;

/// How long a client may use an answer without asking again, seconds.
const MAX_AGE: &str = "private, max-age=60";

/// The address a request came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client(pub(crate) IpAddr);

/// An admitted request for an endpoint of tier `G` with parameters `P`.
#[derive(Debug)]
pub(crate) struct Access<G, P> {
    app: App,
    tier: Tier,
    today: NaiveDate,
    parameters: P,
    format: Format,
    request: String,
    if_none_match: Option<HeaderValue>,
    gate: PhantomData<G>,
}

/// What a handler works with to make an answer.
#[derive(Debug)]
pub(crate) struct Ask<P> {
    pub(crate) app: App,
    pub(crate) generation: Arc<Generation>,
    pub(crate) tier: Tier,
    /// The day that counts as today.
    pub(crate) today: NaiveDate,
    pub(crate) parameters: P,
}

/// A body and the version it was made from.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) body: bytes::Bytes,
    pub(crate) version: Version,
    pub(crate) next_cursor: Option<String>,
}

impl<G: Gate, P: Parameters> FromRequestParts<App> for Access<G, P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let today = app.today();
        let (parameters, format, mistakes) = read::<P>(parts, app, today).await;
        let admitted = admit::<G, P>(parts, app, today, &parameters, mistakes.is_ok()).await?;
        mistakes?;
        Ok(Self {
            app: app.clone(),
            tier: admitted.tier,
            today,
            parameters,
            format,
            request: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            if_none_match: parts.headers.get(header::IF_NONE_MATCH).cloned(),
            gate: PhantomData,
        })
    }
}

/// Reads the parameters; does no I/O and charges nothing.
async fn read<P: Parameters>(
    parts: &mut Parts,
    app: &App,
    today: NaiveDate,
) -> (P, Format, Result<(), ApiError>) {
    let path = match RawPathParams::from_request_parts(parts, app).await {
        Ok(path) => path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        // Not UTF-8, so no name of anything; shown as it can be.
        Err(_) => {
            let shown =
                percent_encoding::percent_decode_str(parts.uri.path()).decode_utf8_lossy().into_owned();
            vec![("symbol".to_owned(), shown.clone()), ("sector".to_owned(), shown)]
        }
    };
    let (route, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let mut reader = Reader::new(path, query, &parts.headers, &app.signer, route, today);
    let parameters = P::read(&mut reader);
    let format = reader.format();
    let mistakes = if P::ROUTED { reader.finish() } else { Ok(()) };
    (parameters, format, mistakes)
}

/// The one place where a request is let in: credential, tier and depth, rate, quota, charged exactly as due.
async fn admit<G: Gate, P: Parameters>(
    parts: &Parts,
    app: &App,
    today: NaiveDate,
    parameters: &P,
    valid: bool,
) -> Result<Admitted, ApiError> {
    let client =
        parts.extensions.get::<Client>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |client| client.0);
    let hash = credential::read(&parts.headers, &parts.uri);
    let ledger = parts.extensions.get::<Ledger>().cloned().unwrap_or_default();
    if let Some(refused) = app.throttle.blocked(client, hash) {
        ledger.fail(refused.left);
        return Err(ApiError::RateLimited { retry_after: refused.retry_after });
    }
    let failed = || {
        ledger.fail(app.throttle.fail(client));
        ApiError::InvalidKey
    };
    let hash = hash.ok_or_else(failed)?;
    let tiers = app.projection.tiers();
    let depth = parameters.oldest().filter(|_| valid).map_or(0, |oldest| tiers.rank_reaching(oldest, today));
    let counted = valid && P::ROUTED && app.settings.quota_check.covers(G::TIER);
    let call = admission::Call { hash, need: depth.max(G::TIER.rank()), counted };
    let admitted = app.admission.decide(call).await?.ok_or_else(failed)?;
    app.throttle.succeed(hash);
    ledger.enter(&admitted);
    match admitted.verdict {
        Verdict::Passed => Ok(admitted),
        Verdict::Tier => Err(not_available::<G, P>(&tiers, admitted.tier, today)),
        Verdict::Rate => Err(ApiError::RateLimited { retry_after: admitted.usage.bucket.retry_after() }),
        Verdict::Quota => Err(admitted.usage.quota_exceeded()),
    }
}

fn not_available<G: Gate, P: Parameters>(tiers: &Tiers, current: Tier, today: NaiveDate) -> ApiError {
    if current.rank() < G::TIER.rank() {
        return ApiError::FeatureNotAvailable { current, feature: P::FEATURE, earliest: None };
    }
    let earliest = Some(years_before(today, tiers.depth_years(current)));
    ApiError::FeatureNotAvailable { current, feature: "historical_depth", earliest }
}

impl<G: Gate, P: Parameters> Access<G, P> {
    /// Answers from memory, or with what `make` makes, or with 304 when the client has it already.
    pub(crate) async fn answer<F>(self, make: impl FnOnce(Ask<P>) -> F) -> Response
    where
        F: Future<Output = Result<Made, ApiError>> + Send,
    {
        let generation = match self.app.projection.pin() {
            Ok(generation) => generation,
            Err(error) => return error.into_response(),
        };
        let Self { app, tier, today, parameters, format, request, if_none_match, .. } = self;
        let ingredients =
            Ingredients { today, format, tier: P::TIER_MATTERS.then_some(tier), request: &request };
        let key = Key::new(&generation.version(), &ingredients);
        if if_none_match.is_some() && has(if_none_match.as_ref(), &key.etag(), false) {
            return not_modified(&key.etag());
        }
        let ask = Ask { app: app.clone(), generation: Arc::clone(&generation), tier, today, parameters };
        let making = make(ask);
        let fill = async {
            let made = making.await?;
            generation.observe(made.version);
            let link = made
                .next_cursor
                .filter(|_| format == Format::Csv)
                .and_then(|cursor| next_link(&request, &cursor));
            Ok(Answer { body: made.body, etag: Key::new(&made.version, &ingredients).etag(), link })
        };
        match app.answers.get(key, fill).await {
            Ok(answer) if has(if_none_match.as_ref(), &answer.etag, true) => not_modified(&answer.etag),
            Ok(answer) => ok(&answer, format),
            Err(error) => error.response(),
        }
    }
}

impl<P> Ask<P> {
    /// The first day the tier's history reaches.
    pub(crate) fn floor(&self) -> NaiveDate {
        years_before(self.today, self.app.projection.tiers().depth_years(self.tier))
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

fn ok(answer: &Answer, format: Format) -> Response {
    let mut response = cached(answer.body.clone().into(), &answer.etag);
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
fn next_link(request: &str, cursor: &str) -> Option<HeaderValue> {
    let uri: Uri = request.parse().ok()?;
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

impl<P> Ask<P> {
    /// The answer with one resource.
    pub(crate) fn single<T: serde::Serialize>(
        &self,
        output: &Output,
        version: Version,
        row: &T,
    ) -> Result<Made, ApiError> {
        let body = render::single(output, row, &Meta::new(&version))?;
        Ok(Made { body, version, next_cursor: None })
    }

    /// The answer with a page of these rows; `finish` completes its meta.
    pub(crate) fn page<'a, T: Listed + serde::Serialize + 'a>(
        &self,
        output: &Output,
        page: &Page,
        version: Version,
        rows: impl IntoIterator<Item = &'a T>,
        finish: impl FnOnce(&mut ListMeta),
    ) -> Result<Made, ApiError> {
        let (rows, next_cursor) = page.select(rows, &self.app.signer);
        let mut meta = ListMeta::new(&version, rows.len(), page.limit, next_cursor.clone());
        finish(&mut meta);
        Ok(Made { body: render::list(output, &rows, &meta)?, version, next_cursor })
    }
}
