//! Figures of a security over time: `/metrics/history` and `/growth`, compared with the metrics of single days and with
//! the total return.

use anyhow::{Context, Result, ensure};
use harness::Api;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::generated::Generated;

async fn get(api: &Api, key: &str, path: &str) -> Result<Value> {
    let reply = api.get(path, Some(key)).await?;
    ensure!(reply.status == 200, "{path}: {}", reply.text());
    reply.json()
}

/// Symbols with different lives: a fund, companies with splits, a receipt in another currency.
async fn symbols(world: &Generated) -> Result<Vec<String>> {
    let query = "select symbol from read_g1.stocks where is_active and price is not null and pays_dividend order by md5(symbol) limit 8";
    world.app.sql(query, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

#[tokio::test]
async fn points_are_the_metrics_of_their_day() -> Result<()> {
    let world = Generated::start().await?;
    let (api, key) = (&world.api, &world.key);
    let fields = "dividend_yield,payout_ratio,dps_ttm,growth_5y,increase_streak_years,total_return_1y,flags";
    for symbol in symbols(&world).await? {
        let path =
            format!("/v1/stocks/{symbol}/metrics/history?interval=quarter&fields={fields}&decimals=string");
        let points = get(api, key, &path).await?["data"].clone();
        let points = points.as_array().context("points")?;
        assert!(points.len() > 4, "{symbol}: {points:?}");
        for point in points.iter().rev().step_by(5).take(4) {
            let day = point["date"].as_str().context("a day")?;
            let path = format!("/v1/stocks/{symbol}/metrics?as_of={day}&fields={fields}&decimals=string");
            let mut expected = get(api, key, &path).await?["data"].clone();
            expected["date"] = json!(day);
            assert_eq!(*point, expected, "{symbol} {day}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_amount_grows_by_the_total_return() -> Result<()> {
    let world = Generated::start().await?;
    let (api, key) = (&world.api, &world.key);
    for symbol in symbols(&world).await? {
        let growth = get(api, key, &format!("/v1/stocks/{symbol}/growth?decimals=string")).await?;
        let rows = growth["data"].as_array().context("rows")?;
        assert_eq!(rows[0]["value"], "10000", "{symbol}");
        let started = rows[0]["date"].as_str().context("a start")?;
        for row in rows.iter().rev().step_by(31).take(3) {
            let end = row["date"].as_str().context("a day")?;
            let path =
                format!("/v1/prices/{symbol}?start_date={started}&end_date={end}&limit=1&decimals=string");
            let total = get(api, key, &path).await?["meta"]["total_return"].clone();
            let total: Decimal = total.as_str().context("a return")?.parse()?;
            let gain: Decimal = row["gain_percent"].as_str().context("a gain")?.parse()?;
            // Shares are rounded at each purchase.
            let tolerance = Decimal::new(2, 4);
            assert!((total - gain).abs() <= tolerance, "{symbol} {end}: {total} and {gain}");
        }
        let last = rows.last().context("a row")?;
        assert_eq!(last["invested"], "10000");
        let cash =
            get(api, key, &format!("/v1/stocks/{symbol}/growth?reinvest=false&decimals=string")).await?;
        let cash = cash["data"].as_array().and_then(|rows| rows.last()).context("a row")?;
        assert_ne!(cash["shares"], last["shares"], "{symbol}");
        let saved =
            format!("/v1/stocks/{symbol}/growth?amount=100&contribution=50&interval=yearly&decimals=string");
        let saved = get(api, key, &saved).await?["data"].clone();
        let saved = saved.as_array().context("rows")?;
        let invested: Vec<String> =
            [0].into_iter().chain(0..saved.len() - 1).map(|year| (100 + 50 * year).to_string()).collect();
        assert!(saved.iter().map(|row| &row["invested"]).eq(invested.iter()), "{saved:?}");
        assert!(saved.iter().all(|row| row["annualized_return"].is_null()));
    }
    Ok(())
}

#[tokio::test]
async fn mistakes_are_named() -> Result<()> {
    let world = Generated::start().await?;
    let symbol = symbols(&world).await?.pop().context("a symbol")?;
    for (path, param) in [
        ("metrics/history?start_date=1950-01-01", "start_date"),
        ("metrics/history?fields=beta_5y", "fields"),
        ("metrics/history?interval=daily", "interval"),
        ("growth?amount=0", "amount"),
        ("growth?interval=daily", "interval"),
        ("growth?reinvest=perhaps", "reinvest"),
    ] {
        let refused = world.api.get(&format!("/v1/stocks/{symbol}/{path}"), Some(&world.key)).await?;
        assert_eq!((refused.status.as_u16(), &refused.json()?["param"]), (400, &json!(param)), "{path}");
    }
    for path in ["metrics/history", "growth"] {
        let unknown = world.api.get(&format!("/v1/stocks/ZZZZ/{path}"), Some(&world.key)).await?;
        assert_eq!(unknown.status, 404, "{path}");
    }
    Ok(())
}
