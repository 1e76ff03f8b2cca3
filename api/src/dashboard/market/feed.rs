//! `/feed/{key}/…`: API responses for programs that cannot send a header.
//!
//! Invariants: the path contains an ordinary key, with the same limits and charges. The key is masked in logs.

mod notices;

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
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
        .layer(Extension(data.clone()))
}

/// Call of a feed address.
struct FeedCall {
    app: App,
    /// Parts of the path by their names in the route.
    path: HashMap<String, String>,
    /// Router of the API endpoints. The feeds get their data from these endpoints.
    data: Router,
    /// Head of the request, with the key of the path in its header `Authorization`.
    caller: Parts,
}

impl FromRequestParts<App> for FeedCall {
    type Rejection = ApiError;

    async fn from_request_parts(caller: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path = Path::<HashMap<String, String>>::from_request_parts(caller, app).await;
        let Path(path) = path.map_err(|_| nothing_here())?;
        let data = caller.extensions.get().cloned().ok_or_else(nothing_here)?;
        let mut call = Self { app: app.clone(), path, data, caller: caller.clone() };
        let key = HeaderValue::try_from(format!("Bearer {}", call.part("key")));
        let key = key.map_err(|_| ApiError::InvalidKey)?;
        call.caller.headers.insert(header::AUTHORIZATION, key);
        Ok(call)
    }
}

impl FeedCall {
    fn part(&self, name: &str) -> &str {
        self.path.get(name).map_or("", String::as_str)
    }

    fn query(&self) -> &str {
        self.caller.uri.query().unwrap_or_default()
    }

    fn origin(&self) -> String {
        origin_of(&self.app, &self.caller)
    }

    fn if_none_match(&self) -> Option<&HeaderValue> {
        self.caller.headers.get(header::IF_NONE_MATCH)
    }

    /// Admits a call that the feed answers itself, and charges it to the account of the key.
    async fn admit<P: Parameters>(&mut self) -> Result<Access<Free, P>, ApiError> {
        Access::from_request_parts(&mut self.caller, &self.app).await
    }

    /// Calls the API with the key of the feed.
    async fn respond(&self, target: &str, if_none_match: Option<&HeaderValue>) -> Result<Response, ApiError> {
        let calls = ApiCalls::with_key(self.data.clone(), &self.caller);
        calls.respond_if_changed(target, if_none_match).await.map_err(|_| nothing_here())
    }
}

/// Calls the API with the rest of the path, and returns the response. The format is CSV, unless the query has the
/// parameter `format`.
async fn show_rows(mut call: FeedCall) -> Result<Response, ApiError> {
    if call.part("path") == CHANGES {
        call.admit::<UnroutedParameters>().await?;
        return Err(ApiError::refused(StatusCode::BAD_REQUEST, NO_STREAM));
    }
    // Use the path as sent, because a symbol may contain an encoded slash.
    let target = call.caller.uri.path_and_query().and_then(|target| target.as_str().split_once("/v1/"));
    let target = target.map_or(String::new(), |(_, target)| format!("/v1/{target}"));
    let has_format = form_urlencoded::parse(call.query().as_bytes()).any(|(name, _)| name == "format");
    let target = if has_format { target } else { with_parameter(&target, "format=csv") };
    call.respond(&target, call.if_none_match()).await
}

/// Responds with one field of a security as plain text, for a cell of a spreadsheet. The query is passed to the API.
async fn show_cell(mut call: FeedCall) -> Result<Response, ApiError> {
    let field = call.part("field").to_owned();
    let resource = CELL_RESOURCES.iter().find(|(fields, _)| fields.contains(&field.as_str()));
    let Some((_, resource)) = resource else {
        call.admit::<UnroutedParameters>().await?;
        return Err(unknown_cell_field(&field));
    };
    let target = format!("/v1/stocks/{}{resource}?fields={field}&format=json", encode(call.part("symbol")));
    let target = call.caller.uri.query().map_or(target.clone(), |query| with_parameter(&target, query));
    let response = call.respond(&target, call.if_none_match()).await?;
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
    ApiError::Parameters(vec![ParameterError::new("field", error, Some(json!(allowed)))])
}

async fn show_calendar(call: FeedCall) -> Result<Response, ApiError> {
    let form = Form::read(call.query());
    respond_calendar(&call, Calendar::Dividends(form.text("symbols"))).await
}

async fn show_income(call: FeedCall) -> Result<Response, ApiError> {
    let form = Form::read(call.query());
    respond_calendar(&call, Calendar::Income { holdings: form.text("holdings"), edits: 0 }).await
}

/// Responds with a calendar file, or with the error response of the API.
async fn respond_calendar(call: &FeedCall, calendar: Calendar<'_>) -> Result<Response, ApiError> {
    let target = with_parameter(&calendar.call(call.app.today()), "decimals=string");
    let response = call.respond(&target, None).await?;
    if response.status() != StatusCode::OK {
        return Ok(response);
    }
    let file = calendar.write(&call.app, &ApiCalls::parse(response).await?, &call.origin()).await?;
    Ok(as_calendar(file, call.if_none_match()))
}

/// Responds with an Atom feed of what happened to some securities.
async fn show_notices(mut call: FeedCall) -> Result<Response, ApiError> {
    let admitted = call.admit::<FeedParameters>().await?;
    let symbols = match admitted.parameters.portfolio() {
        Some(name) => Some(symbols_of(find(&call.app, admitted.account_id, name).await?)?),
        None => None,
    };
    notices::respond(admitted, call.if_none_match(), &call.origin(), symbols).await
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
async fn show_portfolio(mut call: FeedCall) -> Result<Response, ApiError> {
    let admitted = call.admit::<PortfolioParameters>().await?;
    let portfolio = find(&call.app, admitted.account_id, call.part("name")).await?;
    let calls = ApiCalls::new(call.data.clone(), admitted.tier, Arc::default());
    if !portfolio.transactions.is_empty() {
        return respond_received(&call, admitted.tier, &calls, portfolio).await;
    }
    let calendar = Calendar::Income { holdings: &portfolio.holdings, edits: portfolio.edits };
    match call.part("file") {
        "income.csv" => {
            let target = with_parameter(&calendar.call(call.app.today()), "format=csv");
            Ok(calls.respond_if_changed(&target, call.if_none_match()).await?)
        }
        "income.ics" => Ok(calendar.respond(&call.app, &calls, &call.origin(), call.if_none_match()).await?),
        _ => Err(nothing_here()),
    }
}

/// Responds with the received and expected dividends of a portfolio with transactions, or with 304 if the client's copy
/// is current.
async fn respond_received(
    call: &FeedCall,
    tier: Tier,
    calls: &ApiCalls,
    portfolio: Portfolio,
) -> Result<Response, ApiError> {
    let app = &call.app;
    let format = match call.part("file") {
        "income.csv" => ResponseFormat::Csv,
        "income.ics" => ResponseFormat::Calendar,
        _ => return Err(nothing_here()),
    };
    let extension = if format == ResponseFormat::Csv { "csv" } else { "ics" };
    let path = format!("/v1/portfolio/dividends?format={extension}");
    let host = host_of(&call.origin()).to_owned();
    let generation = app.projection.pin()?;
    let (version, control_revision) = (generation.version(), generation.control_state().revision);
    let target = format!("{host} {} {}", portfolio.edits, portfolio.transactions);
    let etag = CacheKey { version, control_revision, today: app.today(), format, tier: Some(tier), target }
        .etag(&version);
    let source = CalendarSource { host, edits: portfolio.edits };
    let response = calls.respond_to_csv(&path, portfolio.transactions, source).await?;
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
    match content_type.filter(|_| response.status() == StatusCode::OK) {
        Some(content_type) => {
            Ok(private_response(response.into_body(), content_type, &etag, call.if_none_match()))
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
