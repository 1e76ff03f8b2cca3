//! When the store that decides is gone: no data without a decision, an answer within a second, recovery by itself.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use harness::{Api, Program, Reply, Servers, TestApp, eventually};
use serde_json::json;
use tokio::net::TcpListener;

use crate::api_world::check;

const CALL: &str = "/v1/stocks?limit=1";
/// The default, which tests of other things raise.
const PATIENCE: [(&str, &str); 1] = [("API_ADMISSION_TIMEOUT_MS", "250")];

/// A refusal that came within a second.
async fn refused_quickly(api: &Api, key: &str) -> Result<Reply> {
    let started = Instant::now();
    let reply = api.get(CALL, Some(key)).await?;
    let took = started.elapsed();
    ensure!(took < Duration::from_secs(1), "{} after {took:?}", reply.status);
    ensure!(reply.status == 503, "{}: {}", reply.status, reply.text());
    check(&reply.json()?, json!({ "code": "SERVICE_UNAVAILABLE" }));
    ensure!(reply.header("retry-after") == Some("1"), "{reply:?}");
    ensure!(reply.header("x-ratelimit-limit").is_some(), "{reply:?}");
    Ok(reply)
}

async fn serves_again(api: &Api, key: &str) -> Result<Reply> {
    eventually(Duration::from_secs(30), async || {
        let reply = api.get(CALL, Some(key)).await?;
        ensure!(reply.status == 200, "{}", reply.status);
        Ok(reply)
    })
    .await
}

#[tokio::test]
async fn without_its_store_the_api_answers_503_and_recovers_by_itself() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let (one, two) = (app.api_serve_with(&PATIENCE).await?, app.api_serve_with(&PATIENCE).await?);
    // One that has time to connect anew, however busy the machine is.
    let patient = app.api_serve().await?;
    let key = app.key("professional").await?;
    assert_eq!(one.get(CALL, Some(&key)).await?.status, 200);

    servers.postgres.kill9().await?;
    // A session may outlive its server by a moment, and decide.
    eventually(Duration::from_secs(10), async || refused_quickly(&one, &key).await).await?;
    eventually(Duration::from_secs(10), async || refused_quickly(&two, &key).await).await?;
    for _ in 0..5 {
        refused_quickly(&one, &key).await?;
        refused_quickly(&two, &key).await?;
    }
    assert_eq!(patient.get(CALL, Some(&key)).await?.status, 503);
    // A key that cannot be looked up is not refused as wrong; one that cannot be a key is.
    assert_eq!(one.get(CALL, Some("dds_live_nonsense")).await?.status, 401);
    eventually(Duration::from_secs(10), async || {
        let health = one.get("/v1/health", None).await?;
        ensure!(health.status == 503, "{}", health.text());
        check(&health.json()?["data"], json!({ "status": "down" }));
        Ok(())
    })
    .await?;
    let started = Instant::now();
    one.get("/v1/health", None).await?;
    assert!(started.elapsed() < Duration::from_secs(1), "health waits {:?} for nothing", started.elapsed());

    servers.postgres.restart().await?;
    // Before anybody calls, every instance has a connection again that decides.
    let deciding =
        "select count(*) from pg_stat_activity where usename = 'dds_api' and query like '%accounts.limiter%'";
    eventually(Duration::from_secs(30), async || {
        let open: i64 = app.sql_value(deciding).await?;
        ensure!(open >= 3, "{open} instances have a connection");
        Ok(())
    })
    .await?;
    // Nothing of the outage is left for the first call.
    let first = patient.get(CALL, Some(&key)).await?;
    assert_eq!(first.status, 200, "{}", patient.process.log_tail(5));
    serves_again(&one, &key).await?;
    let reply = serves_again(&two, &key).await?;
    let left: i64 = reply.header("x-quota-remaining").unwrap_or_default().parse()?;
    assert!((999_900..=999_998).contains(&left), "{left}");
    Ok(())
}

#[tokio::test]
async fn a_store_that_hangs_is_a_store_that_is_gone() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&PATIENCE).await?;
    let key = app.key("professional").await?;
    assert_eq!(api.get(CALL, Some(&key)).await?.status, 200);
    // A lock that nobody gives back stands for any statement that does not end.
    let holder = app.servers().postgres.connect(app.database()).await?;
    holder.batch_execute("begin; select * from accounts.limiter for update").await?;
    for _ in 0..3 {
        refused_quickly(&api, &key).await?;
    }
    holder.batch_execute("rollback").await?;
    serves_again(&api, &key).await?;
    Ok(())
}

/// A server that takes connections and never says a word, from before the API starts.
#[tokio::test]
async fn a_store_that_is_silent_from_the_start_keeps_no_call_waiting() -> Result<()> {
    let app = TestApp::start().await?;
    let key = app.key("professional").await?;
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("postgres://dds_api@{}/nothing", silent.local_addr()?);
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            held.push(stream);
        }
    });
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?.to_string();
    let env = [PATIENCE[0], ("API_DATABASE_URL", url.as_str())];
    let _api = app.spawn_with(Program::Api, &["serve", "--listen", &address], &env).await?;
    let client = harness::client(Duration::from_secs(30))?;
    let ask = async |path: &str| {
        client.get(format!("http://{address}{path}")).header("x-api-key", &key).send().await
    };
    let health = eventually(Duration::from_secs(30), async || Ok(ask("/v1/health").await?)).await?;
    assert_eq!(health.status(), 503);
    for _ in 0..3 {
        let started = Instant::now();
        let reply = ask(CALL).await?;
        assert_eq!(reply.status(), 503);
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    }
    Ok(())
}
