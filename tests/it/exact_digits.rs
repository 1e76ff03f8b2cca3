//! Digits of a feed are the digits of the answer: a property over random amounts and prices, through the whole service.

use anyhow::Result;
use harness::{Api, TestApp};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rust_decimal::{Decimal, RoundingStrategy};
use serde_json::Value;

/// Securities, whose numbers have one to so many digits before the point.
const MAGNITUDES: usize = 7;
const DAYS: usize = 60;
/// Answers give amounts and prices with at most so many decimal places.
const PLACES: u32 = 6;

/// As feeds write numbers: up to ten fraction digits, zeros at both ends, a sign, an exponent. Numbers of one magnitude
/// are within a factor of 2.5, since a number far from its neighbours would be held.
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

/// A column of an answer, whose decimals are asked for as text.
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
        // Apart, since a payment of more than the price would be set aside.
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
