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

    // A corrected rate derives the fund again, and nothing else.
    let before = api.get("/v1/stocks/USDF/metrics", Some(&key)).await?.json()?;
    let version = before["meta"]["data_version"].as_str().context("a version")?.to_owned();
    let position: i64 = app.sql_value("select max(position) from control.changes").await?;
    let corrected = load_rates(&app, "rates-2", "date,base,quote,rate\n2024-06-19,GBP,USD,1.00\n").await?;
    wait_for_yield(&api, &key, &json!("1.25")).await?;
    assert_eq!(changed_after(&app, position).await?, ["USDF"]);
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
