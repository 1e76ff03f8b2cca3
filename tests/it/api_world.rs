//! Small market for tests of the API: stocks with a history, a fund with holdings, and a renamed security.
//!
//! The market date is Friday, 2024-06-14. The current date of the service is the following Monday.

use anyhow::Result;
use chrono::{Datelike, NaiveDate, Weekday};
use harness::{Api, Reply, TestApp, TestAppBuilder};
use serde_json::{Value, json};

pub(crate) const TODAY: &str = "2024-06-17";

/// Test app with the small market, its API, and one API key for each of three tiers.
pub(crate) struct World {
    pub(crate) app: TestApp,
    pub(crate) api: Api,
    pub(crate) free: String,
    pub(crate) starter: String,
    pub(crate) professional: String,
}

pub(crate) fn day(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}

/// Weekdays from this date to the market date, oldest first.
pub(crate) fn sessions(from: &str) -> Vec<NaiveDate> {
    let weekend = |day: &NaiveDate| matches!(day.weekday(), Weekday::Sat | Weekday::Sun);
    day(from)
        .iter_days()
        .take_while(|date| *date <= day("2024-06-14"))
        .filter(|date| !weekend(date))
        .collect()
}

fn records() -> Vec<Value> {
    let security = |symbol: &str, name: &str, kind: &str, sector: &str| {
        json!({ "kind": "security", "symbol": symbol, "name": name, "type": kind, "exchange": "XNYS", "currency": "USD",
                "sector": sector, "industry": "Beverages", "country": "US", "indexes": ["sp500"] })
    };
    let mut records = vec![
        security("COLA", "Cola Company", "stock", "Consumer Staples"),
        security("BRK.B", "Brook Holdings", "stock", "Financials"),
        json!({ "kind": "security", "symbol": "NEWCO", "name": "=New Company", "type": "stock", "isin": "US0000000001",
                "former_symbols": [{ "symbol": "OLDCO", "to": "2022-06-08" }] }),
        json!({ "kind": "security", "symbol": "GONE", "name": "Gone Inc", "type": "stock", "status": "delisted", "delisted_on": "2023-12-29" }),
        security("FUND", "Dividend Fund", "etf", "Funds"),
        json!({ "kind": "etf", "symbol": "FUND", "as_of": "2024-06-14", "issuer": "Issuer", "expense_ratio": "0.06", "aum": "1000000" }),
        json!({ "kind": "holding", "etf_symbol": "FUND", "as_of": "2024-06-14", "symbol": "COLA", "name": "Cola Company", "weight": "60.5" }),
        json!({ "kind": "holding", "etf_symbol": "FUND", "as_of": "2024-06-14", "symbol": "BRK.B", "name": "Brook Holdings", "weight": "39" }),
        json!({ "kind": "fundamentals", "symbol": "COLA", "as_of": "2024-03-31", "eps_ttm": "2.5", "shares_outstanding": "4000000000",
                "float_market_cap": "200000000000", "avg_daily_value": "900000000" }),
        json!({ "kind": "split", "symbol": "COLA", "ex_date": "2024-03-01", "from": "1", "to": "2" }),
    ];
    records.extend(prices());
    records.extend(dividends());
    records
}

fn prices() -> impl Iterator<Item = Value> {
    let bars = |symbol: &'static str, from: &str, split: bool| {
        sessions(from).into_iter().zip(0i64..).map(move |(date, number)| {
            let close = 5_000 + number % 97;
            let close = if split && date < day("2024-03-01") { close * 2 } else { close };
            let price = |cents: i64| format!("{}.{:02}", cents / 100, cents % 100);
            json!({ "kind": "price", "symbol": symbol, "date": date.to_string(), "open": price(close - 10), "high": price(close + 25),
                    "low": price(close - 30), "close": price(close), "volume": 1000 + number })
        })
    };
    bars("COLA", "2018-01-01", true)
        .chain(bars("BRK.B", "2024-01-01", false))
        .chain(bars("NEWCO", "2024-05-01", false))
        .chain(bars("FUND", "2024-01-01", false))
}

/// Quarterly dividends from 1994 to September 2024. The amounts, adjusted for the split, rise every year. The last
/// dividend is declared but not yet paid.
fn dividends() -> impl Iterator<Item = Value> {
    let quarters = (1994..=2024).flat_map(|year| [3, 6, 9, 12].map(move |month| (year, month)));
    quarters.filter(|quarter| *quarter <= (2024, 9)).map(|(year, month)| {
        let cents = 20 + (year - 1994) * 3;
        let factor = if (year, month) <= (2024, 2) { 2 } else { 1 };
        let declared = if (year, month) == (2024, 9) { 6 } else { month - 2 };
        json!({ "kind": "dividend", "symbol": "COLA", "id": format!("c{year}{month}"), "ex_date": format!("{year}-{month:02}-13"),
                "payment_date": format!("{year}-{month:02}-28"), "declaration_date": format!("{year}-{declared:02}-01"),
                "amount": format!("{}.{:02}", cents * factor / 100, cents * factor % 100), "frequency": "quarterly" })
    })
}

impl World {
    pub(crate) async fn start() -> Result<World> {
        World::start_with(&[]).await
    }

    pub(crate) async fn start_with(env: &[(&str, &str)]) -> Result<World> {
        World::start_in(TestApp::builder(), env).await
    }

    pub(crate) async fn start_in(builder: TestAppBuilder, env: &[(&str, &str)]) -> Result<World> {
        let app = builder.env("SERVICE_DATE", TODAY).start().await?;
        let lines: Vec<String> = records().iter().map(ToString::to_string).collect();
        let feed = app.folder().join("market.ndjson");
        std::fs::write(&feed, lines.join("\n"))?;
        app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
        app.catch_up().await?;
        let api = app.api_serve_with(env).await?;
        let (free, starter) = (app.key("free").await?, app.key("starter").await?);
        let professional = app.key("professional").await?;
        Ok(World { app, api, free, starter, professional })
    }

    /// Sends `GET path` with the key of the highest tier.
    pub(crate) async fn get(&self, path: &str) -> Result<Reply> {
        self.api.get(path, Some(&self.professional)).await
    }

    /// Sends `GET path` with the key of the highest tier. Returns the JSON of the response, which must have status 200.
    pub(crate) async fn json(&self, path: &str) -> Result<Value> {
        let reply = self.get(path).await?;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Sends `GET path` with this key. Returns the status and the JSON body of the response, even if it is an error.
    pub(crate) async fn refused(&self, path: &str, key: &str) -> Result<(u16, Value)> {
        let reply = self.api.get(path, Some(key)).await?;
        Ok((reply.status.as_u16(), reply.json()?))
    }
}

/// Checks that `actual` contains every field of the object `expected`, with the same value.
#[track_caller]
pub(crate) fn check(actual: &Value, expected: Value) {
    for (name, value) in expected.as_object().into_iter().flatten() {
        assert_eq!(actual.get(name), Some(value), "{name} in {actual}");
    }
}

/// Values of one field in all rows of a response.
pub(crate) fn column(body: &Value, name: &str) -> Vec<Value> {
    body["data"].as_array().into_iter().flatten().map(|row| row[name].clone()).collect()
}
