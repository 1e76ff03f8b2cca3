//! Conversion of an API response to a tool result: size limit, and advice for errors.
//!
//! Invariant: numbers keep their text and are never converted to a binary float.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::tools::{ToolCall, remaining_cursor};
use crate::error::ApiError;
use crate::parameters::ParameterError;
use crate::render::envelope::UNKNOWN_SYMBOL;

/// Maximum size of a result's text in bytes, encoded as a JSON string. A whole message has at most 32 KiB: the text,
/// and 1 KiB for the JSON around it.
const MAX_TEXT_BYTES: usize = 31 * 1024;

/// Result of a tool call.
#[derive(Debug)]
pub(super) struct ToolResult {
    pub(super) text: String,
    pub(super) is_error: bool,
}

/// Envelope of an API response.
#[derive(Debug, Deserialize)]
struct ApiEnvelope<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    #[serde(borrow)]
    meta: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

/// Warning in an API response.
#[derive(Debug, Deserialize)]
struct ApiWarning<'a> {
    #[serde(borrow)]
    code: Cow<'a, str>,
}

/// Page of a tool result, with the JSON structure of an API response.
#[derive(Debug, Serialize)]
struct ResultPage<'a> {
    data: &'a [&'a RawValue],
    meta: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl ToolResult {
    /// Converts an API response to a tool result.
    pub(super) fn from_response(call: &ToolCall, status: StatusCode, body: &str) -> Self {
        if !status.is_success() {
            return Self::api_error(status, body);
        }
        let Ok(envelope) = serde_json::from_str::<ApiEnvelope<'_>>(body) else {
            return Self::unreadable();
        };
        match serde_json::from_str::<Vec<&RawValue>>(envelope.data.get()) {
            Ok(rows) if rows.is_empty() => Self::empty_list(&envelope, body),
            Ok(rows) => Self::list(call, &envelope, &rows, body).unwrap_or_else(|_| Self::unreadable()),
            Err(_) if json_string_length(body) <= MAX_TEXT_BYTES => Self::unchanged(body),
            Err(_) => Self::too_large(),
        }
    }

    /// Result with as many rows as fit into [`MAX_TEXT_BYTES`], and a cursor for the remaining rows.
    fn list(
        call: &ToolCall,
        envelope: &ApiEnvelope<'_>,
        rows: &[&RawValue],
        body: &str,
    ) -> Result<Self, serde_json::Error> {
        let rows = rows.get(call.skip..).unwrap_or_default();
        if call.skip == 0 && json_string_length(body) <= MAX_TEXT_BYTES {
            return Ok(Self::unchanged(body));
        }
        let meta = serde_json::to_string(&envelope.meta)?;
        let mut room = MAX_TEXT_BYTES.saturating_sub(json_string_length(&meta) + 256);
        let fits = |row: &&&RawValue| {
            let size = json_string_length(row.get()) + 1;
            let is_fitting = size <= room;
            room = room.saturating_sub(size);
            is_fitting
        };
        let count = rows.iter().take_while(fits).count();
        if count == 0 && !rows.is_empty() {
            return Ok(Self::too_large());
        }
        Ok(Self { text: page(call, envelope, rows, count)?, is_error: false })
    }

    /// Result for an empty list. If a symbol is unknown, the result is an error.
    fn empty_list(envelope: &ApiEnvelope<'_>, body: &str) -> Self {
        let names_something =
            |name: &str| envelope.meta.get(name).is_some_and(|value| !matches!(value.get(), "[]" | "null"));
        // Only the warning about unknown symbols counts, because quarantined rows of known symbols cause warnings too.
        let warnings = envelope.meta.get("warnings").map_or("[]", |warnings| warnings.get());
        let warnings: Vec<ApiWarning<'_>> = serde_json::from_str(warnings).unwrap_or_default();
        if names_something("missing") || warnings.iter().any(|warning| warning.code == UNKNOWN_SYMBOL) {
            let is_reason = |name: &str| matches!(name, "missing" | "warnings");
            let known: BTreeMap<_, _> = envelope.meta.iter().filter(|(name, _)| is_reason(name)).collect();
            let body = json!({ "error": "No rows: the symbols in details are unknown", "code": "UNKNOWN_SYMBOL", "details": known });
            return Self::api_error(StatusCode::NOT_FOUND, &body.to_string());
        }
        Self::unchanged(body)
    }

    fn unchanged(body: &str) -> Self {
        Self { text: body.to_owned(), is_error: false }
    }

    /// Result for an invalid argument.
    pub(super) fn invalid_argument(error: ParameterError) -> Self {
        let error = ApiError::Parameters(vec![error]);
        Self::api_error(StatusCode::BAD_REQUEST, &error.body().to_string())
    }

    /// Result for an error of the API, with advice.
    fn api_error(status: StatusCode, body: &str) -> Self {
        let mut error: Map<String, Value> = serde_json::from_str(body).unwrap_or_default();
        let what_to_do = what_to_do(error.get("code").and_then(Value::as_str), status);
        error.insert("status".to_owned(), status.as_u16().into());
        error.insert("what_to_do".to_owned(), what_to_do.into());
        Self { text: Value::Object(error).to_string(), is_error: true }
    }

    pub(super) fn too_large() -> Self {
        let error = "The call or its response exceeds the size limit of a tool";
        let what_to_do =
            "Request less: name the fields you need, or pass fewer symbols or a shorter range of days.";
        Self::error("ANSWER_TOO_LARGE", error, what_to_do)
    }

    fn unreadable() -> Self {
        Self::error("INTERNAL", "The response cannot be read", "Repeat the call in a few seconds.")
    }

    fn error(code: &str, error: &str, what_to_do: &str) -> Self {
        let error = json!({ "error": error, "code": code, "what_to_do": what_to_do });
        Self { text: error.to_string(), is_error: true }
    }
}

fn what_to_do(code: Option<&str>, status: StatusCode) -> &'static str {
    match code {
        Some("FEATURE_NOT_AVAILABLE") => {
            "The account's plan does not include this. If the error has earliest_date, ask for data from that day on. Otherwise continue without it and inform the user."
        }
        Some("RATE_LIMITED") => {
            "Wait retryAfter seconds, then ask again. One call can have several symbols, so combine calls."
        }
        Some("QUOTA_EXCEEDED") => "Make no more calls: the calls of the month are used up. Inform the user.",
        Some("INVALID_PARAMETER") => "Correct the arguments listed in errors; allowed has the valid values.",
        Some("INVALID_CURSOR") => "Ask again without cursor.",
        Some("UNKNOWN_SYMBOL") | None if status == StatusCode::NOT_FOUND => {
            "Use a symbol of nearest, or find the right symbol with the search tool."
        }
        _ => "Ask again in a few seconds.",
    }
}

/// Page with the first `count` rows. Its `meta` has the number of rows and the cursor.
fn page(
    call: &ToolCall,
    envelope: &ApiEnvelope<'_>,
    rows: &[&RawValue],
    count: usize,
) -> Result<String, serde_json::Error> {
    let is_cut = count < rows.len();
    let mut meta = envelope.meta.clone();
    let [shown, more] = [to_raw_value(&count)?, to_raw_value(&true)?];
    meta.insert("count".into(), &shown);
    let next = to_raw_value(&remaining_cursor(call.skip + count, call.cursor.as_deref()))?;
    if is_cut {
        meta.insert("has_more".into(), &more);
        meta.insert("next_cursor".into(), &next);
    }
    serde_json::to_string(&ResultPage { data: rows.get(..count).unwrap_or_default(), meta })
}

/// Size of a text as a JSON string with quotes and escapes, in bytes.
fn json_string_length(text: &str) -> usize {
    let escapes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..0x20 => 5,
        _ => 0,
    });
    text.len() + escapes.sum::<usize>() + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(skip: usize, cursor: Option<&str>) -> ToolCall {
        ToolCall { target: String::new(), body: None, cursor: cursor.map(str::to_owned), skip }
    }

    /// Body of an API response with the given number of rows. Each row has about 100 bytes.
    fn body(rows: usize) -> String {
        let row = |n: usize| format!(r#"{{"n":{n},"price":1.10,"text":"{}"}}"#, "x".repeat(80));
        let rows: Vec<String> = (0..rows).map(row).collect();
        format!(
            r#"{{"data":[{}],"meta":{{"count":{},"has_more":true,"next_cursor":"next"}}}}"#,
            rows.join(","),
            rows.len()
        )
    }

    #[test]
    fn pages_are_cut_and_go_on_where_they_were_cut() {
        let (whole, mut skip, mut seen, mut next) = (body(1_000), 0, 0, String::new());
        while seen < 1_000 {
            let answer = ToolResult::from_response(&call(skip, Some("page")), StatusCode::OK, &whole);
            assert!(
                !answer.is_error
                    && serde_json::to_string(&answer.text).is_ok_and(|text| text.len() <= MAX_TEXT_BYTES)
            );
            assert!(answer.text.contains(r#""price":1.10"#));
            let answer: Value = serde_json::from_str(&answer.text).expect("JSON");
            let rows = answer["data"].as_array().expect("rows");
            assert!(!rows.is_empty() && rows[0]["n"] == seen);
            seen += rows.len();
            next = answer["meta"]["next_cursor"].as_str().expect("a cursor").to_owned();
            skip = seen;
            assert!(seen == 1_000 || next == format!("{seen}.page"));
        }
        assert_eq!(next, "next");
    }

    #[test]
    fn small_answers_are_handed_on_byte_for_byte() {
        let small = body(3);
        assert_eq!(ToolResult::from_response(&call(0, None), StatusCode::OK, &small).text, small);
        let single = r#"{"data":{"price":1.10},"meta":{}}"#;
        assert_eq!(ToolResult::from_response(&call(0, None), StatusCode::OK, single).text, single);
    }

    #[test]
    fn what_is_too_large_or_unknown_is_an_error() {
        let single = format!(r#"{{"data":{{"text":"{}"}},"meta":{{}}}}"#, "x".repeat(MAX_TEXT_BYTES));
        assert!(
            ToolResult::from_response(&call(0, None), StatusCode::OK, &single)
                .text
                .contains("ANSWER_TOO_LARGE")
        );
        let unknown = r#"{"data":[],"meta":{"warnings":[{"code":"unknown_symbol"}]}}"#;
        let answer = ToolResult::from_response(&call(0, None), StatusCode::OK, unknown);
        assert!(answer.is_error && answer.text.contains("search tool"));
        let held = r#"{"data":[],"meta":{"warnings":[{"code":"held_rows"}]}}"#;
        assert!(!ToolResult::from_response(&call(0, None), StatusCode::OK, held).is_error);
        let none = r#"{"data":[],"meta":{"warnings":[],"missing":[]}}"#;
        assert!(!ToolResult::from_response(&call(0, None), StatusCode::OK, none).is_error);
    }
}
