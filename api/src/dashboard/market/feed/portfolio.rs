//! `/feed/{key}/portfolios/{name}/income.ics` and `income.csv`: income of a saved portfolio.

use axum::Extension;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::Response;

use super::keyed_call::{DataRouter, bearer, nothing_here, origin_of};
use crate::account::portfolios::{Portfolio, find_portfolio};
use crate::answer::{Access, Free};
use crate::app::state::App;
use crate::auth::ids::AccountId;
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, with_parameter};
use crate::dashboard::market::icalendar::{as_calendar, host_of, income_calendar, income_call};
use crate::error::ApiError;
use crate::parameters::{ParameterReader, Parameters};

/// Parameters of a portfolio's files: none, because the holdings come from the saved portfolio.
#[derive(Debug)]
struct PortfolioParameters;

impl Parameters for PortfolioParameters {
    fn read(_: &mut ParameterReader<'_>) -> Self {
        Self
    }
}

/// Responds with the income of a saved portfolio. The account of the key is charged for one call.
pub(super) async fn show_portfolio(
    State(app): State<App>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    mut caller: Parts,
) -> Result<Response, ApiError> {
    let Path((key, name, file)) = path.map_err(|_| nothing_here())?;
    caller.headers.insert(header::AUTHORIZATION, bearer(&key)?);
    let admitted = Access::<Free, PortfolioParameters>::from_request_parts(&mut caller, &app).await?;
    let portfolio = find(&app, admitted.account_id, &name).await?;
    let calls = ApiCalls::new(data, admitted.tier);
    let call = income_call(&portfolio.holdings);
    match file.as_str() {
        "income.csv" => {
            let call = with_parameter(&call, "format=csv");
            Ok(calls.respond_if_changed(&call, caller.headers.get(header::IF_NONE_MATCH)).await?)
        }
        "income.ics" => {
            let answer = calls.json_at_version(&call).await?;
            let origin = origin_of(&app, &caller);
            let calendar = income_calendar(&app, &answer, portfolio.edits, host_of(&origin)).await?;
            Ok(as_calendar(calendar, caller.headers.get(header::IF_NONE_MATCH)))
        }
        _ => Err(nothing_here()),
    }
}

async fn find(app: &App, account: AccountId, name: &str) -> Result<Portfolio, ApiError> {
    let unknown = || ApiError::NotFound("No saved portfolio has this name".to_owned());
    let dashboard = app.dashboard.as_ref().ok_or_else(unknown)?;
    let client = dashboard.database_client().await;
    let client = client.map_err(|error| ApiError::Unavailable(error.to_string()))?;
    let found = find_portfolio(&client, account, name).await;
    found.map_err(|error| ApiError::Unavailable(error.to_string()))?.ok_or_else(unknown)
}

impl From<MarketError> for ApiError {
    fn from(error: MarketError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
