//! Access control of the API: keys, the endpoints of each tier, and the length of the readable history.

use anyhow::Result;
use reqwest::Method;
use serde_json::json;

use crate::api_world::{World, check};

#[tokio::test]
async fn only_a_whole_key_opens_anything() -> Result<()> {
    let world = World::start().await?;
    let key = world.professional.clone();
    let bearer = format!("Bearer {key}");
    for path in [
        "/v1/stocks",
        "/v1//stocks",
        "/v1/stocks/",
        "/V1/stocks",
        "/v1/stocks/health",
        "/v1/nope",
        "/v1/%2e%2e/v1/stocks",
    ] {
        assert_eq!(world.api.get(path, None).await?.status, 401, "{path}");
    }
    let send = async |headers: &[(&str, &str)], path: &str| -> Result<u16> {
        let headers: Vec<(&str, String)> =
            headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Ok(world.api.send(Method::GET, path, &headers).await?.status.as_u16())
    };
    assert_eq!(send(&[("x-api-key", &key)], "/v1/stocks").await?, 200);
    assert_eq!(send(&[("authorization", &bearer), ("x-api-key", &key)], "/v1/stocks").await?, 200);
    assert_eq!(send(&[("authorization", &bearer), ("x-api-key", &world.free)], "/v1/stocks").await?, 401);
    assert_eq!(send(&[("authorization", &bearer)], &format!("/v1/stocks?api_key={key}")).await?, 401);
    assert_eq!(send(&[("authorization", "Basic Zm9v"), ("x-api-key", &key)], "/v1/stocks").await?, 401);

    world.app.create_account("k@example.com", "free").await?;
    let expired = world.app.create_key("k@example.com", "old").await?;
    world.app.sql("update accounts.api_keys set expires_at = '2020-01-02' where name = 'old'", &[]).await?;
    let deleted = world.app.create_key("k@example.com", "gone").await?;
    assert_eq!(world.api.get("/v1/stocks", Some(&deleted)).await?.status, 200);
    world.app.api(&["key", "delete", "k@example.com", "gone"]).await?.success()?;
    let unknown = format!("dds_live_{}", "0".repeat(36));
    let mut bodies = Vec::new();
    for key in [&expired, &deleted, &unknown] {
        let reply = world.api.get("/v1/stocks", Some(key)).await?;
        assert_eq!(reply.status, 401);
        bodies.push(reply.text());
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    Ok(())
}

#[tokio::test]
async fn a_change_of_tier_holds_from_the_next_request() -> Result<()> {
    let world = World::start().await?;
    world.app.create_account("t@example.com", "free").await?;
    let key = world.app.create_key("t@example.com", "k").await?;
    let path = "/v1/stocks/COLA/fundamentals";
    let (status, body) = world.refused(path, &key).await?;
    assert_eq!(status, 403);
    check(
        &body,
        json!({ "code": "FEATURE_NOT_AVAILABLE", "current_tier": "free", "required_feature": "fundamentals", "upgrade_url": "/plans" }),
    );
    world.app.api(&["account", "set-tier", "t@example.com", "starter"]).await?.success()?;
    assert_eq!(world.api.get(path, Some(&key)).await?.status, 200);
    world.app.api(&["account", "cancel", "t@example.com"]).await?.success()?;
    assert_eq!(world.api.get(path, Some(&key)).await?.status, 200);
    world
        .app
        .sql("update accounts.accounts set paid_until = now() where email = 't@example.com'", &[])
        .await?;
    assert_eq!(world.api.get(path, Some(&key)).await?.status, 403);
    world.app.api(&["account", "delete", "t@example.com"]).await?.success()?;
    assert_eq!(world.api.get(path, Some(&key)).await?.status, 401);
    Ok(())
}

#[tokio::test]
async fn history_reaches_as_far_as_the_tier() -> Result<()> {
    let world = World::start().await?;
    let floor = world.api.get("/v1/prices/COLA?limit=5000&sort=date.asc", Some(&world.free)).await?.json()?;
    check(&floor["meta"]["depth"], json!({ "from": "2023-06-17", "tier": "free" }));
    check(&floor["data"][0], json!({ "date": "2023-06-19" }));
    for path in [
        "/v1/prices/COLA?start_date=2023-06-16",
        "/v1/prices/COLA?range=2y",
        "/v1/stocks/COLA/metrics?as_of=2023-01-02",
        "/v1/stocks/COLA/splits?start_date=2020-01-01",
    ] {
        let (status, body) = world.refused(path, &world.free).await?;
        assert_eq!(status, 403, "{path}: {body}");
        check(
            &body,
            json!({ "code": "FEATURE_NOT_AVAILABLE", "required_feature": "historical_depth", "earliest_date": "2023-06-17" }),
        );
    }
    for path in
        ["/v1/prices/COLA?start_date=2023-06-17", "/v1/prices/COLA?range=1y", "/v1/prices/COLA?range=max"]
    {
        assert_eq!(world.api.get(path, Some(&world.free)).await?.status, 200, "{path}");
    }
    assert_eq!(
        world.refused("/v1/stocks/COLA/dividends?start_date=2018-01-01", &world.starter).await?.0,
        403
    );
    Ok(())
}

#[tokio::test]
async fn health_needs_no_key_and_tells_nothing_secret() -> Result<()> {
    let world = World::start().await?;
    let reply = world.api.get("/v1/health", None).await?;
    assert_eq!(reply.status, 200);
    check(&reply.json()?["data"], json!({ "status": "ok" }));
    assert!(reply.header("x-ratelimit-limit").is_some() && reply.header("x-request-id").is_some());
    assert_eq!(world.api.send(Method::POST, "/v1/health", &[]).await?.status, 401);
    Ok(())
}

#[tokio::test]
async fn the_upgrade_url_leads_to_the_plans() -> Result<()> {
    let world = World::start().await?;
    let (_, refused) = world.refused("/v1/bulk/quotes?symbols=COLA", &world.free).await?;
    let path = refused["upgrade_url"].as_str().unwrap_or_default().to_owned();
    world.app.sql("update accounts.tiers set monthly_quota = 5001 where tier = 'free'", &[]).await?;
    let api = world.app.api_serve().await?;
    let page = api.get(&path, None).await?;
    assert_eq!(page.status, 200);
    assert!(page.header("content-type").is_some_and(|kind| kind.starts_with("text/html")));
    let policy = page.header("content-security-policy").unwrap_or_default();
    assert!(policy.contains("default-src 'none'") && policy.contains("style-src 'self'"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    let text = page.text();
    for shown in [
        "free",
        "starter",
        "premium",
        "professional",
        "5,001",
        "250,000",
        "1 year<",
        "another plan",
        "<table",
    ] {
        assert!(text.to_lowercase().contains(shown), "{shown} in {text}");
    }
    assert!(!text.contains("<script>") && !text.contains("<style"), "{text}");
    Ok(())
}
