//! Access to the market pages. The operator disables the pages, or permits them for account holders or for everyone.
//! Plans limit the history.

use anyhow::{Result, ensure};
use harness::TestApp;
use serde_json::json;

use super::{PUBLIC, page};
use crate::api_world::World;
use crate::dashboard::visitor::Person;

const PATHS: [&str; 5] =
    ["/s/COLA", "/s/COLA/why/dividend_yield", "/s/COLA/dividends.csv", "/search?q=company", "/income"];

#[tokio::test]
async fn the_operator_chooses_the_readers() -> Result<()> {
    let world = World::start_with(&[("SIGN_UP", "open")]).await?;
    for path in PATHS {
        assert_eq!(Person::at(&world.api)?.get(path).await?.status, 404, "{path}");
    }
    assert!(!Person::at(&world.api)?.get("/").await?.has("role=\"search\""));

    let held = world.app.api_serve_with(&[("PAGES", "signed_in"), ("SIGN_UP", "open")]).await?;
    let (mut stranger, mut holder) = (Person::at(&held)?, Person::signed_up(&held, "a@example.com").await?);
    for path in PATHS {
        let page = stranger.get(path).await?;
        ensure!(
            page.status == 303 && page.location().starts_with("/sign-in?next=%2F"),
            "{path}: {}",
            page.status
        );
        assert_eq!(holder.get(path).await?.status, 200, "{path}");
    }
    assert!(!stranger.get("/plans").await?.has("role=\"search\""));
    assert!(holder.get("/plans").await?.has("role=\"search\""));

    let alone = world.app.api_serve_with(&[("PAGES", "public"), ("DASHBOARD", "off")]).await?;
    for path in PATHS {
        let page = Person::at(&alone)?.get(path).await?;
        ensure!(page.status == 200 && !page.has("/sign-in"), "{path}: {}", page.text);
    }
    Ok(())
}

#[tokio::test]
async fn a_reader_sees_the_history_of_the_plan() -> Result<()> {
    let world =
        World::start_with(&[("PAGES", "public"), ("SIGN_UP", "open"), ("BILLING", "self_service")]).await?;
    let free = page(&world, "/s/COLA").await?;
    // The free plan shows one year: the dividends of that year, one range of prices, and nothing older.
    assert!(free.has("datetime=\"2023-09-13\"") && !free.has("datetime=\"2023-06-13\""), "{}", free.text);
    assert!(!free.has("range=10y"), "{}", free.text);
    assert!(!page(&world, "/s/COLA?range=10y").await?.has("range=10y"));

    let mut holder = Person::signed_up(&world.api, "b@example.com").await?;
    holder.fill("/dashboard/plan", "/dashboard/plan", &[("tier", "premium")]).await?;
    let premium = holder.get("/s/COLA?range=10y").await?;
    assert!(
        premium.has("range=10y&amp;prices=raw") && premium.has("datetime=\"2004-03-13\""),
        "{}",
        premium.text
    );
    assert!(premium.has("b@example.com") && !page(&world, "/s/COLA?range=10y").await?.has("b@example.com"));
    Ok(())
}

#[tokio::test]
async fn pages_have_an_address_limit_of_their_own() -> Result<()> {
    let world =
        World::start_with(&[("PAGES", "public"), ("PAGES_PER_MINUTE", "1"), ("PAGES_BURST", "3")]).await?;
    let mut reader = Person::at(&world.api)?;
    let mut statuses = vec![];
    for _ in 0..4 {
        statuses.push(reader.get("/s/COLA").await?.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
    let refused = reader.get("/income").await?;
    assert!(refused.has("Too many pages") && !refused.header("retry-after").is_empty(), "{}", refused.text);
    assert_eq!(reader.get("/plans").await?.status, 200, "the limit is of the market pages");
    assert_eq!(world.api.get("/v1/stocks/COLA", Some(&world.free)).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn pages_cost_no_account_anything_and_follow_the_data() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let before = page(&world, "/s/BRK.B").await?;
    assert!(before.has("No dividends are known"), "{}", before.text);
    let calls = "select count(*) from accounts.calls";
    assert_eq!(world.app.sql_value::<i64>(calls).await?, 0);

    let feed = world.app.folder().join("more.ndjson");
    let dividend = json!({ "kind": "dividend", "symbol": "BRK.B", "id": "b1", "ex_date": "2024-06-13", "amount": "0.5", "frequency": "quarterly" });
    std::fs::write(&feed, dividend.to_string())?;
    world.app.ingest(&["load", &feed.to_string_lossy(), "--source", "test"]).await?.success()?;
    world.app.catch_up().await?;
    harness::eventually(std::time::Duration::from_secs(120), async || {
        let after = page(&world, "/s/BRK.B").await?;
        ensure!(after.has("datetime=\"2024-06-13\""), "{}", after.text);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pages_are_as_safe_as_the_dashboard() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    for path in
        PATHS.iter().copied().chain(["/s/NOPE", "/s/%FF", "/s/%00", "/search?q=%3Cb%3E", "/s/COLA/why/nope"])
    {
        let page = Person::at(&world.api)?.get(path).await?;
        ensure!(page.status < 500, "{path}: {} {}", page.status, page.text);
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(
            (page.header("x-frame-options"), page.header("cache-control")),
            ("DENY", "no-store"),
            "{path}"
        );
        assert!(!page.has("style=\"") && !page.has("<b>") && !page.has("onclick"), "{path}: {}", page.text);
    }
    // The page for a forged `Host` header is not returned to other clients.
    let hosted = [("host", "evil.example".to_owned())];
    let other = world.api.send(reqwest::Method::GET, "/s/COLA", &hosted).await?;
    assert!(other.text().contains("http://evil.example/s/COLA"));
    assert!(!page(&world, "/s/COLA").await?.has("evil.example"));
    Ok(())
}

#[tokio::test]
async fn no_page_waits_for_a_frozen_database() -> Result<()> {
    let servers = harness::Servers::private().await?;
    let world = World::start_in(TestApp::builder().servers(&servers), &PUBLIC).await?;
    page(&world, "/s/COLA").await?;
    servers.postgres.freeze().await?;
    let fresh = Person::at(&world.api)?.get("/s/FUND").await?;
    ensure!(fresh.status == 503, "{}", fresh.status);
    servers.postgres.thaw().await
}
