//! Pages of the screener, the sectors and the data quality. Their rows and counts equal the API's.

use anyhow::Result;

use super::{PUBLIC, page, values_after};
use crate::api_world::World;
use crate::dashboard::visitor::Person;

#[tokio::test]
async fn the_screener_shows_the_apis_rows_in_its_order() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let shown = page(&world, "/screener?preset=all&min_yield=0.5&sort=dividend_yield.desc").await?;
    let rows = world.json("/v1/screener?min_yield=0.5&sort=dividend_yield.desc&decimals=string").await?;
    let mut expected = vec![];
    for row in rows["data"].as_array().into_iter().flatten() {
        for field in [
            "price",
            "dividend_yield",
            "payout_ratio",
            "growth_5y",
            "increase_streak_years",
            "pe_ratio",
            "market_cap",
        ] {
            expected.extend(match &row[field] {
                serde_json::Value::String(text) => Some(text.clone()),
                serde_json::Value::Number(number) => Some(number.to_string()),
                _ => None,
            });
        }
    }
    assert!(!expected.is_empty());
    assert_eq!(values_after(&shown, "<tbody>"), expected);
    assert!(shown.has("sort=dividend_yield.asc"), "the order turns round: {}", shown.text);
    assert!(page(&world, "/screener?preset=kings").await?.has("No security passes all filters"));
    let mut reader = Person::at(&world.api)?;
    for (query, named) in
        [("min_yield=x", "Min_yield is not a number"), ("sector=nope", "Sector"), ("sort=foo.asc", "Sort")]
    {
        let refused = reader.get(&format!("/screener?{query}")).await?;
        assert!(refused.has("role=\"alert\"") && refused.has(named), "{query}: {}", refused.text);
    }
    let sheet = reader.get("/screener.csv?preset=all&min_yield=0.5").await?;
    assert_eq!(sheet.text, world.get("/v1/screener?limit=50&min_yield=0.5&format=csv").await?.text());
    Ok(())
}

#[tokio::test]
async fn a_sector_has_its_figures_and_payers() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    assert!(page(&world, "/sectors").await?.has("href=\"/sectors/consumer-staples\""));
    let sector = page(&world, "/sectors/consumer-staples").await?;
    let answer = world.json("/v1/sectors/consumer-staples?decimals=string").await?;
    let median = answer["data"]["median_yield"].as_str().unwrap_or_default();
    assert!(
        sector.has("<h1>Consumer Staples</h1>") && sector.has(&format!("value=\"{median}\"")),
        "{}",
        sector.text
    );
    assert!(sector.has("href=\"/s/COLA\""));
    assert_eq!(Person::at(&world.api)?.get("/sectors/nope").await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn the_quality_page_counts_what_is_loaded_and_left_out() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let held = world.app.folder().join("held.ndjson");
    let row = serde_json::json!({ "kind": "dividend", "symbol": "COLA", "id": "high", "ex_date": "2024-05-13", "amount": "900", "frequency": "quarterly" });
    std::fs::write(&held, row.to_string())?;
    world.app.ingest(&["load", &held.to_string_lossy(), "--source", "test"]).await?.success()?;
    world.app.catch_up().await?;
    harness::eventually(std::time::Duration::from_secs(120), async || {
        let shown = page(&world, "/quality").await?;
        for said in ["Active securities", "amount exceeds price", "href=\"/s/COLA\"", "14 Jun 2024"] {
            anyhow::ensure!(shown.has(said), "{said}: {}", shown.text);
        }
        Ok(())
    })
    .await
}
