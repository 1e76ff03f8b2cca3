//! Command `projector audit`. It reports every problem in the test data, and nothing else.

use anyhow::{Context, Result};
use harness::TestApp;
use serde_json::{Value, json};

use crate::api_world::{day, sessions};

fn security(symbol: &str) -> Value {
    let isin = ["JUMP", "GAPPY"].contains(&symbol).then_some("US1912161007");
    json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": "stock", "exchange": "XNYS", "currency": "USD",
            "isin": isin })
}

/// Prices of every weekday from 2023-06-12 to 2024-06-14. `close` returns the closing price of a date. Dates for which
/// `without` returns true have no price.
fn prices(symbol: &str, without: impl Fn(&str) -> bool, close: impl Fn(&str) -> &'static str) -> Vec<Value> {
    let days = sessions("2023-06-12").into_iter().map(|date| date.to_string());
    days.filter(|date| !without(date))
        .map(|date| json!({ "kind": "price", "symbol": symbol, "date": date, "close": close(&date), "volume": 1000 }))
        .collect()
}

fn flat(symbol: &str) -> Vec<Value> {
    [vec![security(symbol)], prices(symbol, |_| false, |_| "50")].concat()
}

/// Records of a security with a constant price. `paid` contains the ex-dates and amounts of its quarterly dividends.
fn payer(symbol: &str, currency: &str, paid: &[(&str, &str)]) -> Vec<Value> {
    let dividend = |(ex_date, amount): &(&str, &str)| {
        json!({ "kind": "dividend", "symbol": symbol, "ex_date": ex_date, "amount": amount, "currency": currency,
                "frequency": "quarterly" })
    };
    [flat(symbol), paid.iter().map(dividend).collect()].concat()
}

fn quarters(amount: &str) -> [(&'static str, &str); 4] {
    ["2023-09-14", "2023-12-14", "2024-03-14", "2024-06-13"].map(|ex_date| (ex_date, amount))
}

fn troubled() -> Vec<Value> {
    let held = [quarters("0.05")[..3].to_vec(), vec![("2023-06-15", "0.05"), ("2024-06-12", "5")]].concat();
    let gone = day("2024-05-31").to_string();
    [
        payer("HELD", "USD", &held),
        payer("HIGH", "USD", &quarters("5")),
        payer("RECEIPT", "EUR", &quarters("0.5")),
        // On the market date, the last payment is 151 days ago. One month earlier, it was 120 days ago.
        payer(
            "LAPSED",
            "USD",
            &[("2023-04-17", "0.5"), ("2023-07-17", "0.5"), ("2023-10-16", "0.5"), ("2024-01-15", "0.5")],
        ),
        payer("RESUMED", "USD", &[("2022-07-18", "0.5"), ("2022-10-17", "0.5"), ("2024-06-14", "0.5")]),
        flat("SILENT"),
        vec![json!({ "kind": "split", "symbol": "SILENT", "ex_date": "2024-03-01", "from": "1", "to": "2" })],
        vec![security("JUMP")],
        prices("JUMP", |_| false, |date| if date < "2024-03-01" { "50" } else { "25" }),
        vec![security("GAPPY")],
        prices("GAPPY", |date| ("2024-02-06"..="2024-02-08").contains(&date), |_| "50"),
        vec![security("STALE")],
        prices("STALE", |date| date > gone.as_str(), |_| "50"),
    ]
    .concat()
}

async fn load(app: &TestApp, name: &str, records: &[Value]) -> Result<()> {
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    let feed = app.folder().join(name);
    std::fs::write(&feed, lines.join("\n"))?;
    app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
    app.catch_up().await
}

/// Findings of an audit as texts: check, topic, number of findings and first symbols. For example: `held_rows split
/// split_denied: 1 SILENT`.
fn found(audit: &Value) -> Result<Vec<String>> {
    let findings = audit["findings"].as_array().context("no findings")?;
    let told = findings.iter().filter(|finding| finding["count"] != 0).map(|finding| {
        let symbols =
            finding["first"].as_array().into_iter().flatten().filter_map(|seen| seen["symbol"].as_str());
        let topic = finding["topic"].as_str().map(|topic| format!(" {topic}")).unwrap_or_default();
        let symbols: Vec<&str> = symbols.collect();
        format!(
            "{}{topic}: {} {}",
            finding["check"].as_str().unwrap_or("?"),
            finding["count"],
            symbols.join(" ")
        )
    });
    Ok(told.collect())
}

#[tokio::test]
async fn an_audit_names_what_to_look_at() -> Result<()> {
    let app = TestApp::start().await?;
    let nothing = app.projector(&["audit"]).await?;
    assert_eq!(nothing.code, 1, "no session yet: {}", nothing.stderr);

    load(&app, "calm.ndjson", &payer("CALM", "USD", &quarters("0.5"))).await?;
    let calm = app.projector(&["audit", "--json"]).await?;
    assert_eq!((calm.code, found(&calm.json()?)?), (0, vec![]));

    load(&app, "troubled.ndjson", &troubled()).await?;
    let troubled = app.projector(&["audit", "--json"]).await?;
    assert_eq!(troubled.code, 4, "{}", troubled.stderr);
    assert_eq!(
        found(&troubled.json()?)?,
        [
            "held_rows dividend amount_outlier: 1 HELD",
            "held_rows split split_denied: 1 SILENT",
            "high_yields: 1 HIGH",
            "high_forwards: 1 RESUMED",
            "currencies: 1 RECEIPT",
            "ambiguous_identifiers: 1 isin:US1912161007",
            "stale_prices: 1 STALE",
            "splits_without_move: 1 SILENT",
            "moves_without_split: 1 JUMP",
            "changed_statuses: 2 LAPSED RESUMED",
            "session_gaps: 1 GAPPY",
        ]
    );
    let page = app.projector(&["audit"]).await?;
    assert_eq!(page.code, 4);
    for line in [
        "     1  quarantined rows: dividend amount_outlier",
        "        LAPSED     active on 2024-05-14, lapsed now",
        "        isin:US1912161007 GAPPY (GAPPY), JUMP (JUMP)",
        "        GAPPY      3 sessions from 2024-02-06 to 2024-02-08",
        "no findings: messages or rows that could not be applied; payments missing in a year of growth or streak; \
         rows of one payment with two ex-dates; specials inferred in regular rows; single amounts below both neighbours; \
         securities whose adjusted closes show dividends that no row has; securities without a source of dividends; \
         lasting price moves of more than 3 times without an event; dividends before a split whose amounts probably refer \
         to the shares after it",
    ] {
        assert!(page.stdout.lines().any(|told| told == line), "{line} in {}", page.stdout);
    }
    Ok(())
}
