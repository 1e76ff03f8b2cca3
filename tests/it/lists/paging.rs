//! Cursors of lists. A cursor is refused for another list or another order. While rows are added, no existing row is
//! shown twice or missed.

use anyhow::Result;
use harness::Reply;
use serde_json::{Value, json};

use super::table;
use crate::generated::Generated;

async fn reply(world: &Generated, path: &str) -> Result<Reply> {
    world.api.get(path, Some(&world.key)).await
}

#[tokio::test]
async fn a_cursor_opens_only_the_list_it_came_from() -> Result<()> {
    let world = Generated::start().await?;
    let history = "/v1/dividends/history?symbols=SPY&limit=2";
    for path in [
        "/v1/stocks?limit=2",
        "/v1/screener?limit=2&sort=name.asc",
        "/v1/sectors?limit=2",
        history,
        "/v1/search?q=synthetic&limit=2",
    ] {
        let first: Value = serde_json::from_slice(&world.body(path).await?)?;
        let cursor = first["meta"]["next_cursor"].as_str().expect("more than one page");
        assert_eq!(reply(&world, &format!("{path}&cursor={cursor}")).await?.status, 200, "{path}");
        for free in ["limit=3&", "format=json&", "decimals=string&", "fields=symbol,sector,id&"] {
            let free = if path.contains("sectors") {
                free.replace("symbol,sector,id", "sector")
            } else {
                free.replace(",sector,id", "")
            };
            let other = path.replace(
                "limit=2",
                &format!("{}limit=2", if free.starts_with("limit") { "" } else { &free }),
            );
            assert_eq!(reply(&world, &format!("{other}&cursor={cursor}")).await?.status, 200, "{other}");
        }
        let swapped = if cursor.ends_with('A') { "B" } else { "A" };
        let tampered = format!("{}{swapped}", &cursor[..cursor.len() - 4]);
        let otherwise = path.replace("limit=2", "limit=2&sort=symbol.desc").replace("&sort=name.asc", "");
        let otherwise = if path.contains("sectors") {
            "/v1/sectors?limit=2&sort=max_yield.desc".to_owned()
        } else {
            otherwise
        };
        let otherwise = if path == history { format!("{history}&sort=ex_date.asc") } else { otherwise };
        for wrong in [
            format!("{path}&cursor={tampered}"),
            format!("{path}&cursor={cursor}AAAA"),
            format!("{otherwise}&cursor={cursor}"),
            format!("/v1/etfs?limit=2&cursor={cursor}"),
        ] {
            let refused = reply(&world, &wrong).await?;
            assert_eq!(refused.status, 400, "{wrong}");
            assert_eq!(refused.json()?["code"], json!("INVALID_CURSOR"), "{wrong}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn rows_that_were_there_are_shown_once_while_others_arrive() -> Result<()> {
    let world = Generated::start().await?;
    let path = "/v1/stocks?limit=7&sort=name.asc";
    let before = table::table(&world.app, "select symbol from read_g1.stocks where is_active").await?;
    let (mut seen, mut cursor, mut page) = (Vec::new(), String::new(), 0);
    loop {
        let answer = table::answer(&world.body(&format!("{path}{cursor}")).await?)?;
        seen.extend(answer.rows.iter().map(|row| row["symbol"].written()));
        let Some(next) = answer.next_cursor else { break };
        cursor = format!("&cursor={next}");
        page += 1;
        // One of the new rows sorts before everything read so far. The other sorts after everything.
        let arrivals = [("A Arrival", "ARA"), ("Zz Arrival", "ARZ")].map(|(name, symbol)| {
            json!({ "kind": "security", "symbol": format!("{symbol}{page}"), "name": format!("{name} {page}"), "type": "stock", "currency": "USD" }).to_string()
        });
        let feed = world.app.folder().join(format!("arrivals-{page}.ndjson"));
        std::fs::write(&feed, arrivals.join("\n"))?;
        world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "demo"]).await?.success()?;
        world.app.catch_up().await?;
    }
    for row in &before {
        let symbol = row["symbol"].written();
        assert_eq!(seen.iter().filter(|shown| **shown == symbol).count(), 1, "{symbol}");
    }
    let unique: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len(), "nothing is shown twice: {seen:?}");
    assert!(
        seen.iter().any(|symbol| symbol.starts_with("ARZ")),
        "late arrivals ahead of the cursor are shown"
    );
    assert!(!seen.iter().any(|symbol| symbol.starts_with("ARA")), "and none behind it");
    Ok(())
}
