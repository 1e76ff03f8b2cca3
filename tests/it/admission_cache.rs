//! Cache of accounts in an API instance. A cached account is charged only if its row in Postgres still permits the
//! call.
//!
//! Most tests first make several calls, which put the account into the cache.

use anyhow::{Context, Result};
use futures::future::join_all;
use harness::{Api, TestApp};

use crate::metrics::scrape;

/// Path of a call that counts against the quota. The call succeeds even if no market data is loaded.
const CALL: &str = "/v1/stocks?limit=1";
/// Path that the free tier may not call.
const GATED: &str = "/v1/stocks/NOPE/fundamentals";

async fn status(api: &Api, path: &str, key: &str) -> Result<u16> {
    Ok(api.get(path, Some(key)).await?.status.as_u16())
}

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
        // The account is cached again after these calls.
        for _ in 0..6 {
            assert_eq!(status(&api, CALL, &kept).await?, 200);
        }
        for (key, expected) in [(&key, 401), (&kept, 200), (&key, 401)] {
            assert_eq!(status(&api, CALL, key).await?, expected, "{name}");
        }
    }
    Ok(())
}

/// Each change must increase `plan_version` in the account's row. Otherwise, the next request uses the cached account.
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
        // The account is cached after these calls.
        for _ in 0..5 {
            status(&api, CALL, &key).await?;
        }
        app.sql(change, &[]).await?;
        assert_eq!(status(&api, path, &key).await?, expected, "{change}");
    }
    Ok(())
}

/// A key with its own rate limit has one token bucket, which all instances share. Calls with other keys of the account
/// do not use up this bucket.
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
        // The bucket may have been refilled by one token since the first call with this key.
        assert_eq!(reply.status, 200);
        assert!((left..=left + 1).contains(&shown), "{shown} of {left}");
    }
    Ok(())
}

/// Concurrent calls of one account on several instances are all accepted, and each call is counted once.
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

/// Calls are subtracted from the database row, not from the cached number. Other instances also change the row.
#[tokio::test]
async fn calls_are_taken_from_what_others_left() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let key = app.key("free").await?;
    let left = "select tokens, extract(epoch from at)::float8, used, month::text, cap from accounts.limiter";
    let others = [
        ("tokens = 17.25, at = clock_timestamp(), used = 40", 200),
        ("tokens = 3, at = clock_timestamp() - interval '20 seconds'", 200),
        ("tokens = 0.5, at = clock_timestamp() - interval '1 hour', used = used + 1", 200),
        // The clock of another instance is ahead.
        ("tokens = 2, at = clock_timestamp() + interval '500 milliseconds'", 200),
        ("tokens = 0.25, at = clock_timestamp()", 429),
        ("tokens = 10, used = 4999", 200),
        ("tokens = 10, used = 5000", 429),
        ("tokens = 10, used = 5000, month = month - interval '1 month'", 200),
        // The bucket has the size of another tier, and 7 of its 40 calls are used.
        ("tokens = 33, cap = 40, at = clock_timestamp()", 200),
    ];
    for (change, expected) in others {
        // The update and the two calls put the account into the cache, with more remaining calls than after the change.
        app.sql(
            "update accounts.limiter set tokens = 20, cap = 20, used = 0, at = clock_timestamp(),
               month = date_trunc('month', now() at time zone 'utc')",
            &[],
        )
        .await?;
        for _ in 0..2 {
            assert_eq!(status(&api, CALL, &key).await?, 200);
        }
        app.sql(&format!("update accounts.limiter set {change}"), &[]).await?;
        let before = app.sql(left, &[]).await?.pop().context("a row")?;
        assert_eq!(status(&api, CALL, &key).await?, expected, "{change}");
        let after = app.sql(left, &[]).await?.pop().context("a row")?;
        let number = |row: &tokio_postgres::Row, column| row.try_get::<_, f64>(column);
        let cap: i32 = before.try_get(4)?;
        let held = (number(&before, 0)? + f64::from(20 - cap)).max(0.0);
        // The bucket is refilled by ten calls a minute, up to twenty.
        let flowed = (number(&after, 1)? - number(&before, 1)?).max(0.0) / 6.0;
        let (used, month): (i64, String) = (before.try_get(2)?, before.try_get(3)?);
        let used = if after.try_get::<_, String>(3)? == month { used } else { 0 };
        // A call that exceeds the quota still takes a token from the bucket.
        let taken = if change.contains("0.25") { 0.0 } else { 1.0 };
        let expected_tokens = (held + flowed).min(20.0) - taken;
        assert!((number(&after, 0)? - expected_tokens).abs() < 1e-5, "{change}: {after:?} {expected_tokens}");
        assert_eq!(after.try_get::<_, i64>(2)?, used + i64::from(expected == 200), "{change}");
    }
    Ok(())
}

/// Several instances charge the same account in turn. Fails if one of the calls needs more than one SQL statement.
#[tokio::test]
async fn an_account_of_many_instances_costs_a_statement_a_call() -> Result<()> {
    let app = TestApp::start().await?;
    let (mut apis, mut figures) = (vec![], vec![]);
    for _ in 0..3 {
        let address = app.free_address()?;
        apis.push(app.api_serve_with(&[("METRICS_LISTEN", &address)]).await?);
        figures.push(address);
    }
    let key = app.key("premium").await?;
    let statements = async || {
        let mut statements = 0.0;
        for address in &figures {
            statements += scrape(address).await?.value("dds_admission_batch_calls_count")?;
        }
        anyhow::Ok(statements)
    };
    for api in apis.iter().chain(&apis) {
        assert_eq!(status(api, CALL, &key).await?, 200);
    }
    let before = statements().await?;
    for number in 0..30 {
        assert_eq!(status(&apis[number % 3], CALL, &key).await?, 200);
    }
    assert!(
        (statements().await? - before - 30.0).abs() < 0.5,
        "{} for 30 calls",
        statements().await? - before
    );
    Ok(())
}

/// Another session changes the rows of all accounts without a pause. Even then, an instance needs at most two SQL
/// statements for the first call of an account.
#[tokio::test]
async fn an_instance_comes_to_know_an_account_that_never_rests() -> Result<()> {
    let app = TestApp::start().await?;
    let figures = app.free_address()?;
    let api = app.api_serve_with(&[("METRICS_LISTEN", &figures)]).await?;
    let mut keys = Vec::new();
    for number in 0..3 {
        let email = format!("{number}@example.com");
        app.create_account(&email, "free").await?;
        keys.push(app.create_key(&email, "key").await?);
    }
    let others = app.servers().postgres.connect(app.database()).await?;
    let calling = async {
        for key in &keys {
            assert_eq!(status(&api, CALL, key).await?, 200);
        }
        let statements = scrape(&figures).await?.value("dds_admission_batch_calls_count")?;
        assert!(statements < 6.5, "{statements} for three accounts");
        anyhow::Ok(())
    };
    others.batch_execute("set synchronous_commit = off").await?;
    let changing = others.batch_execute(
        "do $$
         declare ends timestamptz := clock_timestamp() + interval '5 seconds';
         begin
           while clock_timestamp() < ends loop
             update accounts.limiter set used = used;
             commit;
           end loop;
         end $$",
    );
    tokio::select! {
        ended = calling => ended,
        ended = changing => anyhow::bail!("the calls took too long: {ended:?}"),
    }
}
