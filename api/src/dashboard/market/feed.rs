//! `/feed/{key}/…`: API responses for programs that cannot send a header.
//!
//! Invariants: the path contains an ordinary key, with the same limits and charges. The key is masked in logs.

mod notices;

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use market::row::{FundamentalsRow, Metrics, Quote, StockRow, TableRow};
use rust_decimal::Decimal;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use telemetry::escape_formula;

use super::api_calls::{Answer, ApiCalls, MarketError, encode, with_parameter};
use super::calendar_events::{Calendar, as_calendar};
use crate::account::portfolios::{Portfolio, find_portfolio};
use crate::answer::{Access, Free, origin_of, private_response};
use crate::app::App;
use crate::auth::{AccountId, Tier};
use crate::dashboard::form::Form;
use crate::error::ApiError;
use crate::parameters::{ParameterError, ParameterReader, Parameters, ResponseFormat, UnroutedParameters};
use crate::render::cache::CacheKey;
use crate::render::icalendar::{CalendarSource, host_of};
use notices::{FeedParameters, symbols_of};

/// Path of the change stream after `/v1/`. A feed cannot contain it, because the stream does not end and is no CSV.
const CHANGES: &str = "changes";
const NO_STREAM: &str = "A feed address cannot follow the change stream: send the key in a header to /v1/changes, or read \
                         changed rows with updated_since in a feed of /v1/dividends/history";

/// Resources of a security with the fields of a cell: fields, and path after the symbol. A field of several resources is
/// read from the first one.
const CELL_RESOURCES: [(&[&str], &str); 4] = [
    (Metrics::COLUMNS, "/metrics"),
    (Quote::COLUMNS, "/quote"),
    (StockRow::COLUMNS, ""),
    (FundamentalsRow::COLUMNS, "/fundamentals"),
];
const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Router of `/feed/{key}/…`. `data` is the API router that serves the calls.
pub(crate) fn feed_routes(data: &Router) -> Router<App> {
    Router::new()
        .route("/feed/{key}/calendar.ics", get(show_calendar))
        .route("/feed/{key}/income.ics", get(show_income))
        .route("/feed/{key}/events.atom", get(show_notices))
        .route("/feed/{key}/portfolios/{name}/{file}", get(show_portfolio))
        .route("/feed/{key}/cell/{symbol}/{field}", get(show_cell))
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
        check_access(&app, &key, &mut caller).await?;
        return Err(ApiError::refused(StatusCode::BAD_REQUEST, NO_STREAM));
    }
    // Use the path as sent, because a symbol may contain an encoded slash.
    let target = caller.uri.path_and_query().and_then(|target| target.as_str().split_once("/v1/"));
    let target = target.map_or(String::new(), |(_, target)| format!("/v1/{target}"));
    let mut parameters = form_urlencoded::parse(caller.uri.query().unwrap_or_default().as_bytes());
    let has_format = parameters.any(|(name, _)| name == "format");
    let target = if has_format { target } else { with_parameter(&target, "format=csv") };
    let calls = ApiCalls::with_key(data, bearer(&key)?, &caller);
    let response = calls.respond_if_changed(&target, caller.headers.get(header::IF_NONE_MATCH)).await;
    response.map_err(|_| nothing_here())
}

/// Checks the key of a feed that calls no endpoint.
async fn check_access(app: &App, key: &str, caller: &mut Parts) -> Result<(), ApiError> {
    caller.headers.insert(header::AUTHORIZATION, bearer(key)?);
    Access::<Free, UnroutedParameters>::from_request_parts(caller, app).await?;
    Ok(())
}

/// Responds with one field of a security as plain text, for a cell of a spreadsheet. The query is passed to the API.
async fn show_cell(
    State(app): State<App>,
    path: Result<Path<(String, String, String)>, PathRejection>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    mut caller: Parts,
) -> Result<Response, ApiError> {
    let Path((key, symbol, field)) = path.map_err(|_| nothing_here())?;
    let resource = CELL_RESOURCES.iter().find(|(fields, _)| fields.contains(&field.as_str()));
    let Some((_, resource)) = resource else {
        check_access(&app, &key, &mut caller).await?;
        return Err(unknown_cell_field(&field));
    };
    let target = format!("/v1/stocks/{}{resource}?fields={field}&format=json", encode(&symbol));
    let target = caller.uri.query().map_or(target.clone(), |query| with_parameter(&target, query));
    let calls = ApiCalls::with_key(data, bearer(&key)?, &caller);
    let response = calls.respond_if_changed(&target, caller.headers.get(header::IF_NONE_MATCH)).await;
    let response = response.map_err(|_| nothing_here())?;
    if response.status() != StatusCode::OK {
        return Ok(response);
    }
    let mut headers = response.headers().clone();
    let (answer, _): (Answer<HashMap<String, Box<RawValue>>>, _) = ApiCalls::parse(response).await?;
    let text = answer.data.get(&field).map_or(String::new(), |value| cell_text(value));
    headers.insert(header::CONTENT_TYPE, PLAIN_TEXT);
    headers.insert(header::CONTENT_LENGTH, text.len().into());
    let mut cell = Response::new(Body::from(text));
    *cell.headers_mut() = headers;
    Ok(cell)
}

/// Text of a JSON value: empty for null, and with the digits of the JSON for a number.
fn cell_text(value: &RawValue) -> String {
    match serde_json::from_str(value.get()) {
        Ok(Value::Null) => String::new(),
        Ok(Value::String(text)) if text.parse::<Decimal>().is_ok() => text,
        Ok(Value::String(text)) => escape_formula(text),
        _ => value.get().to_owned(),
    }
}

fn unknown_cell_field(field: &str) -> ApiError {
    let mut allowed: Vec<&str> = CELL_RESOURCES.iter().flat_map(|(fields, _)| *fields).copied().collect();
    allowed.sort_unstable();
    allowed.dedup();
    let field: String = field.chars().take(64).collect();
    let error = format!("has no value {field:?}");
    ApiError::Parameters(vec![ParameterError {
        param: "field".to_owned(),
        error,
        allowed: Some(json!(allowed)),
    }])
}

async fn show_calendar(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    let form = Form::from_query(caller.uri.query().unwrap_or_default());
    respond_calendar(&app, path, data, &caller, Calendar::Dividends(form.text("symbols"))).await
}

async fn show_income(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    Extension(DataRouter(data)): Extension<DataRouter>,
    caller: Parts,
) -> Result<Response, ApiError> {
    let form = Form::from_query(caller.uri.query().unwrap_or_default());
    let calendar = Calendar::Income { holdings: form.text("holdings"), edits: 0 };
    respond_calendar(&app, path, data, &caller, calendar).await
}

/// Responds with a calendar file, or with the error response of the API.
async fn respond_calendar(
    app: &App,
    path: Result<Path<String>, PathRejection>,
    data: Router,
    caller: &Parts,
    calendar: Calendar<'_>,
) -> Result<Response, ApiError> {
    let Path(key) = path.map_err(|_| nothing_here())?;
    let call = with_parameter(&calendar.call(app.today()), "decimals=string");
    let response = ApiCalls::with_key(data, bearer(&key)?, caller).respond(&call).await;
    let response = response.map_err(|_| nothing_here())?;
    if response.status() != StatusCode::OK {
        return Ok(response);
    }
    let file = calendar.write(app, &ApiCalls::parse(response).await?, &origin_of(app, caller)).await?;
    Ok(as_calendar(file, caller.headers.get(header::IF_NONE_MATCH)))
}

/// Responds with an Atom feed of what happened to some securities.
async fn show_notices(
    State(app): State<App>,
    path: Result<Path<String>, PathRejection>,
    mut caller: Parts,
) -> Result<Response, ApiError> {
    let Path(key) = path.map_err(|_| nothing_here())?;
    caller.headers.insert(header::AUTHORIZATION, bearer(&key)?);
    let admitted = Access::<Free, FeedParameters>::from_request_parts(&mut caller, &app).await?;
    let symbols = match admitted.parameters.portfolio() {
        Some(name) => Some(symbols_of(find(&app, admitted.account_id, name).await?)?),
        None => None,
    };
    notices::respond(admitted, &caller, &origin_of(&app, &caller), symbols).await
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
    let calls = ApiCalls::new(data, admitted.tier, Arc::default());
    if !portfolio.transactions.is_empty() {
        return respond_received(&app, &caller, admitted.tier, &calls, portfolio, &file).await;
    }
    let calendar = Calendar::Income { holdings: &portfolio.holdings, edits: portfolio.edits };
    let if_none_match = caller.headers.get(header::IF_NONE_MATCH);
    match file.as_str() {
        "income.csv" => {
            let call = with_parameter(&calendar.call(app.today()), "format=csv");
            Ok(calls.respond_if_changed(&call, if_none_match).await?)
        }
        "income.ics" => Ok(calendar.respond(&app, &calls, &origin_of(&app, &caller), if_none_match).await?),
        _ => Err(nothing_here()),
    }
}

/// Responds with the received and expected dividends of a portfolio with transactions, or with 304 if the client's copy
/// is current.
async fn respond_received(
    app: &App,
    caller: &Parts,
    tier: Tier,
    calls: &ApiCalls,
    portfolio: Portfolio,
    file: &str,
) -> Result<Response, ApiError> {
    let format = match file {
        "income.csv" => ResponseFormat::Csv,
        "income.ics" => ResponseFormat::Calendar,
        _ => return Err(nothing_here()),
    };
    let extension = if format == ResponseFormat::Csv { "csv" } else { "ics" };
    let call = format!("/v1/portfolio/dividends?format={extension}");
    let host = host_of(&origin_of(app, caller)).to_owned();
    let generation = app.projection.pin()?;
    let (version, control_revision) = (generation.version(), generation.control_state().revision);
    let target = format!("{host} {} {}", portfolio.edits, portfolio.transactions);
    let etag = CacheKey { version, control_revision, today: app.today(), format, tier: Some(tier), target }
        .etag(&version);
    let source = CalendarSource { host, edits: portfolio.edits };
    let response = calls.respond_to_csv(&call, portfolio.transactions, source).await?;
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
    match content_type.filter(|_| response.status() == StatusCode::OK) {
        Some(content_type) => {
            let if_none_match = caller.headers.get(header::IF_NONE_MATCH);
            Ok(private_response(response.into_body(), content_type, &etag, if_none_match))
        }
        None => Ok(response),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_keeps_numbers_and_escapes_formulas() {
        let cell = |json: &str| RawValue::from_string(json.to_owned()).map(|value| cell_text(&value)).ok();
        for (json, text) in
            [("-3.20", "-3.20"), ("\"-3.2\"", "-3.2"), ("\"=A1\"", "'=A1"), ("\"-x\"", "'-x"), ("null", "")]
        {
            assert_eq!(cell(json).as_deref(), Some(text), "{json}");
        }
    }
}
