//! A folder with usable and unusable files. `ingest load` loads the usable files exactly, and reports a reason for each
//! of the others.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use harness::{TestApp, fixture};
use rust_decimal::Decimal;
use serde_json::{Value, json};

/// The files that are not loaded, each with a part of the expected reason.
const REFUSED: [(&str, &str); 6] = [
    ("QDDD.US.div.json", "--symbol-from '{symbol}.US.div.json'"),
    ("QEEE.csv", "git lfs pull"),
    ("QFFF.csv", "is a throttle notice, not data: \"Exceeded the daily hits limit\""),
    ("QGGG.csv", "adjusted for dividends too: download it again unadjusted"),
    ("SEP.csv", "under a map that sets Close as raw or adjusted for splits"),
    ("prices-split-adjusted.csv", "is named adjusted, and has no column basis"),
];

async fn load(app: &TestApp) -> Result<Value> {
    let folder = fixture("feeds/collection");
    let arguments = ["load", &folder, "--source", "kept", "--today", "2024-03-15", "--json"];
    let output = app.ingest(&arguments).await?;
    ensure!(output.code == 1, "{}", output.stderr);
    output.json().with_context(|| output.stderr.clone())
}

#[tokio::test]
async fn a_folder_as_people_keep_it_is_loaded_or_says_why_not() -> Result<()> {
    let app = TestApp::start().await?;
    let loaded = load(&app).await?;
    ensure!(loaded["rows"] == json!({ "dividend": 1, "price": 5, "split": 1 }), "{loaded}");
    ensure!(loaded["symbols"]["first"] == json!(["QAAA", "QBBB", "QCCC"]), "{loaded}");
    ensure!(loaded["rejects_total"] == 0, "{loaded}");
    let files = loaded["files"].as_array().context("files")?;
    let name = |file: &Value| file["file"].as_str()?.rsplit('/').next().map(str::to_owned);
    let refused: BTreeMap<String, &str> =
        files.iter().filter_map(|file| Some((name(file)?, file["reason"].as_str()?))).collect();
    ensure!(refused.len() == REFUSED.len(), "{refused:?}");
    for (file, said) in REFUSED {
        ensure!(refused.get(file).is_some_and(|reason| reason.contains(said)), "{file}: {refused:?}");
    }
    ensure!(load(&app).await?["already_loaded"] == true);
    // Prices and dividends before the split are served as they were traded and paid.
    app.catch_up().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let prices = "/v1/prices/QAAA?start_date=2024-03-12&adjustment=raw&sort=date.asc&decimals=string";
    let served = api.get(prices, Some(&key)).await?.json()?;
    let number = |value: &Value| value.as_str().and_then(|text| text.parse::<Decimal>().ok());
    let bars = served["data"].as_array().into_iter().flatten();
    let closes: Vec<Decimal> = bars.filter_map(|bar| number(&bar["close"])).collect();
    ensure!(closes == [Decimal::new(49, 0), Decimal::new(125, 1)], "{served}");
    let paid = api.get("/v1/stocks/QAAA/dividends?decimals=string", Some(&key)).await?.json()?;
    ensure!(number(&paid["data"][0]["amount"]) == Some(Decimal::ONE), "{paid}");
    Ok(())
}
