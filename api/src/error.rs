//! API errors, and the only place that converts them to HTTP responses.
//!
//! Invariant: a response never contains the internal cause of an error. Causes are written only to the log.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::NaiveDate;
use serde_json::{Map, Value, json};
use store::db::error_chain;
use telemetry::LogLimit;

use crate::admission::AdmissionError;
use crate::auth::{Tier, redact_secrets};
use crate::concurrency::LowPriorityError;
use crate::concurrency::limiter::LimiterError;
use crate::connection::current_request_id;
use crate::parameters::{ParameterError, ParameterErrors, RequestedSymbol};
use crate::read::memory_tables::NearSymbol;
use crate::read::{AmbiguousSymbol, QueryError};
use crate::render::body_channel::Disconnected;
use crate::render::rows::RenderError;

/// Path of the page on which a client can change its plan after a refused call.
const UPGRADE_URL: &str = "/plans";

/// Value of `Retry-After` in seconds, for an account with too many open streams. A stream with a lost connection
/// usually ends at its next heartbeat, by default within 15 s. After that, the account can open another stream.
const STREAM_RETRY: u64 = 20;

/// Kind of security that a request names by its symbol.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SymbolKind {
    Stock,
    Etf,
}

/// Reasons for an error response. The `Display` text is also the message to the client, except for `Unavailable`,
/// `ClientDisconnected` and `Internal`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("Missing, invalid or expired API key")]
    InvalidKey,
    #[error(
        "An API key in the query is not read, because addresses are logged; send it in the header `Authorization: Bearer …` or `X-API-Key`"
    )]
    KeyInQuery,
    #[error("{}", feature_message(*.current, .feature, *.earliest))]
    FeatureNotAvailable { current: Tier, feature: &'static str, earliest: Option<NaiveDate> },
    #[error("Rate limit exceeded; retry in {retry_after} s")]
    RateLimited { retry_after: u64 },
    #[error("The account has {limit} open streams, the limit of its plan; close one of them")]
    TooManyStreams { limit: usize },
    /// The service ended a stream, because its client reads too slowly.
    #[error("The client reads too slowly; continue from the last event id")]
    StreamLagged,
    #[error("Monthly quota exceeded")]
    QuotaExceeded { current: i64, limit: i64, retry_after: u64 },
    #[error("{0}")]
    NotFound(String),
    #[error("{}", unknown_symbol_message(.kind, .symbol, .nearest))]
    UnknownSymbol { kind: SymbolKind, symbol: RequestedSymbol, nearest: Vec<NearSymbol> },
    #[error("Invalid parameter: {} {}", .0.symbol.parameter, .0)]
    AmbiguousSymbol(Box<AmbiguousSymbol>),
    #[error("Method not allowed; allowed: {allow}")]
    MethodNotAllowed { allow: &'static str },
    /// Refusal with the given status. The cause is not a parameter. It is, for example, a malformed request head.
    #[error("{message}")]
    Refused { status: StatusCode, message: String },
    #[error("{}", parameters_message(.0))]
    Parameters(Vec<ParameterError>),
    #[error("The cursor is damaged or belongs to another request")]
    InvalidCursor,
    #[error("The service has no data of the requested version; repeat the request without it")]
    VersionNotServed,
    /// The requested data version was served earlier, but this program does not implement its calculation rules any
    /// more.
    #[error(
        "The version {version} cannot be derived any more: its rules ({method}) exist only in program version {program}"
    )]
    VersionGone { version: String, method: String, program: String },
    #[error("the service cannot respond now: {0}")]
    Unavailable(String),
    #[error(transparent)]
    ClientDisconnected(#[from] Disconnected),
    #[error("{0:#}")]
    Internal(anyhow::Error),
}

impl ApiError {
    /// Refusal with the given status and message.
    pub(crate) fn refused(status: StatusCode, message: impl Into<String>) -> Self {
        Self::Refused { status, message: message.into() }
    }

    /// Status 404 for an unknown symbol. [`crate::answer`] adds similar symbols.
    pub(crate) fn unknown_symbol(kind: SymbolKind, symbol: RequestedSymbol) -> Self {
        Self::UnknownSymbol { kind, symbol, nearest: vec![] }
    }

    /// Status of the response, and the error code in its body. A status 404 has no code.
    fn status_and_code(&self) -> (StatusCode, Option<&'static str>) {
        let (status, code) = match self {
            Self::InvalidKey | Self::KeyInQuery => (StatusCode::UNAUTHORIZED, "INVALID_API_KEY"),
            Self::FeatureNotAvailable { .. } => (StatusCode::FORBIDDEN, "FEATURE_NOT_AVAILABLE"),
            Self::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED"),
            Self::QuotaExceeded { .. } => (StatusCode::TOO_MANY_REQUESTS, "QUOTA_EXCEEDED"),
            Self::TooManyStreams { .. } => (StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_STREAMS"),
            Self::StreamLagged => (StatusCode::SERVICE_UNAVAILABLE, "STREAM_LAGGED"),
            Self::NotFound(_) | Self::UnknownSymbol { .. } => return (StatusCode::NOT_FOUND, None),
            Self::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED"),
            Self::Refused { status, .. } => (*status, refused_code(*status)),
            Self::Parameters(_) => (StatusCode::BAD_REQUEST, "INVALID_PARAMETER"),
            Self::AmbiguousSymbol(_) => (StatusCode::BAD_REQUEST, "AMBIGUOUS_SYMBOL"),
            Self::InvalidCursor => (StatusCode::BAD_REQUEST, "INVALID_CURSOR"),
            Self::VersionNotServed => (StatusCode::PRECONDITION_FAILED, "VERSION_NOT_SERVED"),
            Self::VersionGone { .. } => (StatusCode::GONE, "VERSION_NOT_REPRODUCIBLE"),
            Self::Unavailable(_) | Self::ClientDisconnected(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE")
            }
            Self::Internal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL"),
        };
        (status, Some(code))
    }

    fn message(&self) -> String {
        match self {
            Self::NotFound(message) | Self::Refused { message, .. } => redact_secrets(message).into_owned(),
            Self::Unavailable(_) | Self::ClientDisconnected(_) => {
                "The service cannot answer now; retry shortly".to_owned()
            }
            Self::Internal(_) => format!("Internal error, request {}", current_request_id()),
            Self::UnknownSymbol { .. } => redact_secrets(&self.to_string()).into_owned(),
            error => error.to_string(),
        }
    }

    /// Body of the response.
    pub(crate) fn body(&self) -> Value {
        let mut body = Map::new();
        body.insert("error".to_owned(), self.message().into());
        if let (_, Some(code)) = self.status_and_code() {
            body.insert("code".to_owned(), code.into());
        }
        if let Value::Object(details) = self.details() {
            body.extend(details);
        }
        Value::Object(body)
    }

    /// Fields of the body in addition to `error` and `code`.
    fn details(&self) -> Value {
        match self {
            Self::FeatureNotAvailable { current, feature, earliest } => {
                let mut details = json!({
                    "current_tier": current.as_str(),
                    "required_feature": feature,
                    "upgrade_url": UPGRADE_URL,
                });
                if let Some(earliest) = earliest {
                    details["earliest_date"] = earliest.to_string().into();
                }
                details
            }
            Self::RateLimited { retry_after } => json!({ "retryAfter": retry_after }),
            Self::QuotaExceeded { current, limit, .. } => json!({
                "usage": { "current": current, "limit": limit, "percentage": quota_percentage(*current, *limit) },
                "upgrade_url": UPGRADE_URL,
            }),
            Self::UnknownSymbol { nearest, .. } if !nearest.is_empty() => json!({ "nearest": nearest }),
            Self::Parameters(errors) => {
                let first = errors.first();
                let all = errors.iter().map(|e| json!({ "param": e.param, "error": e.error }));
                let mut details = json!({
                    "param": first.map(|first| &first.param),
                    "errors": all.collect::<Vec<_>>(),
                });
                if let Some(allowed) = first.and_then(|first| first.allowed.as_ref()) {
                    details["allowed"] = allowed.clone();
                }
                details
            }
            Self::AmbiguousSymbol(ambiguous) => {
                let AmbiguousSymbol { symbol, listings } = &**ambiguous;
                json!({
                    "param": symbol.parameter,
                    "allowed": listings.iter().map(|listing| &listing.symbol).collect::<Vec<_>>(),
                    "errors": [{ "param": symbol.parameter, "error": ambiguous.to_string() }],
                    "candidates": listings,
                })
            }
            Self::InvalidCursor => json!({
                "param": "cursor",
                "errors": [{ "param": "cursor", "error": "is damaged or belongs to another request" }],
            }),
            Self::VersionGone { method, program, .. } => {
                json!({ "method_version": method, "program_version": program })
            }
            Self::Internal(_) => json!({ "request_id": current_request_id().as_str() }),
            _ => Value::Null,
        }
    }

    /// Number of seconds after which a retry may succeed; `None` if a retry cannot help.
    fn retry_after(&self) -> Option<u64> {
        match self {
            Self::RateLimited { retry_after } | Self::QuotaExceeded { retry_after, .. } => Some(*retry_after),
            Self::TooManyStreams { .. } => Some(STREAM_RETRY),
            Self::Unavailable(_) | Self::StreamLagged => Some(1),
            _ => None,
        }
    }
}

fn refused_code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => "ORIGIN_NOT_ALLOWED",
        StatusCode::NOT_ACCEPTABLE => "NOT_ACCEPTABLE",
        StatusCode::REQUEST_TIMEOUT => "REQUEST_TIMEOUT",
        StatusCode::PAYLOAD_TOO_LARGE => "BODY_TOO_LARGE",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UNSUPPORTED_MEDIA_TYPE",
        _ => "BAD_REQUEST",
    }
}

fn feature_message(current: Tier, feature: &str, earliest: Option<NaiveDate>) -> String {
    match earliest {
        Some(earliest) => format!("Data before {earliest} is not included in the {current} plan"),
        None => format!("{feature} is not included in the {current} plan"),
    }
}

fn unknown_symbol_message(
    kind: &SymbolKind,
    RequestedSymbol { text: symbol, .. }: &RequestedSymbol,
    nearest: &[NearSymbol],
) -> String {
    let kind = match kind {
        SymbolKind::Stock => "stock",
        SymbolKind::Etf => "ETF",
    };
    let near: Vec<&str> = nearest.iter().map(|near| near.symbol.as_str()).collect();
    match near.is_empty() {
        true => format!("No {kind} with symbol {symbol}"),
        false => format!("No {kind} with symbol {symbol}; similar symbols: {}", near.join(", ")),
    }
}

fn parameters_message(errors: &[ParameterError]) -> String {
    let all: Vec<String> = errors.iter().map(|e| format!("{} {}", e.param, e.error)).collect();
    format!("Invalid parameter: {}", all.join("; "))
}

/// Used percentage of the quota, rounded to two decimal places, as an exact JSON number.
pub(crate) fn quota_percentage(current: i64, limit: i64) -> Value {
    let limit = i128::from(limit.max(1));
    let hundredths = (i128::from(current) * 20_000 + limit) / (limit * 2);
    let text = rust_decimal::Decimal::from_i128_with_scale(hundredths, 2).normalize().to_string();
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        match &self {
            Self::Internal(cause) => {
                let (request_id, error) = (current_request_id(), format!("{cause:#}"));
                tracing::error!(request_id = request_id.as_str(), error, "cannot answer a request");
            }
            Self::Unavailable(cause) => log_unavailable(cause),
            _ => {}
        }
        let mut response = (self.status_and_code().0, Json(self.body())).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match &self {
            Self::InvalidKey | Self::KeyInQuery => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::MethodNotAllowed { allow } => {
                headers.insert(header::ALLOW, HeaderValue::from_static(allow));
            }
            _ => {}
        }
        if let Some(seconds) = self.retry_after() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Logs a response with status 503. During an outage all responses have this status, so most are logged at level debug.
fn log_unavailable(cause: &str) {
    static LIMIT: LogLimit = LogLimit::new();
    let id = current_request_id();
    match LIMIT.admit() {
        Some(suppressed) => {
            tracing::warn!(request_id = id.as_str(), cause, suppressed, "a response is unavailable")
        }
        None => tracing::debug!(request_id = id.as_str(), cause, "a response is unavailable"),
    }
}

impl From<ParameterErrors> for ApiError {
    fn from(errors: ParameterErrors) -> Self {
        match errors {
            ParameterErrors::Parameters(errors) => Self::Parameters(errors),
            ParameterErrors::Cursor => Self::InvalidCursor,
        }
    }
}

impl From<AdmissionError> for ApiError {
    fn from(error: AdmissionError) -> Self {
        Self::Unavailable(format!("admission: {}", error_chain(&error)))
    }
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::UnknownSymbol(symbol) => Self::unknown_symbol(SymbolKind::Stock, symbol),
            QueryError::AmbiguousSymbol(ambiguous) => Self::AmbiguousSymbol(ambiguous),
            QueryError::NothingKnown(_) => Self::NotFound(error.to_string()),
            QueryError::VersionGone { version, method, program } => {
                Self::VersionGone { version, method, program }
            }
            QueryError::VersionNotServed => Self::VersionNotServed,
            _ if error.is_transient() => Self::Unavailable(error_chain(&error)),
            _ => Self::Internal(error.into()),
        }
    }
}

impl From<LimiterError> for ApiError {
    fn from(error: LimiterError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<RenderError> for ApiError {
    fn from(error: RenderError) -> Self {
        Self::Internal(error.into())
    }
}

impl From<LowPriorityError> for ApiError {
    fn from(error: LowPriorityError) -> Self {
        Self::Internal(error.into())
    }
}

impl From<tokio_postgres::Error> for ApiError {
    fn from(error: tokio_postgres::Error) -> Self {
        QueryError::from(error).into()
    }
}
