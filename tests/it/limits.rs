//! Rate and quota over several processes of the API: exact however many there are, and whatever dies.
//!
//! The clock that decides is the store's; tests move the stored moments instead.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt};
use harness::{Api, Reply, Signal, TestApp};
use reqwest::Method;
use serde_json::{Value, json};

use crate::api_world::check;

/// A call that needs no data and counts.
const CALL: &str = "/v1/stocks?limit=1";

/// An app without data and several processes that serve it.
struct Cluster {
    app: TestApp,
    apis: Vec<Api>,
}

impl Cluster {
    async fn start(instances: usize) -> Result<Cluster> {
        let app = TestApp::start().await?;
        let mut apis = Vec::new();
        for _ in 0..instances {
            apis.push(app.api_serve().await?);
        }
        Ok(Cluster { app, apis })
    }

    /// An account and its first key.
    async fn account(&self, email: &str, tier: &str) -> Result<String> {
        self.app.create_account(email, tier).await?;
        self.app.create_key(email, "first").await
    }

    /// Parallel calls, in turn to every process and with every key.
    async fn burst(&self, keys: &[&String], calls: usize) -> Result<Vec<Reply>> {
        let call = |number: usize| {
            let (api, key) = (&self.apis[number % self.apis.len()], keys[number % keys.len()]);
            api.get(CALL, Some(key))
        };
        join_all((0..calls).map(call)).await.into_iter().collect()
    }

    /// The status every process answers with.
    async fn statuses(&self, path: &str, key: &str) -> Result<Vec<u16>> {
        let replies = join_all(self.apis.iter().map(|api| api.get(path, Some(key)))).await;
        replies.into_iter().map(|reply| Ok(reply?.status.as_u16())).collect()
    }

    /// Changes the limiter's row of every account.
    async fn limiter(&self, change: &str) -> Result<()> {
        self.app.sql(&format!("update accounts.limiter set {change}"), &[]).await?;
        Ok(())
    }

    /// What was charged since the bucket held five calls and nothing was counted.
    async fn charges(&self) -> Result<(f64, i64)> {
        let rows = self.app.sql("select 5 - floor(tokens), used from accounts.limiter", &[]).await?;
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

/// Fails when an account is charged although its row is not the one that was read.
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
    // Every call was told its own remainder: 9 to 1 once each, and 0 to the eleven others.
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

/// Fails when an account is charged although its row is not the one that was read.
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

/// Fails when an account is charged although its row is not the one that was read.
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
    // What the small key was refused was not taken from the account.
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
        cluster.limiter("tokens = 5, cap = 20, at = clock_timestamp(), used = 0").await?;
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
    // An empty bucket and a full month: 403 beats 429, and the rate comes before the quota.
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
    harness::eventually(std::time::Duration::from_secs(10), async || {
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
    let ended = cluster.apis[0].process.stop(Signal::TERM, std::time::Duration::from_secs(20)).await?;
    assert!(ended.success(), "{ended}");
    assert_eq!(cluster.app.sql_value::<i64>("select used from accounts.limiter").await?, 0);
    Ok(())
}

#[tokio::test]
async fn every_response_tells_the_limits() -> Result<()> {
    let cluster = Cluster::start(1).await?;
    let (api, key) = (&cluster.apis[0], cluster.account("headers@example.com", "free").await?);
    cluster.app.sql("revoke select on read_g1.metrics from dds_api", &[]).await?;
    let cases = [
        (Method::GET, "/v1/health", None, 200, "6000"),
        (Method::GET, "/openapi.json", None, 200, "6000"),
        (Method::GET, "/nowhere", None, 404, "6000"),
        (Method::POST, "/docs", None, 405, "6000"),
        (Method::GET, CALL, None, 401, "120"),
        (Method::GET, CALL, Some(&key), 200, "10"),
        (Method::HEAD, CALL, Some(&key), 200, "10"),
        (Method::GET, "/v1/nope", Some(&key), 404, "10"),
        (Method::PUT, CALL, Some(&key), 405, "10"),
        (Method::GET, "/v1/stocks?limit=0", Some(&key), 400, "10"),
        (Method::GET, "/v1/bulk/quotes?symbols=A", Some(&key), 403, "10"),
        (Method::GET, "/v1/stocks/NOPE/metrics", Some(&key), 500, "10"),
    ];
    for (method, path, key, status, limit) in cases {
        let headers: Vec<(&str, String)> = key.map(|key| ("x-api-key", key.clone())).into_iter().collect();
        let before = chrono::Utc::now().timestamp();
        let reply = api.send(method, path, &headers).await?;
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert_eq!(reply.header("x-ratelimit-limit"), Some(limit), "{path} {status}");
        assert!((0..=limit.parse()?).contains(&number(&reply, "x-ratelimit-remaining")?), "{path}");
        assert!(number(&reply, "x-ratelimit-reset")? > before, "{path}");
        assert_eq!(reply.header("x-quota-limit"), key.map(|_| "5000"), "{path}");
        assert_eq!(reply.header("ratelimit").is_some(), key.is_some(), "{path}");
        assert!(reply.header("x-request-id").is_some(), "{path}");
        assert_eq!(reply.header("www-authenticate"), (status == 401).then_some("Bearer"), "{path}");
        assert_eq!(reply.header("allow"), (status == 405).then_some("GET, HEAD"), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn headers_keep_their_promises() -> Result<()> {
    let cluster = Cluster::start(1).await?;
    let (api, key) = (&cluster.apis[0], cluster.account("promise@example.com", "free").await?);
    let first = api.get(CALL, Some(&key)).await?;
    assert_eq!(number(&first, "x-ratelimit-remaining")?, 9);
    assert_eq!(first.header("x-quota-remaining"), Some("4999"));
    cluster.limiter("tokens = 0").await?;
    let refused = api.get(CALL, Some(&key)).await?;
    assert_eq!(refused.status, 429);
    let wait = number(&refused, "retry-after")?;
    assert!((1..=6).contains(&wait), "{wait}");
    cluster.limiter(&format!("at = at - interval '{wait} seconds'")).await?;
    assert_eq!(api.get(CALL, Some(&key)).await?.status, 200);
    let last = api.get(CALL, Some(&key)).await?;
    let until_reset = number(&last, "x-ratelimit-reset")? - chrono::Utc::now().timestamp();
    assert!((100..=121).contains(&until_reset), "{until_reset}");
    cluster.limiter(&format!("at = at - interval '{until_reset} seconds'")).await?;
    let after = api.get(CALL, Some(&key)).await?;
    assert_eq!((after.status.as_u16(), number(&after, "x-ratelimit-remaining")?), (200, 9));
    Ok(())
}

/// Fails when refused calls leave the account's time as it was.
#[tokio::test]
async fn months_and_clocks_only_move_forward() -> Result<()> {
    let cluster = Cluster::start(2).await?;
    let key = cluster.account("month@example.com", "free").await?;
    let remaining = async |change: &str| -> Result<(u16, Option<String>)> {
        cluster.limiter(change).await?;
        let reply = cluster.apis[0].get(CALL, Some(&key)).await?;
        Ok((reply.status.as_u16(), reply.header("x-quota-remaining").map(str::to_owned)))
    };
    let full = "tokens = 20, at = clock_timestamp()";
    let seen = remaining(&format!("{full}, used = 5000, month = month - interval '1 month'")).await?;
    assert_eq!(seen, (200, Some("4999".to_owned())), "a new month begins with the whole quota");
    let seen = remaining(&format!("{full}, used = 5000, month = month + interval '1 month'")).await?;
    assert_eq!(seen, (429, Some("0".to_owned())), "a clock that went back brings no second month");
    let seen = remaining(&format!("{full}, used = 0, month = date_trunc('month', now() at time zone 'utc')"))
        .await?;
    assert_eq!(seen.0, 200);
    // The clock went back an hour: nothing is refilled for it, and from there on it flows as ever.
    assert_eq!(remaining("tokens = 0, at = clock_timestamp() + interval '1 hour'").await?.0, 429);
    assert_eq!(remaining("at = at - interval '7 seconds'").await?.0, 200);
    // And a leap ahead fills the bucket, no more.
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
    cluster.limiter("used = 60000, tokens = 590, at = clock_timestamp()").await?;
    cluster.app.api(&["account", "set-tier", "down@example.com", "starter"]).await?.success()?;
    let reply = cluster.apis[0].get(CALL, Some(&key)).await?;
    assert_eq!(reply.status, 429);
    let usage = json!({ "current": 60_000, "limit": 50_000, "percentage": 120 });
    assert_eq!(reply.json()?["usage"], usage);
    // Ten of 600 were used, so fifty of 60 were left before this call.
    let tokens: f64 = cluster.app.sql_value("select tokens from accounts.limiter").await?;
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
