//! `/v1/bulk/prices`: its bars equal those of `/v1/prices/{symbol}` for every security.

use anyhow::Result;
use serde_json::{Value, json};

use crate::generated::{Generated, UNTIL};

async fn answer(world: &Generated, path: &str) -> Result<Value> {
    Ok(serde_json::from_slice(&world.body(path).await?)?)
}

/// Requests all pages of a list and returns their rows.
async fn walk(world: &Generated, path: &str) -> Result<Vec<Value>> {
    let (mut rows, mut cursor) = (vec![], String::new());
    loop {
        let page = answer(world, &format!("{path}{cursor}")).await?;
        rows.extend(page["data"].as_array().cloned().unwrap_or_default());
        match page["meta"]["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(rows),
        }
    }
}

/// Returns the bars of all securities from `start` to `end`, with a separate request for each symbol.
async fn one_by_one(world: &Generated, adjustment: &str, start: &str, end: &str) -> Result<Vec<Value>> {
    let stocks = async |active: bool| {
        walk(world, &format!("/v1/stocks?limit=1000&fields=symbol&is_active={active}")).await
    };
    let mut symbols = [stocks(true).await?, stocks(false).await?].concat();
    symbols.sort_by_key(|row| row["symbol"].as_str().map(str::to_owned));
    let mut rows = vec![];
    for row in symbols {
        let symbol = row["symbol"].as_str().unwrap_or_default();
        let window = format!("start_date={start}&end_date={end}&sort=date.asc&adjustment={adjustment}");
        rows.extend(walk(world, &format!("/v1/prices/{symbol}?limit=5000&{window}")).await?);
    }
    Ok(rows)
}

#[tokio::test]
async fn the_markets_bars_are_those_of_its_securities() -> Result<()> {
    let world = Generated::start().await?;
    for adjustment in ["raw", "split", "all"] {
        let day = walk(&world, &format!("/v1/bulk/prices?adjustment={adjustment}&limit=7")).await?;
        assert_eq!(day, one_by_one(&world, adjustment, UNTIL, UNTIL).await?, "{adjustment}");
        assert!(day.len() > 50, "{} bars", day.len());
        let range = "start_date=2023-12-20&end_date=2024-01-19";
        let days =
            walk(&world, &format!("/v1/bulk/prices?adjustment={adjustment}&limit=100&{range}")).await?;
        assert_eq!(days, one_by_one(&world, adjustment, "2023-12-20", "2024-01-19").await?, "{adjustment}");
    }
    Ok(())
}

#[tokio::test]
async fn a_page_of_the_market_says_what_it_rests_on() -> Result<()> {
    let world = Generated::start().await?;
    let some = answer(&world, "/v1/bulk/prices?symbols=SILABA,NOPE,spy&date=2024-06-13").await?;
    let named: Vec<&Value> =
        some["data"].as_array().into_iter().flatten().map(|row| &row["symbol"]).collect();
    assert_eq!(named, ["SILABA", "SPY"]);
    let meta = &some["meta"];
    assert_eq!(
        [&meta["count"], &meta["missing"], &meta["start_date"], &meta["end_date"], &meta["has_more"]],
        [&json!(2), &json!(["NOPE"]), &json!("2024-06-13"), &json!("2024-06-13"), &json!(false)]
    );
    let sheet = world.body("/v1/bulk/prices?symbols=SPY&fields=symbol,currency,date&format=csv").await?;
    assert_eq!(String::from_utf8_lossy(&sheet), format!("symbol,currency,date\r\nSPY,USD,{UNTIL}\r\n"));
    let empty = answer(&world, "/v1/bulk/prices?date=2024-06-15").await?;
    assert_eq!((&empty["data"], &empty["meta"]["count"]), (&json!([]), &json!(0)), "a Saturday");
    Ok(())
}

#[tokio::test]
async fn a_range_of_the_market_is_bounded() -> Result<()> {
    let world = Generated::start().await?;
    for (query, status) in [
        ("start_date=2024-01-01&end_date=2024-01-31", 200),
        ("start_date=2024-01-01&end_date=2024-02-01", 400),
        ("date=2024-01-02&end_date=2024-01-03", 400),
        ("limit=10001", 400),
        ("sort=symbol.asc", 400),
        ("date=1900-01-01", 403),
    ] {
        let reply = world.api.get(&format!("/v1/bulk/prices?{query}"), Some(&world.key)).await?;
        assert_eq!(reply.status, status, "{query}: {}", reply.text());
    }
    Ok(())
}
