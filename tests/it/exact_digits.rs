//! Tests that the API returns random amounts and prices of a feed exactly, rounded to six decimal places.

use anyhow::Result;
use harness::{Api, TestApp};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::Value;

/// Largest number of digits before the decimal point.
const MAGNITUDES: usize = 7;
const DAYS: usize = 60;
/// Maximum number of decimal places of amounts and prices in answers.
const PLACES: u32 = 6;

/// Generates numbers with `magnitude` digits before the decimal point, in the formats of feeds. The numbers differ by a
/// factor below 2.5, because outliers would be quarantined.
fn number(magnitude: usize) -> BoxedStrategy<String> {
    let plain = format!("[+0]?[2-4][0-9]{{{}}}(\\.[0-9]{{0,10}})?", magnitude - 1);
    let plain = proptest::string::string_regex(&plain).expect("the pattern is one");
    let exponent = magnitude - 1;
    let scientific = "[2-4]\\.[0-9]{1,6}".prop_map(move |number| format!("{number}e{exponent}"));
    prop_oneof![4 => plain, 1 => scientific].boxed()
}

fn exact(text: &str) -> Decimal {
    let number = match text.contains('e') {
        true => Decimal::from_scientific(text),
        false => text.trim_start_matches('+').parse(),
    };
    number.unwrap_or_default().round_dp_with_strategy(PLACES, RoundingStrategy::MidpointAwayFromZero)
}

/// Sends a request with `decimals=string`. Returns the values of `field` in all rows of the response.
async fn column(api: &Api, key: &str, path: &str, field: &str) -> Result<Vec<Decimal>> {
    let reply = api.get(&format!("{path}&decimals=string"), Some(key)).await?;
    anyhow::ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.text());
    let body: Value = reply.json()?;
    let rows = body["data"].as_array().into_iter().flatten();
    Ok(rows.map(|row| exact(row[field].as_str().unwrap_or_default())).collect())
}

#[tokio::test]
async fn feed_text_to_answer_text_is_the_same_number() -> Result<()> {
    let app = TestApp::builder().env("SERVICE_DATE", "2023-06-30").start().await?;
    let mut runner = TestRunner::default();
    let mut drawn: Vec<(String, Vec<String>)> = Vec::new();
    let (mut dividends, mut prices) =
        ("symbol,ex_date,amount\n".to_owned(), "symbol,date,close\n".to_owned());
    let first = chrono::NaiveDate::from_ymd_opt(2023, 1, 2).unwrap_or_default();
    for magnitude in 1..=MAGNITUDES {
        // Dividends and prices have different symbols, because a dividend above the price would be quarantined.
        for (table, kind) in [(&mut dividends, "PAID"), (&mut prices, "PRICED")] {
            let symbol = format!("{kind}{}", char::from(b'A' + magnitude as u8));
            let mut numbers = Vec::new();
            for day in first.iter_days().take(DAYS) {
                let tree = number(magnitude).new_tree(&mut runner);
                let text = tree.map_err(anyhow::Error::msg)?.current();
                table.push_str(&format!("{symbol},{day},{text}\n"));
                numbers.push(text);
            }
            drawn.push((symbol, numbers));
        }
    }
    for (name, table) in [("dividends.csv", dividends), ("prices.csv", prices)] {
        let path = app.folder().join(name);
        std::fs::write(&path, table)?;
        let path = path.display().to_string();
        app.ingest(&["load", &path, "--source", "test", "--today", "2024-06-30"]).await?.success()?;
    }
    app.catch_up().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    for (symbol, numbers) in &drawn {
        let wanted: Vec<Decimal> = numbers.iter().map(|text| exact(text)).collect();
        let found = match symbol.strip_prefix("PAID") {
            Some(_) => {
                let path = format!("/v1/stocks/{symbol}/dividends?limit=100&sort=ex_date.asc");
                column(&api, &key, &path, "amount").await?
            }
            None => {
                let path = format!(
                    "/v1/prices/{symbol}?start_date=2023-01-01&adjustment=raw&limit=100&sort=date.asc"
                );
                column(&api, &key, &path, "raw_close").await?
            }
        };
        assert_eq!(found, wanted, "{symbol}: {numbers:?}");
    }
    Ok(())
}
