//! Calls of API routes by the market pages and feeds, in the same process. The calls of pages need no key and are not
//! charged to an account.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::rejection::PathRejection;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::db::error_chain;
use tower::ServiceExt;

use crate::admission::RequestContext;
use crate::answer::InternalRequest;
use crate::auth::Tier;
use crate::concurrency::{LowPriorityError, run_low_priority};
use crate::parameters::MinVersion;
use crate::read::QueryError;
use crate::read::memory_tables::{LeftOut, RestrictedSecurities};
use crate::render::icalendar::CalendarSource;

/// Maximum size of a response body, in bytes.
const BYTES: usize = 8 * 1024 * 1024;

/// Size in bytes above which a body is parsed at low priority.
const LONG: usize = 16 * 1024;

/// Maximum number of faulty parameters for which a page shows the error.
const MAX_ERRORS: usize = 10;

/// Characters that are percent-encoded: all except ASCII letters, digits and `.`, `-`, `_`, `,`, `:`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b',').remove(b':');

/// Result of a function that builds a market page or a part of it.
pub(crate) type MarketResult<T> = Result<T, MarketError>;

/// Reason why a page cannot be shown at the requested path: an error or a redirect.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MarketError {
    /// Nothing was found. The API may name similar securities.
    #[error("{message}")]
    NotFound { message: String, nearest: Vec<Value> },
    /// No security has the symbol.
    #[error("no security has the symbol {symbol}")]
    UnknownSymbol { symbol: String, nearest: Vec<Value> },
    /// The page has another path. The value is the other path, to which the response redirects.
    #[error("the page is at {0}")]
    Redirect(String),
    #[error("{0}")]
    Refused(String),
    /// Several listings have the symbol. The value is the API's message, and its field `candidates`.
    #[error("{0}")]
    Ambiguous(String, Value),
    /// The plan of the reader does not include the call. The value is the API's message.
    #[error("{0}")]
    NotInPlan(String),
    /// The security rests on a source that must not be redistributed. The value is its symbol.
    #[error("the data of {0} is left out: the licence of a source forbids its redistribution")]
    LeftOut(String),
    /// The page would be computed with exchange rates that must not be redistributed. The value names their sources.
    #[error(
        "the exchange rates of {0} are left out, because their licence forbids redistribution: choose no currency"
    )]
    RatesLeftOut(String),
    /// A file may contain securities that pages leave out.
    #[error("files need an API key, because the licence of a source forbids redistribution")]
    NeedsKey,
    #[error("cannot build the page: {0}")]
    Unavailable(String),
}

impl MarketError {
    /// Error for an address without a page.
    pub(crate) fn nothing_here() -> Self {
        Self::not_found("Nothing is at this address")
    }

    pub(crate) fn not_found(message: &str) -> Self {
        Self::NotFound { message: message.to_owned(), nearest: vec![] }
    }

    /// Error of a call for a security. If nothing was found, no security has the symbol.
    pub(crate) fn for_symbol(self, symbol: &str) -> Self {
        match self {
            Self::NotFound { nearest, .. } => Self::UnknownSymbol { symbol: symbol.to_owned(), nearest },
            error => error,
        }
    }
}

impl From<PathRejection> for MarketError {
    fn from(_: PathRejection) -> Self {
        Self::nothing_here()
    }
}

impl From<LowPriorityError> for MarketError {
    fn from(error: LowPriorityError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<QueryError> for MarketError {
    fn from(error: QueryError) -> Self {
        Self::Unavailable(error_chain(&error))
    }
}

/// JSON body of an API response.
#[derive(Deserialize)]
pub(super) struct Answer<T> {
    pub(super) data: T,
    meta: AnswerMeta,
}

#[derive(Deserialize)]
struct AnswerMeta {
    data_version: Option<String>,
}

/// Caller of the API routes.
#[derive(Debug, Clone)]
enum Caller {
    /// Page, with the tier of its reader. The calls are not charged.
    Page(Tier),
    /// Feed: `Authorization` header with the key of the feed, and context of the client's request.
    Feed(Option<HeaderValue>, Option<Arc<RequestContext>>),
}

/// Client that calls the API routes in the same process. It records the data version of every response.
#[derive(Debug, Clone)]
pub(crate) struct ApiCalls {
    data: Router,
    caller: Caller,
    versions: Arc<Mutex<BTreeSet<String>>>,
    /// Securities that the responses leave out.
    restricted: Arc<RestrictedSecurities>,
    /// Canonical symbols of the securities that the responses so far left out.
    left_out: Arc<Mutex<BTreeSet<String>>>,
}

impl ApiCalls {
    pub(crate) fn new(data: Router, tier: Tier, restricted: Arc<RestrictedSecurities>) -> Self {
        Self::with_caller(data, Caller::Page(tier), restricted)
    }

    fn with_caller(data: Router, caller: Caller, restricted: Arc<RestrictedSecurities>) -> Self {
        Self { data, caller, versions: Arc::default(), restricted, left_out: Arc::default() }
    }

    /// Client with the key of a feed, on behalf of the client that requested the feed.
    pub(crate) fn with_key(data: Router, client: &Parts) -> Self {
        let context = RequestContext::from_extensions(&client.extensions).cloned();
        let authorization = client.headers.get(header::AUTHORIZATION).cloned();
        Self::with_caller(data, Caller::Feed(authorization, context), Arc::default())
    }

    /// True if all responses so far have the same data version.
    pub(crate) fn have_one_version(&self) -> bool {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).len() <= 1
    }

    /// True if responses may leave out securities.
    pub(crate) fn is_restricted(&self) -> bool {
        !self.restricted.is_empty()
    }

    /// Description of the securities that the responses so far left out; `None` without any.
    pub(crate) fn left_out(&self) -> Option<LeftOut> {
        self.restricted.describe(self.left_out.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Removes the rows of restricted securities from a response, on every level.
    ///
    /// # Errors
    /// The response is about a restricted security, or has sums with its amounts.
    pub(crate) fn leave_out(&self, answer: &mut Value) -> MarketResult<()> {
        if self.restricted.is_empty() {
            return Ok(());
        }
        // A row of a fund that holds a security is of both.
        let owner = |row: &Value| {
            let owners = ["symbol", "etf_symbol"].into_iter().filter_map(|name| row[name].as_str());
            owners.filter(|symbol| self.restricted.contains(symbol)).map(str::to_owned).next()
        };
        let mut left_out = BTreeSet::new();
        remove_rows(answer, &mut |row| {
            let symbol = owner(row);
            let is_restricted = symbol.is_some();
            left_out.extend(symbol);
            is_restricted
        });
        // Sums over several securities would show the amounts of a removed row.
        let has_sums = ["data", "meta"].iter().any(|part| !answer[part]["totals"].is_null());
        let about = owner(&answer["data"]).or(left_out.first().filter(|_| has_sums).cloned());
        left_out.extend(about.clone());
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).extend(left_out);
        about.map_or(Ok(()), |symbol| Err(MarketError::LeftOut(symbol)))
    }

    fn note_version(&self, version: Option<&str>) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.extend(version.map(str::to_owned));
    }

    /// Calls the API and returns the JSON body, in which decimals are strings.
    pub(crate) async fn json(&self, target: &str) -> MarketResult<Value> {
        Ok(self.json_at_version(target).await?.0)
    }

    /// Calls the API. Returns the JSON body, in which decimals are strings, and the data version of the response.
    pub(crate) async fn json_at_version(&self, target: &str) -> MarketResult<(Value, MinVersion)> {
        let (answer, version): (Value, _) = self.read_at_version(target).await?;
        self.note_version(answer["meta"]["data_version"].as_str());
        Ok((answer, version))
    }

    /// Calls the API and deserializes the member `data` of the body, in which decimals are strings.
    pub(crate) async fn data<T: DeserializeOwned + Send + 'static>(&self, target: String) -> MarketResult<T> {
        let (answer, _): (Answer<T>, _) = self.read_at_version(&target).await?;
        self.note_version(answer.meta.data_version.as_deref());
        Ok(answer.data)
    }

    async fn read_at_version<T: DeserializeOwned + Send + 'static>(
        &self,
        target: &str,
    ) -> MarketResult<(T, MinVersion)> {
        let response = self.respond(&with_parameter(target, "decimals=string")).await?;
        match response.status() {
            StatusCode::OK if self.restricted.is_empty() => Self::parse(response).await,
            StatusCode::OK => {
                let (mut answer, version) = Self::parse(response).await?;
                self.leave_out(&mut answer)?;
                let answer = serde_json::from_value(answer);
                Ok((answer.map_err(|error| MarketError::Unavailable(error.to_string()))?, version))
            }
            _ => Err(Self::read_refusal(response).await?),
        }
    }

    /// Body of the response, unchanged.
    pub(crate) async fn text(&self, target: &str) -> MarketResult<String> {
        let response = self.respond(target).await?;
        match response.status() {
            StatusCode::OK => Ok(String::from_utf8_lossy(&read_body(response).await?).into_owned()),
            _ => Err(Self::read_refusal(response).await?),
        }
    }

    /// Reads the error in a response.
    pub(crate) async fn read_refusal(response: Response) -> MarketResult<MarketError> {
        let status = response.status();
        let mut body: Value = serde_json::from_slice(&read_body(response).await?).unwrap_or_default();
        let message = body["error"].as_str().unwrap_or_default().to_owned();
        Ok(match status {
            StatusCode::NOT_FOUND => {
                let nearest = body["nearest"].as_array_mut().map(std::mem::take).unwrap_or_default();
                MarketError::NotFound { message, nearest }
            }
            StatusCode::FORBIDDEN => MarketError::NotInPlan(message),
            _ if body["candidates"].is_array() => {
                MarketError::Ambiguous(refusal(&body, message), body["candidates"].take())
            }
            status if status.is_client_error() => MarketError::Refused(refusal(&body, message)),
            _ => MarketError::Unavailable(message),
        })
    }

    /// Parses the JSON body of a response. Also returns its data version, read from the entity tag.
    pub(crate) async fn parse<T: DeserializeOwned + Send + 'static>(
        response: Response,
    ) -> MarketResult<(T, MinVersion)> {
        let tag = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok());
        let version = MinVersion::of_entity_tags(tag.unwrap_or_default());
        let body = read_body(response).await?;
        // A large body is parsed at low priority, so that requests of API clients come first.
        let parsed = match body.len() > LONG {
            true => run_low_priority(move || serde_json::from_slice(&body)).await?,
            false => serde_json::from_slice(&body),
        };
        Ok((parsed.map_err(|error| MarketError::Unavailable(error.to_string()))?, version))
    }

    /// Calls the API and returns the response unchanged.
    pub(crate) async fn respond(&self, target: &str) -> MarketResult<Response> {
        self.respond_if_changed(target, None).await
    }

    /// Calls the API and returns the response unchanged: 304 if `if_none_match` has the entity tag of the response.
    pub(crate) async fn respond_if_changed(
        &self,
        target: &str,
        if_none_match: Option<&HeaderValue>,
    ) -> MarketResult<Response> {
        let request = Request::get(target).body(Body::empty());
        let mut request = request.map_err(|error| MarketError::Refused(error.to_string()))?;
        request.headers_mut().extend(if_none_match.map(|tags| (header::IF_NONE_MATCH, tags.clone())));
        Box::pin(self.send(request)).await
    }

    /// Posts a CSV to the API and returns the response unchanged. `calendar` is the source of a calendar file.
    pub(crate) async fn respond_to_csv(
        &self,
        target: &str,
        csv: String,
        calendar: CalendarSource,
    ) -> MarketResult<Response> {
        let request = Request::post(target).header(header::CONTENT_TYPE, "text/csv").extension(calendar);
        let request = request.body(Body::from(csv));
        self.send(request.map_err(|error| MarketError::Refused(error.to_string()))?).await
    }

    async fn send(&self, mut request: Request<Body>) -> MarketResult<Response> {
        let rate_sources = self.restricted.rate_sources();
        let query = request.uri().query().unwrap_or_default();
        if !rate_sources.is_empty() && query.split('&').any(|parameter| parameter.starts_with("currency=")) {
            return Err(MarketError::RatesLeftOut(rate_sources.join(", ")));
        }
        match &self.caller {
            Caller::Page(tier) => {
                request.extensions_mut().insert(InternalRequest(*tier));
            }
            Caller::Feed(authorization, context) => {
                request.headers_mut().extend(authorization.clone().map(|key| (header::AUTHORIZATION, key)));
                if let Some(context) = context {
                    request.extensions_mut().insert(Arc::clone(context));
                }
            }
        }
        // Boxed, because a page joins many calls in one future.
        let Ok(response) = Box::pin(self.data.clone().oneshot(request)).await;
        Ok(response)
    }
}

/// Removes the rows that `is_restricted` selects from all lists in a value.
fn remove_rows(value: &mut Value, is_restricted: &mut impl FnMut(&Value) -> bool) {
    match value {
        Value::Array(rows) => {
            rows.retain(|row| !is_restricted(row));
            rows.iter_mut().for_each(|row| remove_rows(row, is_restricted));
        }
        Value::Object(members) => members.values_mut().for_each(|member| remove_rows(member, is_restricted)),
        _ => {}
    }
}

async fn read_body(response: Response) -> MarketResult<Bytes> {
    let body = to_bytes(response.into_body(), BYTES).await;
    body.map_err(|error| MarketError::Unavailable(error.to_string()))
}

/// Error text for a rejected call: one line for each faulty parameter, for at most [`MAX_ERRORS`] of them. If the body
/// names no parameter, the text is `message`.
fn refusal(body: &Value, message: String) -> String {
    let errors = body["errors"].as_array().into_iter().flatten().take(MAX_ERRORS);
    let lines =
        errors.filter_map(|error| Some(format!("{} {}", error["param"].as_str()?, error["error"].as_str()?)));
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { message } else { lines.join("\n") }
}

/// Appends a query parameter to a path. The path may already have a query.
pub(crate) fn with_parameter(target: &str, parameter: &str) -> String {
    let separator = if target.contains('?') { '&' } else { '?' };
    format!("{target}{separator}{parameter}")
}

/// Appends the parameter `currency` to a path, unless the currency is empty.
pub(crate) fn in_currency(target: &str, currency: &str) -> String {
    match currency {
        "" => target.to_owned(),
        currency => with_parameter(target, &format!("currency={}", encode(currency))),
    }
}

/// Percent-encodes a text as a path segment or parameter value.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}
