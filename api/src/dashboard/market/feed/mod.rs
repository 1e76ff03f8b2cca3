//! `/feed/{key}/…`: API responses for programs that cannot send a header.
//!
//! Invariants: the path contains an ordinary key, with the same limits and charges. The key is masked in logs.

mod keyed_call;
mod portfolio;

use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};

use crate::app::state::App;
use crate::dashboard::market::api_calls::with_parameter;
use crate::dashboard::market::icalendar::{
    as_calendar, dividends_calendar, dividends_call, host_of, income_calendar, income_call,
};
use crate::dashboard::session::form::Form;
use crate::error::ApiError;
use keyed_call::{DataRouter, ask, ask_for_json, origin_of};

/// Router of `/feed/{key}/…`. `data` is the API router that serves the calls.
pub(crate) fn feed_routes(data: &Router) -> Router<App> {
    Router::new()
        .route("/feed/{key}/calendar.ics", get(show_calendar))
        .route("/feed/{key}/income.ics", get(show_income))
        .route("/feed/{key}/portfolios/{name}/{file}", get(portfolio::show_portfolio))
        .route("/feed/{key}/v1/{*path}", get(show_rows))
        .layer(Extension(DataRouter(data.clone())))
}

/// Calls the API with the rest of the path, and returns the response. The format is CSV, unless the query has the
/// parameter `format`.
async fn show_rows(
    Path((key, _)): Path<(String, String)>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    // Use the path as sent, because a symbol may contain an encoded slash.
    let target = caller.uri.path_and_query().and_then(|target| target.as_str().split_once("/v1/"));
    let target = target.map_or(String::new(), |(_, target)| format!("/v1/{target}"));
    let mut parameters = form_urlencoded::parse(caller.uri.query().unwrap_or_default().as_bytes());
    let has_format = parameters.any(|(name, _)| name == "format");
    let target = if has_format { target } else { with_parameter(&target, "format=csv") };
    ask(data, &key, &target, &caller).await
}

async fn show_calendar(
    State(app): State<App>,
    Path(key): Path<String>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    let form = Form::from_query(caller.uri.query().unwrap_or_default());
    let call = dividends_call(form.text("symbols"), app.today());
    let origin = origin_of(&app, &caller);
    Ok(match ask_for_json(data, &key, &call, &caller).await? {
        Ok(answer) => as_calendar(dividends_calendar(&app, &answer, host_of(&origin)).await?),
        Err(refusal) => refusal,
    })
}

async fn show_income(
    State(app): State<App>,
    Path(key): Path<String>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    let form = Form::from_query(caller.uri.query().unwrap_or_default());
    let origin = origin_of(&app, &caller);
    Ok(match ask_for_json(data, &key, &income_call(form.text("holdings")), &caller).await? {
        Ok(answer) => as_calendar(income_calendar(&app, &answer, 0, host_of(&origin)).await?),
        Err(refusal) => refusal,
    })
}
