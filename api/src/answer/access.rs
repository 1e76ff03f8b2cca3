//! Extractor that admits a request: parses parameters, then decides and charges the key, before the handler runs.

use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Version, header};
use chrono::NaiveDate;

use crate::admission::bucket::Usage;
use crate::admission::decision::{Admitted, Call, Verdict};
use crate::admission::request_context::Caller;
use crate::answer::required_tier::Gate;
use crate::app::state::App;
use crate::auth::credential;
use crate::auth::tier::{Tier, Tiers, years_before};
use crate::error::ApiError;
use crate::parameters::facets::Vocabulary;
use crate::parameters::served_rules::Method;
use crate::parameters::{Format, Mistakes, Parameters, Reader};
use crate::read::ReadError;
use crate::read::projection::Generation;

/// Marks a request of the service to itself, for the examples on its pages. Client requests cannot carry it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Showcase;

/// Admitted request for an endpoint of tier `G` with parameters `P`.
#[derive(Debug)]
pub(crate) struct Access<G, P> {
    pub(crate) app: App,
    /// Generation of the response. The parameters were parsed under its rules, so it never changes within a request.
    pub(crate) generation: Result<Arc<Generation>, ReadError>,
    pub(crate) account: i64,
    pub(crate) tier: Tier,
    /// Current day of the service.
    pub(crate) today: NaiveDate,
    pub(crate) parameters: P,
    pub(crate) format: Format,
    /// True if the response is expensive, so that accounts are served round-robin.
    pub(crate) is_costly: bool,
    /// True if the client detects a truncated response, which HTTP/1.0 cannot.
    pub(crate) knows_ends: bool,
    /// Path and query as sent.
    pub(crate) target: String,
    pub(crate) if_none_match: Option<HeaderValue>,
    gate: PhantomData<G>,
}

impl<G: Gate, P: Parameters> FromRequestParts<App> for Access<G, P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        if let (Some(caller), Some(endpoint)) =
            (Caller::of(&parts.extensions), parts.extensions.get::<MatchedPath>())
        {
            caller.reach(endpoint);
        }
        let today = app.today();
        let (decoded, shown);
        let path: Vec<(&str, &str)> = match RawPathParams::from_request_parts(parts, app).await {
            Ok(values) => {
                decoded = values;
                decoded.iter().collect()
            }
            // A path that is not UTF-8 matches no name. It is shown lossily.
            Err(_) => {
                shown =
                    percent_encoding::percent_decode_str(parts.uri.path()).decode_utf8_lossy().into_owned();
                vec![("symbol", shown.as_str()), ("sector", shown.as_str())]
            }
        };
        let generation = app.projection.pin();
        let method = generation.as_ref().map_or_else(|_| Arc::default(), |generation| generation.method());
        let mut read = read::<P>(&path, parts, app, today, &method, None);
        if read.needs_vocabulary {
            // Boxed, because few requests need it, and a future reserves space for everything it awaits.
            let vocabulary = Box::pin(app.vocabulary()).await;
            read = self::read(&path, parts, app, today, &method, Some(&vocabulary));
        }
        let admitted = admit(parts, app, &read.asks::<G>(today)).await?;
        read.mistakes?;
        Ok(Self {
            app: app.clone(),
            generation,
            account: admitted.account,
            tier: admitted.tier,
            today,
            parameters: read.parameters,
            format: read.format,
            is_costly: read.is_costly,
            knows_ends: parts.version >= Version::HTTP_11,
            target: parts.uri.path_and_query().map_or("", PathAndQuery::as_str).to_owned(),
            if_none_match: parts.headers.get(header::IF_NONE_MATCH).cloned(),
            gate: PhantomData,
        })
    }
}

/// Parameters of a request, with their errors.
struct Read<P> {
    parameters: P,
    format: Format,
    is_costly: bool,
    /// True if filters contain names, which were accepted unchecked.
    needs_vocabulary: bool,
    mistakes: Result<(), Mistakes>,
}

/// Facts of a request that decide its admission.
struct Asks {
    /// Minimum tier of the endpoint, and its feature name.
    endpoint: (Tier, &'static str),
    /// Minimum tier of a parameter, and its feature name.
    needs: Option<(Tier, &'static str)>,
    /// Oldest requested day.
    oldest: Option<NaiveDate>,
    /// True if the request matches an endpoint and has no parameter errors.
    is_call: bool,
    today: NaiveDate,
}

impl<P: Parameters> Read<P> {
    fn asks<G: Gate>(&self, today: NaiveDate) -> Asks {
        let valid = self.mistakes.is_ok();
        Asks {
            endpoint: (G::TIER, P::FEATURE),
            needs: self.parameters.needs().filter(|_| valid),
            oldest: self.parameters.oldest().filter(|_| valid),
            is_call: valid && P::ROUTED,
            today,
        }
    }
}

/// Parses the parameters, without I/O and without a charge.
fn read<P: Parameters>(
    path: &[(&str, &str)],
    parts: &Parts,
    app: &App,
    today: NaiveDate,
    method: &Arc<Method>,
    vocabulary: Option<&Vocabulary>,
) -> Read<P> {
    let (route, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let mut reader = Reader::new(path, query, &parts.headers, &app.signer, route, today, Arc::clone(method))
        .knowing(vocabulary);
    let parameters = P::read(&mut reader);
    Read {
        parameters,
        format: reader.format(),
        is_costly: P::IS_COSTLY || reader.asks_for_much(),
        needs_vocabulary: reader.needs_vocabulary(),
        mistakes: if P::ROUTED { reader.finish() } else { Ok(()) },
    }
}

/// Single admission point: credential, tier and depth, rate, and quota.
async fn admit(parts: &Parts, app: &App, asks: &Asks) -> Result<Admitted, ApiError> {
    if parts.extensions.get::<Showcase>().is_some() {
        return Ok(Admitted::own());
    }
    let Some(caller) = Caller::of(&parts.extensions) else {
        return Err(ApiError::Internal(anyhow::anyhow!("a request came from nobody")));
    };
    let key = credential::read(&parts.headers, &parts.uri);
    if let Some(refused) = app.throttle.blocked(caller.client, key.map(|key| key.tag)) {
        caller.fail(refused.left);
        app.metrics.throttled.inc();
        return Err(ApiError::RateLimited { retry_after: refused.retry_after });
    }
    let failed = || {
        caller.fail(app.throttle.fail(caller.client));
        ApiError::InvalidKey
    };
    let key = key.ok_or_else(failed)?;
    let tiers = app.projection.tiers();
    let depth = asks.oldest.map_or(0, |oldest| tiers.rank_reaching(oldest, asks.today));
    let (tier, _) = asks.endpoint;
    let counted = asks.is_call && app.settings.quota_check.covers(tier);
    let asked = asks.needs.map_or(tier.rank(), |(needed, _)| needed.rank().max(tier.rank()));
    let call = Call { key, need: depth.max(asked), counted };
    let admitted = app.admission.decide(call).await?.ok_or_else(failed)?;
    app.throttle.succeed(key.tag);
    caller.enter(&admitted);
    match admitted.verdict {
        Verdict::Passed => Ok(admitted),
        Verdict::Tier => Err(not_available(asks, &tiers, admitted.tier)),
        Verdict::Rate => Err(ApiError::RateLimited { retry_after: admitted.usage.bucket.retry_after() }),
        Verdict::Quota => Err(quota_exceeded(&admitted.usage)),
    }
}

fn quota_exceeded(usage: &Usage) -> ApiError {
    ApiError::QuotaExceeded {
        current: usage.used,
        limit: usage.quota,
        retry_after: usage.until_quota_reset().unsigned_abs(),
    }
}

/// First reason for a refusal by tier: endpoint, feature, or depth.
fn not_available(asks: &Asks, tiers: &Tiers, current: Tier) -> ApiError {
    if let Some((_, feature)) =
        [Some(asks.endpoint), asks.needs].into_iter().flatten().find(|(tier, _)| current < *tier)
    {
        return ApiError::FeatureNotAvailable { current, feature, earliest: None };
    }
    let earliest = Some(years_before(asks.today, tiers.depth_years(current)));
    ApiError::FeatureNotAvailable { current, feature: "historical_depth", earliest }
}
