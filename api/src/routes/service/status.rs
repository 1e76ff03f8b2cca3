//! `GET /v1/status`: health, age of the data, traffic of 90 days, incidents and planned work. It needs no key.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use market::decimal::with_decimals_as_text;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Keyless;
use crate::app::service_history::ServiceHistory;
use crate::app::state::App;
use crate::parameters::{DocumentedParameters, parameters};
use crate::read::memory_tables::FeedAge;
use crate::routes::endpoint::InvalidParameterBody;
use crate::routes::service::health::{ComponentStatus, Health};

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
