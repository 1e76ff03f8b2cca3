//! A live answer for the landing page, asked through the API's own routes, at most once a minute.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt;

use crate::access::Showcase;

/// How long an answer is shown before it is asked for again.
const FRESH: Duration = Duration::from_secs(60);
/// Where a symbol that pays dividends is looked for, the best place first.
const SYMBOLS: [&str; 2] = ["/v1/screener?limit=1&fields=symbol", "/v1/stocks?limit=1&fields=symbol"];
/// An answer about one security is smaller.
const BYTES: usize = 64 * 1024;

/// A call and its answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Path and query.
    pub(crate) call: String,
    /// The body, a member a line.
    pub(crate) answer: String,
}

/// When it was asked last, and what was answered.
type Last = Option<(Instant, Option<Arc<Shown>>)>;

/// The routes of the data, and their last answer.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    data: Router,
    last: Arc<Mutex<Last>>,
}

impl Example {
    pub(crate) fn new(data: Router) -> Self {
        Self { data, last: Arc::default() }
    }

    /// A call and its answer; `None` while there is no data.
    pub(crate) async fn shown(&self) -> Option<Arc<Shown>> {
        let known = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((at, shown)) = known
            && at.elapsed() < FRESH
            && shown.is_some()
        {
            return shown;
        }
        let shown = self.ask_for_quote().await.map(Arc::new);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), shown.clone()));
        shown
    }

    async fn ask_for_quote(&self) -> Option<Shown> {
        for path in SYMBOLS {
            let found: Option<Value> = self.ask(path).await.and_then(|body| serde_json::from_str(&body).ok());
            if let Some(symbol) = found.as_ref().and_then(|found| found.pointer("/data/0/symbol")?.as_str()) {
                let symbol =
                    percent_encoding::utf8_percent_encode(symbol, percent_encoding::NON_ALPHANUMERIC);
                let call = format!("/v1/stocks/{symbol}/quote");
                let answer = self.ask(&call).await?;
                return Some(Shown { answer: indented(&answer), call });
            }
        }
        None
    }

    async fn ask(&self, path: &str) -> Option<String> {
        let mut request = Request::get(path).body(Body::empty()).ok()?;
        request.extensions_mut().insert(Showcase);
        let Ok(response) = self.data.clone().oneshot(request).await;
        let is_answered = response.status() == StatusCode::OK;
        let body = to_bytes(response.into_body(), BYTES).await.ok()?;
        is_answered.then(|| String::from_utf8_lossy(&body).into_owned())
    }
}

/// JSON with a member a line. Its texts and numbers stay as they are: none passes through a binary float.
fn indented(json: &str) -> String {
    let (mut out, mut depth, mut in_text, mut is_escaped) = (String::new(), 0usize, false, false);
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    let mut letters = json.chars().filter(|c| *c != '\n').peekable();
    while let Some(letter) = letters.next() {
        if in_text {
            in_text = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            out.push(letter);
            continue;
        }
        match letter {
            '{' | '[' if matches!(letters.peek(), Some('}' | ']')) => out.push(letter),
            '{' | '[' => {
                depth += 1;
                out.push(letter);
                line(&mut out, depth);
            }
            '}' | ']' => {
                if !out.ends_with(['{', '[']) {
                    depth = depth.saturating_sub(1);
                    line(&mut out, depth);
                }
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                in_text = true;
                out.push(letter);
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::indented;

    #[test]
    fn digits_and_texts_stay_as_they_are() {
        let json = r#"{"data":{"price":61.20,"name":"A \"{,}\": B","list":[],"pair":[1,2]}}"#;
        let expected = "{\n  \"data\": {\n    \"price\": 61.20,\n    \"name\": \"A \\\"{,}\\\": B\",\n    \"list\": [],\n    \"pair\": [\n      1,\n      2\n    ]\n  }\n}";
        assert_eq!(indented(json), expected);
    }
}
