//! `/feed/{key}/…`: answers of the API for programs that cannot send a header, such as spreadsheets and calendars.
//!
//! Invariants: the key in the address is an ordinary key. So its account is charged, its limits apply, and its deletion
//! ends the address. Logs mask it.

mod portfolio;

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use serde_json::Value;
use tower::ServiceExt;

use crate::admission::RequestContext;
use crate::app::site_address::SiteAddress;
use crate::app::state::App;
use crate::dashboard::market::api_calls::{encode, version_of, with_parameter};
use crate::dashboard::market::icalendar::{
    as_calendar, dividends_calendar, dividends_call, host_of, income_calendar,
};
use crate::dashboard::session::form::Form;
use crate::error::ApiError;
use crate::parameters::MinVersion;

/// Maximum bytes of the answer behind a calendar.
const BYTES: usize = 4 * 1024 * 1024;

/// Router of the documented endpoints.
#[derive(Debug, Clone)]
struct DataRouter(Router);

/// Router of the addresses with a key; `data` answers them.
pub(crate) fn feed_routes(data: &Router) -> Router<App> {
    Router::new()
        .route("/feed/{key}/calendar.ics", get(show_calendar))
        .route("/feed/{key}/income.ics", get(show_income))
        .route("/feed/{key}/portfolios/{name}/{file}", get(portfolio::show_portfolio))
        .route("/feed/{key}/v1/{*path}", get(show_rows))
        .layer(Extension(DataRouter(data.clone())))
}

/// API call for the income of holdings.
fn income_call(holdings: &str) -> String {
    format!("/v1/portfolio/income?holdings={}", encode(holdings))
}

/// Authorization header of a key.
fn bearer(key: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| ApiError::InvalidKey)
}

/// Response of the API to a call with the key.
async fn ask(data: Router, key: &str, target: &str, caller: &Parts) -> Result<Response, ApiError> {
    let unreadable = |_| ApiError::NotFound("Nothing is at this address".to_owned());
    let mut request = Request::get(target).body(Body::empty()).map_err(unreadable)?;
    request.headers_mut().insert(header::AUTHORIZATION, bearer(key)?);
    if let Some(context) = RequestContext::from_extensions(&caller.extensions) {
        request.extensions_mut().insert(Arc::clone(context));
    }
    let Ok(response) = data.oneshot(request).await;
    Ok(response)
}

/// Rows of any call as CSV.
async fn show_rows(
    Path((key, _)): Path<(String, String)>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    // The path as sent, because a symbol may contain an encoded slash.
    let target = caller.uri.path_and_query().and_then(|target| target.as_str().split_once("/v1/"));
    let target = target.map_or(String::new(), |(_, target)| format!("/v1/{target}"));
    let target = if target.contains("format=") { target } else { with_parameter(&target, "format=csv") };
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
    match read_answer(ask(data, &key, &with_parameter(&call, "decimals=string"), &caller).await?).await? {
        Ok(answer) => {
            Ok(as_calendar(dividends_calendar(&app, &answer, host_of(&origin_of(&app, &caller))).await?))
        }
        Err(refusal) => Ok(refusal),
    }
}

async fn show_income(
    State(app): State<App>,
    Path(key): Path<String>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    let form = Form::from_query(caller.uri.query().unwrap_or_default());
    let call = with_parameter(&income_call(form.text("holdings")), "decimals=string");
    match read_answer(ask(data, &key, &call, &caller).await?).await? {
        Ok(answer) => {
            Ok(as_calendar(income_calendar(&app, &answer, 0, host_of(&origin_of(&app, &caller))).await?))
        }
        Err(refusal) => Ok(refusal),
    }
}

/// Body of a response with its data version, or the response itself if it is a refusal.
async fn read_answer(response: Response) -> Result<Result<(Value, MinVersion), Response>, ApiError> {
    if response.status() != StatusCode::OK {
        return Ok(Err(response));
    }
    let version = version_of(&response);
    let body = to_bytes(response.into_body(), BYTES).await;
    let body = body.map_err(|error| ApiError::Unavailable(error.to_string()))?;
    let answer = serde_json::from_slice(&body).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(Ok((answer, version)))
}

fn origin_of(app: &App, caller: &Parts) -> String {
    let context = RequestContext::from_extensions(&caller.extensions);
    let unknown = (std::net::Ipv4Addr::UNSPECIFIED.into(), false);
    let (client, is_proxied) = context.map_or(unknown, |context| (context.client, context.is_proxied));
    let public = app.settings.dashboard.public_url.as_ref();
    SiteAddress::from_request(&caller.headers, client, is_proxied, public).origin
}
