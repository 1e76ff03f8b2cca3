//! State of the service: health and probes, and the status with the history of the traffic.
//!
//! `GET /v1/status`: health, age of the data, traffic of 90 days, incidents and planned work. It needs no key.
//!
//! `GET /v1/health`: health of the service. `GET /livez` and `GET /readyz`: probes for an orchestrator and a load balancer.
//! None of them needs a key or does I/O, and none returns secrets.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use chrono::NaiveDate;
use market::decimal::with_decimals_as_text;
use market::text_enum;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::endpoint::InvalidParameterBody;
use crate::answer::Keyless;
use crate::app::App;
use crate::app::service_history::ServiceHistory;
use crate::parameters::{DocumentedParameters, parameters};
use crate::read::memory_tables::FeedAge;

text_enum! {
    /// ok: all configured components work. degraded: reads are served, but a component is down or full, or the served
    /// data lags behind the log and has made no progress for 30 seconds. down: reads are not served.
    pub enum Status { Ok = "ok", Degraded = "degraded", Down = "down" }
}
text_enum! {
    /// State of a component. full: the server answers, but could not store new data.
    pub enum ComponentStatus { Ok = "ok", Down = "down", Full = "full", NotConfigured = "not_configured" }
}

/// Envelope of the health response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthAnswer {
    /// Health of the service.
    data: Health,
}

/// Health of the service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Status of the service.
    pub(crate) status: Status,
    /// Version of the service.
    pub(crate) version: &'static str,
    /// Status of each component.
    pub(crate) components: Components,
}

/// Health of the components.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Components {
    /// Postgres database of the market: `ok` if the served data can be read.
    pub(crate) postgres: ComponentStatus,
    /// Postgres database of the accounts: `ok` if keys and limits can be checked. Both may be the same database.
    pub(crate) accounts: ComponentStatus,
    /// NATS server with the log. The service uses this server only to measure the lag. `full` if the newest write to the
    /// log failed, for example on a full disk, so that no new data can be loaded. `not_configured` if the service has
    /// no address of a NATS server.
    pub(crate) nats: ComponentStatus,
    /// Lag of the served data behind the log, which contains all loaded data.
    pub(crate) projection: ProjectionHealth,
}

/// Lag of the served data behind the log, which contains all loaded data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProjectionHealth {
    /// Version of the served data, for example g3.184467; null if no data is served.
    pub(crate) data_version: Option<String>,
    /// As-of date of the market: the newest session in the data.
    pub(crate) as_of: Option<NaiveDate>,
    /// Number of log messages that the served data does not contain yet; null if the log is unreachable or not
    /// configured.
    pub(crate) lag_events: Option<u64>,
    /// Time since the served data last contained all messages of the log, in seconds; null if the log is unreachable or
    /// not configured.
    pub(crate) lag_seconds: Option<u64>,
}

/// Service health
///
/// The HTTP status is 200 if reads are served, else 503.
#[utoipa::path(
    get, path = "/v1/health", tag = "System", security(()),
    responses(
        (status = 200, description = "Reads are served", body = HealthAnswer),
        (status = 503, description = "Reads are not served", body = HealthAnswer),
    )
)]
pub(crate) async fn health(State(app): State<App>) -> Response {
    let health = Health::from_app(&app);
    let up = health.status != Status::Down;
    let status = if up { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = uncached_response(status, HealthAnswer { data: health });
    if !up {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

impl Health {
    /// Current health, computed without any I/O.
    pub(crate) fn from_app(app: &App) -> Self {
        let version = app.projection.pin().ok().map(|generation| generation.version());
        let database = |is_up| if is_up { ComponentStatus::Ok } else { ComponentStatus::Down };
        let postgres = database(app.projection.is_database_reachable());
        let accounts = database(app.admission.is_database_reachable());
        let level = app.lag.latest();
        let nats = match (&app.settings.nats_url, level) {
            (None, _) => ComponentStatus::NotConfigured,
            (Some(_), Some(level)) if level.write_failed => ComponentStatus::Full,
            (Some(_), Some(_)) => ComponentStatus::Ok,
            (Some(_), None) => ComponentStatus::Down,
        };
        let is_stalled = level.is_some_and(|level| level.is_stalled());
        let is_served = [postgres, accounts] == [ComponentStatus::Ok; 2] && version.is_some();
        let status = match nats {
            _ if !is_served => Status::Down,
            ComponentStatus::Down | ComponentStatus::Full => Status::Degraded,
            _ if is_stalled => Status::Degraded,
            _ => Status::Ok,
        };
        let projection = ProjectionHealth {
            data_version: version.map(|version| version.to_string()),
            as_of: version.and_then(|version| version.as_of),
            lag_events: level.map(|level| level.events),
            lag_seconds: level.map(|level| level.seconds()),
        };
        Self {
            status,
            version: env!("CARGO_PKG_VERSION"),
            components: Components { postgres, accounts, nats, projection },
        }
    }
}

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/livez", get(live)).route("/readyz", get(ready))
}

/// Responds with 200 while the process runs.
async fn live() -> Response {
    uncached_response(StatusCode::OK, json!({ "status": "alive" }))
}

/// Responds with 200 if this instance can serve requests, and otherwise with 503 and the reason.
async fn ready(State(app): State<App>) -> Response {
    match app.find_unreadiness() {
        None => uncached_response(StatusCode::OK, json!({ "status": "ready" })),
        Some(reason) => uncached_response(
            StatusCode::SERVICE_UNAVAILABLE,
            json!({ "status": "not_ready", "reason": reason }),
        ),
    }
}

fn uncached_response(status: StatusCode, body: impl Serialize) -> Response {
    let mut response = (status, Json(body)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Maximum wait of a response for a database.
const MAX_WAIT: Duration = Duration::from_millis(300);

parameters! {
    /// Parameters of `/v1/status`.
    pub(crate) struct StatusParameters by reader {
        has_text_decimals: bool = reader.read_text_decimals(),
    }
}

/// Envelope of the status response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusAnswer {
    /// Status of the service.
    data: StatusReport,
}

/// Status of the service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatusReport {
    /// Current health, as in `/v1/health`.
    pub(crate) health: Health,
    /// Age of the served data by feed, read at most a minute ago, or the last that could be read; null while the database does
    /// not reply, or not within 300 ms.
    pub(crate) feeds: Option<Vec<FeedAge>>,
    /// Traffic, incidents and planned work; null if the database of the accounts did not reply since the start of the
    /// instance, or not within 300 ms.
    pub(crate) history: Option<ServiceHistory>,
}

impl StatusReport {
    pub(crate) async fn from_app(app: &App) -> Self {
        let health = Health::from_app(app);
        let has_accounts = health.components.accounts == ComponentStatus::Ok;
        let has_market = health.components.postgres == ComponentStatus::Ok;
        let feeds = async {
            let generation = app.projection.pin().ok().filter(|_| has_market)?;
            let tables = app.clone();
            let read = || async move {
                let read = tables.memory_tables.quality(&generation);
                let quality = generation.run_while_responsive(read).await.ok()?;
                Some(quality.feed_ages())
            };
            app.feed_ages.refreshed(MAX_WAIT, read).await
        };
        let (feeds, history) = tokio::join!(feeds, app.history.latest(has_accounts, MAX_WAIT));
        Self { health, feeds: feeds.map(Arc::unwrap_or_clone), history: history.map(Arc::unwrap_or_clone) }
    }
}

/// Service status
///
/// Health, age of the data, share of calls without server errors, durations, incidents and planned work. All instances
/// together count the calls.
#[utoipa::path(
    get, path = "/v1/status", tag = "System", security(()),
    params(DocumentedParameters<StatusParameters>),
    responses(
        (status = 200, description = "Status of the service, also while reads are not served", body = StatusAnswer),
        (status = 400, description = "A parameter is invalid", body = InvalidParameterBody),
    )
)]
pub(crate) async fn status(Keyless { app, parameters }: Keyless<StatusParameters>) -> Response {
    let answer = Json(StatusAnswer { data: StatusReport::from_app(&app).await });
    let respond = || answer.into_response();
    if parameters.has_text_decimals { with_decimals_as_text(respond) } else { respond() }
}
