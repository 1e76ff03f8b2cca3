//! Axum extractor [`Access`], which admits a request before its handler runs. It parses the parameters, checks tier and
//! limits, and charges the account. The required tier of an endpoint is a type parameter of its handler.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Version, header};
use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::America::New_York;

use crate::admission::decision::{AdmissionDecision, AdmissionRequest, AdmissionVerdict};
use crate::admission::request_context::RequestContext;
use crate::admission::token_bucket::RemainingLimits;
use crate::app::{App, OrdinaryRequest};
use crate::auth::{AccountId, Tier, TierTable, credential, years_before};
use crate::error::ApiError;
use crate::parameters::facets::FacetIndex;
use crate::parameters::served_rules::ServedRules;
use crate::parameters::{ParameterErrors, ParameterReader, Parameters, RequestProperties, ResponseFormat};
use crate::read::{QueryError, ServedGeneration};

/// Minimum tier of an endpoint, as a type in the handler's signature.
pub(crate) trait RequiredTier: Send + Sync + 'static {
    const TIER: Tier;
}

/// Endpoint for all tiers.
#[derive(Debug)]
pub(crate) struct Free;
/// Endpoint for Starter and all higher tiers.
#[derive(Debug)]
pub(crate) struct Starter;
/// Endpoint for Professional only.
#[derive(Debug)]
pub(crate) struct Professional;

impl RequiredTier for Free {
    const TIER: Tier = Tier::Free;
}
impl RequiredTier for Starter {
    const TIER: Tier = Tier::Starter;
}
impl RequiredTier for Professional {
    const TIER: Tier = Tier::Professional;
}

/// Request extension of an internal call. The dashboard makes internal calls to render its pages. The value is the tier
/// of the page's reader. An internal call needs the same tier as a client's call, but is not charged. Clients cannot set
/// the extension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InternalRequest(pub(crate) Tier);

/// Admitted request for an endpoint of tier `G` with parameters `P`.
#[derive(Debug)]
pub(crate) struct Access<G, P> {
    pub(crate) app: App,
    /// Generation (complete set of derived tables) for all reads of the request. The parameters were parsed with the
    /// calculation rules of this generation.
    pub(crate) generation: Result<Arc<ServedGeneration>, QueryError>,
    pub(crate) account_id: AccountId,
    pub(crate) tier: Tier,
    /// Current day in New York, unless the settings name another day.
    pub(crate) today: NaiveDate,
    pub(crate) parameters: P,
    pub(crate) format: ResponseFormat,
    /// Guard of an ordinary request; `None` if the response needs a permit of the limiter of expensive requests.
    pub(crate) ordinary: Option<OrdinaryRequest>,
    /// Value of the parameter `known_at`; `None` if absent.
    pub(crate) known_at: Option<DateTime<Utc>>,
    /// True if the client can detect a truncated response. False for HTTP/1.0.
    pub(crate) detects_truncation: bool,
    /// Path and query of the request, unchanged.
    pub(crate) target: String,
    pub(crate) if_none_match: Option<HeaderValue>,
    required_tier: PhantomData<G>,
}

impl<G: RequiredTier, P: Parameters> FromRequestParts<App> for Access<G, P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let today = app.today();
        let template = parts.extensions.get::<MatchedPath>().cloned();
        if let (Some(caller), Some(template)) =
            (RequestContext::from_extensions(&parts.extensions), &template)
        {
            caller.set_route(template);
        }
        let names = template.as_ref().map_or("", MatchedPath::as_str).split('/');
        let values = names.zip(parts.uri.path().split('/')).filter_map(|(name, segment)| {
            Some((name.strip_prefix('{')?.strip_suffix('}')?, decode_segment(segment)))
        });
        let values: Vec<(&str, Cow<'_, str>)> = values.collect();
        let path: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, value.as_ref())).collect();
        let served_rules = app.projection.served_rules();
        let mut read = parse_parameters::<P>(&path, parts, app, today, &served_rules, None);
        if read.properties.needs_facet_index {
            // Boxed, because few requests need the index. Without the box, the future of every request would reserve
            // space for it.
            let facet_index = Box::pin(app.facet_index()).await;
            read = parse_parameters::<P>(&path, parts, app, today, &served_rules, Some(&facet_index));
        }
        let is_expensive = P::IS_COSTLY || read.properties.is_costly();
        let ordinary = (!is_expensive).then(|| app.ordinary_requests.begin());
        let admitted = admit(parts, app, &read.requirements::<G>(today)).await?;
        std::mem::replace(&mut read.errors, Ok(()))?;
        let mut generation = app.projection.pin_version(&read.properties.min_version).await;
        if let (Ok(served), Some(named)) = (&generation, read.properties.named_generation)
            && served.id != named
            // Boxed, like the facet index above.
            && let Some(kept) = Box::pin(app.projection.kept.find(served, named)).await
        {
            generation = Ok(kept);
        }
        if let Ok(generation) = &generation
            && generation.served_rules() != served_rules
        {
            // The parameters were parsed with rules that differ from those of the pinned generation, so they are parsed
            // again.
            let facet_index = Box::pin(app.facet_index()).await;
            let rules = generation.served_rules();
            read = parse_parameters::<P>(&path, parts, app, today, &rules, Some(&facet_index));
        }
        read.errors?;
        Ok(Self {
            app: app.clone(),
            generation,
            account_id: admitted.account,
            tier: admitted.tier,
            today,
            parameters: read.parameters,
            format: read.properties.format,
            ordinary,
            known_at: read.properties.known_at,
            detects_truncation: parts.version >= Version::HTTP_11,
            target: parts.uri.path_and_query().map_or("", PathAndQuery::as_str).to_owned(),
            if_none_match: parts.headers.get(header::IF_NONE_MATCH).cloned(),
            required_tier: PhantomData,
        })
    }
}

/// Request for an endpoint that needs no key. It is not charged.
#[derive(Debug)]
pub(crate) struct Keyless<P> {
    pub(crate) app: App,
    pub(crate) parameters: P,
}

impl<P: Parameters> FromRequestParts<App> for Keyless<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let served_rules = app.projection.served_rules();
        let read = parse_parameters::<P>(&[], parts, app, app.today(), &served_rules, None);
        read.errors?;
        Ok(Self { app: app.clone(), parameters: read.parameters })
    }
}

/// Percent-decodes a segment of a path. Bytes that are not UTF-8 are replaced: such a path matches no resource, but error
/// messages show it.
fn decode_segment(segment: &str) -> Cow<'_, str> {
    percent_encoding::percent_decode_str(segment).decode_utf8_lossy()
}

/// Parameters of a request, with the errors in them.
struct ParsedParameters<P> {
    parameters: P,
    properties: RequestProperties,
    errors: Result<(), ParameterErrors>,
}

/// Properties of a request that decide its admission.
struct AccessRequirements {
    /// Minimum tier of the endpoint, and the feature name in the error of status 403.
    endpoint: (Tier, &'static str),
    /// Minimum tier of the given parameters, and the feature name in the error of status 403. `None` if the endpoint's
    /// tier suffices.
    parameter_tier: Option<(Tier, &'static str)>,
    /// Oldest day of history that the parameters request, including the day of `known_at`. `None` if they request no
    /// day or are invalid.
    oldest_day: Option<NaiveDate>,
    /// True if the request matches an endpoint and its parameters have no errors.
    counts_as_call: bool,
    today: NaiveDate,
}

impl AccessRequirements {
    /// Rank of the lowest tier that meets all requirements.
    fn rank(&self, tiers: &TierTable) -> i16 {
        let depth = self.oldest_day.map_or(0, |oldest| tiers.lowest_rank_including(oldest, self.today));
        let parameter = self.parameter_tier.map_or(0, |(tier, _)| tier.rank());
        depth.max(parameter).max(self.endpoint.0.rank())
    }
}

impl<P: Parameters> ParsedParameters<P> {
    fn requirements<G: RequiredTier>(&self, today: NaiveDate) -> AccessRequirements {
        let valid = self.errors.is_ok();
        let known_at = self.properties.known_at;
        let known_on = known_at.map(|instant| instant.with_timezone(&New_York).date_naive());
        AccessRequirements {
            endpoint: (G::TIER, P::FEATURE),
            parameter_tier: self.parameters.needs().filter(|_| valid),
            oldest_day: self.properties.oldest_day.into_iter().chain(known_on).min().filter(|_| valid),
            counts_as_call: valid && P::ROUTED,
            today,
        }
    }
}

/// Parses the parameters, without I/O and without a charge.
fn parse_parameters<P: Parameters>(
    path: &[(&str, &str)],
    parts: &Parts,
    app: &App,
    today: NaiveDate,
    served_rules: &Arc<ServedRules>,
    facet_index: Option<&FacetIndex>,
) -> ParsedParameters<P> {
    let (route, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let rules = Arc::clone(served_rules);
    let mut reader = ParameterReader::new(path, query, &parts.headers, &app.signer, route, today, rules);
    reader.facet_index = facet_index;
    let parameters = P::read(&mut reader);
    let properties = reader.properties;
    let errors = if P::ROUTED { reader.finish() } else { Ok(()) };
    ParsedParameters { parameters, properties, errors }
}

/// Decides the admission of a request by credential, tier, history depth, rate limit and quota. A change stream is
/// admitted here only once, when it is opened. The open stream itself then charges each batch of changes.
async fn admit(
    parts: &Parts,
    app: &App,
    required: &AccessRequirements,
) -> Result<AdmissionDecision, ApiError> {
    let tiers = app.admission.tiers();
    let required_rank = required.rank(&tiers);
    if let Some(InternalRequest(tier)) = parts.extensions.get() {
        return match tier.rank() >= required_rank {
            true => Ok(AdmissionDecision::uncharged(*tier)),
            false => Err(tier_refusal(required, &tiers, *tier)),
        };
    }
    let Some(caller) = RequestContext::from_extensions(&parts.extensions) else {
        return Err(ApiError::Internal(anyhow::anyhow!("cannot admit a request without a request context")));
    };
    let key = credential::read_key(&parts.headers, &parts.uri);
    if let Some(refused) = app.throttle.find_refusal(caller.client, key) {
        caller.set_remaining_failures(refused.left);
        app.metrics.throttled.inc();
        return Err(ApiError::RateLimited { retry_after: refused.retry_after_seconds });
    }
    let failed = || {
        caller.set_remaining_failures(app.throttle.record_failure(caller.client));
        if credential::has_key_in_query(&parts.uri) { ApiError::KeyInQuery } else { ApiError::InvalidKey }
    };
    let key = key.ok_or_else(failed)?;
    let counted = required.counts_as_call && app.settings.quota_check.is_counted(required.endpoint.0);
    let call = AdmissionRequest { key, required_rank, counted };
    let admitted = app.admission.decide(call).await?.ok_or_else(failed)?;
    app.throttle.record_valid_key(key);
    caller.set_decision(&admitted);
    match admitted.verdict {
        AdmissionVerdict::Passed => Ok(admitted),
        AdmissionVerdict::Tier => Err(tier_refusal(required, &tiers, admitted.tier)),
        AdmissionVerdict::Rate => {
            Err(ApiError::RateLimited { retry_after: admitted.usage.bucket.retry_after_seconds() })
        }
        AdmissionVerdict::Quota => Err(quota_exceeded(&admitted.usage)),
    }
}

/// Error for a call beyond the monthly quota.
pub(crate) fn quota_exceeded(usage: &RemainingLimits) -> ApiError {
    ApiError::QuotaExceeded {
        current: usage.used,
        limit: usage.quota,
        retry_after: usage.seconds_until_quota_reset().unsigned_abs(),
    }
}

/// Error for a tier that is too low. It names the first cause in this order: endpoint, parameter, history depth.
fn tier_refusal(required: &AccessRequirements, tiers: &TierTable, current: Tier) -> ApiError {
    if let Some((_, feature)) = [Some(required.endpoint), required.parameter_tier]
        .into_iter()
        .flatten()
        .find(|(tier, _)| current < *tier)
    {
        return ApiError::FeatureNotAvailable { current, feature, earliest: None };
    }
    let earliest = Some(years_before(required.today, tiers.depth_years(current)));
    ApiError::FeatureNotAvailable { current, feature: "historical_depth", earliest }
}
