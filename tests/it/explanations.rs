//! Tests of explanations: every metric lists the observations from which it was computed. Another test checks that
//! quarantined rows are reported until a correction arrives.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::{Datelike, NaiveDate, Weekday};
use harness::{Api, Program, TestApp, eventually};
use serde_json::{Value, json};

const TODAY: &str = "2024-12-31";
const PATIENCE: Duration = Duration::from_secs(120);
/// Fields in the answer of the metrics endpoint that have no explanation, because they are not figures.
const NOT_FIGURES: [&str; 8] = [
    "symbol",
    "currency",
    "price_currency",
    "as_of",
    "flags",
    "quarantined",
    "method_version",
    "explanation",
];

struct Told {
    app: TestApp,
    api: Api,
    key: String,
}

impl Told {
    async fn start(records: &[Value]) -> Result<Self> {
        let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
        load(&app, "first", records).await?;
        let (api, key) = (app.api_serve().await?, app.key("professional").await?);
        Ok(Self { app, api, key })
    }

    /// Loads more records and waits until the API serves them. Until then, the API may return cached answers.
    async fn load(&self, name: &str, records: &[Value]) -> Result<()> {
        load(&self.app, name, records).await?;
        let loaded: i64 = self.app.sql_value("select sequence from read_g1.version").await?;
        eventually(PATIENCE, async || {
            let health = self.api.get("/v1/health", None).await?.json()?;
            let served = &health["data"]["components"]["projection"]["data_version"];
            ensure!(*served == format!("g1.{loaded}"), "{served} is served, {loaded} is there");
            Ok(())
        })
        .await
    }

    async fn json(&self, path: &str) -> Result<Value> {
        let reply = self.api.get(path, Some(&self.key)).await?;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    async fn metrics(&self, symbol: &str, more: &str) -> Result<Value> {
        let path = format!("/v1/stocks/{symbol}/metrics?decimals=string{more}");
        Ok(self.json(&path).await?["data"].clone())
    }

    /// Returns what four endpoints report about the quarantined rows of the symbol HELD. For three of them, this is the
    /// code and the count in the first warning. For the list of stocks, it is the field `held_rows`.
    async fn warned(&self) -> Result<Vec<Value>> {
        let mut told = Vec::new();
        for path in ["stocks/HELD/metrics?", "stocks/HELD/dividends?", "dividends/history?symbols=HELD"] {
            let warnings = self.json(&format!("/v1/{path}")).await?["meta"]["warnings"].clone();
            let first = warnings[0]["message"].as_str().and_then(|message| message.split(' ').next());
            told.push(json!([warnings[0]["code"], first]));
        }
        told.push(self.json("/v1/stocks?symbols=HELD").await?["data"][0]["held_rows"].clone());
        Ok(told)
    }

    /// Returns the symbol, kind and reason of each quarantined row.
    async fn held(&self) -> Result<Vec<(String, String, String)>> {
        let rows =
            self.app.sql("select symbol, kind, reason from read_g1.quarantine order by 1, 2, 3", &[]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
    }
}

async fn load(app: &TestApp, name: &str, records: &[Value]) -> Result<()> {
    let text: String = records.iter().map(|record| format!("{record}\n")).collect();
    app.feed(&format!("{name}.ndjson"), text).source("vendor").today(TODAY).apply().await
}

/// Returns a close for every weekday of seven years. The closes rise slowly. For the symbol TOLD, all closes before its
/// split on 2022-06-10 are doubled.
fn prices(symbol: &str) -> Vec<Value> {
    let first: NaiveDate = "2018-01-02".parse().expect("a date");
    let until: NaiveDate = TODAY.parse().expect("a date");
    let days = first.iter_days().take_while(|day| *day <= until);
    let days = days.filter(|day| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun)).zip(0i64..);
    let close = |day: NaiveDate, number: i64| {
        let cents = 4_000 + number + (number * 7) % 90;
        if day < NaiveDate::from_ymd_opt(2022, 6, 10).expect("a date") && symbol == "TOLD" {
            2 * cents
        } else {
            cents
        }
    };
    let price = |(day, number): (NaiveDate, i64)| {
        let cents = close(day, number);
        json!({ "kind": "price", "symbol": symbol, "date": day, "close": format!("{}.{:02}", cents / 100, cents % 100) })
    };
    days.map(price).collect()
}

fn market() -> Vec<Value> {
    let mut records = vec![
        json!({ "kind": "security", "symbol": "TOLD", "name": "Told Inc", "type": "stock", "sector": "Industrials", "indexes": ["sp500"] }),
        json!({ "kind": "security", "symbol": "SPY", "name": "Index fund", "type": "etf" }),
        json!({ "kind": "split", "symbol": "TOLD", "id": "s1", "ex_date": "2022-06-10", "from": "1", "to": "2" }),
        json!({ "kind": "fundamentals", "symbol": "TOLD", "as_of": "2024-09-30", "eps_ttm": "2", "shares_outstanding": "1000",
                "dividends_paid_ttm": "1000", "operating_cash_flow_ttm": "3000", "capital_expenditure_ttm": "1000",
                "float_market_cap": "4000000000", "avg_daily_value": "6000000" }),
    ];
    for (year, month) in (2018..=2024).flat_map(|year| [2, 5, 8, 11].map(|month| (year, month))) {
        let cents = (if (year, month) < (2022, 6) { 2 } else { 1 }) * (20 + year - 2018);
        records.push(json!({
            "kind": "dividend", "symbol": "TOLD", "id": format!("d{year}-{month}"), "ex_date": format!("{year}-{month:02}-09"),
            "amount": format!("{}.{:02}", cents / 100, cents % 100), "revision": 1,
        }));
    }
    records.push(json!({ "kind": "dividend", "symbol": "TOLD", "id": "cut", "ex_date": "2019-12-20", "amount": "0.01", "type": "special" }));
    records.extend(prices("TOLD"));
    records.extend(prices("SPY"));
    records
}

#[tokio::test]
async fn the_command_explains_a_streak_on_one_screen() -> Result<()> {
    let app = TestApp::builder().env("SERVICE_DATE", TODAY).env("COLUMNS", "80").start().await?;
    load(&app, "first", &market()).await?;
    let explain = ["explain", "TOLD", "increase_streak_years"];
    let screen = app.run(Program::Projector, &explain, &[]).await?.success()?.stdout;
    assert!(screen.lines().count() <= 24, "{screen}");
    for said in [
        "    2024* 1.04      +4 %   2021* 0.92   +4.55 %   2018   0.8",
        "    * counted; not counted: 2018 first",
        " more rows of vendor (used)",
    ] {
        assert!(screen.contains(said), "{said}\n{screen}");
    }
    let all =
        app.run(Program::Projector, &[explain.as_slice(), &["--all"]].concat(), &[]).await?.success()?;
    let rows = all.stdout.lines().filter(|line| line.starts_with("    dividend ")).count();
    assert_eq!(rows, 28, "{}", all.stdout);
    Ok(())
}

#[tokio::test]
async fn every_metric_is_explained_with_its_observations() -> Result<()> {
    let told = Told::start(&market()).await?;
    let metrics = told.metrics("TOLD", "&explain=true").await?;
    let explanation = &metrics["explanation"];
    assert_eq!(explanation["method_version"], metrics["method_version"]);
    let entries = explanation["metrics"].as_array().context("no entries")?;
    let figures: Vec<&String> = metrics.as_object().context("no metrics")?.keys().collect();
    let figures: BTreeSet<&str> =
        figures.into_iter().map(String::as_str).filter(|name| !NOT_FIGURES.contains(name)).collect();
    let explained: BTreeSet<&str> = entries.iter().filter_map(|entry| entry["metric"].as_str()).collect();
    assert_eq!(explained, figures);
    assert_eq!(entries.len(), figures.len());
    for entry in entries {
        let name = entry["metric"].as_str().context("no name")?;
        let served = match &metrics[name] {
            Value::String(text) => json!(text),
            Value::Null => Value::Null,
            other => json!(other.to_string()),
        };
        // In objects and lists, the explanation has decimals as numbers, and the metrics have decimals as text. These
        // values are not compared.
        if !metrics[name].is_object() && !metrics[name].is_array() {
            assert_eq!(entry["value"], served, "{name}");
        }
        for member in ["rule", "formula", "rounding"] {
            assert!(entry[member].as_str().is_some_and(|text| !text.is_empty()), "{name}: {member}");
        }
        let observations = entry["observations"].as_array().context("no observations")?;
        let is_figure = served.as_str().is_some_and(|text| text.parse::<f64>().is_ok());
        let derived_from_rows = name != "cuts_10y" && is_figure;
        assert!(
            !derived_from_rows || !observations.is_empty(),
            "{name} = {served} rests on nothing: {entry}"
        );
        for observation in observations {
            let named = |member: &str| observation[member].as_str().is_some_and(|text| !text.is_empty());
            assert!(
                named("kind") && named("source") && observation["revision"].is_i64(),
                "{name}: {observation}"
            );
            let is_dividend = observation["kind"] == "dividend";
            let complete = named("id")
                && named("date")
                && observation["amount"].is_string()
                && observation["revision"] == 1;
            assert!(!is_dividend || complete || observation["id"] == "cut", "{name}: {observation}");
        }
    }
    let formula = |name: &str| {
        let entry = entries.iter().find(|entry| entry["metric"] == name);
        entry.and_then(|entry| entry["formula"].as_str()).unwrap_or_default().to_owned()
    };
    assert!(
        formula("dps_ttm").ends_with(
            "0.26 (2024-02-09) + 0.26 (2024-05-09) + 0.26 (2024-08-09) + 0.26 (2024-11-09) = 1.04 USD"
        ),
        "{}",
        formula("dps_ttm")
    );
    assert!(formula("dps_forward").contains("0.26 (2024-11-09) x 4"), "{}", formula("dps_forward"));
    let price = metrics["price"].as_str().context("no price")?;
    let day = metrics["price_date"].as_str().context("no session")?;
    let (trailing, headline) = (&metrics["yield_ttm"], &metrics["dividend_yield"]);
    let (trailing, headline) = (trailing.as_str().context("a yield")?, headline.as_str().context("a yield")?);
    let expected = format!("dividends of 12 months 1.04 / close {price} of {day} x 100 = {trailing} %");
    assert_eq!(formula("yield_ttm"), expected);
    let expected = format!("forward dividend 1.04 / close {price} of {day} x 100 = {headline} %");
    assert_eq!(formula("dividend_yield"), expected);
    assert!(
        formula("growth_5y").contains("(1 in 2023 / 0.8 in 2018) ^ (1/5) - 1, x 100 = "),
        "{}",
        formula("growth_5y")
    );
    assert_eq!(formula("payout_ratio"), "dividends of 12 months 1.04 / eps 2 x 100 = 52 %");
    let beta: f64 = metrics["beta_5y"].as_str().context("no beta")?.parse()?;
    assert!((0.9..1.1).contains(&beta), "the security moves with the benchmark, but its beta is {beta}");
    let base = entries.iter().find(|entry| entry["metric"] == "growth_5y").context("no growth")?;
    let kinds: Vec<&str> =
        base["observations"].as_array().into_iter().flatten().filter_map(|o| o["kind"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "dividend").count(), 8);
    assert!(kinds.contains(&"split"), "{base}");
    Ok(())
}

#[tokio::test]
async fn the_explanation_of_a_past_day_knows_no_later_row() -> Result<()> {
    let told = Told::start(&market()).await?;
    let metrics = told.metrics("TOLD", "&explain=true&as_of=2022-03-01").await?;
    let entries = metrics["explanation"]["metrics"].as_array().context("no entries")?.clone();
    let dates =
        entries.iter().flat_map(|entry| entry["observations"].as_array().cloned().unwrap_or_default());
    let late = dates.filter(|o| {
        o["kind"] != "fundamentals" && o["date"].as_str().is_some_and(|date| date > "2022-03-01")
    });
    let late: Vec<Value> = late.collect();
    assert_eq!(late, Vec::<Value>::new());
    assert_eq!(metrics["explanation"]["as_of"], "2022-03-01");
    Ok(())
}

#[tokio::test]
async fn held_rows_are_shown_until_a_correction_arrives() -> Result<()> {
    let paid = |id: &str, day: &str, amount: &str, kind: &str, revision: i64| {
        json!({ "kind": "dividend", "symbol": "HELD", "id": id, "ex_date": day, "amount": amount, "type": kind, "revision": revision,
                "frequency": if kind == "regular" { Some("quarterly") } else { None } })
    };
    let close =
        |day: &str, close: &str| json!({ "kind": "price", "symbol": "HELD", "date": day, "close": close });
    let mut records: Vec<Value> = ["2023-12-07", "2024-03-07", "2024-06-06", "2024-09-05"]
        .iter()
        .map(|day| paid(day, day, "0.05", "regular", 0))
        .collect();
    records.push(paid("pence", "2024-12-05", "5", "regular", 0));
    records.push(paid("all", "2024-12-20", "12", "special", 0));
    records.extend([
        close("2024-12-04", "10"),
        close("2024-12-27", "10"),
        close("2024-12-30", "1001"),
        close("2024-12-31", "10.2"),
    ]);
    let told = Told::start(&records).await?;

    let metrics = told.metrics("HELD", "").await?;
    let reasons: Vec<&str> = metrics["quarantined"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["reason"].as_str())
        .collect();
    assert_eq!(reasons, ["amount_outlier", "amount_exceeds_price", "price_unit_error"]);
    let warned = told.warned().await?;
    assert_eq!(json!(warned), json!([["held_rows", "3"], ["held_rows", "2"], ["held_rows", "2"], 3]));
    let row = &metrics["quarantined"][0];
    assert_eq!(
        (&row["id"], &row["date"], &row["source"], &row["line"]),
        (&json!("pence"), &json!("2024-12-05"), &json!("vendor"), &json!(5))
    );
    assert!(
        row["message"]
            .as_str()
            .is_some_and(|message| message.contains("differs from the usual 0.05 by a power of ten")),
        "{row}"
    );
    assert_eq!(
        (&metrics["dps_ttm"], &metrics["dps_forward"], &metrics["dps_ttm_total"]),
        (&json!("0.15"), &json!("0.2"), &json!("0.15"))
    );
    assert!(
        metrics["flags"].as_array().is_some_and(|flags| flags.contains(&json!("factor_skipped"))),
        "{metrics}"
    );
    let held = |kind: &str, reason: &str| ("HELD".to_owned(), kind.to_owned(), reason.to_owned());
    assert_eq!(
        told.held().await?,
        [
            held("dividend", "amount_exceeds_price"),
            held("dividend", "amount_outlier"),
            held("price", "price_unit_error")
        ]
    );
    let explained = told.metrics("HELD", "&explain=true").await?;
    let unused = explained["explanation"]["unused"].as_array().context("no unused rows")?.clone();
    assert!(
        unused.iter().any(|row| row["id"] == "pence" && row["outcome"] == "amount_outlier"),
        "{unused:?}"
    );

    told.load("correction", &[
        paid("pence", "2024-12-05", "0.06", "regular", 1),
        paid("all", "2024-12-20", "0.12", "special", 1),
        json!({ "kind": "price", "symbol": "HELD", "date": "2024-12-30", "close": "10.01", "revision": 1 }),
    ])
    .await?;
    let metrics = told.metrics("HELD", "").await?;
    assert_eq!(metrics["quarantined"], json!([]));
    assert_eq!(json!(told.warned().await?), json!([[null, null], [null, null], [null, null], 0]));
    assert_eq!(told.held().await?, []);
    assert_eq!(
        (&metrics["dps_ttm"], &metrics["dps_forward"], &metrics["dps_ttm_total"]),
        (&json!("0.21"), &json!("0.24"), &json!("0.33"))
    );
    assert!(
        !metrics["flags"].as_array().is_some_and(|flags| flags.contains(&json!("factor_skipped"))),
        "{metrics}"
    );
    Ok(())
}
