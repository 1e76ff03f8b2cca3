//! Page with the quality of the data.

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::json;

use super::PUBLIC;
use crate::api_world::World;
use crate::dashboard::visitor::Person;

fn delisted(page: &str) -> Option<&str> {
    page.split_once("<dt>Delisted securities</dt><dd>")?.1.split('<').next()
}

#[tokio::test]
async fn the_counts_are_computed_once_for_a_data_version() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut holder = Person::signed_up(&world.api, "quality@example.com").await?;
    let first = Person::at(&world.api)?.get("/quality").await?;
    assert_eq!(delisted(&first.text), Some("1"), "{}", first.text);
    // A change of the table without a data version shows who computes the counts anew.
    let change = "update read_g1.stocks set is_active = false where symbol = 'COLA'";
    world.app.sql(change, &[]).await?;
    assert_eq!(delisted(&holder.get("/quality").await?.text), Some("1"));
    let hosted = [("host", "other.example".to_owned())];
    let other = world.api.send(Method::GET, "/quality", &hosted).await?;
    assert!(other.text().contains("http://other.example/quality"), "{}", other.text());
    assert_eq!(delisted(&other.text()), Some("1"));

    let feed = world.app.folder().join("more.ndjson");
    let dividend = json!({ "kind": "dividend", "symbol": "BRK.B", "id": "b1", "ex_date": "2024-06-13", "amount": "0.5" });
    std::fs::write(&feed, dividend.to_string())?;
    world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
    world.app.catch_up().await?;
    harness::eventually(std::time::Duration::from_secs(60), async || {
        let page = holder.get("/quality").await?;
        ensure!(delisted(&page.text) == Some("2"), "{}", page.text);
        Ok(())
    })
    .await
}
