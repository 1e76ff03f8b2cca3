//! `GET /v1/status`: health, age of the data, traffic of 90 days, incidents and planned work. It needs no key.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use market::decimal::with_decimals_as_text;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::service_history::ServiceHistory;
use crate::app::state::App;
use crate::read::memory_tables::FeedAge;
use crate::routes::health::{ComponentStatus, Health};

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
    /// Age of the served data by feed; null while the data cannot be read.
    pub(crate) feeds: Option<Vec<FeedAge>>,
    /// Traffic, incidents and planned work; null if the database of the accounts did not reply since the start of the
    /// instance.
    pub(crate) history: Option<ServiceHistory>,
}

impl StatusReport {
    pub(crate) async fn from_app(app: &App) -> Self {
        let health = Health::from_app(app);
        let has_accounts = health.components.accounts == ComponentStatus::Ok;
        let has_market = health.components.postgres == ComponentStatus::Ok;
        let feeds = match app.projection.pin() {
            Ok(generation) if has_market => app.memory_tables.feed_ages(&generation).await.ok(),
            _ => None,
        };
        let history = app.history.latest(has_accounts).await;
        Self { health, feeds: feeds.map(|feeds| feeds.to_vec()), history }
    }
}

/// Service status
///
/// Health, age of the data, share of calls without server errors, durations, incidents and planned work. All instances
/// together count the calls.
#[utoipa::path(
    get, path = "/v1/status", tag = "System", security(()),
    params(("decimals" = Option<String>, Query, description = "`string` for decimals as strings. Default: exact numbers.")),
    responses((status = 200, description = "Status of the service, also while reads are not served", body = StatusAnswer))
)]
pub(crate) async fn status(State(app): State<App>, RawQuery(query): RawQuery) -> Response {
    let answer = Json(StatusAnswer { data: StatusReport::from_app(&app).await });
    let is_text = query.is_some_and(|query| query.split('&').any(|pair| pair == "decimals=string"));
    if is_text { with_decimals_as_text(|| answer.into_response()) } else { answer.into_response() }
}
