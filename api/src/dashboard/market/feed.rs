//! `/feed/{key}/…`: API responses for programs that cannot send a header.
//!
//! Invariants: the path contains an ordinary key, with the same limits and charges. The key is masked in logs.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use serde_json::Value;
use tower::ServiceExt;

use crate::account::portfolios::{Portfolio, find_portfolio};
use crate::admission::RequestContext;
use crate::answer::{Access, Free};
use crate::app::site_address::SiteAddress;
use crate::app::state::App;
use crate::auth::AccountId;
use crate::dashboard::form::Form;
use crate::dashboard::market::api_calls::{ApiCalls, MarketError, version_of, with_parameter};
use crate::dashboard::market::calendar_events::{
    dividends_calendar, dividends_call, income_calendar, income_call,
};
use crate::dashboard::market::icalendar::{as_calendar, host_of};
use crate::error::ApiError;
use crate::parameters::{MinVersion, ParameterReader, Parameters, UnroutedParameters};

/// Path of the change stream after `/v1/`. A feed cannot contain it, because the stream does not end and is no CSV.
const CHANGES: &str = "changes";
const NO_STREAM: &str = "A feed address cannot follow the change stream: send the key in a header to /v1/changes, or read \
                         changed rows with updated_since in a feed of /v1/dividends/history";

/// Router of `/feed/{key}/…`. `data` is the API router that serves the calls.
pub(crate) fn feed_routes(data: &Router) -> Router<App> {
    Router::new()
        .route("/feed/{key}/calendar.ics", get(show_calendar))
        .route("/feed/{key}/income.ics", get(show_income))
        .route("/feed/{key}/portfolios/{name}/{file}", get(show_portfolio))
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

/// Parameters of a portfolio's files: none, because the holdings come from the saved portfolio.
#[derive(Debug)]
struct PortfolioParameters;

impl Parameters for PortfolioParameters {
    fn read(_: &mut ParameterReader<'_>) -> Self {
        Self
    }
}

/// Responds with the income of a saved portfolio. The account of the key is charged for one call.
async fn show_portfolio(
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

/// Maximum size of an API response that is converted to a calendar file, in bytes.
const BYTES: usize = 4 * 1024 * 1024;

/// Router of the API endpoints. The feeds get their data from these endpoints.
#[derive(Debug, Clone)]
pub(super) struct DataRouter(pub(super) Router);

/// Value of the `Authorization` header that contains this key.
pub(super) fn bearer(key: &str) -> Result<HeaderValue, ApiError> {
    HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| ApiError::InvalidKey)
}

/// Error for a feed path that cannot be read.
fn nothing_here() -> ApiError {
    ApiError::NotFound("Nothing is at this address".to_owned())
}

/// Calls the API with the key, on behalf of the client that requested the feed. Returns the response. If `conditional`
/// is true, it is 304 for a client whose copy is current.
pub(super) async fn ask(
    data: Router,
    key: &str,
    target: &str,
    caller: &Parts,
    conditional: bool,
) -> Result<Response, ApiError> {
    let mut request = Request::get(target).body(Body::empty()).map_err(|_| nothing_here())?;
    request.headers_mut().insert(header::AUTHORIZATION, bearer(key)?);
    if let Some(tags) = caller.headers.get(header::IF_NONE_MATCH).filter(|_| conditional) {
        request.headers_mut().insert(header::IF_NONE_MATCH, tags.clone());
    }
    if let Some(context) = RequestContext::from_extensions(&caller.extensions) {
        request.extensions_mut().insert(Arc::clone(context));
    }
    let Ok(response) = data.oneshot(request).await;
    Ok(response)
}

/// Calls the API with the key. Returns the body (with decimals as strings) and its data version. The inner `Err` is an
/// error response of the API.
async fn ask_for_json(
    data: Router,
    key: &str,
    target: &str,
    caller: &Parts,
) -> Result<Result<(Value, MinVersion), Response>, ApiError> {
    let response = ask(data, key, &with_parameter(target, "decimals=string"), caller, false).await?;
    if response.status() != StatusCode::OK {
        return Ok(Err(response));
    }
    let version = version_of(&response);
    let body = to_bytes(response.into_body(), BYTES).await;
    let body = body.map_err(|error| ApiError::Unavailable(error.to_string()))?;
    let answer = serde_json::from_slice(&body).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(Ok((answer, version)))
}

/// Scheme and host of the service as its clients see them, for example `https://data.example.com`.
fn origin_of(app: &App, caller: &Parts) -> String {
    let context = RequestContext::from_extensions(&caller.extensions);
    let unknown = (std::net::Ipv4Addr::UNSPECIFIED.into(), false);
    let (client, is_proxied) = context.map_or(unknown, |context| (context.client, context.is_proxied));
    let public = app.settings.dashboard.public_url.as_ref();
    SiteAddress::from_request(&caller.headers, client, is_proxied, public).origin
}
