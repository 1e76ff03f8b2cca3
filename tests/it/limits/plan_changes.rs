//! Limits after a new month, a change of the clock, another tier or another key.

use super::*;

/// A new month restores the quota. A clock that was set back restores neither the quota nor the rate limit.
#[tokio::test]
async fn months_and_clocks_only_move_forward() -> Result<()> {
    let cluster = Cluster::start(2).await?;
    let key = cluster.account("month@example.com", "free").await?;
    let remaining = async |change: &str| -> Result<(u16, Option<String>)> {
        cluster.limiter(change).await?;
        let reply = cluster.apis[0].get(CALL, Some(&key)).await?;
        Ok((reply.status.as_u16(), reply.header("x-quota-remaining").map(str::to_owned)))
    };
    let full = "tokens = 20 * 60000000, at = clock_timestamp()";
    let seen = remaining(&format!("{full}, used = 5000, month = month - interval '1 month'")).await?;
    assert_eq!(seen, (200, Some("4999".to_owned())), "a new month begins with the whole quota");
    let seen = remaining(&format!("{full}, used = 5000, month = month + interval '1 month'")).await?;
    assert_eq!(seen, (429, Some("0".to_owned())), "a clock that went back brings no second month");
    let seen = remaining(&format!("{full}, used = 0, month = date_trunc('month', now() at time zone 'utc')"))
        .await?;
    assert_eq!(seen.0, 200);
    // The clock was set back by an hour. This refills no tokens. The refused call stores the new time, so the bucket
    // then refills at its usual rate.
    assert_eq!(remaining("tokens = 0, at = clock_timestamp() + interval '1 hour'").await?.0, 429);
    assert_eq!(remaining("at = at - interval '7 seconds'").await?.0, 200);
    // A clock that jumps ahead fills the bucket, but not beyond its size.
    cluster.limiter("tokens = 0, at = at - interval '1 year'").await?;
    let started = Instant::now();
    let passed = count(&cluster.burst(&[&key], 40).await?, 200);
    let refilled = usize::try_from(started.elapsed().as_secs() / 6)?;
    assert!((20..=20 + refilled).contains(&passed), "{passed}");
    Ok(())
}

#[tokio::test]
async fn a_downgrade_keeps_what_is_used() -> Result<()> {
    let cluster = Cluster::start(1).await?;
    let key = cluster.account("down@example.com", "professional").await?;
    cluster.limiter("used = 60000, tokens = 590 * 60000000::bigint, at = clock_timestamp()").await?;
    cluster.app.api(&["account", "set-tier", "down@example.com", "starter"]).await?.success()?;
    let reply = cluster.apis[0].get(CALL, Some(&key)).await?;
    assert_eq!(reply.status, 429);
    let usage = json!({ "current": 60_000, "limit": 50_000, "percentage": 120 });
    assert_eq!(reply.json()?["usage"], usage);
    // Before the downgrade, ten of the 600 tokens were used. The new bucket has 60 tokens, so fifty were left before
    // this call.
    let tokens: f64 = cluster.app.sql_value("select tokens / 6e7::float8 from accounts.limiter").await?;
    assert!((49.0..60.0).contains(&tokens), "{tokens}");
    cluster.app.api(&["account", "set-tier", "down@example.com", "premium"]).await?.success()?;
    assert_eq!(cluster.apis[0].get(CALL, Some(&key)).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn changes_hold_on_the_next_request_everywhere() -> Result<()> {
    let cluster = Cluster::start(3).await?;
    let key = cluster.account("now@example.com", "free").await?;
    let gated = "/v1/stocks/NOPE/fundamentals";
    let everywhere = async |path: &str, key: &str, status: u16| -> Result<()> {
        cluster.limiter("at = at - interval '5 minutes'").await?;
        assert_eq!(cluster.statuses(path, key).await?, [status; 3], "{path}");
        Ok(())
    };
    let api = async |arguments: &[&str]| -> Result<Value> {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        cluster.app.api(&arguments).await?.success()?.json()
    };
    everywhere(gated, &key, 403).await?;
    api(&["account", "set-tier", "now@example.com", "starter"]).await?;
    everywhere(gated, &key, 404).await?;
    let cancelled = api(&["account", "cancel", "now@example.com"]).await?;
    assert!(cancelled["paid_until"].is_string(), "{cancelled}");
    everywhere(gated, &key, 404).await?;
    cluster.app.sql("update accounts.accounts set paid_until = clock_timestamp()", &[]).await?;
    everywhere(gated, &key, 403).await?;

    let rolled = api(&["key", "re-roll", "now@example.com", "first", "--overlap", "1h"]).await?;
    let second = rolled["secret"].as_str().context("a secret")?.to_owned();
    everywhere(CALL, &key, 200).await?;
    everywhere(CALL, &second, 200).await?;
    cluster
        .app
        .sql("update accounts.api_keys set expires_at = clock_timestamp() where expires_at is not null", &[])
        .await?;
    everywhere(CALL, &key, 401).await?;
    everywhere(CALL, &second, 200).await?;
    let rolled = api(&["key", "re-roll", "now@example.com", "first"]).await?;
    let third = rolled["secret"].as_str().context("a secret")?.to_owned();
    everywhere(CALL, &second, 401).await?;
    everywhere(CALL, &third, 200).await?;
    api(&["key", "delete", "now@example.com", "first"]).await?;
    everywhere(CALL, &third, 401).await?;
    let fourth = cluster.app.create_key("now@example.com", "fourth").await?;
    everywhere(CALL, &fourth, 200).await?;
    api(&["account", "delete", "now@example.com"]).await?;
    everywhere(CALL, &fourth, 401).await?;
    Ok(())
}

#[tokio::test]
async fn the_quota_may_count_paid_endpoints_only() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&[("QUOTA_CHECK", "min_tier")]).await?;
    let key = app.key("starter").await?;
    for (path, remaining) in [(CALL, "50000"), ("/v1/stocks/NOPE/fundamentals", "49999")] {
        let reply = api.get(path, Some(&key)).await?;
        assert_eq!(reply.header("x-quota-remaining"), Some(remaining), "{path}");
    }
    Ok(())
}
