//! Domain rules for lists of securities: screens, calendars, sectors, renames and stale prices. Each test loads a feed
//! and checks the lists of the API.
//!
//! The market date is Friday, 2025-01-10. The exchange was closed on Thursday the 9th.

use anyhow::Result;
use harness::{Api, TestApp};
use serde_json::{Value, json};

const TODAY: &str = "2025-01-10";

struct Lists {
    _app: TestApp,
    api: Api,
    key: String,
}

impl Lists {
    async fn start(records: &[Value]) -> Result<Self> {
        let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
        let session = json!({ "kind": "session", "date": TODAY });
        let lines: String = records.iter().chain([&session]).map(|record| format!("{record}\n")).collect();
        app.feed("feed.ndjson", lines).source("vendor").today(TODAY).apply().await?;
        let (api, key) = (app.api_serve().await?, app.key("professional").await?);
        Ok(Self { _app: app, api, key })
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let reply = self.api.get(path, Some(&self.key)).await?;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    /// Returns one text for each row: the fields `names`, separated by spaces.
    async fn column(&self, path: &str, names: &[&str]) -> Result<Vec<String>> {
        let body = self.get(path).await?;
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let row = |row: &Value| names.iter().map(|name| text(&row[*name])).collect::<Vec<_>>().join(" ");
        Ok(body["data"].as_array().into_iter().flatten().map(row).collect())
    }
}

/// A security with one annual dividend and one close of 100, so `amount` is also its yield in percent.
struct Payer {
    symbol: &'static str,
    kind: &'static str,
    amount: &'static str,
    ex_date: &'static str,
    priced_on: &'static str,
    more: Value,
}

impl Payer {
    fn of(symbol: &'static str, amount: &'static str) -> Self {
        let (ex_date, priced_on) = ("2024-06-14", TODAY);
        Self { symbol, kind: "stock", amount, ex_date, priced_on, more: json!({}) }
    }

    fn records(&self) -> Vec<Value> {
        let symbol = self.symbol;
        let mut security = json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": self.kind, "sector": "Energy" });
        for (name, value) in self.more.as_object().into_iter().flatten() {
            security[name] = value.clone();
        }
        let currency = security["paid_in"].as_str().unwrap_or("USD").to_owned();
        let shares = security["shares"].clone();
        security
            .as_object_mut()
            .expect("an object")
            .retain(|name, _| !["paid_in", "shares"].contains(&name.as_str()));
        let mut records = vec![
            security,
            json!({ "kind": "price", "symbol": symbol, "date": self.priced_on, "close": "100" }),
        ];
        if self.amount != "0" {
            records.push(
                json!({ "kind": "dividend", "symbol": symbol, "ex_date": self.ex_date, "amount": self.amount,
                                 "frequency": "annual", "currency": currency }),
            );
        }
        if !shares.is_null() {
            records.push(json!({ "kind": "fundamentals", "symbol": symbol, "as_of": "2024-12-31", "shares_outstanding": shares }));
        }
        records
    }
}

fn feed(payers: &[Payer]) -> Vec<Value> {
    payers.iter().flat_map(Payer::records).collect()
}

#[tokio::test]
async fn the_high_yield_screen_takes_both_bounds_and_nothing_doubtful() -> Result<()> {
    let payers = [
        Payer::of("GOOD", "6"),
        Payer::of("FOUR", "4"),
        Payer::of("BELOW", "3.9999"),
        Payer::of("MOST", "25"),
        Payer::of("SUSPECT", "25.0001"),
        // The 9th was not a session. The last price of FIVE is therefore five sessions old, and that of SIX six
        // sessions.
        Payer { priced_on: "2025-01-02", ..Payer::of("FIVE", "5") },
        Payer { priced_on: "2024-12-31", ..Payer::of("SIX", "5") },
        Payer { kind: "etf", ..Payer::of("FUND", "6") },
        Payer { ex_date: "2023-06-14", ..Payer::of("LAPSED", "6") },
        Payer {
            more: json!({ "status": "delisted", "delisted_on": "2025-01-08" }),
            ..Payer::of("GONE", "6")
        },
        Payer { more: json!({ "dividend_suspended_on": "2024-09-02" }), ..Payer::of("PAUSED", "6") },
        Payer { more: json!({ "paid_in": "EUR" }), ..Payer::of("FOREIGN", "6") },
    ];
    let lists = Lists::start(&feed(&payers)).await?;
    let found = lists.column("/v1/screener/high-yield", &["symbol", "dividend_yield"]).await?;
    assert_eq!(found, ["MOST 25", "GOOD 6", "FIVE 5", "FOUR 4"]);
    let lower = lists.column("/v1/screener/high-yield?min_yield=3.9999", &["symbol"]).await?;
    assert_eq!(lower.last().map(String::as_str), Some("BELOW"));
    let latest = lists.get("/v1/prices/FIVE/latest").await?;
    assert_eq!((&latest["data"]["age_sessions"], &latest["data"]["date"]), (&json!(5), &json!("2025-01-02")));
    let suspect = lists.get("/v1/stocks/SUSPECT/metrics").await?;
    assert!(
        suspect["data"]["flags"].as_array().is_some_and(|flags| flags.contains(&json!("yield_suspect"))),
        "{suspect}"
    );
    Ok(())
}

#[tokio::test]
async fn a_sector_weighs_all_its_members_and_averages_its_payers() -> Result<()> {
    let shares = |symbol, amount, shares: &str| Payer {
        more: json!({ "shares": shares }),
        ..Payer::of(symbol, amount)
    };
    let payers = [
        shares("TWO", "2", "500000"),
        shares("THREE", "3", "400000"),
        shares("FOUR", "4", "300000"),
        shares("FIVE", "5", "320000"),
        shares("NONE", "0", "980000"),
        shares("SUSPECT", "30", "900000"),
        Payer { kind: "etf", ..shares("FUND", "9", "900000") },
        Payer {
            more: json!({ "status": "delisted", "delisted_on": "2025-01-08", "shares": "900000" }),
            ..Payer::of("GONE", "9")
        },
    ];
    let lists = Lists::start(&feed(&payers)).await?;
    let sector = lists.get("/v1/sectors/ENERGY").await?["data"].clone();
    let expected = json!({
        "stock_count": 5, "payer_count": 4, "etf_count": 1, "market_cap": 250_000_000, "avg_yield": 3.5, "median_yield": 3.5,
        "weighted_yield": 2, "max_yield": 5, "as_of": TODAY,
    });
    for (name, value) in expected.as_object().into_iter().flatten() {
        assert_eq!(sector[name], *value, "{name} in {sector}");
    }
    let payers: Vec<&str> = sector["top_payers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["symbol"].as_str())
        .collect();
    assert_eq!(payers, ["FIVE", "FOUR", "THREE", "TWO"]);
    Ok(())
}

#[tokio::test]
async fn calendars_include_both_ends_and_declared_events_only() -> Result<()> {
    let paid = |symbol: &str, ex_date: &str, payment_date: Option<&str>, amount: &str, kind: &str| {
        json!({ "kind": "dividend", "symbol": symbol, "id": format!("{symbol}-{ex_date}-{kind}"), "ex_date": ex_date,
                "payment_date": payment_date, "amount": amount, "type": kind, "declaration_date": "2025-01-02" })
    };
    let mut records = feed(&[Payer::of("B", "0"), Payer::of("A", "0"), Payer::of("C", "0")]);
    records.extend(
        Payer {
            more: json!({ "status": "delisted", "delisted_on": "2025-01-08" }),
            ..Payer::of("GONE", "0")
        }
        .records(),
    );
    records.extend([
        paid("B", TODAY, Some("2025-02-09"), "0.5", "regular"),
        paid("A", "2025-01-17", Some("2025-02-10"), "0.5", "regular"),
        paid("A", "2025-01-17", Some(TODAY), "1", "special"),
        paid("C", "2025-01-17", None, "0.25", "regular"),
        paid("C", "2025-01-18", Some("2025-01-31"), "0.4999", "special"),
        paid("B", "2025-01-15", Some("2025-01-20"), "0.1", "special"),
        paid("GONE", "2025-01-15", Some("2025-01-20"), "0.1", "regular"),
        json!({ "kind": "dividend", "symbol": "B", "id": "B-2025-01-15-special", "ex_date": "2025-01-15", "amount": "0.1", "type": "special",
                "action": "retract", "revision": 1 }),
    ]);
    let lists = Lists::start(&records).await?;
    let row = ["event_date", "symbol", "type"];
    assert_eq!(
        lists.column("/v1/dividends/ex-dates", &row).await?,
        ["2025-01-10 B regular", "2025-01-17 A regular", "2025-01-17 A special", "2025-01-17 C regular"]
    );
    assert_eq!(
        lists.column("/v1/dividends/payment-dates", &row).await?,
        ["2025-01-10 A special", "2025-01-31 C special", "2025-02-09 B regular"]
    );
    assert_eq!(
        lists.column("/v1/dividends/calendar", &row).await?,
        lists.column("/v1/dividends/payment-dates", &row).await?
    );
    assert_eq!(
        lists.column("/v1/dividends/payment-dates?min_amount=0.5", &row).await?,
        ["2025-01-10 A special", "2025-02-09 B regular"]
    );
    assert_eq!(
        lists.column("/v1/dividends/ex-dates?start_date=2025-01-18&end_date=2025-01-18", &row).await?,
        ["2025-01-18 C special"]
    );
    Ok(())
}

#[tokio::test]
async fn a_renamed_company_keeps_its_history_and_a_reused_ticker_does_not_join_it() -> Result<()> {
    let close = |symbol: &str, date: &str, close: &str| json!({ "kind": "price", "symbol": symbol, "date": date, "close": close });
    let records = [
        json!({ "kind": "security", "symbol": "META", "name": "Meta", "type": "stock",
                "former_symbols": [{ "symbol": "FB", "from": "2012-05-18", "to": "2022-06-08" }] }),
        json!({ "kind": "security", "symbol": "METV", "name": "Ball Metaverse ETF", "type": "etf",
                "former_symbols": [{ "symbol": "META", "from": "2021-06-30", "to": "2022-01-30" }] }),
        close("FB", "2022-06-08", "196.64"),
        close("META", "2022-06-09", "184"),
        close("META", "2021-07-01", "15"),
        close("METV", "2025-01-10", "14"),
        json!({ "kind": "dividend", "symbol": "META", "ex_date": "2024-12-16", "amount": "0.5", "payment_date": "2024-12-27" }),
        json!({ "kind": "security", "symbol": "OLD", "name": "Old Inc", "type": "stock", "status": "delisted", "delisted_on": "2023-12-29" }),
        close("OLD", "2023-12-29", "7"),
    ];
    let lists = Lists::start(&records).await?;
    for symbol in ["FB", "META"] {
        let closes = lists.column(&format!("/v1/prices/{symbol}?sort=date.asc"), &["date", "close"]).await?;
        assert_eq!(closes, ["2022-06-08 196.64", "2022-06-09 184"], "{symbol}");
    }
    assert_eq!(
        lists.column("/v1/prices/METV?sort=date.asc", &["date", "close"]).await?,
        ["2021-07-01 15", "2025-01-10 14"]
    );
    assert_eq!(lists.get("/v1/stocks/FB/quote").await?["data"]["symbol"], "META");
    assert_eq!(lists.column("/v1/stocks/FB/dividends", &["symbol", "ex_date"]).await?, ["META 2024-12-16"]);
    let old = lists.get("/v1/stocks/OLD").await?["data"].clone();
    assert_eq!(
        (&old["is_active"], &old["delisted_on"], &old["price"]),
        (&json!(false), &json!("2023-12-29"), &json!(7))
    );
    assert_eq!(lists.column("/v1/stocks", &["symbol"]).await?, ["META", "METV"]);
    let unknown = lists.api.get("/v1/stocks/NEVER", Some(&lists.key)).await?;
    assert_eq!(unknown.status, 404);
    Ok(())
}
