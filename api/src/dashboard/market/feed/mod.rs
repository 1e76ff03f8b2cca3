//! `/feed/{key}/…`: API responses for programs that cannot send a header.
//!
//! Invariants: the path contains an ordinary key, with the same limits and charges. The key is masked in logs.

mod keyed_call;
mod portfolio;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};

use crate::answer::{Access, Free};
use crate::app::state::App;
use crate::dashboard::market::api_calls::with_parameter;
use crate::dashboard::market::icalendar::{
    as_calendar, dividends_calendar, dividends_call, host_of, income_calendar, income_call,
};
use crate::dashboard::session::form::Form;
use crate::error::ApiError;
use crate::parameters::UnroutedParameters;
use keyed_call::{DataRouter, ask, ask_for_json, bearer, nothing_here, origin_of};

/// Path of the change stream after `/v1/`. A feed cannot contain it, because the stream does not end and is no CSV.
const CHANGES: &str = "changes";
const NO_STREAM: &str = "A feed address cannot follow the change stream: send the key in a header to /v1/changes, or read \
                         changed rows with updated_since in a feed of /v1/dividends/history";

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
    State(app): State<App>,
    path: Result<Path<(String, String)>, PathRejection>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    mut caller: Parts,
) -> Result<Response, ApiError> {
    let Path((key, path)) = path.map_err(|_| nothing_here())?;
    if path == CHANGES {
        caller.headers.insert(header::AUTHORIZATION, bearer(&key)?);
        Access::<Free, UnroutedParameters>::from_request_parts(&mut caller, &app).await?;
        return Err(ApiError::refused(StatusCode::BAD_REQUEST, NO_STREAM));
    }
    // Use the path as sent, because a symbol may contain an encoded slash.
    let target = caller.uri.path_and_query().and_then(|target| target.as_str().split_once("/v1/"));
    let target = target.map_or(String::new(), |(_, target)| format!("/v1/{target}"));
    let mut parameters = form_urlencoded::parse(caller.uri.query().unwrap_or_default().as_bytes());
    let has_format = parameters.any(|(name, _)| name == "format");
    let target = if has_format { target } else { with_parameter(&target, "format=csv") };
    ask(data, &key, &target, &caller, true).await
}

async fn show_calendar(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    let Path(key) = path.map_err(|_| nothing_here())?;
    let form = Form::from_query(caller.uri.query().unwrap_or_default());
    let call = dividends_call(form.text("symbols"), app.today());
    let origin = origin_of(&app, &caller);
    Ok(match ask_for_json(data, &key, &call, &caller).await? {
        Ok(answer) => {
            let calendar = dividends_calendar(&app, &answer, host_of(&origin)).await?;
            as_calendar(calendar, caller.headers.get(header::IF_NONE_MATCH))
        }
        Err(refusal) => refusal,
    })
}

async fn show_income(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    let Path(key) = path.map_err(|_| nothing_here())?;
    let form = Form::from_query(caller.uri.query().unwrap_or_default());
    let origin = origin_of(&app, &caller);
    Ok(match ask_for_json(data, &key, &income_call(form.text("holdings")), &caller).await? {
        Ok(answer) => {
            let calendar = income_calendar(&app, &answer, 0, host_of(&origin)).await?;
            as_calendar(calendar, caller.headers.get(header::IF_NONE_MATCH))
        }
        Err(refusal) => refusal,
    })
}
