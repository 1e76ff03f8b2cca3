//! Tests of the usage statistics. The counts equal the number of calls that were sent to several processes. A killed
//! process may lose the counts of its last second.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use harness::{Api, Signal, TestApp};

use super::visitor::Person;

type Rows = BTreeMap<(String, String, String), i64>;

/// Returns today's counts of calls by endpoint, key name and outcome.
async fn counted(app: &TestApp) -> Result<Rows> {
    let rows = app
        .sql(
            "select c.endpoint, k.name, c.outcome, sum(c.calls)::bigint from accounts.calls c
             join accounts.api_keys k on k.id = c.key_id and k.account_id = c.account_id
             where c.day = (now() at time zone 'utc')::date group by 1, 2, 3",
            &[],
        )
        .await?;
    rows.iter()
        .map(|row| Ok(((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?), row.try_get(3)?)))
        .collect()
}

async fn send(apis: &[&Api], key: &str, path: &str, calls: usize, status: u16) -> Result<()> {
    let replies = join_all((0..calls).map(|number| apis[number % apis.len()].get(path, Some(key)))).await;
    for reply in replies {
        let reply = reply?;
        ensure!(reply.status == status, "{path}: {} {}", reply.status, reply.text());
    }
    Ok(())
}

#[tokio::test]
async fn calls_over_three_processes_are_counted_as_they_were_sent() -> Result<()> {
    let app = TestApp::builder().env("SIGN_UP", "open").env("BILLING", "self_service").start().await?;
    let mut apis = vec![];
    for _ in 0..3 {
        apis.push(app.api_serve().await?);
    }
    let mut person = Person::signed_up(&apis[0], "counts@example.com").await?;
    person.fill("/dashboard/plan", "/dashboard/plan", &[("tier", "starter")]).await?;
    app.sql("update accounts.tiers set rate_per_minute = 100000, burst = 100000 where tier = 'starter'", &[])
        .await?;
    let (one, two) = (person.create_key("one").await?, person.create_key("two").await?);
    let all: Vec<&Api> = apis.iter().collect();
    let mix = [
        (&one, "one", "/v1/stocks?limit=1", "/v1/stocks", 30, 200, "answered"),
        (&two, "two", "/v1/stocks?limit=1", "/v1/stocks", 12, 200, "answered"),
        (&one, "one", "/v1/stocks/NOPE/quote", "/v1/stocks/{symbol}/quote", 9, 404, "not_found"),
        (&one, "one", "/v1/stocks?limit=0", "/v1/stocks", 6, 400, "mistake"),
        (&two, "two", "/v1/bulk/quotes?symbols=A", "/v1/bulk/quotes", 3, 403, "plan"),
        (&two, "two", "/v1/nowhere", "other", 3, 404, "not_found"),
    ];
    let mut expected = Rows::new();
    for (key, name, path, endpoint, calls, status, outcome) in mix {
        send(&all, key, path, calls, status).await?;
        expected.insert((endpoint.to_owned(), name.to_owned(), outcome.to_owned()), i64::try_from(calls)?);
    }
    harness::eventually(Duration::from_secs(120), async || {
        let found = counted(&app).await?;
        ensure!(found == expected, "{found:#?}");
        Ok(())
    })
    .await?;

    // The second process is killed, so its last ten calls may be missing from the counts. The counts of the other
    // processes are complete.
    send(&[&apis[1]], &one, "/v1/stocks?limit=1", 10, 200).await?;
    apis[1].process.kill9()?;
    send(&[&apis[0], &apis[2]], &one, "/v1/stocks?limit=1", 20, 200).await?;
    // A stopped process writes its counts before it ends.
    send(&[&apis[2]], &two, "/v1/stocks?limit=1", 10, 200).await?;
    apis[2].process.stop(Signal::TERM, Duration::from_secs(120)).await?;
    let answered = |rows: &Rows, name: &str| {
        rows.get(&("/v1/stocks".to_owned(), name.to_owned(), "answered".to_owned())).copied().unwrap_or(0)
    };
    harness::eventually(Duration::from_secs(120), async || {
        let found = counted(&app).await?;
        ensure!((50..=60).contains(&answered(&found, "one")), "{found:#?}");
        ensure!(answered(&found, "two") == 22, "{found:#?}");
        Ok(())
    })
    .await?;
    // The used quota is exact. It includes calls about unknown symbols, and the calls of the killed process.
    assert_eq!(app.sql_value::<i64>("select used from accounts.limiter").await?, 30 + 12 + 9 + 10 + 20 + 10);

    let told =
        app.api(&["usage", "counts@example.com", "--calls", "1", "--json"]).await?.success()?.json()?;
    let quote =
        told.as_array().into_iter().flatten().find(|row| row["endpoint"] == "/v1/stocks/{symbol}/quote");
    assert_eq!(quote.map(|row| (&row["calls"], &row["key"])), Some((&9.into(), &"one".into())), "{told}");

    let usage = person.get("/dashboard/usage").await?;
    let row =
        usage.text.split("<tr>").find(|row| row.contains("/v1/stocks/{symbol}/quote")).context("a row")?;
    assert!(row.contains("Not found (404)") && row.contains(">9<"), "{row}");
    for said in
        ["Not in your plan (403)", "A mistake in the call (400)", "role=\"img\"", "from 1 ", "starts anew 1 "]
    {
        assert!(usage.has(said), "{said}: {}", usage.text);
    }
    Ok(())
}

#[tokio::test]
async fn statistics_wait_for_the_store_and_no_call_waits_for_them() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let key = app.key("starter").await?;
    app.sql("revoke insert on accounts.calls from dds_api", &[]).await?;
    send(&[&api], &key, "/v1/stocks?limit=1", 20, 200).await?;
    app.sql("grant insert on accounts.calls to dds_api", &[]).await?;
    harness::eventually(Duration::from_secs(120), async || {
        let calls: Option<i64> = app.sql_value("select sum(calls)::bigint from accounts.calls").await?;
        ensure!(calls == Some(20), "{calls:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn calls_that_the_store_is_slow_to_count_are_counted_once() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let key = app.key("starter").await?;
    let other = app.servers().postgres.connect(app.accounts_database()).await?;
    other.batch_execute("begin; lock table accounts.calls in exclusive mode").await?;
    send(&[&api], &key, "/v1/stocks?limit=1", 20, 200).await?;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    other.batch_execute("commit").await?;
    let calls = async || app.sql_value::<Option<i64>>("select sum(calls)::bigint from accounts.calls").await;
    harness::eventually(Duration::from_secs(120), async || {
        let calls = calls().await?;
        ensure!(calls == Some(20), "{calls:?}");
        Ok(())
    })
    .await?;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(calls().await?, Some(20));
    Ok(())
}
