//! Live example of the landing page: an API response that is refreshed every minute.
//!
//! Invariant: no page waits longer than [`MAX_PAGE_WAIT`] for the example.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use market::row::Flag;
use serde_json::{Value, json};

use crate::app::App;
use crate::concurrency::refreshed::RefreshedValue;
use crate::dashboard::market::api_calls::ApiCalls;
use crate::read::memory_tables::RestrictedSecurities;

/// Maximum time for which a page waits for a refresh.
const MAX_PAGE_WAIT: Duration = Duration::from_millis(500);
/// API call for the candidates: dividend payers, largest market value first.
const PAYERS: &str = "/v1/stocks?sort=market_cap.desc&min_yield=0.01&limit=20&fields=symbol";
const FUND: &str = "/v1/etfs?limit=20&fields=symbol";
const SECTOR: &str = "/v1/sectors?limit=1&fields=sector";

/// Flags that exclude a security from the example: they mark findings of `projector audit` or uncertain metrics. Other
/// flags only explain how a figure was computed.
const FINDINGS: [Flag; 10] = [
    Flag::AmountDip,
    Flag::AmountHeld,
    Flag::CurrencyMismatch,
    Flag::LatestAmountUnusual,
    Flag::Overdue,
    Flag::PaymentGap,
    Flag::PriceJumpWithoutSplit,
    Flag::Provisional,
    Flag::SplitNotInPrice,
    Flag::YieldSuspect,
];

/// Example API call with its response, and sample values for the forms on the reference page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ApiExample {
    /// Path and query of the call.
    pub(crate) call: String,
    /// JSON body of the response, with one member per line.
    pub(crate) answer: String,
    /// Symbol of the security in the call.
    pub(crate) symbol: String,
    /// Quote and metrics of the security, in which decimals are strings.
    pub(crate) quote: Value,
    pub(crate) metrics: Value,
    /// Sample value for form fields that expect the symbol of a fund; empty without a fund.
    pub(crate) fund: String,
    /// Sample value for form fields that expect the name of a sector; empty without a sector.
    pub(crate) sector: String,
}

/// Cache of the latest example. `data` is the API router that answers the calls for a new example.
#[derive(Debug, Clone)]
pub(crate) struct ExampleCache {
    data: Router,
    app: App,
    latest: RefreshedValue<ApiExample>,
}

impl ExampleCache {
    pub(crate) fn new(app: App, data: Router) -> Self {
        Self { data, app, latest: RefreshedValue::default() }
    }

    /// Latest example; `None` before the first success.
    pub(crate) async fn latest_example(&self) -> Option<Arc<ApiExample>> {
        let example = self.clone();
        let shown = self.latest.refreshed(MAX_PAGE_WAIT, || async move { example.find().await }).await?;
        let restricted = self.restricted().await?;
        (!restricted.contains(&shown.symbol)).then_some(shown)
    }

    /// Securities that pages leave out; `None` if they cannot be read.
    async fn restricted(&self) -> Option<Arc<RestrictedSecurities>> {
        let generation = self.app.projection.pin().ok()?;
        self.app.memory_tables.restricted(&generation).await.ok()
    }

    async fn find(&self) -> Option<ApiExample> {
        let tier = self.app.settings.dashboard.pages_tier;
        let calls = ApiCalls::new(self.data.clone(), tier, self.restricted().await?);
        let symbol = find_presentable_symbol(&calls).await?;
        let call = format!("/v1/stocks/{}/quote", path_segment(&symbol));
        let answer = indented(&calls.text(&call).await.ok()?);
        let quote = calls.json(&call).await.ok()?["data"].take();
        let metrics = format!("/v1/stocks/{}/metrics", path_segment(&symbol));
        let metrics = calls.json(&metrics).await.ok()?["data"].take();
        let first = async |path: &str, name: &str| -> Option<String> {
            Some(calls.json(path).await.ok()?["data"][0][name].as_str()?.to_owned())
        };
        let fund = first(FUND, "symbol").await.unwrap_or_default();
        let sector = first(SECTOR, "sector").await.unwrap_or_default();
        Some(ApiExample { call, answer, symbol, quote, metrics, fund, sector })
    }
}

/// Finds the first candidate without findings and without quarantined rows. `calls` leaves out restricted securities.
async fn find_presentable_symbol(calls: &ApiCalls) -> Option<String> {
    let payers = calls.json(PAYERS).await.ok()?;
    for symbol in payers["data"].as_array()?.iter().filter_map(|row| row["symbol"].as_str()) {
        let call = format!("/v1/stocks/{}/metrics?fields=flags,quarantined", path_segment(symbol));
        let metrics = &calls.json(&call).await.ok()?["data"];
        let has_quarantined_rows = metrics["quarantined"] != json!([]);
        if !has_quarantined_rows && !metrics["flags"].as_array()?.iter().any(is_finding) {
            return Some(symbol.to_owned());
        }
    }
    None
}

/// True for a finding. A withdrawn record has a flag that begins with `cancelled:`.
fn is_finding(flag: &Value) -> bool {
    let flag = flag.as_str().unwrap_or_default();
    flag.starts_with("cancelled:") || flag.parse().is_ok_and(|flag| FINDINGS.contains(&flag))
}

/// Symbol as a segment of a path.
fn path_segment(symbol: &str) -> String {
    percent_encoding::utf8_percent_encode(symbol, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// Indents JSON, with one member per line. Texts and numbers are copied unchanged.
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
        if matches!(letter, '}' | ']') && !out.ends_with(['{', '[']) {
            depth = depth.saturating_sub(1);
            line(&mut out, depth);
        }
        out.push(letter);
        match letter {
            '{' | '[' if !matches!(letters.peek(), Some('}' | ']')) => {
                depth += 1;
                line(&mut out, depth);
            }
            ',' => line(&mut out, depth),
            ':' => out.push(' '),
            '"' => in_text = true,
            _ => {}
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
