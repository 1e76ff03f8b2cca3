//! Admission of calls by the rows of accounts and keys in Postgres, which all instances share.

use anyhow::{Context, Result};
use futures::future::join_all;
use harness::{Api, TestApp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

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
        for _ in 0..6 {
            assert_eq!(status(&api, CALL, &kept).await?, 200);
        }
        for (key, expected) in [(&key, 401), (&kept, 200), (&key, 401)] {
            assert_eq!(status(&api, CALL, key).await?, expected, "{name}");
        }
    }
    Ok(())
}

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

/// Calls are subtracted from the balance in the database, which other instances also change.
#[tokio::test]
async fn calls_are_taken_from_what_others_left() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let key = app.key("free").await?;
    let left = "select tokens / 6e7::float8, extract(epoch from at)::float8, used, month::text, cap from accounts.limiter";
    let others = [
        ("tokens = 17.25 * 60000000, at = clock_timestamp(), used = 40", 200),
        ("tokens = 3 * 60000000, at = clock_timestamp() - interval '20 seconds'", 200),
        ("tokens = 0.5 * 60000000, at = clock_timestamp() - interval '1 hour', used = used + 1", 200),
        // The clock of another instance is ahead.
        ("tokens = 2 * 60000000, at = clock_timestamp() + interval '500 milliseconds'", 200),
        ("tokens = 0.25 * 60000000, at = clock_timestamp()", 429),
        ("tokens = 10 * 60000000, used = 4999", 200),
        ("tokens = 10 * 60000000, used = 5000", 429),
        ("tokens = 10 * 60000000, used = 5000, month = month - interval '1 month'", 200),
        // The bucket has the size of another tier, and 7 of its 40 calls are used.
        ("tokens = 33 * 60000000, cap = 40, at = clock_timestamp()", 200),
    ];
    for (change, expected) in others {
        app.sql(
            "update accounts.limiter set tokens = 20 * 60000000, cap = 20, used = 0, at = clock_timestamp(),
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

/// Another session changes the rows of all accounts without a pause. Even then, an instance needs one SQL statement for
/// a call.
#[tokio::test]
async fn a_call_of_an_account_that_never_rests_costs_one_statement() -> Result<()> {
    let app = TestApp::start().await?;
    let figures = app.free_address()?;
    let api = app.api_serve_with(&[("METRICS_LISTEN", &figures)]).await?;
    let mut keys = Vec::new();
    for number in 0..3 {
        let email = format!("{number}@example.com");
        app.create_account(&email, "free").await?;
        keys.push(app.create_key(&email, "key").await?);
    }
    let others = app.servers().postgres.connect(app.accounts_database()).await?;
    let calling = async {
        for key in &keys {
            assert_eq!(status(&api, CALL, key).await?, 200);
        }
        let statements = scrape(&figures).await?.value("dds_admission_batch_calls_count")?;
        assert!(statements < 3.5, "{statements} for three accounts");
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

/// Micro-tokens that a call takes.
const CALL_TOKENS: i64 = 60_000_000;
/// Calls per minute of the key that has its own rate limit.
const OWN_RATE: i32 = 12;
/// Tiers with their rank, rate, burst and quota. The quotas are small, so that the test reaches them.
const TIERS: [(&str, i16, i64, i64, i64); 4] = [
    ("free", 0, 10, 20, 30),
    ("starter", 1, 30, 60, 100),
    ("premium", 2, 100, 200, 300),
    ("professional", 3, 300, 600, 900),
];

/// Reference implementation of the rules, for one account with a plain key and a key that has its own rate limit.
struct Model {
    tier: usize,
    capacity: i64,
    tokens: i64,
    at: i64,
    own_tokens: i64,
    own_at: i64,
    used: i64,
}

impl Model {
    fn refill(&mut self, now: i64) {
        let (_, _, rate, burst, _) = TIERS[self.tier];
        let spent = self.capacity * CALL_TOKENS - self.tokens;
        self.capacity = burst;
        self.tokens = (burst * CALL_TOKENS - spent).max(0) + rate * (now - self.at).max(0);
        self.tokens = self.tokens.min(burst * CALL_TOKENS);
        self.at = now;
    }

    fn refill_own(&mut self, now: i64) {
        self.own_tokens += i64::from(OWN_RATE) * (now - self.own_at).max(0);
        self.own_tokens = self.own_tokens.min(i64::from(OWN_RATE) * CALL_TOKENS);
        self.own_at = now;
    }

    /// Decides one call. Returns if it was granted, and if it was counted.
    fn call(&mut self, uses_own: bool, counted_rank: Option<i16>) -> (bool, bool) {
        let (_, rank, _, _, quota) = TIERS[self.tier];
        let granted = self.tokens >= CALL_TOKENS && (!uses_own || self.own_tokens >= CALL_TOKENS);
        if granted {
            self.tokens -= CALL_TOKENS;
            self.own_tokens -= if uses_own { CALL_TOKENS } else { 0 };
        }
        let counted = granted && counted_rank.is_some_and(|needed| rank >= needed) && self.used < quota;
        self.used += i64::from(counted);
        (granted, counted)
    }
}

/// Random batches of calls, with pauses, clock changes and changes of the tier in between.
#[tokio::test]
async fn random_batches_are_decided_as_the_rules_say() -> Result<()> {
    let app = TestApp::start().await?;
    app.create_account("model@example.com", "free").await?;
    app.create_key("model@example.com", "plain").await?;
    app.create_key("model@example.com", "own").await?;
    app.sql("update accounts.api_keys set rate_per_minute = $1 where name = 'own'", &[&OWN_RATE]).await?;
    for (tier, _, _, _, quota) in TIERS {
        app.sql("update accounts.tiers set monthly_quota = $2 where tier = $1", &[&tier, &quota]).await?;
    }
    let rows = app.sql("select hash from accounts.api_keys order by id", &[]).await?;
    let hashes = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<Vec<u8>>, _>>()?;
    let microseconds = "select (extract(epoch from at) * 1000000)::bigint from accounts.limiter";
    let (start, own) = (app.sql_value::<i64>(microseconds).await?, i64::from(OWN_RATE) * CALL_TOKENS);
    let mut model = Model {
        tier: 0,
        capacity: 20,
        tokens: 20 * CALL_TOKENS,
        at: start,
        own_tokens: own,
        own_at: start,
        used: 0,
    };
    let mut rng = StdRng::seed_from_u64(1);
    for step in 0..400 {
        match rng.random_range(0..8) {
            0 => {
                model.tier = rng.random_range(0..TIERS.len());
                app.sql("update accounts.accounts set tier = $1", &[&TIERS[model.tier].0]).await?;
            }
            1 => {
                model.used = 0;
                app.sql("update accounts.limiter set used = 0", &[]).await?;
            }
            2..5 => {
                // A positive number of milliseconds is a pause. A negative one is a clock that was set back.
                let pause: i64 = rng.random_range(-5_000..40_000);
                for table in ["accounts.limiter", "accounts.api_keys"] {
                    let change = format!("update {table} set at = at - $1 * interval '1 millisecond'");
                    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
                    app.sql(&change, &[&(pause as f64)]).await?;
                }
                (model.at, model.own_at) = (model.at - pause * 1_000, model.own_at - pause * 1_000);
            }
            _ => {}
        }
        let groups: Vec<(usize, i32, Option<i16>)> = (0..rng.random_range(1..5))
            .map(|_| {
                let counted_rank = rng.random_bool(0.8).then(|| rng.random_range(0..4));
                (rng.random_range(0..2), rng.random_range(1..12), counted_rank)
            })
            .collect();
        let keys: Vec<&[u8]> = groups.iter().map(|(key, ..)| hashes[*key].as_slice()).collect();
        let calls: Vec<i32> = groups.iter().map(|(_, calls, _)| *calls).collect();
        let ranks: Vec<Option<i16>> = groups.iter().map(|(.., rank)| *rank).collect();
        let query = "select *, (extract(epoch from decided_at) * 1000000)::bigint as now from accounts.admit($1, $2, $3)";
        let rows = app.sql(query, &[&keys, &calls, &ranks]).await?;
        assert_eq!(rows.len(), groups.len());
        let now: i64 = rows[0].try_get("now")?;
        model.refill(now);
        for ((key, calls, counted_rank), row) in groups.iter().zip(&rows) {
            let uses_own = *key == 1;
            if uses_own {
                model.refill_own(now);
            }
            let (mut granted, mut counted) = (0, 0);
            for _ in 0..*calls {
                let (is_granted, is_counted) = model.call(uses_own, *counted_rank);
                (granted, counted) = (granted + i64::from(is_granted), counted + i64::from(is_counted));
            }
            let number = |column: &str| row.try_get::<_, i64>(column);
            let decided = [number("granted")?, number("counted")?, number("tokens")?, number("used")?];
            assert_eq!(decided, [granted, counted, model.tokens, model.used], "step {step}");
            let key_tokens = row.try_get::<_, Option<i64>>("key_tokens")?;
            assert_eq!(key_tokens, uses_own.then_some(model.own_tokens), "step {step}");
        }
    }
    Ok(())
}
