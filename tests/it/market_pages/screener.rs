//! Pages of the screener, the sectors and the data quality. Their rows and counts equal the API's.

use anyhow::{Result, ensure};
use serde_json::json;

use super::{PUBLIC, page, values_after};
use crate::api_world::{World, sessions};
use crate::dashboard::visitor::{Page, Person};

#[tokio::test]
async fn the_screener_shows_the_apis_rows_in_its_order() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let shown = page(&world, "/screener?preset=all&min_yield=0.5&sort=dividend_yield.desc").await?;
    let rows = world.json("/v1/screener?min_yield=0.5&sort=dividend_yield.desc&decimals=string").await?;
    let mut expected = vec![];
    for row in rows["data"].as_array().into_iter().flatten() {
        for field in [
            "dividend_yield",
            "price",
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
    assert!(
        shown.has("Market values are in USD.") && shown.has(">Minimum market value, USD<"),
        "{}",
        shown.text
    );
    assert!(shown.has("sort=dividend_yield.asc"), "the order turns round: {}", shown.text);
    assert!(shown.has("aria-sort=\"descending\""), "{}", shown.text);
    assert!(page(&world, "/screener?preset=kings").await?.has("No security passes all filters"));
    let mut reader = Person::at(&world.api)?;
    for (query, named) in
        [("min_yield=x", "Min_yield is not a number"), ("sector=nope", "Sector"), ("sort=foo.asc", "Sort")]
    {
        let refused = reader.get(&format!("/screener?{query}")).await?;
        assert!(refused.has("role=\"alert\"") && refused.has(named), "{query}: {}", refused.text);
    }
    let sheet = reader.get("/screener.csv?preset=all&min_yield=0.5").await?;
    let order = "yield_suspect.asc,dividend_yield.desc";
    let call = format!("/v1/screener?limit=50&min_yield=0.5&sort={order}&format=csv");
    assert_eq!(sheet.text, world.get(&call).await?.text());
    Ok(())
}

/// Symbols in the order of a page.
fn symbols(page: &Page) -> Vec<&str> {
    page.text.split("href=\"/s/").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[tokio::test]
async fn a_suspect_yield_is_marked_and_does_not_open_the_list() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut records =
        vec![json!({ "kind": "security", "symbol": "RISK", "name": "Risk Company", "type": "stock" })];
    for day in sessions("2024-06-03") {
        records.push(json!({ "kind": "price", "symbol": "RISK", "date": day.to_string(), "close": "10" }));
    }
    for day in ["2023-09-13", "2023-12-13", "2024-03-13", "2024-06-13"] {
        records.push(json!({ "kind": "dividend", "symbol": "RISK", "id": day, "ex_date": day, "amount": "1", "frequency": "quarterly" }));
    }
    let feed = world.app.folder().join("risk.ndjson");
    std::fs::write(&feed, records.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
    world.app.catch_up().await?;
    harness::eventually(std::time::Duration::from_secs(120), async || {
        let shown = page(&world, "/screener").await?;
        ensure!(symbols(&shown).contains(&"RISK"), "{}", shown.text);
        Ok(())
    })
    .await?;
    let shown = page(&world, "/screener").await?;
    assert_eq!((symbols(&shown)[0], symbols(&shown).last()), ("COLA", Some(&"RISK")));
    assert_eq!(shown.text.matches(">suspect<").count(), 1, "{}", shown.text);
    let sorted = page(&world, "/screener?sort=dividend_yield.desc").await?;
    assert_eq!(symbols(&sorted)[0], "RISK", "the reader asked for this order");
    Ok(())
}

#[tokio::test]
async fn filters_are_lists_with_counts_and_can_be_removed_one_by_one() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let shown = page(&world, "/screener?sector=Financials&min_streak=0").await?;
    for said in [
        "<option value=\"\">All</option>",
        "<option value=\"XNYS\">New York Stock Exchange (",
        "<option value=\"US\">United States",
        "selected>Financials",
        "href=\"/screener?preset=all&amp;min_streak=0\"",
        "href=\"/screener?preset=all&amp;sector=Financials\"",
        "Streak ≥ 0",
    ] {
        assert!(shown.has(said), "{said}: {}", shown.text);
    }
    let staples = page(&world, "/screener?sector=Consumer+Staples").await?;
    assert!(staples.has("1 security") && staples.has("Financials (1)"), "{}", staples.text);
    Ok(())
}

#[tokio::test]
async fn a_sector_has_its_figures_and_payers() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    assert!(page(&world, "/sectors").await?.has("href=\"/sectors/consumer-staples\""));
    let order = |page: &Page| page.text.find(">Financials<") < page.text.find(">Consumer Staples<");
    assert!(!order(&page(&world, "/sectors").await?));
    assert!(order(&page(&world, "/sectors?sort=sector.desc").await?));
    assert_eq!(Person::at(&world.api)?.get("/sectors?sort=nope").await?.status, 422);
    let sector = page(&world, "/sectors/consumer-staples").await?;
    let answer = world.json("/v1/sectors/consumer-staples?decimals=string").await?;
    let median = answer["data"]["median_yield"].as_str().unwrap_or_default();
    assert!(
        sector.has("<h1>Consumer Staples</h1>") && sector.has(&format!("value=\"{median}\"")),
        "{}",
        sector.text
    );
    assert!(sector.has("href=\"/s/COLA\""));
    let rows = sector.between("<tbody>", "</tbody>")?;
    assert!(!rows.contains("Consumer Staples"), "the page has one sector: {rows}");
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
