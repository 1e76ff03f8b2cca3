//! Currency of a file that names none (R4): `--currency` and the constant currency of a map apply to its prices and
//! dividends alike.

use anyhow::{Context, Result};
use harness::TestApp;
use serde_json::{Value, json};

const TABLE: &str = "Date,Open,High,Low,Close,Adj Close,Volume,Dividends,Stock Splits\n\
    2023-11-09,260,261,259,260,256,1000,5.25,0.0\n2024-05-09,262,263,261,262,262,1000,5.00,0.0\n";
const PRICES: &str = "day;pence\n2024-05-08;261\n2024-05-09;262\n";
const MAP: &str =
    "kind = \"price\"\n[columns]\ndate = \"day\"\nclose = \"pence\"\n[constants]\ncurrency = \"GBX\"\n";
const SECURITIES: &str = "symbol,name,type,currency\nSAMP,Sample plc,stock,GBX\n";
const SESSIONS: &str = "date\n2024-05-09\n";

/// Price, price currency, dividend currency and trailing yield of a security.
async fn figures(app: &TestApp, symbol: &str) -> Result<[Value; 4]> {
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let mut answers = Vec::new();
    for path in ["quote", "metrics"] {
        let path = format!("/v1/stocks/{symbol}/{path}?decimals=string");
        answers.push(api.get(&path, Some(&key)).await?.json()?["data"].clone());
    }
    let [quote, metrics] = [&answers[0], &answers[1]];
    Ok([&quote["price"], &metrics["price_currency"], &metrics["currency"], &metrics["yield_ttm"]]
        .map(Clone::clone))
}

#[tokio::test]
async fn a_currency_on_the_command_line_is_that_of_prices_and_dividends() -> Result<()> {
    let app = TestApp::start().await?;
    let file = app.folder().join("LNW.csv");
    std::fs::write(&file, TABLE)?;
    let file = file.to_str().context("a path")?;
    let load = ["load", file, "--source", "x", "--currency", "GBX"];
    let summary = app.ingest(&load).await?.success()?;
    assert!(!summary.stdout.contains("currency assumed"), "{}", summary.stdout);
    app.feed("sessions.csv", SESSIONS).source("x").apply().await?;
    // 0.0525 + 0.05 GBP on 2.62 GBP.
    assert_eq!(figures(&app, "LNW").await?, ["2.62", "GBP", "GBP", "3.9122"].map(|text| json!(text)));
    // A later load without the option knows the currency.
    let again = app.ingest(&["load", file, "--source", "y", "--dry-run"]).await?.success()?;
    assert!(!again.stdout.contains("currency assumed for the prices"), "{}", again.stdout);
    Ok(())
}

#[tokio::test]
async fn prices_that_a_map_converts_are_not_converted_again() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("securities.csv", SECURITIES).source("x").load().await?;
    let path = |name: &str| app.folder().join(name).to_str().map(str::to_owned).context("a path");
    let (prices, map) = (path("SAMP.csv")?, path("pence.toml")?);
    std::fs::write(&prices, PRICES)?;
    std::fs::write(&map, MAP)?;
    app.ingest(&["load", &prices, "--source", "x", "--map", &map]).await?.success()?;
    app.feed("sessions.csv", SESSIONS).source("x").apply().await?;
    let found = figures(&app, "SAMP").await?;
    assert_eq!([&found[0], &found[1]], [&json!("2.62"), &json!("GBP")], "{found:?}");
    Ok(())
}
