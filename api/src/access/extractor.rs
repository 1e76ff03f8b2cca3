//! Lets a request in: reads its parameters, decides on its key, and charges it, before a handler runs.

use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Version, header};
use chrono::NaiveDate;

use super::bucket::Usage;
use super::credential;
use super::decision::{Admitted, Call, Verdict};
use super::gate::Gate;
use super::ledger::Ledger;
use crate::app::App;
use crate::connection::Connection;
use crate::error::ApiError;
use crate::parameters::{Format, Mistakes, Parameters, Reader};
use crate::tier::{Tier, Tiers, years_before};

/// The address a request came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client(pub(crate) IpAddr);

/// An admitted request for an endpoint of tier `G` with parameters `P`.
#[derive(Debug)]
pub(crate) struct Access<G, P> {
    pub(crate) app: App,
    pub(crate) account: i64,
    pub(crate) tier: Tier,
    /// The day that counts as today.
    pub(crate) today: NaiveDate,
    pub(crate) parameters: P,
    pub(crate) format: Format,
    /// Whether the answer costs much, so that accounts take turns.
    pub(crate) is_costly: bool,
    /// Whether the client can tell an answer that breaks off from a whole one, as HTTP/1.0 cannot.
    pub(crate) knows_ends: bool,
    /// Path and query as sent.
    pub(crate) target: String,
    pub(crate) if_none_match: Option<HeaderValue>,
    gate: PhantomData<G>,
}

impl<G: Gate, P: Parameters> FromRequestParts<App> for Access<G, P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let today = app.today();
        let read = read::<P>(parts, app, today).await;
        let admitted = admit::<G, P>(parts, app, today, &read).await?;
        read.mistakes?;
        Ok(Self {
            app: app.clone(),
            account: admitted.account,
            tier: admitted.tier,
            today,
            parameters: read.parameters,
            format: read.format,
            is_costly: read.is_costly,
            knows_ends: parts.version >= Version::HTTP_11,
            target: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            if_none_match: parts.headers.get(header::IF_NONE_MATCH).cloned(),
            gate: PhantomData,
        })
    }
}

/// A request's parameters, and what is wrong with them.
struct Read<P> {
    parameters: P,
    format: Format,
    is_costly: bool,
    mistakes: Result<(), Mistakes>,
}

/// Reads the parameters; does no I/O and charges nothing.
async fn read<P: Parameters>(parts: &mut Parts, app: &App, today: NaiveDate) -> Read<P> {
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
    let (format, is_costly) = (reader.format(), P::IS_COSTLY || reader.asks_for_much());
    let mistakes = if P::ROUTED { reader.finish() } else { Ok(()) };
    Read { parameters, format, is_costly, mistakes }
}

/// The one place where a request is let in: credential, tier and depth, rate, quota, charged exactly as due.
async fn admit<G: Gate, P: Parameters>(
    parts: &Parts,
    app: &App,
    today: NaiveDate,
    read: &Read<P>,
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
    let (tiers, valid) = (app.projection.tiers(), read.mistakes.is_ok());
    let depth =
        read.parameters.oldest().filter(|_| valid).map_or(0, |oldest| tiers.rank_reaching(oldest, today));
    let counted = valid && P::ROUTED && app.settings.quota_check.covers(G::TIER);
    let needs = read.parameters.needs().filter(|_| valid);
    let asked = needs.map_or(G::TIER.rank(), |(tier, _)| tier.rank().max(G::TIER.rank()));
    let call = Call { hash, need: depth.max(asked), counted };
    let admitted = app.admission.decide(call).await?.ok_or_else(failed)?;
    app.throttle.succeed(hash);
    if let Some(connection) = parts.extensions.get::<Arc<Connection>>() {
        connection.show_key();
    }
    ledger.enter(&admitted);
    match admitted.verdict {
        Verdict::Passed => Ok(admitted),
        Verdict::Tier => Err(not_available::<G, P>(needs, &tiers, admitted.tier, today)),
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

/// The first reason why the tier does not suffice: the endpoint, a feature of it, the depth.
fn not_available<G: Gate, P: Parameters>(
    needs: Option<(Tier, &'static str)>,
    tiers: &Tiers,
    current: Tier,
    today: NaiveDate,
) -> ApiError {
    let endpoint = (G::TIER, P::FEATURE);
    if let Some((_, feature)) =
        [Some(endpoint), needs].into_iter().flatten().find(|(tier, _)| current < *tier)
    {
        return ApiError::FeatureNotAvailable { current, feature, earliest: None };
    }
    let earliest = Some(years_before(today, tiers.depth_years(current)));
    ApiError::FeatureNotAvailable { current, feature: "historical_depth", earliest }
}
