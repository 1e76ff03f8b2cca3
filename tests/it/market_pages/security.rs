//! Page of a security: blocks, charts, explanations, files, and redirects from its other symbols.

use anyhow::{Context, Result};

use super::{PUBLIC, page, values_after};
use crate::api_world::World;
use crate::dashboard::visitor::Person;

/// Maximum size of a chart of ten years, in bytes.
const CHART: usize = 60 * 1024;

#[tokio::test]
async fn a_page_shows_price_payments_and_their_calls() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let shown = page(&world, "/s/COLA").await?;
    for said in [
        "<h1>Cola Company <span class=\"tag\">COLA</span></h1>",
        "GET /v1/stocks/COLA/metrics",
        "GET /v1/dividends/history?symbols=COLA",
        "href=\"/s/COLA/dividends.csv\"",
        "Split-adjusted close",
        "2:1",
        "declared",
        "estimated",
        "<meta property=\"og:title\"",
        "rel=\"canonical\"",
    ] {
        assert!(shown.has(said), "{said}: {}", shown.text);
    }
    let quote = world.json("/v1/stocks/COLA?decimals=string").await?;
    let price = quote["data"]["price"].as_str().context("a price")?;
    assert_eq!(values_after(&shown, "id=\"price\"").first(), Some(&price));
    let quote = world.json("/v1/stocks/COLA/quote?decimals=string").await?["data"].clone();
    let line = shown.between("<p class=\"quote\">", "</dl>")?;
    for name in ["price", "change_percent", "day_low", "day_high", "year_low", "year_high", "pe_ratio"] {
        let digits = quote[name].as_str().with_context(|| name.to_owned())?;
        assert!(line.contains(&format!("<data value=\"{digits}\"")), "{name} {digits}: {line}");
    }
    for name in ["market_cap", "volume"] {
        assert!(line.contains(&format!("<data value=\"{}\"", quote[name])), "{name}: {line}");
    }
    assert!(line.contains("<abbr title=\"XNYS\">New York Stock Exchange</abbr>"), "{line}");
    let fund = page(&world, "/s/FUND").await?;
    assert!(fund.has("Largest holdings") && fund.has("href=\"/s/BRK.B\""), "{}", fund.text);
    let held = page(&world, "/s/BRK.B").await?;
    assert!(held.has("Funds that hold it") && held.has("href=\"/s/FUND\""), "{}", held.text);
    let gone = page(&world, "/s/GONE").await?;
    assert!(gone.has("Delisted") && gone.has("29 Dec 2023"), "{}", gone.text);
    Ok(())
}

#[tokio::test]
async fn ten_years_of_prices_are_a_small_drawing_with_its_peaks() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    for (prices, title) in [("split", "Split-adjusted close"), ("raw", "Raw close"), ("all", "Total return")]
    {
        let shown = page(&world, &format!("/s/COLA?range=10y&prices={prices}")).await?;
        let chart = shown.between("<figure class=\"chart price\">", "</figure>")?;
        assert!(chart.len() <= CHART, "{} bytes", chart.len());
        let adjustment =
            format!("/v1/prices/COLA?range=10y&adjustment={prices}&sort=date.asc&limit=5000&decimals=string");
        let answer = world.json(&adjustment).await?;
        let closes = answer["data"].as_array().context("rows")?;
        let number = |row: &serde_json::Value| {
            row["close"].as_str().and_then(|text| text.parse::<rust_decimal::Decimal>().ok())
        };
        let least = closes.iter().filter_map(number).min().context("a close")?;
        let most = closes.iter().filter_map(number).max().context("a close")?;
        let label =
            chart.split("aria-label=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        assert!(label.starts_with(title), "{label}");
        assert!(
            label.contains(&format!("lowest {least} on")) && label.contains(&format!("highest {most} on")),
            "{label}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn an_amount_and_the_yield_are_shown_over_time() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let shown = page(&world, "/s/COLA").await?;
    let growth = shown.between("id=\"growth\"", "</section>")?;
    let call = growth.split("GET ").nth(1).and_then(|rest| rest.split('<').next()).context("a call")?;
    let rows = world.json(&format!("{call}&decimals=string")).await?["data"].clone();
    let last = rows.as_array().and_then(|rows| rows.last()).context("a row")?;
    let value = last["value"].as_str().context("a value")?;
    assert_eq!(values_after(&shown, "id=\"grown\"").first(), Some(&value));
    let by_quarter = shown.between("id=\"by-quarter\"", "</section>")?;
    assert!(by_quarter.contains("/v1/stocks/COLA/metrics/history?interval=quarter"), "{by_quarter}");
    assert!(by_quarter.contains("aria-label=\"Dividend yield from"), "{by_quarter}");
    Ok(())
}

#[tokio::test]
async fn every_figure_says_why() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let shown = page(&world, "/s/COLA").await?;
    let links: Vec<&str> =
        shown.text.split("class=\"why\" href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(links.len() > 20, "{links:?}");
    for link in links {
        let why = page(&world, link).await?;
        assert!(why.has("<dt>Rule</dt>") && why.has("<dt>Formula</dt>"), "{link}: {}", why.text);
    }
    let why = page(&world, "/s/COLA/why/dps_ttm").await?;
    for said in ["R7", "<code>test</code>, ", ", line ", "datetime=\"2024-06-13\""] {
        assert!(why.has(said), "{said}: {}", why.text);
    }
    Ok(())
}

#[tokio::test]
async fn a_streak_is_explained_by_its_years() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let why = page(&world, "/s/COLA/why/increase_streak_years").await?;
    let call = "/v1/stocks/COLA/metrics?explain=true&fields=increase_streak_years&decimals=string";
    let entry = world.json(call).await?["data"]["explanation"]["metrics"][0].clone();
    let years = entry["years"].as_array().context("years")?;
    let counted = years.iter().filter(|year| year["counted"] == true).count();
    assert_eq!(entry["value"], counted.to_string(), "{entry}");
    let before_rule = why.text.split_once("<dt>Rule</dt>").context("a rule")?.0;
    for year in years {
        let total = year["total"].as_str().context("a total")?;
        let row =
            format!("<th scope=\"row\">{}</th><td class=\"number\"><data value=\"{total}\"", year["year"]);
        assert!(before_rule.contains(&row), "{row}: {}", why.text);
        assert!(before_rule.contains(&format!("<title>{}: {total} USD</title>", year["year"])), "{year}");
    }
    assert!(before_rule.contains("no: the year is not over"), "{}", why.text);
    Ok(())
}

#[tokio::test]
async fn prices_and_figures_of_several_securities_are_compared() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let shown = page(&world, "/s/COLA?range=1y&with=brk.b,+nope").await?;
    let chart = shown.between("<figure class=\"chart price\">", "</figure>")?;
    for said in ["path class=\"line line-1\"", "COLA +", "BRK.B ", "<title>14 Jun 2024: COLA "] {
        assert!(chart.contains(said), "{said}: {chart}");
    }
    let table = shown.between("aria-label=\"Table: comparison\"", "</table>")?;
    let compared = world.json("/v1/compare?symbols=COLA,BRK.B&decimals=string").await?;
    for row in compared["data"].as_array().context("rows")? {
        let (symbol, digits) = (row["symbol"].as_str(), row["metrics"]["dividend_yield"].as_str());
        let (symbol, digits) = symbol.zip(digits).context("a yield")?;
        assert!(
            table.contains(&format!(">{symbol}</th>")) && table.contains(&format!("value=\"{digits}\"")),
            "{table}"
        );
    }
    assert!(shown.has("NOPE is not a known symbol.") && shown.has("value=\"BRK.B, NOPE\""), "{}", shown.text);
    let text = "with=A1,A2,A3,A4,A5,%00,%3Cb%3E,".to_owned() + &"x,".repeat(100);
    let many = page(&world, &format!("/s/COLA?{text}")).await?;
    assert!(many.has("value=\"A1, A2, A3, A4\"") && !many.has("A5"), "{}", many.text);
    Ok(())
}

#[tokio::test]
async fn former_and_other_spellings_lead_to_the_page() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut reader = Person::at(&world.api)?;
    for (path, leads) in [
        ("/s/OLDCO", "/s/NEWCO"),
        ("/s/brk-b", "/s/BRK.B"),
        ("/s/cola?range=1y", "/s/COLA?range=1y"),
        ("/s/OLDCO/why/dps_ttm", "/s/NEWCO/why/dps_ttm"),
        ("/search?q=oldco", "/s/NEWCO"),
        ("/search?q=COLA", "/s/COLA"),
    ] {
        let moved = reader.get(path).await?;
        assert_eq!((moved.status, moved.location()), (307, leads), "{path}: {}", moved.text);
    }
    let found = reader.get("/search?q=company").await?;
    assert!(found.has("href=\"/s/COLA\"") && found.has("href=\"/s/NEWCO\""), "{}", found.text);
    assert!(reader.get("/search?q=zzzzzz").await?.has("Nothing is found"));
    // `brok` is a typing error of Brook, and `brown` only begins like it.
    assert!(reader.get("/search?q=brok").await?.has("href=\"/s/BRK.B\""));
    assert!(reader.get("/search?q=brown").await?.has("Nothing is found"));
    let unknown = reader.get("/s/COLAS").await?;
    assert!(
        unknown.status == 404 && unknown.has("<h1>No security has the symbol COLAS</h1>"),
        "{}",
        unknown.text
    );
    let main = unknown.between("<main", "</main>")?;
    assert!(main.contains("name=\"q\"") && main.contains("value=\"COLAS\""), "a search form: {main}");
    assert!(main.contains("href=\"/s/COLA\""), "a similar symbol is offered: {main}");
    let elsewhere = reader.get("/s/COLA/why/nothing").await?;
    assert!(elsewhere.status == 404 && !elsewhere.has("Similar securities"), "{}", elsewhere.text);
    Ok(())
}

#[tokio::test]
async fn a_block_is_a_file_for_spreadsheets() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut reader = Person::at(&world.api)?;
    for (file, call) in [
        (
            "/s/COLA/dividends.csv",
            "/v1/dividends/history?symbols=COLA&include_projected=true&limit=1000&format=csv",
        ),
        ("/s/COLA/splits.csv", "/v1/stocks/COLA/splits?limit=200&format=csv"),
        ("/s/FUND/holdings.csv", "/v1/etfs/FUND/holdings?limit=25&format=csv"),
        ("/s/COLA/etf-holders.csv", "/v1/stocks/COLA/etf-holders?limit=25&format=csv"),
        ("/s/COLA/metrics.csv", "/v1/stocks/COLA/metrics?format=csv"),
        ("/s/COLA/years.csv", "/v1/stocks/COLA/metrics?fields=annual_totals&format=csv"),
    ] {
        let sheet = reader.get(file).await?;
        assert_eq!(sheet.text, world.get(call).await?.text(), "{file}");
        assert!(sheet.header("content-disposition").starts_with("attachment; filename=\""), "{file}");
    }
    assert_eq!(reader.get("/s/COLA/nothing.csv").await?.status, 404);
    assert_eq!(reader.get("/s/NOPE/dividends.csv").await?.status, 404);
    Ok(())
}

#[tokio::test]
async fn search_engines_find_every_security() -> Result<()> {
    let world = World::start_with(&[("PAGES", "public"), ("PUBLIC_URL", "https://data.example.com")]).await?;
    let map = page(&world, "/sitemap.xml").await?;
    assert!(map.has("<loc>https://data.example.com/s/COLA</loc>") && !map.has("/s/GONE"), "{}", map.text);
    for path in ["/methods", "/versions"] {
        assert!(map.has(&format!("<loc>https://data.example.com{path}</loc>")), "{}", map.text);
    }
    let robots = page(&world, "/robots.txt").await?;
    assert!(robots.has("Sitemap: https://data.example.com/sitemap.xml"), "{}", robots.text);
    assert!(page(&world, "/s/COLA").await?.has("href=\"https://data.example.com/s/COLA\""));
    Ok(())
}
