//! Addresses of securities: identifiers and markets name a security wherever a symbol does.

use anyhow::{Context, Result};
use harness::Reply;
use serde_json::{Value, json};

use crate::api_contract::{filled, needed};
use crate::api_world::{TODAY, World, check};
use crate::dashboard::visitor::Person;
use crate::market_pages::PUBLIC;
use crate::mcp;

fn security(symbol: &str, kind: &str, exchange: &str, currency: &str, isin: &str) -> Value {
    json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": kind, "exchange": exchange,
            "currency": currency, "isin": isin, "sector": "Financials", "country": "US" })
}

fn close(symbol: &str) -> Value {
    json!({ "kind": "price", "symbol": symbol, "date": "2024-06-14", "close": "50" })
}

async fn load(world: &World, name: &str, records: &[Value]) -> Result<()> {
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    world.app.feed(name, lines.join("\n")).source("manual").today(TODAY).apply().await
}

/// Starts the world, in which `COLA` and `FUND` get identifiers.
async fn identified() -> Result<World> {
    let world = World::start_with(&PUBLIC).await?;
    let mut cola = security("COLA", "stock", "XNYS", "USD", "US1912161007");
    cola["figi"] = json!("BBG000BMX289");
    load(&world, "ids.ndjson", &[cola, security("FUND", "etf", "XNYS", "USD", "US9229087690")]).await?;
    Ok(world)
}

/// Loads three listings with one ISIN, two of them on one market.
async fn load_listings(world: &World) -> Result<()> {
    let listings = [("VUSA", "XLON", "GBP"), ("VUSD", "XLON", "USD"), ("VUSA.AS", "XAMS", "EUR")];
    let records = listings.map(|(symbol, exchange, currency)| {
        [security(symbol, "etf", exchange, currency, "IE00B3XXRP09"), close(symbol)]
    });
    load(world, "listings.ndjson", records.as_flattened()).await
}

/// Paths of the operations with a symbol as a parameter. In each path, `replace` exchanges `COLA` or `FUND`.
async fn operations(world: &World) -> Result<Vec<(String, Value)>> {
    let document = world.api.get("/openapi.json", None).await?.json()?;
    let mut found = Vec::new();
    for (path, operation) in document["paths"].as_object().context("paths")? {
        let operation = &operation["get"];
        let names =
            operation["parameters"].as_array().into_iter().flatten().filter_map(|p| p["name"].as_str());
        let names: Vec<&str> = names.collect();
        if !["symbol", "symbols", "holdings"].iter().any(|name| names.contains(name)) {
            continue;
        }
        let required = needed(path);
        let query = match required.contains("COLA") || path.contains("{symbol}") {
            true => required.to_owned(),
            false => "symbols=COLA".to_owned(),
        };
        found.push((format!("{}?{query}", filled(path)), json!(names)));
    }
    assert!(found.len() >= 25, "{found:?}");
    Ok(found)
}

/// Path with another address instead of `COLA` or `FUND`.
fn addressed(path: &str, cola: &str, fund: &str) -> String {
    path.replace("/COLA", &format!("/{cola}"))
        .replace("=COLA", &format!("={cola}"))
        .replace("/FUND", &format!("/{fund}"))
}

/// Body without the delays of a stream, which are random, and without the cursor, which depends on the request.
fn body(reply: &Reply) -> String {
    let text = reply.text();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("retry: ")).collect();
    let text = lines.join("\n");
    match text.split_once("\"next_cursor\":\"") {
        Some((before, rest)) => format!("{before}{}", rest.split_once('"').map_or("", |(_, after)| after)),
        None => text,
    }
}

/// Address in each form: of `COLA`, and of `FUND`.
const ADDRESSES: [(&str, &str); 7] = [
    ("cola@xnys", "fund@xnys"),
    ("US1912161007", "US9229087690"),
    ("isin:us1912161007", "isin:us9229087690"),
    ("isin:US1912161007@XNYS", "isin:US9229087690@XNYS"),
    ("US1912161007@XNYS", "US9229087690@XNYS"),
    ("cusip:191216100", "cusip:922908769"),
    ("CUSIP:191216100@XNYS", "CUSIP:922908769@XNYS"),
];

#[tokio::test]
async fn every_operation_answers_each_address_like_the_symbol() -> Result<()> {
    let world = identified().await?;
    let before = world.json("/v1/stocks/COLA/quote").await?;
    let version = before["meta"]["data_version"].as_str().context("a version")?.to_owned();
    load(&world, "later.ndjson", &[close("COLA")]).await?;
    for (path, names) in operations(&world).await? {
        let has_versions = names.as_array().is_some_and(|names| names.contains(&json!("data_version")));
        let earlier = has_versions.then(|| format!("{path}&data_version={version}"));
        for path in [Some(path), earlier].into_iter().flatten() {
            let expected = world.get(&path).await?;
            assert_eq!(expected.status, 200, "{path}: {}", expected.text());
            for (cola, fund) in ADDRESSES {
                let path = addressed(&path, cola, fund);
                let found = world.get(&path).await?;
                assert_eq!((found.status, body(&found)), (expected.status, body(&expected)), "{path}");
            }
        }
    }
    let by_figi = world.json("/v1/stocks/figi:BBG000BMX289/quote").await?;
    assert_eq!(by_figi, world.json("/v1/stocks/COLA/quote").await?);
    Ok(())
}

#[tokio::test]
async fn unknown_addresses_are_missing_and_wrong_ones_are_refused() -> Result<()> {
    let world = identified().await?;
    for (path, _) in operations(&world).await? {
        for wrong in
            ["isin:US1912161008", "US1912161008", "cusip:191216101", "figi:BBG000BMX288", "COLA@NYSE1"]
        {
            let path = addressed(&path, wrong, wrong);
            let (status, body) = world.refused(&path, &world.professional).await?;
            assert_eq!(status, 400, "{path}: {body}");
            let is_named =
                ["check digit", "MIC"].iter().any(|cause| body["error"].to_string().contains(cause));
            assert!(is_named && body["code"] == "INVALID_PARAMETER", "{path}: {body}");
        }
    }
    for unknown in ["isin:US5949181045", "US5949181045", "COLA@XLON", "figi:BBG000B9XRY4", "sedol:B0YBKJ7"] {
        let (status, body) =
            world.refused(&format!("/v1/stocks/{unknown}/quote"), &world.professional).await?;
        assert_eq!(status, 404, "{body}");
        let listed = world.json(&format!("/v1/dividends/history?symbols=US1912161007,{unknown}")).await?;
        assert_eq!(listed["meta"]["missing"], json!([unknown]));
        assert_eq!(listed["data"][0]["symbol"], "COLA");
    }
    let income = world.json("/v1/portfolio/income?holdings=isin:US1912161007:10:500,US5949181045:1").await?;
    assert_eq!(income["data"]["holdings"][0]["symbol"], "COLA");
    check(&income["data"]["gaps"][0], json!({ "symbol": "US5949181045", "reason": "unknown_symbol" }));
    Ok(())
}

#[tokio::test]
async fn several_listings_of_an_isin_are_named_and_none_is_chosen() -> Result<()> {
    let world = identified().await?;
    load(&world, "one.ndjson", &[security("VUSA", "etf", "XLON", "GBP", "IE00B3XXRP09"), close("VUSA")])
        .await?;
    let one = world.json("/v1/stocks/IE00B3XXRP09").await?["data"].take();
    check(
        &one,
        json!({ "symbol": "VUSA", "listings": [{ "symbol": "VUSA", "exchange": "XLON", "currency": "GBP" }] }),
    );
    load_listings(&world).await?;
    let candidates = json!([
        { "symbol": "VUSA", "exchange": "XLON", "currency": "GBP" },
        { "symbol": "VUSA.AS", "exchange": "XAMS", "currency": "EUR" },
        { "symbol": "VUSD", "exchange": "XLON", "currency": "USD" },
    ]);
    for (path, names) in operations(&world).await? {
        for address in ["IE00B3XXRP09", "isin:IE00B3XXRP09"] {
            let path = addressed(&path, address, address);
            let (status, body) = world.refused(&path, &world.professional).await?;
            assert_eq!(status, 400, "{path}: {body}");
            let param = body["param"].as_str().context("a parameter")?;
            assert!(names.as_array().is_some_and(|names| names.contains(&json!(param))), "{path}: {body}");
            check(&body, json!({ "code": "AMBIGUOUS_SYMBOL", "candidates": candidates }));
            assert_eq!(body["allowed"], json!(["VUSA", "VUSA.AS", "VUSD"]));
        }
    }
    for (address, symbol) in
        [("IE00B3XXRP09@XAMS", "VUSA.AS"), ("isin:ie00b3xxrp09@xams", "VUSA.AS"), ("VUSD@XLON", "VUSD")]
    {
        let found = world.json(&format!("/v1/stocks/{address}")).await?["data"].take();
        check(&found, json!({ "symbol": symbol, "listings": candidates }));
    }
    let (status, body) = world.refused("/v1/stocks/IE00B3XXRP09@XLON", &world.professional).await?;
    assert_eq!((status, &body["allowed"]), (400, &json!(["VUSA", "VUSD"])));

    // A delisted listing leaves the identifier to the others, and a corrected ISIN too.
    let mut gone = security("VUSD", "etf", "XLON", "USD", "IE00B3XXRP09");
    (gone["status"], gone["delisted_on"]) = (json!("delisted"), json!("2024-06-13"));
    load(&world, "gone.ndjson", &[gone]).await?;
    assert_eq!(world.json("/v1/stocks/IE00B3XXRP09@XLON").await?["data"]["symbol"], "VUSA");
    load(&world, "corrected.ndjson", &[security("VUSA.AS", "etf", "XAMS", "EUR", "US5949181045")]).await?;
    assert_eq!(world.json("/v1/stocks/IE00B3XXRP09").await?["data"]["symbol"], "VUSA");
    assert_eq!(world.json("/v1/stocks/US5949181045").await?["data"]["symbol"], "VUSA.AS");
    Ok(())
}

#[tokio::test]
async fn an_identifier_follows_a_rename_and_a_former_symbol_has_the_market_too() -> Result<()> {
    let world = identified().await?;
    let mut renamed = security("SODA", "stock", "XNYS", "USD", "US1912161007");
    renamed["former_symbols"] = json!([{ "symbol": "COLA", "to": "2024-06-13" }]);
    let retract = json!({ "kind": "security", "symbol": "COLA", "action": "retract" });
    load(&world, "renamed.ndjson", &[retract, renamed]).await?;
    for address in ["US1912161007", "COLA", "COLA@XNYS", "SODA@XNYS"] {
        let quote = world.json(&format!("/v1/stocks/{address}/quote")).await?;
        assert_eq!(quote["data"]["symbol"], "SODA", "{address}");
    }
    Ok(())
}

#[tokio::test]
async fn commands_tools_and_pages_accept_an_address() -> Result<()> {
    let world = identified().await?;
    load_listings(&world).await?;
    let explained =
        world.app.projector(&["explain", "isin:US1912161007", "dividend_yield", "--json"]).await?;
    let by_symbol = world.app.projector(&["explain", "COLA", "dividend_yield", "--json"]).await?;
    assert_eq!(explained.json()?, by_symbol.json()?);
    let version = world.json("/v1/stocks/COLA/quote").await?["meta"]["data_version"]
        .as_str()
        .context("a version")?
        .to_owned();
    let known = world.app.projector(&["explain", "COLA@XNYS", "--known-at", &version, "--json"]).await?;
    assert_eq!(known.json()?["symbol"], "COLA");
    let listed = world.app.projector(&["quarantine", "list", "--symbol", "US1912161007", "--json"]).await?;
    listed.success()?;
    let refused = world.app.projector(&["explain", "isin:IE00B3XXRP09"]).await?;
    assert!(refused.code != 0 && refused.stderr.contains("VUSA.AS (XAMS, EUR)"), "{}", refused.stderr);

    let arguments = json!({ "symbol": "isin:US1912161007", "view": "metrics", "fields": ["symbol"] });
    let (answer, is_error) = mcp::call(&world, &world.free, "security", arguments).await?;
    assert!(!is_error && answer["data"]["symbol"] == "COLA", "{answer}");

    let mut reader = Person::at(&world.api)?;
    for (path, location) in [
        ("/s/isin:US1912161007", "/s/COLA"),
        ("/s/COLA@XNYS", "/s/COLA"),
        ("/search?q=US1912161007", "/s/US1912161007"),
        ("/search?q=IE00B3XXRP09", "/s/IE00B3XXRP09"),
    ] {
        let page = reader.get(path).await?;
        assert_eq!((page.status / 100, page.location()), (3, location), "{}", page.text);
    }
    let page = reader.get("/s/IE00B3XXRP09").await?;
    assert_eq!(page.status, 300, "{}", page.text);
    for symbol in ["VUSA", "VUSA.AS", "VUSD"] {
        assert!(page.text.contains(&format!("href=\"/s/{symbol}\"")), "{}", page.text);
    }
    let page = reader.get("/s/VUSA").await?;
    assert!(page.text.contains("3 listings") && page.text.contains("href=\"/s/VUSD\""), "{}", page.text);
    assert!(page.text.contains(">London Stock Exchange</abbr> · USD"), "{}", page.text);
    let file = reader.get("/s/US1912161007/dividends.csv").await?;
    assert_eq!(file.text, reader.get("/s/COLA/dividends.csv").await?.text);
    Ok(())
}
