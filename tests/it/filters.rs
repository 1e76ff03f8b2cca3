//! Tests of filters by name, for example of a sector or country. A filter accepts names, slugs (`consumer-staples`) and
//! codes (`XNAS`). An error suggests similar names.

use anyhow::Result;
use serde_json::{Value, json};

use crate::api_world::{World, check, column};

#[tokio::test]
async fn names_slugs_codes_and_lists_choose_the_same_rows() -> Result<()> {
    let world = World::start().await?;
    for (query, symbols) in [
        ("sector=consumer-staples", &["COLA"][..]),
        ("sector=Financials,CONSUMER%20STAPLES", &["BRK.B", "COLA"]),
        ("exchange=NYSE", &["BRK.B", "COLA", "FUND"]),
        ("exchange=New%20York%20Stock%20Exchange,nasdaq", &["BRK.B", "COLA", "FUND"]),
        ("exchange=XNAS", &[]),
        ("country=USA", &["BRK.B", "COLA", "FUND"]),
        ("country=united-states,DE", &["BRK.B", "COLA", "FUND"]),
        ("country=de", &[]),
        ("type=stock,etf", &["BRK.B", "COLA", "FUND", "NEWCO"]),
        ("type=ETF", &["FUND"]),
        ("industry=beverages", &["BRK.B", "COLA", "FUND"]),
        ("currency=usd,eur", &["BRK.B", "COLA", "FUND", "NEWCO"]),
        ("frequency=none", &["BRK.B", "FUND", "NEWCO"]),
        ("frequency=quarterly,none", &["BRK.B", "COLA", "FUND", "NEWCO"]),
    ] {
        let body = world.json(&format!("/v1/stocks?{query}")).await?;
        assert_eq!(column(&body, "symbol"), symbols, "{query}");
    }
    let screened =
        world.json("/v1/screener?index=SP500&sector=financials,consumer-staples&sort=symbol").await?;
    assert_eq!(column(&screened, "symbol"), ["BRK.B", "COLA"]);
    check(
        &screened["meta"]["criteria"],
        json!({ "index": ["sp500"], "sector": ["Financials", "Consumer Staples"] }),
    );
    for (path, rows) in [
        ("/v1/dividends/calendar?start_date=2024-01-01&end_date=2024-06-30&sector=consumer-staples,Funds", 2),
        ("/v1/dividends/calendar?start_date=2024-01-01&end_date=2024-06-30&sector=funds", 0),
        (
            "/v1/dividends/ex-dates?start_date=2024-01-01&end_date=2024-06-30&type=regular,special&frequency=quarterly,monthly",
            2,
        ),
        (
            "/v1/dividends/history?symbols=COLA&start_date=2024-01-01&type=special,regular&status=paid,declared",
            3,
        ),
        // The dividend of June has its ex-date on the day before the market date, and is paid two weeks after the
        // market date.
        ("/v1/stocks/COLA/dividends?start_date=2024-01-01&status=cancelled,declared", 2),
        ("/v1/stocks/COLA/dividends?start_date=2024-01-01&status=cancelled,paid", 1),
        ("/v1/stocks/COLA/splits?type=reverse,forward", 1),
        ("/v1/stocks/COLA/splits?type=reverse", 0),
        ("/v1/etfs?issuer=ISSUER", 1),
        ("/v1/etfs/FUND/holdings?sector=consumer-staples", 0),
        ("/v1/search?q=co&exchange=nyse&type=stock,etf", 1),
    ] {
        let body = world.json(path).await?;
        assert_eq!(body["data"].as_array().map(Vec::len), Some(rows), "{path}: {body}");
    }
    Ok(())
}

#[tokio::test]
async fn what_means_nothing_is_refused_with_the_nearest_names() -> Result<()> {
    let world = World::start().await?;
    for (path, param, value, nearest) in [
        ("/v1/stocks?sector=Technology", "sector", "Technology", None),
        ("/v1/stocks?sector=Financials,Finances", "sector", "Finances", Some("Financials")),
        ("/v1/stocks?exchange=NYSEE", "exchange", "NYSEE", Some("XNYS")),
        ("/v1/stocks?country=Germani", "country", "Germani", Some("DE")),
        ("/v1/stocks?type=stocks", "type", "stocks", Some("stock")),
        ("/v1/screener?index=nope", "index", "nope", Some("sp500")),
        ("/v1/screener/dividend-kings?industry=Beverage", "industry", "Beverage", Some("Beverages")),
        ("/v1/dividends/calendar?sector=nope", "sector", "nope", None),
        ("/v1/dividends/history?symbols=COLA&status=payed", "status", "payed", Some("paid")),
        ("/v1/search?q=cola&exchange=nope", "exchange", "nope", None),
        ("/v1/etfs?issuer=Issuers", "issuer", "Issuers", Some("Issuer")),
        ("/v1/etfs/FUND/holdings?sector=nope", "sector", "nope", None),
    ] {
        let (status, body) = world.refused(path, &world.professional).await?;
        assert_eq!(status, 400, "{path}: {body}");
        check(&body, json!({ "code": "INVALID_PARAMETER", "param": param }));
        assert!(
            body["error"].as_str().is_some_and(|text| text.contains(&format!("{value:?}"))),
            "{path}: {body}"
        );
        let allowed: Vec<&Value> = body["allowed"].as_array().into_iter().flatten().collect();
        assert!(!allowed.is_empty() && allowed.len() <= 20, "{path}: {body}");
        assert!(
            nearest.is_none_or(|nearest| allowed[..3.min(allowed.len())].contains(&&json!(nearest))),
            "{path}: {body}"
        );
    }
    let (_, body) = world.refused("/v1/stocks?sector=nope&limit=0", &world.professional).await?;
    assert_eq!(body["errors"].as_array().map(Vec::len), Some(2), "{body}");
    let (status, _) = world.refused("/v1/stocks?sector=nope", "no-key").await?;
    assert_eq!(status, 401, "whoever may not call learns nothing");
    Ok(())
}

#[tokio::test]
async fn every_page_of_holdings_has_the_filters_of_the_first() -> Result<()> {
    let world = World::start().await?;
    let holding = |name: &str, weight: &str| {
        json!({ "kind": "holding", "etf_symbol": "FUND", "as_of": "2024-06-14", "name": name, "weight": weight,
                "sector": "Energy", "asset_type": "Equity" })
    };
    let feed = world.app.folder().join("holdings.ndjson");
    std::fs::write(&feed, ["One", "Two"].map(|name| holding(name, "0.2").to_string()).join("\n"))?;
    world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
    world.app.catch_up().await?;
    // No holding of the fund is in the sector Financials or has the type Bond. The API accepts `Financials`, because
    // other securities are in this sector.
    let path = "/v1/etfs/FUND/holdings?sector=energy,Financials&asset_type=equity,Bond&limit=1";
    let first = world.json(path).await?;
    let cursor = first["meta"]["next_cursor"].as_str().unwrap_or_default();
    let second = world.json(&format!("{path}&cursor={cursor}")).await?;
    let names = [column(&first, "name"), column(&second, "name")].concat();
    assert_eq!(names, ["One", "Two"], "{first} {second}");
    Ok(())
}

#[tokio::test]
async fn a_market_without_anything_refuses_no_name() -> Result<()> {
    let app = harness::TestApp::start().await?;
    let api = app.api_serve().await?;
    let key = app.key("free").await?;
    let reply = api.get("/v1/stocks?sector=Energy", Some(&key)).await?;
    assert_eq!((reply.status.as_u16(), reply.json()?["data"].clone()), (200, json!([])));
    Ok(())
}
