//! An instance decides by what it remembers of an account, and charges only if that still is what the store holds.
//!
//! Every account's row is left alone between calls here, so that what is remembered would be used if it could.

use anyhow::{Context, Result};
use futures::future::join_all;
use harness::{Api, TestApp};

/// A call that needs no data and counts.
const CALL: &str = "/v1/stocks?limit=1";
/// A call that the free tier does not include.
const GATED: &str = "/v1/stocks/NOPE/fundamentals";

async fn status(api: &Api, path: &str, key: &str) -> Result<u16> {
    Ok(api.get(path, Some(key)).await?.status.as_u16())
}

/// Fails when what was read of a key outlives what was read of its account: without the epoch the deleted key is used
/// again as soon as the other one made the account known anew.
#[tokio::test]
async fn a_deleted_key_stays_deleted_while_another_is_used() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    app.create_account("two@example.com", "premium").await?;
    let kept = app.create_key("two@example.com", "kept").await?;
    for (name, change) in [("deleted", "revoked_at = now()"), ("expired", "expires_at = now()")] {
        let key = app.create_key("two@example.com", name).await?;
        for key in [&key, &kept, &key] {
            assert_eq!(status(&api, CALL, key).await?, 200);
        }
        app.sql(&format!("update accounts.api_keys set {change} where name = '{name}'"), &[]).await?;
        // Until the account is known well enough again to be charged without a look.
        for _ in 0..6 {
            assert_eq!(status(&api, CALL, &kept).await?, 200);
        }
        for (key, expected) in [(&key, 401), (&kept, 200), (&key, 401)] {
            assert_eq!(status(&api, CALL, key).await?, expected, "{name}");
        }
    }
    Ok(())
}

/// Fails when one of the changes does not give the account's row a new version.
#[tokio::test]
async fn changes_of_accounts_keys_and_tiers_hold_on_the_next_request() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    app.create_account("seen@example.com", "free").await?;
    let key = app.create_key("seen@example.com", "key").await?;
    let changes = [
        ("select", GATED, 403),
        ("update accounts.accounts set tier = 'professional'", GATED, 404),
        ("update accounts.accounts set paid_until = now() - interval '1 day'", GATED, 403),
        ("update accounts.accounts set paid_until = null", GATED, 404),
        ("update accounts.tiers set monthly_quota = 0 where tier = 'professional'", CALL, 429),
        ("update accounts.tiers set monthly_quota = 999 where tier = 'professional'", CALL, 200),
        ("update accounts.api_keys set rate_per_minute = 1", CALL, 200),
        ("select", CALL, 429),
        ("update accounts.api_keys set rate_per_minute = null", CALL, 200),
        ("update accounts.api_keys set hash = sha256('another')", CALL, 401),
    ];
    for (change, path, expected) in changes {
        // Until the account is known well enough to be charged without a look.
        for _ in 0..5 {
            status(&api, CALL, &key).await?;
        }
        app.sql(change, &[]).await?;
        assert_eq!(status(&api, path, &key).await?, expected, "{change}");
    }
    Ok(())
}

/// The bucket of a key with its own rate is one, whichever instance takes from it and whoever else the account serves.
#[tokio::test]
async fn a_keys_own_bucket_is_shared_by_instances() -> Result<()> {
    let app = TestApp::start().await?;
    let apis = [app.api_serve().await?, app.api_serve().await?];
    app.create_account("own@example.com", "professional").await?;
    let whole = app.create_key("own@example.com", "whole").await?;
    let create = ["key", "create", "own@example.com", "--name", "own", "--rate-per-minute", "6", "--json"];
    let created = app.api(&create).await?.success()?.json()?;
    let own = created["secret"].as_str().context("a secret")?;
    for left in (0..6).rev() {
        let api = &apis[left % 2];
        assert_eq!(status(api, CALL, &whole).await?, 200);
        let reply = api.get(CALL, Some(own)).await?;
        let shown = reply.header("x-ratelimit-remaining").context("a header")?.parse::<usize>()?;
        // What flows in meanwhile is seen, too.
        assert_eq!(reply.status, 200);
        assert!((left..=left + 1).contains(&shown), "{shown} of {left}");
    }
    Ok(())
}

/// Calls that meet on one account over many instances are all decided, each once.
#[tokio::test]
async fn contended_calls_are_all_decided() -> Result<()> {
    let app = TestApp::start().await?;
    let (first, second, third) = (app.api_serve().await?, app.api_serve().await?, app.api_serve().await?);
    let key = app.key("professional").await?;
    for _ in 0..10 {
        let calls = (0..45).map(|number| [&first, &second, &third][number % 3].get(CALL, Some(&key)));
        for reply in join_all(calls).await {
            assert_eq!(reply?.status, 200);
        }
    }
    assert_eq!(app.sql_value::<i64>("select used from accounts.limiter").await?, 450);
    Ok(())
}
