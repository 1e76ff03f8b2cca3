//! Reads from a streaming replica of Postgres: the answers, and how far behind they are.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Program, Servers, TestApp, eventually};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(30);

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

    // The replica stands still: what is applied meanwhile is not served, and health says so.
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
