//! Figures that vendors publish, compared with the figures that the service derives from the same data.

use std::path::Path;

use anyhow::{Context, Result};
use chrono::DateTime;
use harness::samples;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::Vendors;

fn read(path: &Path) -> Result<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

/// Returns a number from a vendor's JSON. The vendor writes a number either directly or as the member `raw` of an
/// object.
fn number(value: &Value) -> Option<Decimal> {
    let value = value.get("raw").unwrap_or(value);
    value.as_number().and_then(|number| number.to_string().parse().ok())
}

/// Searches a vendor's JSON, at any depth, for an object with a member `name`.
fn holding<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    match value {
        Value::Object(members) if members.contains_key(name) => Some(value),
        Value::Object(members) => members.values().find_map(|member| holding(member, name)),
        Value::Array(items) => items.iter().find_map(|item| holding(item, name)),
        _ => None,
    }
}

fn day(seconds: &Value) -> Result<String> {
    let instant = DateTime::from_timestamp(seconds.as_i64().context("no time")?, 0).context("no instant")?;
    Ok(instant.date_naive().to_string())
}

async fn load(vendors: &mut Vendors, records: &[Value]) -> Result<()> {
    let feed = vendors.app.folder().join("figures.ndjson");
    std::fs::write(&feed, records.iter().map(|record| format!("{record}\n")).collect::<String>())?;
    vendors.load(&feed, None).await?;
    vendors.serve().await
}

/// Yahoo publishes split-adjusted dividends. Fails if the service does not convert them back to the amounts that Apple
/// declared.
#[tokio::test]
async fn apples_declared_dividends_come_back_from_adjusted_ones() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    let answer = read(&samples.join("yahoo-scheb/dividendData.json"))?["chart"]["result"][0].clone();
    let splits = read(&samples.join("yahoo-scheb/splitData.json"))?["chart"]["result"][0].clone();
    let (today, price) =
        (day(&answer["meta"]["regularMarketTime"])?, number(&answer["meta"]["regularMarketPrice"]));
    let mut records = vec![json!({ "kind": "price", "symbol": "AAPL", "date": today, "close": price })];
    for paid in answer["events"]["dividends"].as_object().context("no dividends")?.values() {
        records.push(json!({ "kind": "dividend", "symbol": "AAPL", "ex_date": day(&paid["date"])?, "amount": number(&paid["amount"]),
                             "amount_basis": "split_adjusted", "basis_as_of": today }));
    }
    for split in splits["events"]["splits"].as_object().context("no splits")?.values() {
        records.push(json!({ "kind": "split", "symbol": "AAPL", "ex_date": day(&split["date"])?,
                             "from": number(&split["denominator"]), "to": number(&split["numerator"]) }));
    }
    let mut vendors = Vendors::start().await?;
    load(&mut vendors, &records).await?;
    let rows = vendors.get("/v1/stocks/AAPL/dividends?limit=100&sort=ex_date.asc&decimals=string").await?;
    let amounts: Vec<(&str, &str)> = rows["data"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| Some((row["ex_date"].as_str()?, row["amount"].as_str()?)))
        .collect();
    assert_eq!(amounts.len(), 20);
    let declared = [
        ("2019-11-07", "0.77"),
        ("2020-02-07", "0.77"),
        ("2020-05-08", "0.82"),
        ("2020-08-07", "0.82"),
        ("2020-11-06", "0.205"),
    ];
    assert_eq!(amounts[..5], declared);
    assert_eq!(amounts.last(), Some(&("2024-08-12", "0.25")));
    let metrics = vendors.get("/v1/stocks/AAPL/metrics?decimals=string").await?["data"].clone();
    for (field, value) in
        [("dps_ttm", "0.98"), ("dps_forward", "1"), ("yield_ttm", "0.4307"), ("yield_forward", "0.4395")]
    {
        assert_eq!(metrics[field], json!(value), "{field}");
    }
    assert_eq!((&metrics["frequency"], &metrics["growth_3y"]), (&json!("quarterly"), &json!("5.5667")));
    // The feed has no declaration dates, so the dividend increase of 2022-05-06 is unknown on 2022-03-31.
    let past = vendors.get("/v1/stocks/AAPL/metrics?as_of=2022-03-31&decimals=string").await?["data"].clone();
    for (field, value) in [
        ("dps_ttm", "0.88"),
        ("dps_forward", "0.88"),
        ("frequency", "quarterly"),
        ("dividend_status", "active"),
    ] {
        assert_eq!(past[field], json!(value), "{field} in March 2022");
    }
    assert_eq!(past["next"]["status"], "projected", "{past}");
    Ok(())
}

/// Yahoo publishes the dividends of the last year, the previous close, and the yield that follows from them. Fails if
/// the service derives another yield from these dividends and this close.
#[tokio::test]
async fn trailing_yields_are_those_yahoo_publishes() -> Result<()> {
    let Some(samples) = samples() else { return Ok(()) };
    let (mut records, mut published) = (Vec::new(), Vec::new());
    let mut files: Vec<_> = std::fs::read_dir(samples.join("yahoo-finance2"))?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    for path in files
        .iter()
        .map(std::fs::DirEntry::path)
        .filter(|path| path.to_string_lossy().contains("summaryDetail"))
    {
        let answer = read(&path)?;
        let Some(detail) = holding(&answer, "trailingAnnualDividendYield") else { continue };
        let figure = |name: &str| number(&detail[name]).filter(|value| !value.is_zero());
        let figures = figure("trailingAnnualDividendRate").zip(figure("previousClose"));
        let Some(((rate, close), given)) = figures.zip(figure("trailingAnnualDividendYield")) else {
            continue;
        };
        let symbol =
            path.file_stem().context("a name")?.to_string_lossy().replace("quoteSummary-summaryDetail-", "");
        records.push(json!({ "kind": "price", "symbol": symbol, "date": "2024-12-31", "close": close }));
        records.push(json!({ "kind": "dividend", "symbol": symbol, "ex_date": "2024-06-14", "amount": rate, "frequency": "annual" }));
        published.push((symbol, given * Decimal::ONE_HUNDRED));
    }
    assert!(published.len() >= 5, "{published:?}");
    let mut vendors = Vendors::start().await?;
    load(&mut vendors, &records).await?;
    for (symbol, given) in published {
        let metrics = vendors.get(&format!("/v1/stocks/{symbol}/metrics?decimals=string")).await?;
        let ours: Decimal = metrics["data"]["yield_ttm"].as_str().context("no yield")?.parse()?;
        eprintln!("{symbol}: {ours} % against {given} %");
        assert!((ours - given).abs() <= Decimal::new(6, 5), "{symbol}: {ours} against {given}");
    }
    Ok(())
}
