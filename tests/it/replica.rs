//! Reads from a streaming replica of Postgres: the answers of the API, and the lag in its health report.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use futures::future::try_join_all;
use harness::{Api, Program, Reply, Servers, TestApp, eventually};
use reqwest::Method;
use serde_json::Value;

const QUOTE: &str = "/v1/stocks/REPL/quote";
const PATIENCE: Duration = Duration::from_secs(120);

async fn load(app: &TestApp, name: &str, close: &str, day: &str) -> Result<()> {
    app.feed(name, format!("symbol,date,close\nREPL,{day},{close}\n")).load().await
}

#[tokio::test]
async fn a_replica_serves_reads_and_its_lag_shows_in_health() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    load(&app, "prices-1.csv", "10", "2024-06-27").await?;
    app.catch_up().await?;
    let key = app.key("professional").await?;
    let replica = servers.postgres.replica().await?;
    let reads = replica.url(app.database()).replace("postgres@", "dds_api@");
    let api = app.api_serve_with(&[("DATABASE_READ_URLS", &reads)]).await?;
    let price = async || {
        let reply = api.get("/v1/stocks/REPL/quote", Some(&key)).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        Ok(reply.json()?["data"]["price"].clone())
    };
    assert_eq!(price().await?, 10);

    // The replica is paused. Newer data is not served, and the health answer reports the lag.
    let standing = replica.connect(app.database()).await?;
    standing.execute("select pg_wal_replay_pause()", &[]).await?;
    load(&app, "prices-2.csv", "11", "2024-06-28").await?;
    app.run(Program::Projector, &["run", "--until-caught-up"], &[]).await?.success()?;
    let lag = async || {
        let health: Value = api.get("/v1/health", None).await?.json()?;
        anyhow::Ok(health["data"]["components"]["projection"]["lag_events"].as_u64())
    };
    eventually(PATIENCE, async || {
        ensure!(lag().await?.is_some_and(|lag| lag > 0), "no lag is shown");
        Ok(())
    })
    .await?;
    assert_eq!(price().await?, 10);

    standing.execute("select pg_wal_replay_resume()", &[]).await?;
    eventually(PATIENCE, async || {
        ensure!(price().await? == 11 && lag().await? == Some(0), "not served yet");
        Ok(())
    })
    .await
}

/// Starts an API instance that reads from a replica. An instance remembers its newest data version, so each case needs
/// a new instance.
async fn reading(app: &TestApp, reads: &str, extra: (&str, &str)) -> Result<Api> {
    app.api_serve_with(&[("DATABASE_READ_URLS", reads), extra]).await
}

#[tokio::test]
async fn reads_from_replicas_never_go_back_for_a_client() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    app.feed("prices-1.csv", "symbol,date,close\nREPL,2024-06-27,10\nSECOND,2024-06-27,1\n").load().await?;
    app.feed("dividends.csv", "symbol,ex_date,amount\nREPL,2024-06-20,0.1\n").load().await?;
    app.catch_up().await?;
    let key = app.key("professional").await?;
    let replica = servers.postgres.replica().await?;
    let reads = replica.url(app.database()).replace("postgres@", "dds_api@");
    let standing = replica.connect(app.database()).await?;
    eventually(PATIENCE, async || {
        standing.query_one("select 1 from read_g1.quotes where symbol = 'REPL'", &[]).await?;
        Ok(())
    })
    .await?;
    standing.execute("select pg_wal_replay_pause()", &[]).await?;
    let plain = ("MAX_REPLICA_AGE", "1000s");
    let [by_parameter, by_header, by_tag, by_cursor, by_sync] =
        try_join_all((0..5).map(|_| reading(&app, &reads, plain)))
            .await?
            .try_into()
            .map_err(|_| anyhow!("five"))?;
    load(&app, "prices-2.csv", "11", "2024-06-28").await?;
    app.catch_up().await?;

    // A client has seen newer data, read from the primary.
    let primary = app.api_serve().await?;
    let ask = async |api: &Api, path: &str, header: Option<(&'static str, String)>| {
        let headers: Vec<(&str, String)> = [("x-api-key", key.clone())].into_iter().chain(header).collect();
        api.send(Method::GET, path, &headers).await
    };
    let seen = ask(&primary, QUOTE, None).await?;
    assert_eq!(seen.json()?["data"]["price"], 11);
    let version = seen.json()?["meta"]["data_version"].as_str().context("a version")?.to_owned();
    let list = ask(&primary, "/v1/stocks?limit=1", None).await?.json()?;
    let cursor = list["meta"]["next_cursor"].as_str().context("a cursor")?.to_owned();
    let history = ask(&primary, "/v1/dividends/history?symbols=REPL", None).await?.json()?;
    let sync_from = history["meta"]["sync_from"].as_str().context("a sync_from")?.to_owned();

    // If a client does not send what it has seen, the older data of the replica is returned.
    for api in [&by_parameter, &by_header, &by_tag, &by_cursor, &by_sync] {
        assert_eq!(ask(api, QUOTE, None).await?.json()?["data"]["price"], 10);
    }
    let newest = |reply: Reply| {
        ensure!(reply.status == 200, "{}", reply.text());
        ensure!(reply.json()?["meta"]["data_version"] == version.as_str(), "{}", reply.text());
        anyhow::Ok(())
    };
    newest(ask(&by_parameter, &format!("{QUOTE}?min_version={version}"), None).await?)?;
    newest(ask(&by_header, QUOTE, Some(("if-min-version", version.clone()))).await?)?;
    newest(ask(&by_cursor, &format!("/v1/stocks?limit=1&cursor={cursor}"), None).await?)?;
    newest(ask(&by_sync, &format!("/v1/dividends/history?updated_since={sync_from}"), None).await?)?;
    let etag = seen.header("etag").context("an entity tag")?.to_owned();
    let unchanged = ask(&by_tag, QUOTE, Some(("if-none-match", etag))).await?;
    assert_eq!(unchanged.status, 304, "{}", unchanged.text());
    // From then on, an instance returns no older data.
    for api in [&by_parameter, &by_header, &by_tag, &by_cursor, &by_sync] {
        assert_eq!(ask(api, QUOTE, None).await?.json()?["data"]["price"], 11);
    }
    // A replica that has lacked newer data for too long is no longer used.
    let impatient = reading(&app, &reads, ("MAX_REPLICA_AGE", "1s")).await?;
    eventually(PATIENCE, async || newest(ask(&impatient, QUOTE, None).await?)).await?;

    for (path, status, code) in [
        ("min_version=g1.999999", 412, "VERSION_NOT_SERVED"),
        ("min_version=g1.1.999999", 412, "VERSION_NOT_SERVED"),
        ("min_version=g7.1", 200, ""),
        ("min_version=newest", 400, "INVALID_PARAMETER"),
    ] {
        let reply = ask(&by_tag, &format!("{QUOTE}?{path}"), None).await?;
        assert_eq!(reply.status.as_u16(), status, "{path}: {}", reply.text());
        assert_eq!(reply.json()?["code"].as_str().unwrap_or_default(), code, "{path}");
    }
    standing.execute("select pg_wal_replay_resume()", &[]).await?;
    Ok(())
}
