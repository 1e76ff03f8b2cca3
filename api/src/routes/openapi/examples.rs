//! Examples for the OpenAPI document: one value per parameter, and one body per error.
//!
//! Invariant: the code that builds real error responses also builds the example error bodies.

use axum::http::StatusCode;
use chrono::NaiveDate;
use futures::FutureExt;
use serde_json::{Map, Value, json};

use crate::auth::tier::Tier;
use crate::connection::request_id::{self, RequestId};
use crate::error::{ApiError, SymbolKind};
use crate::parameters::{ParameterError, RequestedSymbol};
use crate::read::memory_tables::NearSymbol;

/// Example value of the parameter `name`. It is the entry in `examples` for this name without its prefix `min_` or
/// `max_`. If there is no such entry, the example value is derived from `schema`.
///
/// A client may send the examples of all parameters in one request, which must be accepted with any data and tier. A
/// parameter that conflicts with others, or whose values depend on data or tier, therefore has no example: null in
/// `examples`.
pub(super) fn example_value(examples: &Value, name: &str, schema: &Value) -> Option<Value> {
    match examples.get(name.trim_start_matches("min_").trim_start_matches("max_")) {
        Some(Value::Null) => None,
        Some(value) if schema["type"] == "array" && !value.is_array() => Some(json!([value])),
        Some(value) => Some(value.clone()),
        None => by_schema(name, schema),
    }
}

fn by_schema(name: &str, schema: &Value) -> Option<Value> {
    let default = &schema["default"];
    match (schema["type"].as_str(), &schema["enum"], &schema["items"]["enum"]) {
        _ if !default.is_null() => Some(default.clone()),
        (_, Value::Array(words), _) => words.first().cloned(),
        (_, _, Value::Array(words)) => Some(words.iter().take(1).cloned().collect()),
        (Some("boolean"), ..) => Some(true.into()),
        // The first day of the history depends on the tier and on the current day.
        (Some("string"), ..) if schema["format"] == "date" => None,
        // A low minimum, so that requests match rows of the example market. The example maximum must exceed it.
        (Some("number"), ..) if name.starts_with("min_") => {
            Some(schema["minimum"].as_i64().map_or(2, |least| least.max(2)).into())
        }
        (Some("number"), ..) => Some(80.into()),
        _ => schema.get("minimum").cloned(),
    }
}

/// Example bodies of the errors with this status, by error code.
pub(super) fn error_bodies(status: &str) -> Map<String, Value> {
    let named = |error: &ApiError| {
        let id = RequestId::from_trace_id("0af7651916cd43dd8448eb211c80319c").unwrap_or_default();
        let body = request_id::with_request_id(id, async { error.body() }).now_or_never().unwrap_or_default();
        let name = body["code"].as_str().unwrap_or("NOT_FOUND").to_owned();
        (name, json!({ "value": body }))
    };
    errors(status).iter().map(named).collect()
}

fn errors(status: &str) -> Vec<ApiError> {
    match status {
        "400" => vec![ApiError::Parameters(vec![limit_too_large()]), ApiError::InvalidCursor],
        "401" => vec![ApiError::InvalidKey],
        "403" => vec![ApiError::FeatureNotAvailable {
            current: Tier::Free,
            feature: "historical_depth",
            earliest: NaiveDate::from_ymd_opt(2019, 1, 2),
        }],
        "404" => vec![ApiError::UnknownSymbol {
            kind: SymbolKind::Stock,
            symbol: RequestedSymbol { text: "SYP".to_owned(), candidates: vec![], parameter: "symbol" },
            nearest: vec![NearSymbol {
                symbol: "SPY".to_owned(),
                name: "Synthetic 500 Fund".to_owned(),
                exchange: Some("ARCX".to_owned()),
                is_active: true,
            }],
        }],
        "405" => vec![ApiError::MethodNotAllowed { allow: "GET, HEAD" }],
        "408" => vec![ApiError::refused(StatusCode::REQUEST_TIMEOUT, "The body took too long")],
        "413" => {
            vec![ApiError::refused(StatusCode::PAYLOAD_TOO_LARGE, "The body is larger than 1048576 bytes")]
        }
        "415" => {
            let message = "The Content-Type is neither application/json nor text/csv";
            vec![ApiError::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)]
        }
        "410" => vec![ApiError::VersionGone {
            version: "g2.184467".to_owned(),
            method: "1".to_owned(),
            program: "0.1.0".to_owned(),
        }],
        "412" => vec![ApiError::VersionNotServed],
        "429" => vec![
            ApiError::RateLimited { retry_after: 6 },
            ApiError::QuotaExceeded { current: 5_000, limit: 5_000, retry_after: 86_400 },
            ApiError::TooManyStreams { limit: 2 },
        ],
        "500" => vec![ApiError::Internal(anyhow::anyhow!("an example"))],
        "503" => vec![ApiError::Unavailable("an example".to_owned())],
        _ => vec![],
    }
}

fn limit_too_large() -> ParameterError {
    ParameterError {
        param: "limit".to_owned(),
        error: "is not a whole number from 1 to 100".to_owned(),
        allowed: Some(json!({ "minimum": 1, "maximum": 100 })),
    }
}
