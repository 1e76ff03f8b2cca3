//! Tests of the main task of the service: a feed is loaded, and the API returns correct answers.

use anyhow::Result;
use harness::{TestApp, fixture};
use serde_json::{Value, json};

use crate::api_world::check;

/// Starts an app and loads the feed in `tests/fixtures/feeds/first`. The current date of the service is within the
/// dates of this feed.
async fn loaded() -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", "2019-08-12").start().await?;
    let feed = fixture("feeds/first");
    app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    app.catch_up().await?;
    Ok(app)
}

#[tokio::test]
async fn yields_follow_the_declared_rate_and_the_trailing_year() -> Result<()> {
    let app = loaded().await?;
    let api = app.api_serve().await?;
    let key = app.key("free").await?;
    let reply = api.get("/v1/stocks/ORCH/metrics", Some(&key)).await?;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let body: Value = reply.json()?;
    check(
        &body["data"],
        json!({
            "symbol": "ORCH", "as_of": "2019-08-12", "dps_ttm": 3, "yield_ttm": 1.4964, "dps_forward": 3.08,
            "yield_forward": 1.5363, "dividend_yield": 1.5363, "yield_basis": "forward", "frequency": "quarterly",
            "ttm_payment_count": 4, "dividend_status": "active",
        }),
    );
    check(&body["meta"], json!({ "as_of": "2019-08-12" }));
    Ok(())
}

#[tokio::test]
async fn a_split_adjusts_earlier_prices_under_any_spelling_of_the_symbol() -> Result<()> {
    let app = loaded().await?;
    let api = app.api_serve().await?;
    let key = app.key("free").await?;
    for spelling in ["MEAD.B", "mead-b", "MEAD%2FB"] {
        let reply = api.get(&format!("/v1/prices/{spelling}?start_date=2019-08-01"), Some(&key)).await?;
        assert_eq!(reply.status, 200, "{}", reply.text());
        let body: Value = reply.json()?;
        check(
            &body["data"][0],
            json!({ "date": "2019-08-12", "close": 50.1, "raw_close": 50.1, "split_ratio": 2 }),
        );
        check(
            &body["data"][1],
            json!({ "date": "2019-08-09", "close": 50.1, "raw_close": 100.2, "volume": 2000 }),
        );
    }
    let quote: Value = api.get("/v1/stocks/MEAD-B/quote", Some(&key)).await?.json()?;
    check(&quote["data"], json!({ "symbol": "MEAD.B", "price": 50.1, "previous_close": 50.1, "change": 0 }));
    Ok(())
}

#[tokio::test]
async fn dividends_need_a_paid_tier_and_a_key_is_needed_for_anything() -> Result<()> {
    let app = loaded().await?;
    let api = app.api_serve().await?;
    let (free, starter) = (app.key("free").await?, app.key("starter").await?);
    let path = "/v1/stocks/ORCH/dividends?limit=2";

    let none = api.get(path, None).await?;
    assert_eq!((none.status.as_u16(), none.json()?["code"].clone()), (401, json!("INVALID_API_KEY")));
    let refused = api.get(path, Some(&free)).await?;
    assert_eq!(refused.status, 403);
    check(
        &refused.json()?,
        json!({ "code": "FEATURE_NOT_AVAILABLE", "current_tier": "free", "upgrade_url": "/plans" }),
    );
    let served = api.get(path, Some(&starter)).await?;
    assert_eq!(served.status, 200, "{}", served.text());
    let body: Value = served.json()?;
    assert_eq!(body["data"].as_array().map(Vec::len), Some(2));
    check(
        &body["data"][0],
        json!({ "ex_date": "2019-08-09", "payment_date": "2019-08-15", "amount": 0.77, "status": "declared" }),
    );
    check(&body["data"][1], json!({ "ex_date": "2019-05-10", "status": "paid" }));
    check(&body["meta"], json!({ "count": 2, "limit": 2, "has_more": true }));
    Ok(())
}

#[tokio::test]
async fn an_unknown_symbol_is_404_without_a_code() -> Result<()> {
    let app = loaded().await?;
    let api = app.api_serve().await?;
    let reply = api.get("/v1/stocks/ZZZZ/quote", Some(&app.key("free").await?)).await?;
    let body: Value = reply.json()?;
    assert_eq!(reply.status, 404);
    assert!(body["error"].as_str().is_some_and(|text| text.contains("ZZZZ")), "{body}");
    assert_eq!(body.as_object().map(serde_json::Map::len), Some(1));
    Ok(())
}
