//! Cells: one value of a security as plain text, for spreadsheets.

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::Value;

use crate::api_world::World;

/// Cell with the key of the highest tier.
async fn cell(world: &World, path: &str) -> Result<String> {
    let reply = world.api.get(&format!("/feed/{}/cell/{path}", world.professional), None).await?;
    ensure!(reply.status == 200, "{path}: {} {}", reply.status, reply.text());
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"), "{path}");
    assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()), "{path}");
    Ok(reply.text())
}

/// Text of the API's value, with all its digits.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[tokio::test]
async fn a_cell_is_a_value_of_the_api() -> Result<()> {
    let world = World::start().await?;
    let resources =
        [("metrics", "/metrics"), ("quote", "/quote"), ("stock", ""), ("fundamentals", "/fundamentals")];
    let mut fields = std::collections::BTreeSet::new();
    let mut empty = 0;
    for (name, path) in resources {
        let row = world.json(&format!("/v1/stocks/COLA{path}?decimals=string")).await?["data"].take();
        for (field, value) in row.as_object().context("a row")? {
            if !fields.insert(field.clone()) || value.is_object() || value.is_array() {
                continue;
            }
            let expected = if value.is_null() { String::new() } else { text_of(value) };
            assert_eq!(cell(&world, &format!("COLA/{field}")).await?, expected, "{name} {field}");
            empty += i32::from(value.is_null());
        }
    }
    ensure!(fields.len() > 90 && empty > 5, "{} fields, {empty} of them null", fields.len());
    // A symbol in another spelling, a past day, and text that a spreadsheet would run as a formula.
    assert_eq!(cell(&world, "brk%2Fb/symbol").await?, "BRK.B");
    let past = world.json("/v1/stocks/COLA/metrics?as_of=2024-01-10&decimals=string").await?;
    let past = text_of(&past["data"]["dividend_yield"]);
    assert_eq!(cell(&world, "COLA/dividend_yield?as_of=2024-01-10").await?, past);
    assert_eq!(cell(&world, "NEWCO/name").await?, "'=New Company");
    Ok(())
}

#[tokio::test]
async fn a_cell_is_one_call_with_the_limits_of_the_key() -> Result<()> {
    let world = World::start().await?;
    let key = &world.free;
    let get = async |path: &str| world.api.get(&format!("/feed/{key}/cell/{path}"), None).await;
    let first = get("COLA/dividend_yield").await?;
    assert_eq!((first.status.as_u16(), first.header("cache-control")), (200, Some("private, max-age=60")));
    let left = |reply: &harness::Reply| -> Result<i64> {
        Ok(reply.header("x-quota-remaining").context("a quota")?.parse()?)
    };
    // Of the quote, the stock and the metrics; an error is not counted.
    assert_eq!(left(&get("COLA/pe_ratio").await?)?, left(&first)? - 1);
    let unknown = get("COLA/nope").await?;
    assert_eq!((unknown.status.as_u16(), left(&unknown)?), (400, left(&first)? - 1));
    let body = unknown.json()?;
    assert_eq!((&body["code"], &body["param"]), (&"INVALID_PARAMETER".into(), &"field".into()));
    for field in ["dividend_yield", "volume", "industry", "gross_margin"] {
        ensure!(body["allowed"].as_array().is_some_and(|all| all.contains(&field.into())), "{field}: {body}");
    }
    assert_eq!(get("NOPE/price").await?.status, 404);
    for query in ["limit=5", "format=csv", "fields=name"] {
        assert_eq!(get(&format!("COLA/price?{query}")).await?.status, 400, "{query}");
    }
    // The plan decides, as for the endpoint.
    assert_eq!(get("COLA/gross_margin").await?.status, 403);
    assert_eq!(get("COLA/dividend_yield?as_of=2010-01-04").await?.status, 403);
    for field in ["price", "nope"] {
        let path = format!("/feed/dds_live_wrong/cell/COLA/{field}");
        assert_eq!(world.api.get(&path, None).await?.status, 401, "{field}");
    }
    let tag = [("if-none-match", first.header("etag").context("an entity tag")?.to_owned())];
    let path = format!("/feed/{key}/cell/COLA/dividend_yield");
    let again = world.api.send(Method::GET, &path, &tag).await?;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    ensure!(!world.api.process.log().contains(key), "the key is in the log");
    Ok(())
}
