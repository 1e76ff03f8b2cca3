//! Exchange rates from the feed to the figures (R41 to R44): corrections, undo, rebuild, past answers and explanations.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Api, TestApp, eventually};
use serde_json::{Value, json};

use crate::generations::answer;
use crate::undo::{load, undo};

const SECURITIES: &str =
    "symbol,name,type,currency\nUSDF,Dollar fund in pence,etf,GBX\nKO,Coca-Cola,stock,USD\n";
const PRICES: &str = "symbol,date,close\nUSDF,2024-06-19,4000\nUSDF,2024-06-20,3960\nUSDF,2024-06-27,4000\n\
    KO,2024-06-19,60\nKO,2024-06-27,63\n";
const DIVIDENDS: &str = "symbol,ex_date,amount,currency,type\nUSDF,2024-06-20,0.50,USD,regular\n\
    KO,2024-06-14,0.485,USD,regular\n";
const RATES: &str = "date,base,quote,rate\n2024-06-19,GBP,USD,1.25\n2024-06-27,GBP,USD,1.27\n";

async fn market() -> Result<TestApp> {
    let app = TestApp::start().await?;
    let files = [("securities.csv", SECURITIES), ("prices.csv", PRICES), ("dividends.csv", DIVIDENDS)];
    load(&app, "market", &files.map(|(name, text)| (name, text.to_owned()))).await?;
    app.catch_up().await?;
    Ok(app)
}

async fn load_rates(app: &TestApp, name: &str, text: &str) -> Result<String> {
    let run = load(app, name, &[("fx.csv", text.to_owned())]).await?;
    app.catch_up().await?;
    Ok(run)
}

/// Waits until the API serves a trailing yield.
async fn wait_for_yield(api: &Api, key: &str, expected: &Value) -> Result<Value> {
    eventually(Duration::from_secs(60), async || {
        let served = metrics(api, key, "").await?;
        ensure!(served["yield_ttm"] == *expected, "{served}");
        Ok(served)
    })
    .await
}

async fn metrics(api: &Api, key: &str, query: &str) -> Result<Value> {
    let path = format!("/v1/stocks/USDF/metrics?decimals=string{query}");
    Ok(api.get(&path, Some(key)).await?.json()?["data"].clone())
}

fn flags(metrics: &Value) -> Vec<&str> {
    metrics["flags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn a_fund_in_pence_that_pays_dollars_has_a_yield() -> Result<()> {
    let app = market().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let unknown = metrics(&api, &key, "").await?;
    assert_eq!((&unknown["yield_ttm"], &unknown["currency"]), (&Value::Null, &json!("USD")), "{unknown}");
    assert!(flags(&unknown).contains(&"fx_missing"), "{unknown}");
    let growth = async || api.get("/v1/stocks/USDF/growth?start_date=2024-06-19", Some(&key)).await?.json();
    let missing = growth().await?;
    assert_eq!(
        (&missing["data"], &missing["meta"]["warnings"][0]["code"]),
        (&json!([]), &json!("fx_missing"))
    );
    let run = load_rates(&app, "rates", RATES).await?;
    // 0.50 / 1.25 = 0.40 pounds, and 0.40 / 40 = 1 %.
    let known = wait_for_yield(&api, &key, &json!("1")).await?;
    assert_eq!((&known["yield_ttm"], &known["dps_ttm"]), (&json!("1"), &json!("0.5")), "{known}");
    assert!(flags(&known).contains(&"converted") && !flags(&known).contains(&"fx_missing"), "{known}");
    let told = app.projector(&["explain", "USDF", "yield_ttm"]).await?.success()?.stdout;
    assert!(told.contains("0.5 USD x 0.8 (test 2024-06-19)"), "{told}");
    // The adjusted close contains the converted payment: 40 x (1 - 0.40 / 40) = 39.6.
    let path = "/v1/prices/USDF?adjustment=all&start_date=2024-06-19&end_date=2024-06-19&decimals=string";
    let history = api.get(path, Some(&key)).await?.json()?;
    assert_eq!(history["data"][0]["close"], "39.6", "{history}");

    // 250 shares, 100 pounds of dividends.
    let grown = growth().await?;
    assert_eq!(grown["data"][1]["dividends"], 100, "{grown}");

    // A corrected rate derives the fund again, and nothing else.
    let before = api.get("/v1/stocks/USDF/metrics", Some(&key)).await?.json()?;
    let version = before["meta"]["data_version"].as_str().context("a version")?.to_owned();
    let position: i64 = app.sql_value("select max(position) from control.changes").await?;
    let corrected = load_rates(&app, "rates-2", "date,base,quote,rate\n2024-06-19,GBP,USD,1.00\n").await?;
    wait_for_yield(&api, &key, &json!("1.25")).await?;
    assert_eq!(changed_after(&app, position).await?, ["USDF"]);
    let effect = answer(&app, &["audit", "--since", &corrected]).await?;
    assert_eq!((&effect["compared"], &effect["changed"]), (&json!(1), &json!(1)), "{effect}");
    // The earlier answer has the rate that was known then.
    assert_eq!(metrics(&api, &key, &format!("&data_version={version}")).await?["yield_ttm"], "1");
    // A rebuild from the facts gives the same tables.
    let fresh = answer(&app, &["rebuild"]).await?["generation"].to_string();
    let diff = answer(&app, &["diff", "--whole", "1", &fresh]).await?;
    assert_eq!(diff["identical"], true, "{diff}");

    // The undo of the correction, and of all rates.
    undo(&app, &corrected, &[]).await?;
    app.catch_up().await?;
    wait_for_yield(&api, &key, &json!("1")).await?;
    undo(&app, &run, &[]).await?;
    app.catch_up().await?;
    let undone = wait_for_yield(&api, &key, &Value::Null).await?;
    assert_eq!(undone, unknown);
    Ok(())
}

/// Symbols with changes after a position of the journal.
async fn changed_after(app: &TestApp, position: i64) -> Result<Vec<String>> {
    let rows =
        app.sql("select distinct symbol from control.changes where position > $1", &[&position]).await?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

#[tokio::test]
async fn the_history_file_of_the_central_bank_is_read_as_it_is() -> Result<()> {
    let app = market().await?;
    let file = app.folder().join("eurofxref-hist.csv");
    let text = "Date,USD,JPY,GBP,CYP,\n2024-06-27,1.0695,171.86,0.8,N/A,\n2024-06-19,1.0,169.6,0.8,N/A,\n\
        2024-06-18,1.0,169.6,x,N/A,\n";
    std::fs::write(&file, text)?;
    let path = file.to_str().context("a path")?;
    let load = ["load", path, "--source", "ecb", "--max-reject-percent", "50", "--json"];
    let summary = app.ingest(&load).await?.json()?;
    assert_eq!((&summary["rows"]["fx"], &summary["rejects_total"]), (&json!(8), &json!(1)), "{summary}");
    app.catch_up().await?;
    // 0.50 dollars = 0.50 / 1.0 x 0.8 pounds through the euro, and 0.40 / 40 = 1 %.
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    assert_eq!(metrics(&api, &key, "").await?["yield_ttm"], "1");
    let told = app.projector(&["explain", "USDF", "yield_ttm"]).await?.success()?.stdout;
    assert!(told.contains("x 0.8 (ecb 2024-06-19, through EUR)"), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_wrong_rate_is_a_reject_with_its_reason() -> Result<()> {
    let app = TestApp::start().await?;
    let file = app.folder().join("fx.csv");
    std::fs::write(
        &file,
        "date,base,quote,rate\n2024-06-19,GBX,USD,125\n2024-06-19,GBP,USD,0\n2024-06-19,GBP,GBP,1\n2024-06-19,GBP,,1\n\
         2024-06-19,GBP,USD,1.25\n",
    )?;
    let path = file.to_str().context("a path")?;
    app.ingest(&["load", path, "--source", "a", "--max-reject-percent", "100"]).await?;
    let listed = app.ingest(&["rejects"]).await?.success()?.stdout;
    for reason in ["minor_unit", "non_positive_rate", "equal_currencies", "missing_field"] {
        assert!(listed.contains(reason), "{reason}: {listed}");
    }
    Ok(())
}

/// Three companies of one sector, with market capitalisations of 100 dollars, 100 euros and 100,000 yen.
const SECTOR: [(&str, &str); 4] = [
    (
        "securities.csv",
        "symbol,name,type,currency,sector\nAA,Dollar company,stock,USD,Energy\nBB,Euro company,stock,EUR,Energy\n\
         CC,Yen company,stock,JPY,Energy\n",
    ),
    ("prices.csv", "symbol,date,close\nAA,2024-06-27,10\nBB,2024-06-27,10\nCC,2024-06-27,10000\n"),
    (
        "fundamentals.csv",
        "symbol,as_of,shares_outstanding\nAA,2024-06-26,10\nBB,2024-06-26,10\nCC,2024-06-26,10\n",
    ),
    (
        "dividends.csv",
        "symbol,ex_date,amount,currency,frequency\nAA,2024-06-14,0.1,USD,annual\nBB,2024-06-14,0.5,EUR,annual\n\
         CC,2024-06-14,500,JPY,annual\n",
    ),
];

#[tokio::test]
async fn market_capitalisations_are_added_and_compared_in_one_currency() -> Result<()> {
    let app = TestApp::start().await?;
    load(&app, "sector", &SECTOR.map(|(name, text)| (name, text.to_owned()))).await?;
    load_rates(&app, "rates", "date,base,quote,rate\n2024-06-27,EUR,USD,1.10\n").await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let sector = async || -> Result<Value> {
        Ok(api.get("/v1/sectors/energy?decimals=string", Some(&key)).await?.json()?["data"].clone())
    };
    let figures = |sector: &Value| {
        ["currency", "stock_count", "market_cap", "unconverted_count", "weighted_yield"]
            .map(|field| sector[field].clone())
    };
    // (100 x 1 % + 110 x 5 %) / 210. The company in yen has no rate.
    let expected = [json!("USD"), json!(3), json!(210), json!(1), json!("3.0952")];
    assert_eq!(figures(&sector().await?), expected);
    let screened = async |query: &str| -> Result<Vec<(String, Value)>> {
        let path = format!("/v1/screener?sort=market_cap.desc{query}");
        let page = api.get(&path, Some(&key)).await?.json()?;
        let row = |row: &Value| {
            let symbol = row["symbol"].as_str().unwrap_or_default().to_owned();
            (symbol, row["reporting_market_cap"].clone())
        };
        Ok(page["data"].as_array().context("rows")?.iter().map(row).collect())
    };
    let all = [("BB", json!(110)), ("AA", json!(100)), ("CC", Value::Null)];
    let all = all.map(|(symbol, cap)| (symbol.to_owned(), cap));
    assert_eq!(screened("").await?, all);
    assert_eq!(screened("&min_market_cap=105").await?, all[..1]);

    // A rate that arrives later counts at once.
    load_rates(&app, "yen", "date,base,quote,rate\n2024-06-27,USD,JPY,160\n").await?;
    // 100000 / 160 = 625. (100 x 1 % + 110 x 5 % + 625 x 5 %) / 835.
    let expected = [json!("USD"), json!(3), json!(835), json!(0), json!("4.521")];
    eventually(Duration::from_secs(60), async || {
        let found = figures(&sector().await?);
        ensure!(found == expected, "{found:?}");
        Ok(())
    })
    .await?;

    // A generation with another reporting currency.
    let fresh = answer(&app, &["rebuild", "--reporting-currency", "EUR"]).await?["generation"].to_string();
    app.projector(&["promote", &fresh, "--accept-diff"]).await?.success()?;
    eventually(Duration::from_secs(60), async || {
        let found = sector().await?;
        // 100 / 1.1 + 100 + 100000 / 160 / 1.1, each in whole euros.
        ensure!(found["currency"] == "EUR" && found["market_cap"] == 91 + 100 + 568, "{found}");
        Ok(())
    })
    .await
}
