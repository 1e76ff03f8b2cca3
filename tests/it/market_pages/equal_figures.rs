//! Every number on the pages of two hundred securities equals the number of the API, digit by digit.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{PUBLIC, values_after};
use crate::dashboard::visitor::{Page, Person};
use crate::generated::Generated;

const SECURITIES: usize = 200;

/// Formats a value of an API answer as a page shows it.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns the first value in the element `id`, or `None` if the page shows a dash.
fn shown<'a>(page: &'a Page, id: &str) -> Result<Option<&'a str>> {
    let element = page.between(&format!(" id=\"{id}\">"), "</")?;
    let value = element.split_once("value=\"").or_else(|| element.split_once("datetime=\""));
    Ok(value.and_then(|(_, rest)| rest.split('"').next()))
}

#[tokio::test]
async fn every_number_of_two_hundred_pages_is_the_apis() -> Result<()> {
    let env: Vec<(&str, &str)> =
        PUBLIC.into_iter().chain([("PAGES_PER_MINUTE", "1000000"), ("PAGES_BURST", "1000000")]).collect();
    let world = Generated::start_with("210", "6", &env).await?;
    let json = async |path: &str| -> Result<Value> {
        let mut answer: Value =
            serde_json::from_slice(&world.body(&format!("{path}decimals=string")).await?)?;
        Ok(answer["data"].take())
    };
    let listed = json("/v1/stocks?limit=1000&").await?;
    let symbols: Vec<&str> =
        listed.as_array().into_iter().flatten().filter_map(|row| row["symbol"].as_str()).collect();
    ensure!(symbols.len() >= SECURITIES, "{}", symbols.len());
    let mut reader = Person::at(&world.api)?;
    let mut compared = 0;
    for symbol in &symbols[..SECURITIES] {
        let page = reader.get(&format!("/s/{symbol}")).await?;
        ensure!(page.status == 200, "{symbol}: {} {}", page.status, page.text);
        let profile = json(&format!("/v1/stocks/{symbol}?")).await?;
        let metrics = json(&format!("/v1/stocks/{symbol}/metrics?")).await?;
        for (id, value) in [
            ("price", &profile["price"]),
            ("yield", &profile["dividend_yield"]),
            ("annual", &profile["annual_dividend"]),
            ("next-ex-date", &profile["dividends"]["next"]["ex_date"]),
            ("next-amount", &profile["dividends"]["next"]["amount"]),
            ("last-amount", &profile["dividends"]["last"]["amount"]),
        ] {
            assert_eq!(shown(&page, id)?, text(value).as_deref(), "{symbol} {id}");
            compared += 1;
        }
        for (name, value) in metrics.as_object().context("metrics")? {
            if page.has(&format!("<dd id=\"{name}\">")) {
                assert_eq!(shown(&page, name)?, text(value).as_deref(), "{symbol} {name}");
                compared += 1;
            }
        }
        let rows =
            json(&format!("/v1/dividends/history?symbols={symbol}&include_projected=true&limit=12&")).await?;
        let mut expected = vec![];
        for row in rows.as_array().into_iter().flatten() {
            let is_same = row["change_percent"].as_str() == Some("0");
            let fields = ["ex_date", "payment_date", "amount", "change_percent", "yield_at_ex"];
            let fields = fields.into_iter().filter(|field| !(is_same && *field == "change_percent"));
            expected.extend(fields.filter_map(|field| text(&row[field])));
        }
        let values = values_after(&page, "aria-label=\"Table: payments\"");
        assert_eq!(values.get(..expected.len()).unwrap_or_default(), expected, "{symbol}");
        compared += expected.len();
    }
    ensure!(compared > 8_000, "{compared} numbers");
    Ok(())
}
