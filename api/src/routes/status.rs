//! `GET /v1/status`: health, age of the data, traffic of 90 days, incidents and planned work. It needs no key.

use std::time::Duration;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::response::{IntoResponse, Response};
use market::decimal::with_decimals_as_text;
use market::text_enum;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;
use utoipa::ToSchema;

use crate::app::service_history::ServiceHistory;
use crate::app::state::App;
use crate::error::ApiError;
use crate::parameters::ParameterError;
use crate::read::memory_tables::FeedAge;
use crate::routes::endpoint::InvalidParameterBody;
use crate::routes::health::{ComponentStatus, Health};

/// Maximum wait of a response for a database.
const MAX_WAIT: Duration = Duration::from_millis(300);

text_enum! {
    /// number: exact numbers. string: decimals as strings.
    pub enum DecimalForm { Number = "number", Text = "string" }
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
    /// Age of the served data by feed; null while it cannot be read, or not within 300 ms.
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
        let (of_feeds, of_history) = (app.clone(), app.clone());
        let feeds = wait_for(async move {
            let generation = of_feeds.projection.pin().ok().filter(|_| has_market)?;
            let feeds = of_feeds.memory_tables.feed_ages(&generation).await.ok()?;
            Some(feeds.to_vec())
        });
        let history = wait_for(async move { of_history.history.latest(has_accounts).await });
        let (feeds, history) = tokio::join!(feeds, history);
        Self { health, feeds, history }
    }
}

/// Waits for a read, but at most [`MAX_WAIT`]. The read continues afterwards, so that a later response has its result.
async fn wait_for<T: Send + 'static>(read: impl Future<Output = Option<T>> + Send + 'static) -> Option<T> {
    timeout(MAX_WAIT, tokio::spawn(read)).await.ok()?.ok()?
}

/// Service status
///
/// Health, age of the data, share of calls without server errors, durations, incidents and planned work. All instances
/// together count the calls.
#[utoipa::path(
    get, path = "/v1/status", tag = "System", security(()),
    params(("decimals" = inline(Option<DecimalForm>), Query, description = "Form of decimals. Default: number.")),
    responses(
        (status = 200, description = "Status of the service, also while reads are not served", body = StatusAnswer),
        (status = 400, description = "A parameter is invalid", body = InvalidParameterBody),
    )
)]
pub(crate) async fn status(State(app): State<App>, RawQuery(query): RawQuery) -> Result<Response, ApiError> {
    let is_text = wants_text(query.as_deref().unwrap_or_default())?;
    let answer = Json(StatusAnswer { data: StatusReport::from_app(&app).await });
    Ok(if is_text { with_decimals_as_text(|| answer.into_response()) } else { answer.into_response() })
}

/// True if the query asks for decimals as strings.
fn wants_text(query: &str) -> Result<bool, ApiError> {
    let mut is_text = false;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let (error, allowed) = match (&*name, &*value) {
            ("decimals", form) if DecimalForm::ALL.iter().any(|known| known.as_str() == form) => {
                is_text = form == DecimalForm::Text.as_str();
                continue;
            }
            ("decimals", _) => ("must be one of: number, string", json!(["number", "string"])),
            _ => ("is not a parameter of this endpoint", json!(["decimals"])),
        };
        let param = name.chars().take(64).collect();
        return Err(ApiError::Parameters(vec![ParameterError {
            param,
            error: error.to_owned(),
            allowed: Some(allowed),
        }]));
    }
    Ok(is_text)
}
