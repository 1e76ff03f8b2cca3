//! Code samples of the OpenAPI document: each operation as a call of curl and of both clients.
//!
//! Examples for the OpenAPI document: one value per parameter, and one body per error.
//!
//! Invariant: the code that builds real error responses also builds the example error bodies.

use axum::http::StatusCode;
use chrono::NaiveDate;
use futures::FutureExt;
use serde_json::{Map, Value, json};

use crate::auth::Tier;
use crate::connection::{RequestId, with_request_id};
use crate::error::{ApiError, SymbolKind};
use crate::parameters::{ParameterError, RequestedSymbol};
use crate::read::memory_tables::NearSymbol;

/// Paths that need no key.
pub(crate) const WITHOUT_KEY: [&str; 2] = ["/v1/health", "/v1/status"];

/// Optional parameters without which a call would fail, or not end, as endpoint and name.
const EFFECTIVELY_REQUIRED: [(&str, &str); 3] =
    [("/v1/dividends/history", "symbols"), ("/v1/changes", "symbols"), ("/v1/changes", "follow")];

/// True if a call needs the parameter: the API requires it, or the call would fail or not end without it.
pub(crate) fn is_needed(path: &str, parameter: &Value) -> bool {
    parameter["required"] == true || EFFECTIVELY_REQUIRED.contains(&(path, name_of(parameter)))
}

fn name_of(parameter: &Value) -> &str {
    parameter["name"].as_str().unwrap_or_default()
}

/// Parameters of a sample, with their values.
type Values<'a> = [(&'a str, &'a Value)];

/// Samples of an operation, in the form of the extension `x-codeSamples`. Their parameters have the example values.
pub(super) fn code_samples(path: &str, operation: &Value) -> Value {
    let parameters = || operation["parameters"].as_array().into_iter().flatten();
    let five = json!(5);
    let (mut places, mut query) = (Vec::new(), Vec::new());
    for parameter in parameters().filter(|parameter| is_needed(path, parameter)) {
        let values = if parameter["in"] == "path" { &mut places } else { &mut query };
        values.push((name_of(parameter), &parameter["example"]));
    }
    if parameters().any(|parameter| name_of(parameter) == "limit") {
        query.push(("limit", &five));
    }
    let id = operation["operationId"].as_str().unwrap_or_default();
    let body = operation.pointer("/requestBody/content/application~1json/example");
    json!([
        { "lang": "Shell", "label": "curl", "source": curl(path, &places, &query, body) },
        { "lang": "Python", "label": "Python", "source": python(id, &places, &query, body) },
        { "lang": "TypeScript", "label": "TypeScript", "source": typescript(path, &places, &query, body) },
    ])
}

fn curl(path: &str, places: &Values<'_>, query: &Values<'_>, body: Option<&Value>) -> String {
    let mut target = path.to_owned();
    for (name, value) in places {
        target = target.replace(&format!("{{{name}}}"), &plain(value));
    }
    let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    if !pairs.is_empty() {
        target = format!("{target}?{}", pairs.join("&"));
    }
    let key = if WITHOUT_KEY.contains(&path) { "" } else { "-H \"Authorization: Bearer $DDS_API_KEY\" " };
    let data = body.map(|body| format!("-H \"Content-Type: application/json\" -d '{body}' "));
    format!("curl -s {key}{}\"$DDS_API_URL{target}\"", data.unwrap_or_default())
}

fn python(id: &str, places: &Values<'_>, query: &Values<'_>, body: Option<&Value>) -> String {
    let literal = |value: &Value| match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => spaced(other),
    };
    // Each member of the body is an argument. Its texts and numbers are equal in JSON and Python.
    let members = body.and_then(Value::as_object).into_iter().flatten();
    let named = members.map(|(name, value)| (name.as_str(), value)).chain(query.iter().copied());
    let named = named.map(|(name, value)| format!("{name}={}", literal(value)));
    let arguments: Vec<String> = places.iter().map(|(_, value)| literal(value)).chain(named).collect();
    let call = format!("client.{id}({})", arguments.join(", "));
    let body = match id {
        "changes" => format!("for change in {call}:\n        print(change.action, change.row)"),
        _ => format!("print({call}.data)"),
    };
    format!("from dds_client import Client\n\nwith Client() as client:\n    {body}\n")
}

fn typescript(path: &str, places: &Values<'_>, query: &Values<'_>, body: Option<&Value>) -> String {
    let object = |values: &Values<'_>| {
        let members: Vec<String> =
            values.iter().map(|(name, value)| format!("{name}: {}", spaced(value))).collect();
        format!("{{ {} }}", members.join(", "))
    };
    let call = if let Some(body) = body {
        format!(
            "const {{ data }} = await client.post({}, {{ body: {body} }});\nconsole.log(data);",
            json!(path)
        )
    } else if path == "/v1/changes" {
        format!(
            "for await (const change of client.changes({})) {{\n  console.log(change.change, change.row);\n}}",
            object(query)
        )
    } else {
        let parts = [("path", places), ("query", query)].into_iter().filter(|(_, values)| !values.is_empty());
        let parts: Vec<String> = parts.map(|(name, values)| format!("{name}: {}", object(values))).collect();
        let params = if parts.is_empty() {
            String::new()
        } else {
            format!(", {{ params: {{ {} }} }}", parts.join(", "))
        };
        format!("const {{ data }} = await client.get({}{params});\nconsole.log(data);", json!(path))
    };
    format!("import {{ Client }} from \"dds-client\";\n\nconst client = new Client();\n{call}\n")
}

/// JSON with a space after each comma of a list.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Converts a JSON value to the text of a query parameter. A string is written without quotes, and an array becomes a
/// comma-separated list.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

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
        let body = with_request_id(id, async { error.body() }).now_or_never().unwrap_or_default();
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
    let allowed = json!({ "minimum": 1, "maximum": 100 });
    ParameterError::new("limit", "is not a whole number from 1 to 100", Some(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_parameters_that_the_call_needs() {
        let operation = json!({ "operationId": "prices_by_symbol", "parameters": [
            { "name": "symbol", "in": "path", "required": true, "example": "SPY" },
            { "name": "q", "in": "query", "required": true, "example": ["A", "B"] },
            { "name": "limit", "in": "query", "required": false, "example": 100 },
            { "name": "range", "in": "query", "required": false, "example": "5d" },
        ]});
        let samples = code_samples("/v1/prices/{symbol}", &operation);
        let source = |index: usize| samples[index]["source"].as_str().expect("a source").to_owned();
        assert!(source(0).ends_with("\"$DDS_API_URL/v1/prices/SPY?q=A,B&limit=5\""), "{}", source(0));
        let python = "print(client.prices_by_symbol(\"SPY\", q=[\"A\", \"B\"], limit=5).data)";
        assert!(source(1).contains(python), "{}", source(1));
        let params = "{ params: { path: { symbol: \"SPY\" }, query: { q: [\"A\", \"B\"], limit: 5 } } }";
        assert!(source(2).contains(params), "{}", source(2));
    }
}
