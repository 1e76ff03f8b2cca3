//! Tests of the rate and quota limits over several API processes. The limits stay exact even if a process is killed.
//!
//! The limits use the clock of the database, so the tests change the times in the database.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use harness::{Api, Reply, Signal, TestApp};
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_world::check;

/// A call that needs no data and is charged.
const CALL: &str = "/v1/stocks?limit=1";

mod headers;
mod plan_changes;

struct Cluster {
    app: TestApp,
    apis: Vec<Api>,
}

impl Cluster {
    async fn start(instances: usize) -> Result<Cluster> {
        let app = TestApp::builder().separate_accounts().start().await?;
        let mut apis = Vec::new();
        for _ in 0..instances {
            apis.push(app.api_serve().await?);
        }
        Ok(Cluster { app, apis })
    }

    /// Creates an account and returns its first key.
    async fn account(&self, email: &str, tier: &str) -> Result<String> {
        self.app.create_account(email, tier).await?;
        self.app.create_key(email, "first").await
    }

    /// Sends parallel calls, distributed over all processes and keys.
    async fn burst(&self, keys: &[&String], calls: usize) -> Result<Vec<Reply>> {
        let call = |number: usize| {
            let (api, key) = (&self.apis[number % self.apis.len()], keys[number % keys.len()]);
            api.get(CALL, Some(key))
        };
        join_all((0..calls).map(call)).await.into_iter().collect()
    }

    async fn statuses(&self, path: &str, key: &str) -> Result<Vec<u16>> {
        let replies = join_all(self.apis.iter().map(|api| api.get(path, Some(key)))).await;
        replies.into_iter().map(|reply| Ok(reply?.status.as_u16())).collect()
    }

    /// Updates the limiter rows of all accounts with the SQL assignment `change`.
    async fn limiter(&self, change: &str) -> Result<()> {
        self.app.sql(&format!("update accounts.limiter set {change}"), &[]).await?;
        Ok(())
    }

    /// Returns the number of tokens taken from the bucket, and the number of calls charged to the quota. The test must
    /// have set the bucket to five tokens and the used quota to zero before.
    async fn charges(&self) -> Result<(f64, i64)> {
        let rows =
            self.app.sql("select 5 - floor(tokens / 6e7::float8), used from accounts.limiter", &[]).await?;
        let row = rows.first().context("one account")?;
        Ok((row.try_get(0)?, row.try_get(1)?))
    }
}

fn count(replies: &[Reply], status: u16) -> usize {
    replies.iter().filter(|reply| reply.status == status).count()
}

fn number(reply: &Reply, header: &str) -> Result<i64> {
    let value = reply.header(header).with_context(|| format!("{header} is missing: {reply:?}"))?;
    Ok(value.parse()?)
}

/// Fails if two processes read the same balance, and the second write overwrites the first.
#[tokio::test]
async fn two_hundred_calls_over_three_instances_pass_exactly_the_burst() -> Result<()> {
    let cluster = Cluster::start(3).await?;
    let key = cluster.account("one@example.com", "free").await?;
    let started = Instant::now();
    let replies = cluster.burst(&[&key], 200).await?;
    let refilled = usize::try_from(started.elapsed().as_secs() / 6)?;
    let passed = count(&replies, 200);
    assert!((20..=20 + refilled).contains(&passed), "{passed} passed in {:?}", started.elapsed());
    assert_eq!(passed + count(&replies, 429), 200);
    let refused = replies.iter().find(|reply| reply.status == 429).context("some are refused")?;
    check(&refused.json()?, json!({ "code": "RATE_LIMITED" }));
    assert_eq!(Some(number(refused, "retry-after")?), refused.json()?["retryAfter"].as_i64());
    assert_eq!(refused.header("x-ratelimit-limit"), Some("10"));
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    // The admitted calls report the remainders 9 to 1 once each, and the eleven other calls report 0.
    let mut told = Vec::new();
    for reply in replies.iter().filter(|reply| reply.status == 200) {
        told.push(number(reply, "x-ratelimit-remaining")?);
    }
    told.sort_unstable();
    let mut expected = vec![0; 11 + refilled];
    expected.extend(1..=9);
    ensure!(refilled > 0 || told == expected, "{told:?}");
    Ok(())
}

/// Fails if two processes read the same balance, and the second write overwrites the first.
#[tokio::test]
async fn the_last_unit_of_the_quota_is_given_once() -> Result<()> {
    let cluster = Cluster::start(3).await?;
    let key = cluster.account("last@example.com", "professional").await?;
    cluster.limiter("used = 999999").await?;
    let replies = cluster.burst(&[&key], 50).await?;
    assert_eq!((count(&replies, 200), count(&replies, 429)), (1, 49));
    let refused = replies.iter().find(|reply| reply.status == 429).context("all but one are refused")?;
    let body = refused.json()?;
    check(&body, json!({ "code": "QUOTA_EXCEEDED", "upgrade_url": "/plans" }));
    assert_eq!(body["usage"], json!({ "current": 1_000_000, "limit": 1_000_000, "percentage": 100 }));
    assert_eq!(refused.header("x-ratelimit-remaining"), Some("0"));
    assert_eq!(refused.header("x-ratelimit-reset"), refused.header("x-quota-reset"));
    let month_end: i64 = cluster
        .app
        .sql_value("select extract(epoch from (month + interval '1 month') at time zone 'utc')::bigint from accounts.limiter")
        .await?;
    assert_eq!(number(refused, "x-quota-reset")?, month_end);
    assert!((1..=31 * 86_400).contains(&number(refused, "retry-after")?));
    Ok(())
}

#[tokio::test]
async fn keys_of_an_account_share_and_new_keys_buy_nothing() -> Result<()> {
    let cluster = Cluster::start(2).await?;
    let first = cluster.account("keys@example.com", "free").await?;
    let second = cluster.app.create_key("keys@example.com", "second").await?;
    let started = Instant::now();
    let replies = cluster.burst(&[&first, &second, &first, &second, &second], 60).await?;
    let passed = count(&replies, 200);
    cluster.app.api(&["key", "delete", "keys@example.com", "first"]).await?.success()?;
    let third = cluster.app.create_key("keys@example.com", "third").await?;
    let more = count(&cluster.burst(&[&third], 5).await?, 200);
    let refilled = usize::try_from(started.elapsed().as_secs() / 6)?;
    assert!((20..=20 + refilled).contains(&(passed + more)), "{passed} and {more}");
    assert_eq!(cluster.statuses(CALL, &first).await?, [401, 401]);
    for number in 0..8 {
        cluster.app.create_key("keys@example.com", &format!("more {number}")).await?;
    }
    let eleventh = cluster.app.api(&["key", "create", "keys@example.com", "--name", "eleventh"]).await?;
    assert_ne!(eleventh.code, 0);
    assert!(eleventh.stderr.contains("10 active keys"), "{}", eleventh.stderr);
    Ok(())
}

#[tokio::test]
async fn a_key_with_a_rate_of_its_own_takes_no_more() -> Result<()> {
    let cluster = Cluster::start(3).await?;
    let whole = cluster.account("capped@example.com", "professional").await?;
    let create =
        ["key", "create", "capped@example.com", "--name", "small", "--rate-per-minute", "5", "--json"];
    let created = cluster.app.api(&create).await?.success()?.json()?;
    assert_eq!(created["rate_per_minute"], json!(5));
    let small = created["secret"].as_str().context("a secret")?.to_owned();
    let started = Instant::now();
    let replies = cluster.burst(&[&small], 40).await?;
    let refilled = usize::try_from(started.elapsed().as_secs() / 12)?;
    assert!((5..=5 + refilled).contains(&count(&replies, 200)), "{}", count(&replies, 200));
    let refused = replies.iter().find(|reply| reply.status == 429).context("some are refused")?;
    assert_eq!(refused.header("x-ratelimit-limit"), Some("5"));
    assert!((1..=12).contains(&number(refused, "retry-after")?));
    let other = cluster.apis[0].get(CALL, Some(&whole)).await?;
    assert_eq!((other.status.as_u16(), other.header("x-ratelimit-limit")), (200, Some("300")));
    // The refused calls of the key `small` were not charged to the account.
    assert_eq!(other.header("x-quota-remaining"), Some("999994"));
    Ok(())
}

#[tokio::test]
async fn an_instance_killed_in_a_burst_gives_nothing_twice() -> Result<()> {
    let mut cluster = Cluster::start(3).await?;
    let key = cluster.account("killed@example.com", "free").await?;
    let client = harness::client(Duration::from_secs(60))?;
    let addresses: Vec<String> = cluster.apis.iter().map(|api| api.base_url.clone()).collect();
    let started = Instant::now();
    let mut calls: FuturesUnordered<_> = (0..200)
        .map(|number| {
            let request = client.get(format!("{}{CALL}", addresses[number % 3])).bearer_auth(&key);
            async move { (number % 3, request.send().await.map(|answer| answer.status().as_u16())) }
        })
        .collect();
    let (mut passed, mut answered, mut broken) = (0, 0, 0);
    while let Some((instance, outcome)) = calls.next().await {
        match outcome {
            Ok(status) => {
                ensure!([200, 429].contains(&status), "{status}");
                passed += usize::from(status == 200);
            }
            Err(error) => {
                ensure!(instance == 1, "a living instance broke off: {error}");
                broken += 1;
            }
        }
        answered += 1;
        if answered == 3 {
            cluster.apis[1].process.kill9()?;
        }
    }
    let refilled = usize::try_from(started.elapsed().as_secs() / 6)?;
    assert!(passed <= 20 + refilled, "{passed} passed, {broken} broke off");
    cluster.apis.remove(1);
    cluster.limiter("at = at - interval '2 minutes'").await?;
    assert_eq!(cluster.statuses(CALL, &key).await?, [200, 200]);
    Ok(())
}

#[tokio::test]
async fn every_outcome_charges_what_is_due() -> Result<()> {
    let cluster = Cluster::start(1).await?;
    let (api, key) = (&cluster.apis[0], cluster.account("charged@example.com", "free").await?);
    let key = [("x-api-key", key)];
    let call = async |before: &str, method: Method, path: &str| -> Result<(u16, f64, i64)> {
        cluster.limiter("tokens = 5 * 60000000, cap = 20, at = clock_timestamp(), used = 0").await?;
        cluster.limiter(before).await?;
        let status = api.send(method, path, &key).await?.status.as_u16();
        let (rate, quota) = cluster.charges().await?;
        Ok((status, rate, quota))
    };
    let same = "month = month";
    assert_eq!(call(same, Method::GET, CALL).await?, (200, 1.0, 1));
    assert_eq!(call(same, Method::HEAD, CALL).await?, (200, 1.0, 1));
    assert_eq!(call(same, Method::GET, "/v1/stocks/NOPE/quote").await?, (404, 1.0, 1));
    assert_eq!(call(same, Method::GET, "/v1/nope").await?, (404, 1.0, 0));
    assert_eq!(call(same, Method::POST, CALL).await?, (405, 1.0, 0));
    assert_eq!(call(same, Method::GET, "/v1/stocks?limit=0").await?, (400, 1.0, 0));
    assert_eq!(call(same, Method::GET, "/v1/stocks/NOPE/fundamentals").await?, (403, 1.0, 0));
    assert_eq!(call(same, Method::GET, "/v1/bulk/quotes?nonsense=1").await?, (403, 1.0, 0));
    assert_eq!(call(same, Method::GET, "/v1/prices/NOPE?start_date=1990-01-01").await?, (403, 1.0, 0));
    // A call that the plan does not permit gets 403 even if the bucket is empty. A call over the quota is still charged
    // to the rate limit.
    assert_eq!(call("tokens = 0", Method::GET, "/v1/stocks/NOPE/fundamentals").await?, (403, 5.0, 0));
    assert_eq!(call("tokens = 0", Method::GET, CALL).await?, (429, 5.0, 0));
    assert_eq!(call("tokens = 0", Method::GET, "/v1/nope").await?, (429, 5.0, 0));
    assert_eq!(call("used = 5000", Method::GET, CALL).await?, (429, 1.0, 5000));
    assert_eq!(call("used = 5000", Method::GET, "/v1/nope").await?, (404, 1.0, 5000));
    assert_eq!(call("used = 5000", Method::GET, "/v1/stocks?limit=0").await?, (400, 1.0, 5000));
    Ok(())
}

#[tokio::test]
async fn what_fails_on_our_side_is_given_back() -> Result<()> {
    let cluster = Cluster::start(1).await?;
    let key = cluster.account("refund@example.com", "free").await?;
    cluster.app.sql("revoke select on read_g1.quotes from dds_api", &[]).await?;
    let reply = cluster.apis[0].get("/v1/stocks/NOPE/quote", Some(&key)).await?;
    assert_eq!(reply.status, 500, "{}", reply.text());
    check(&reply.json()?, json!({ "code": "INTERNAL", "request_id": reply.header("x-request-id") }));
    assert!(!reply.text().contains("quotes"), "{}", reply.text());
    harness::eventually(std::time::Duration::from_secs(120), async || {
        let used: i64 = cluster.app.sql_value("select used from accounts.limiter").await?;
        ensure!(used == 0, "{used} counted");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_is_to_be_given_back_is_written_before_the_process_ends() -> Result<()> {
    let mut cluster = Cluster::start(1).await?;
    let key = cluster.account("shutdown@example.com", "professional").await?;
    cluster.app.sql("revoke select on read_g1.quotes from dds_api", &[]).await?;
    let calls = join_all((0..100).map(|_| cluster.apis[0].get("/v1/stocks/NOPE/quote", Some(&key)))).await;
    assert!(calls.into_iter().collect::<Result<Vec<_>>>()?.iter().all(|reply| reply.status == 500));
    let ended = cluster.apis[0].process.stop(Signal::TERM, std::time::Duration::from_secs(120)).await?;
    assert!(ended.success(), "{ended}");
    assert_eq!(cluster.app.sql_value::<i64>("select used from accounts.limiter").await?, 0);
    Ok(())
}
