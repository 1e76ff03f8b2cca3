//! Digits of a feed are the digits of the answer: a property over random amounts and prices, through the whole service.

use anyhow::Result;
use harness::TestApp;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rust_decimal::Decimal;
use serde_json::Value;

const PAYMENTS: usize = 100;

/// As feeds write numbers: up to ten digits on either side of the point, zeros at both ends, a sign, an exponent.
fn number() -> impl Strategy<Value = String> {
    let plain = ("[0-9]{1,7}", "[0-9]{0,10}").prop_map(|(whole, fraction)| match fraction.as_str() {
        "" => whole,
        _ => format!("{whole}.{fraction}"),
    });
    let scientific =
        ("[1-9]\\.[0-9]{1,4}", -5i32..=4).prop_map(|(number, exponent)| format!("{number}e{exponent}"));
    prop_oneof![4 => plain, 1 => scientific]
        .prop_filter("amounts are positive", |text| exact(text) > Decimal::ZERO)
}

fn exact(text: &str) -> Decimal {
    match text.contains('e') {
        true => Decimal::from_scientific(text),
        false => text.parse(),
    }
    .unwrap_or_default()
}

/// Every amount of an answer, as the digits that were sent; with `decimals=string` they are text already.
fn digits(body: &Value, field: &str) -> Vec<Decimal> {
    let rows = body["data"].as_array().into_iter().flatten();
    rows.map(|row| exact(row[field].as_str().unwrap_or_default())).collect()
}

#[tokio::test]
async fn feed_text_to_answer_text_is_the_same_number() -> Result<()> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    let mut runner = TestRunner::default();
    let mut draw = || number().new_tree(&mut runner).map(|tree| tree.current()).unwrap_or_default();
    let days: Vec<chrono::NaiveDate> = chrono::NaiveDate::from_ymd_opt(2023, 1, 2)
        .into_iter()
        .flat_map(|first| first.iter_days().take(PAYMENTS))
        .collect();
    let amounts: Vec<String> = days.iter().map(|_| draw()).collect();
    let closes: Vec<String> = days.iter().map(|_| draw()).collect();
    let table = |header: &str, symbol: &str, numbers: &[String]| {
        let rows = days.iter().zip(numbers).map(|(day, number)| format!("{symbol},{day},{number}\n"));
        format!("{header}\n{}", rows.collect::<String>())
    };
    // Of two securities: a payment of more than the price would be set aside.
    std::fs::write(app.folder().join("dividends.csv"), table("symbol,ex_date,amount", "PAID", &amounts))?;
    std::fs::write(app.folder().join("prices.csv"), table("symbol,date,close", "PRICED", &closes))?;
    for file in ["dividends.csv", "prices.csv"] {
        let path = app.folder().join(file).display().to_string();
        let arguments = ["load", &path, "--source", "test", "--today", "2024-06-30"];
        app.ingest(&arguments).await?.success()?;
    }
    app.catch_up().await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let ask = async |path: &str| {
        let reply = api.get(path, Some(&key)).await?;
        anyhow::ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.text());
        Ok(reply)
    };
    let paid = "/v1/stocks/PAID/dividends?limit=100&sort=ex_date.asc&fields=ex_date,amount&decimals=string";
    let wanted: Vec<Decimal> = amounts.iter().map(|text| exact(text).round_dp(10)).collect();
    assert_eq!(digits(&ask(paid).await?.json()?, "amount"), wanted);

    let priced =
        "/v1/prices/PRICED?start_date=2023-01-01&adjustment=raw&limit=500&sort=date.asc&decimals=string";
    let wanted: Vec<Decimal> = closes.iter().map(|text| exact(text).round_dp(10)).collect();
    assert_eq!(digits(&ask(priced).await?.json()?, "raw_close"), wanted);
    Ok(())
}
